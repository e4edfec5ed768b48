"""Text with positions, and edits that leave everything else byte for byte.

Offsets are counted in characters of the decoded text; lines and columns are 1-based, a column counts characters.
A text is decoded without newline translation and keeps a byte order mark, so ``SourceText.encode`` gives back the bytes read.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property

BOM = "\ufeff"


class SourceError(Exception):
    """A file that cannot be read as what it is. Names the file, the line and what to do about it."""

    def __init__(self, span: Span, problem: str, remedy: str = "") -> None:
        super().__init__(problem)
        self.span = span
        self.problem = problem
        self.remedy = remedy

    def __str__(self) -> str:
        line, column = self.span.start_position
        remedy = f"; {self.remedy}" if self.remedy else ""
        return f"{self.span.path}:{line}:{column}: {self.problem}{remedy}"


class CannotEdit(Exception):
    """The text cannot be changed at this place without changing something else; says why."""


class EditConflict(Exception):
    """Two edits want to change the same characters."""


@dataclass(frozen=True, eq=False)
class SourceText:
    """One file's text. Two are never equal, even with the same content: a span belongs to one of them."""

    path: str
    text: str = field(repr=False)

    @cached_property
    def _line_starts(self) -> list[int]:
        starts, at = [0], 0
        for line in self.text.splitlines(keepends=True):
            at += len(line)
            if line.endswith(("\n", "\r")):
                starts.append(at)
        return starts

    def position(self, offset: int) -> tuple[int, int]:
        """1-based line and column of an offset. A byte order mark takes no column."""
        line = bisect.bisect_right(self._line_starts, offset)
        start = self._line_starts[line - 1]
        mark = 1 if line == 1 and offset > 0 and self.text.startswith(BOM) else 0
        return line, offset - start - mark + 1

    def offset(self, line: int, column: int) -> int:
        """The offset of a 1-based line and column; clipped to the line, and to the text."""
        if line > len(self._line_starts):
            return len(self.text)
        mark = 1 if line == 1 and self.text.startswith(BOM) else 0
        start = self._line_starts[max(line, 1) - 1]
        return min(start + mark + max(column, 1) - 1, self.line_at(start).end)

    def line_at(self, offset: int) -> Span:
        """The whole line that holds an offset, without its line break."""
        line = bisect.bisect_right(self._line_starts, offset)
        start = self._line_starts[line - 1]
        end = self._line_starts[line] if line < len(self._line_starts) else len(self.text)
        while end > start and self.text[end - 1] in "\r\n":
            end -= 1
        return Span(self, start, end)

    def line_break_at(self, offset: int) -> str:
        """The line break that ends the line of an offset; for a last line without one, the file's first; else a newline."""
        end = self.line_at(offset).end
        for candidate in ("\r\n", "\n", "\r"):
            if self.text.startswith(candidate, end):
                return candidate
        for candidate in ("\r\n", "\n", "\r"):
            if candidate in self.text:
                return candidate
        return "\n"

    def span(self, start: int, end: int) -> Span:
        return Span(self, start, end)

    @property
    def whole(self) -> Span:
        return Span(self, 0, len(self.text))

    def encode(self) -> bytes:
        """The bytes of the file, UTF-8."""
        return self.text.encode("utf-8")


@dataclass(frozen=True, slots=True)
class Span:
    """The characters ``[start, end)`` of one text: evidence for a fact, and the place of an edit."""

    source: SourceText
    start: int
    end: int

    @property
    def path(self) -> str:
        return self.source.path

    @property
    def text(self) -> str:
        return self.source.text[self.start : self.end]

    @property
    def start_position(self) -> tuple[int, int]:
        return self.source.position(self.start)

    @property
    def end_position(self) -> tuple[int, int]:
        """The position just behind the last character."""
        return self.source.position(self.end)

    @property
    def line(self) -> int:
        return self.start_position[0]


@dataclass(frozen=True)
class Edit:
    """Put ``replacement`` where ``span`` is. An empty span inserts."""

    span: Span
    replacement: str


def decode(path: str, data: bytes) -> SourceText:
    """Read a file's bytes as UTF-8.

    Raises:
        SourceError: the bytes are not UTF-8; names the first bad byte's line.
    """
    try:
        return SourceText(path, data.decode("utf-8"))
    except UnicodeDecodeError as error:
        readable = SourceText(path, data[: error.start].decode("utf-8"))
        end = len(readable.text)
        raise SourceError(
            readable.span(end, end), f"byte 0x{data[error.start]:02x} is not UTF-8", "save the file as UTF-8"
        ) from None


def apply(source: SourceText, edits: Iterable[Edit]) -> str:
    """The text after the edits. Insertions at one place keep their order.

    Raises:
        EditConflict: two edits overlap, or an edit belongs to another text.
    """
    pieces, at = [], 0
    for edit in sorted(edits, key=lambda edit: (edit.span.start, edit.span.end)):
        if edit.span.source is not source:
            raise EditConflict(f"an edit of {edit.span.path} was applied to {source.path}")
        if edit.span.start < at:
            line, _ = edit.span.start_position
            raise EditConflict(f"{source.path}:{line}: two edits change the same text")
        pieces += [source.text[at : edit.span.start], edit.replacement]
        at = edit.span.end
    pieces.append(source.text[at:])
    return "".join(pieces)
