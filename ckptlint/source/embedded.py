"""A text inside another one: the command in a job's YAML. Its spans and edits lead back to the file it stands in."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from ckptlint.source.text import Edit, SourceText, Span
from ckptlint.source.yaml_tree import Scalar

_RISKY = re.compile(r"[\n\r'\"\\]|: |:$| #|^[#&*!|>%@`{}\[\],?-]")


@dataclass(frozen=True, eq=False)
class EmbeddedText(SourceText):
    """The value of a YAML scalar. ``offsets``: where each of its characters is written; () where that is not known."""

    scalar: Scalar = field(kw_only=True, repr=False)
    offsets: tuple[int, ...] = field(default=(), kw_only=True, repr=False)
    indent: str = field(default="", kw_only=True, repr=False)

    def position(self, offset: int) -> tuple[int, int]:
        """1-based line and column in the file."""
        return self.scalar.source.position(self.offsets[offset] if self.offsets else self.scalar.start)

    def home(self, span: Span) -> Span:
        """The same characters in the file; the whole scalar where that is not known."""
        if not self.offsets:
            return self.scalar.span
        start = self.offsets[span.start]
        end = start if span.start == span.end else self.offsets[span.end - 1] + 1
        return Span(self.scalar.source, start, end)

    def home_edit(self, edit: Edit) -> Edit | None:
        """The same edit in the file; None where it cannot be written there."""
        if not self.offsets:
            return None
        if self.scalar.style == "|":
            return Edit(self.home(edit.span), edit.replacement.replace("\n", f"\n{self.indent}"))
        return None if _RISKY.search(edit.replacement) else Edit(self.home(edit.span), edit.replacement)


def embedded(scalar: Scalar) -> EmbeddedText:
    """The text of a scalar, traced to where it is written as far as one character stands for one."""
    offsets = _offsets(scalar)
    indent = ""
    if offsets and scalar.style == "|":
        line = scalar.source.line_at(offsets[0])
        indent = scalar.source.text[line.start : offsets[0]]
    return EmbeddedText(scalar.source.path, scalar.text, scalar=scalar, offsets=offsets, indent=indent)


def _offsets(scalar: Scalar) -> tuple[int, ...]:
    raw, at, end = scalar.source.text, scalar.start, scalar.end
    if scalar.anchor is not None or scalar.tag is not None or not scalar.text:
        return ()
    if scalar.style in ("|", ">"):
        at = raw.index("\n", at) + 1 if "\n" in raw[at:end] else end
    elif scalar.style in ("'", '"'):
        at, end = at + 1, end - 1
    found: list[int] = []
    for char in scalar.text:
        place = _place(char, raw, at, end, begins=not found or scalar.text[len(found) - 1] == "\n")
        if place is None:
            return ()
        found.append(place)
        at = place + 1
    return (*found, at)


def _place(char: str, raw: str, at: int, end: int, *, begins: bool) -> int | None:
    """Where a character of the value is written, at or behind an offset."""
    if at >= end:
        return end - 1 if char == "\n" else None
    if raw[at] == char and not (begins and char == " "):
        return at
    blank = at
    while blank < end and raw[blank] in " \t\r\n":
        if raw[blank] == char and char == "\n":
            return blank
        blank += 1
    if char in " \n":
        folded = raw.find("\n", at, blank)
        return folded if folded >= 0 else (at if char == " " and begins and raw[at] == " " else None)
    return blank if blank < end and raw[blank] == char else None


def home(span: Span) -> Span:
    """Where a span stands in its file."""
    return span.source.home(span) if isinstance(span.source, EmbeddedText) else span


def home_edits(edits: tuple[Edit, ...]) -> tuple[Edit, ...]:
    """Edits as they are in their files; () where one of them cannot be."""
    found = [edit.span.source.home_edit(edit) if isinstance(edit.span.source, EmbeddedText) else edit for edit in edits]
    known = tuple(edit for edit in found if edit is not None)
    return known if len(known) == len(found) else ()
