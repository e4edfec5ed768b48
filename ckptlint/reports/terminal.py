"""Colours and widths of a terminal."""

from __future__ import annotations

from typing import NamedTuple

TAB = 4


class Colours(NamedTuple):
    """Escape sequences, or none."""

    on: bool

    def bold(self, text: str) -> str:
        return self._wrap("1", text)

    def dim(self, text: str) -> str:
        return self._wrap("2", text)

    def red(self, text: str) -> str:
        return self._wrap("1;31", text)

    def yellow(self, text: str) -> str:
        return self._wrap("1;33", text)

    def blue(self, text: str) -> str:
        return self._wrap("1;34", text)

    def green(self, text: str) -> str:
        return self._wrap("32", text)

    def _wrap(self, code: str, text: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self.on and text else text


PLAIN = Colours(on=False)


def expanded(text: str) -> str:
    """Text as a terminal can show it: tabs become blanks, other control characters a replacement character."""
    if text.isprintable():
        return text
    pieces: list[str] = []
    at = 0
    for char in text:
        piece = " " * (TAB - at % TAB) if char == "\t" else _safe(char)
        pieces.append(piece)
        at += width(piece)
    return "".join(pieces)


def _safe(char: str) -> str:
    """Format characters (joiners, direction marks) go the way of control characters: they move what stands around them."""
    return char if char.isprintable() or char == "\u3000" else "\ufffd"


def width(text: str) -> int:
    """How many columns a terminal gives the text."""
    if text.isascii():
        return len(text)
    from unicodedata import combining, east_asian_width

    return sum(0 if combining(char) else 2 if east_asian_width(char) in "WF" else 1 for char in text)
