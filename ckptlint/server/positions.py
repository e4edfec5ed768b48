"""Positions as the Language Server Protocol counts them.

Lines and characters are 0-based; characters are code units of the negotiated encoding (UTF-16 unless a client offers others).
A line ends at a line feed, a carriage return or both, and nowhere else, as in ``SourceText``. A byte order mark that the editor
leaves in the text is a character.
"""

from __future__ import annotations

from lsprotocol import types

from ckptlint.source.text import SourceText, Span


def units(text: str, encoding: str) -> int:
    """How many code units a text takes."""
    if encoding == types.PositionEncodingKind.Utf32:
        return len(text)
    if encoding == types.PositionEncodingKind.Utf8:
        return len(text.encode("utf-8", "surrogatepass"))
    return len(text) + sum(char > "\uffff" for char in text)


def position(source: SourceText, offset: int, encoding: str) -> types.Position:
    """Where an offset is."""
    line, _ = source.position(offset)
    before = source.text[_line_start(source, line) : offset]
    return types.Position(line - 1, units(before, encoding))


def span_range(span: Span, encoding: str) -> types.Range:
    """Where a span is."""
    return types.Range(position(span.source, span.start, encoding), position(span.source, span.end, encoding))


def offset(source: SourceText, place: types.Position, encoding: str) -> int:
    """The offset of a position; behind a line's end it is that end, within a character its beginning."""
    start = _line_start(source, place.line + 1)
    line = source.text[start : source.line_at(start).end]
    counted = 0
    for at, char in enumerate(line):
        counted += units(char, encoding)
        if counted > place.character:
            return start + at
    return start + len(line)


def _line_start(source: SourceText, line: int) -> int:
    return 0 if line == 1 else source.offset(line, 1)
