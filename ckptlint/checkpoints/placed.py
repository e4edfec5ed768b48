"""Layouts whose checkpoints are folders (or files) with a step in their name."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice

from ckptlint.checkpoints.checkpoint import Checkpoint, Layout, Verdict
from ckptlint.checkpoints.folder import Folder
from ckptlint.checkpoints.listing import FileInfo, Listing, Unreachable

# Whose layout a directory is, is told by the newest folders of it; a directory of a thousand is not looked through.
_ENOUGH = 32

_MOST_DIGITS = 15  # of a number that can be a step


@dataclass(frozen=True)
class Place:
    """Where a checkpoint lies below the listing's root, its step by its name, and the folders of the next lower steps."""

    path: str
    step: int | None
    older: tuple[str, ...] = ()


class PlacedLayout(Layout):
    """One that finds its places by their names, newest first, and examines each when it is asked for."""

    @abstractmethod
    def places(self, listing: Listing) -> Iterator[Place]:
        """Where checkpoints lie, newest first; nothing where the directory is not of this layout."""

    @abstractmethod
    def judge(self, folder: Folder, place: Place, now: float | None) -> Checkpoint:
        """What lies at a place. Raises Unreachable."""

    def recognises(self, listing: Listing) -> bool:
        return next(self.places(listing), None) is not None

    def scan(self, listing: Listing, *, deep: bool = False, now: float | None = None) -> tuple[Checkpoint, ...]:
        return tuple(self.walk(listing, deep=deep, now=now))

    def walk(self, listing: Listing, *, deep: bool = False, now: float | None = None) -> Iterator[Checkpoint]:
        for place in self.places(listing):
            folder = Folder(listing, place.path, deep)
            try:
                yield self.judge(folder, place, now)
            except Unreachable as error:
                yield Checkpoint(place.path, place.step, Verdict.DAMAGED, (str(error),))


def number_of(text: str | None) -> int | None:
    """A step written in decimal digits; None where it cannot be one."""
    return int(text) if text and text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS else None


def numbered(listing: Listing, pattern: re.Pattern[str], below: str = "") -> list[tuple[int, str]]:
    """Step and path of the folders whose names match; the step is the pattern's last group. Highest first."""
    found = []
    for match in filter(None, map(pattern.fullmatch, folders(listing, below) if below else listing.directories())):
        step = number_of(match[match.lastindex or 0])
        if step is not None:
            found.append((step, f"{below}/{match[0]}" if below else match[0]))
    return sorted(found, reverse=True)


def places_of(found: list[tuple[int, str]], neighbours: int = 4) -> Iterator[Place]:
    """The same as places, each with the paths of the next lower ones."""
    for at, (step, path) in enumerate(found):
        yield Place(path, step, tuple(older for _, older in found[at + 1 : at + 1 + neighbours]))


def any_is(found: list[tuple[int, str]], mine: Callable[[str], bool]) -> bool:
    """Whether one of the newest folders is of a layout."""
    return any(mine(path) for _, path in islice(found, _ENOUGH))


def files(listing: Listing, path: str) -> dict[str, FileInfo]:
    """The files right below a folder; {} where it cannot be listed."""
    try:
        return dict(listing.files(path))
    except Unreachable:
        return {}


def folders(listing: Listing, path: str) -> tuple[str, ...]:
    """The folders right below a folder; () where it cannot be listed."""
    try:
        return listing.directories(path)
    except Unreachable:
        return ()
