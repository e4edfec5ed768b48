"""JSON with exact positions, and edits by splicing text.

YAML's parser reads most JSON, but not as the frameworks' ``json.load`` does: it takes trailing commas, comments, single quotes
and line breaks in strings, refuses a pair of surrogate escapes and keys of over 1024 characters, and to it ``1e-4`` and ``NaN``
are words. So this is a small parser of its own, on the standard library's ``scanstring`` and with its grammar. The nodes are
those of YAML, so that whoever reads a mapping need not know which of the two it is.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from json import decoder
from typing import TYPE_CHECKING

from ckptlint.source.text import BOM, CannotEdit, Edit, SourceError, SourceText, Span
from ckptlint.source.yaml_scalars import JSON as JSON
from ckptlint.source.yaml_tree import Entry, Mapping, Node, Scalar, Sequence

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_DEPTH = 150  # deeper than any configuration, and shallow enough for recursion

_BLANK = re.compile(r"[ \t\n\r]*")
_PLAIN = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?(?![\w.])|-?Infinity\b|NaN\b|true\b|false\b|null\b", re.A)
# The text of a string and the offset behind it, from the offset behind its opening quote; typeshed does not know it.
_scan_string: Callable[[str, int, bool], tuple[str, int]] = decoder.scanstring  # type: ignore[attr-defined]
_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, eq=False)
class JsonSource:
    """A JSON file: one value over one text."""

    source: SourceText
    root: Node = field(repr=False)

    def set_value(self, entry: Entry, value: str) -> tuple[Edit, ...]:
        """Edits that give an entry another value; ``value`` is JSON text, see ``write``.

        Raises:
            CannotEdit: the old value is an object or a list.
        """
        if not isinstance(entry.value, Scalar):
            line, _ = entry.value.span.start_position
            raise CannotEdit(f"the value of `{entry.name}` at line {line} is not a single value")
        return (Edit(entry.value.span, value),)

    def insert_after(self, mapping: Mapping, entry: Entry, key: str, value: str) -> Edit:
        """An edit that adds a key to an object, right behind one of its entries: on a line of its own where that has one.

        Raises:
            CannotEdit: the entry is not the object's.
        """
        if not mapping.owns(entry):
            raise CannotEdit(f"`{entry.name}` is not part of this object")
        line = self.source.line_at(entry.key.span.start)
        indent = self.source.text[line.start : entry.key.span.start]
        alone = not indent.strip(" \t")
        between = f",{self.source.line_break_at(line.start)}{indent}" if alone else ", "
        at = entry.value.span.end
        return Edit(Span(self.source, at, at), f"{between}{write(key)}: {value}")

    def remove(self, mapping: Mapping, entry: Entry) -> Edit:
        """An edit that takes an entry out with one comma; the next one moves to its place.

        Raises:
            CannotEdit: the key is written twice, or is not the object's.
        """
        if not mapping.owns(entry):
            raise CannotEdit(f"`{entry.name}` is not part of this object")
        if any(own is not entry and own.name == entry.name for own in mapping.entries):
            raise CannotEdit(f"`{entry.name}` is written twice")
        place = next(i for i, own in enumerate(mapping.entries) if own is entry)
        start, end = entry.key.span.start, entry.value.span.end
        if len(mapping.entries) == 1:
            start, end = mapping.span.start + 1, mapping.span.end - 1
        elif place + 1 < len(mapping.entries):
            end = mapping.entries[place + 1].key.span.start
        else:
            start = mapping.entries[place - 1].value.span.end
        return Edit(Span(self.source, start, end), "")


def write(value: object, *, flow: bool = True, quote: str | None = None) -> str:  # noqa: ARG001 - as yaml's ``render``
    """A value as JSON text on one line.

    Raises:
        TypeError: the value is of no kind that JSON has.
    """
    return json.dumps(value, ensure_ascii=False)


def parse(source: SourceText) -> JsonSource:
    """Read a text as ``json.load`` does.

    Raises:
        SourceError: it is not JSON; names the place and what is wrong there.
    """
    if source.text.startswith(BOM):
        raise SourceError(
            source.span(0, 1), "the file begins with a byte order mark, which JSON may not", "save it without one"
        )
    parser = _Parser(source)
    root, at = parser.value(parser.blank(0), 0)
    at = parser.blank(at)
    if at < len(source.text):
        raise parser.error(at, "the value has ended before this", "keep one value in a file")
    return JsonSource(source, root)


class _Parser:
    def __init__(self, source: SourceText) -> None:
        self.source = source
        self.text = source.text

    def error(self, at: int, problem: str, remedy: str = "") -> SourceError:
        at = min(at, len(self.text))
        return SourceError(self.source.span(at, min(at + 1, len(self.text))), problem, remedy)

    def blank(self, at: int) -> int:
        """The offset behind blanks."""
        found = _BLANK.match(self.text, at)
        return found.end() if found else at

    def value(self, at: int, depth: int) -> tuple[Node, int]:
        """The value that begins here, and the offset behind it."""
        if depth > MAX_DEPTH:
            raise self.error(at, f"found more than {MAX_DEPTH} levels")
        start = self.text[at : at + 1]
        if start == "{":
            return self._object(at, depth)
        if start == "[":
            return self._list(at, depth)
        if start == '"':
            return self._string(at)
        plain = _PLAIN.match(self.text, at)
        if plain is None:
            raise self._no_value(at, start)
        return Scalar(self.source, at, plain.end(), plain[0], None, None), plain.end()

    def _no_value(self, at: int, start: str) -> SourceError:
        if start in ("#", "/"):
            return self.error(at, "JSON has no comments", "take it out")
        if start == "'":
            return self.error(at, 'JSON quotes with `"` only', "write double quotes")
        if start and start in "]}":
            return self.error(at, f"a value is missing before `{start}`", "take the comma in front of it out")
        return self.error(at, "this is no JSON value" if start else "the text ends where a value is due", "write one")

    def _string(self, at: int) -> tuple[Scalar, int]:
        try:
            text, end = _scan_string(self.text, at + 1, True)
        except json.JSONDecodeError as error:
            raise self.error(error.pos, f"in this string: {error.msg.lower().removesuffix(' at')}") from None
        if _SURROGATE.search(text):
            text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        return Scalar(self.source, at, end, text, None, '"'), end

    def _object(self, start: int, depth: int) -> tuple[Mapping, int]:
        entries: list[Entry] = []
        at = self.blank(start + 1)
        while not self._closes(at, "}", first=not entries):
            if entries:
                at = self.blank(at + 1)
            if self.text[at : at + 1] != '"':
                raise self._no_key(at)
            key, at = self._string(at)
            at = self.blank(at)
            if self.text[at : at + 1] != ":":
                raise self.error(at, f"`{key.text}` is not followed by `:`", "write one between key and value")
            value, at = self.value(self.blank(at + 1), depth + 1)
            entries.append(Entry(key, value))
            at = self.blank(at)
        return Mapping(self.source.span(start, at + 1), tuple(entries), flow=True, braces=True), at + 1

    def _no_key(self, at: int) -> SourceError:
        start = self.text[at : at + 1]
        if start and start in "#/'":
            return self._no_value(at, start)
        if start == "}":
            return self.error(at, "a key is missing before `}`", "take the comma in front of it out")
        return self.error(at, "a key in double quotes is missing here", "write one")

    def _list(self, start: int, depth: int) -> tuple[Sequence, int]:
        items: list[Node] = []
        at = self.blank(start + 1)
        while not self._closes(at, "]", first=not items):
            if items:
                at = self.blank(at + 1)
            item, at = self.value(at, depth + 1)
            items.append(item)
            at = self.blank(at)
        return Sequence(self.source.span(start, at + 1), tuple(items), (None,) * len(items), flow=True), at + 1

    def _closes(self, at: int, closing: str, *, first: bool) -> bool:
        """Whether an object or a list ends here; else it goes on, with its first item or behind a comma."""
        found = self.text[at : at + 1]
        if found == closing:
            return True
        if not found:
            raise self.error(at, f"the text ends before `{closing}`", "write it")
        if not first and found != ",":
            raise self.error(at, f"`,` or `{closing}` is missing before this", "write it")
        return False
