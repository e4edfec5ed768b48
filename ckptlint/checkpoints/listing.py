"""What lies in a directory, seen the same way on a disk, in an object store and in a test's manifest.

Paths are relative to the listing's root and use ``/``. Times are seconds since the epoch (UTC), sizes bytes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class FileInfo:
    size: int
    modified: float | None = None


class Unreachable(Exception):
    """A directory that cannot be listed; says why and what to do."""


class Listing(ABC):
    """Files below one root. Listings are lazy: only what is asked for is looked at."""

    root: str  # how the user names it

    @abstractmethod
    def directories(self, path: str = "") -> tuple[str, ...]:
        """Names of the directories right below ``path`` (symbolic links followed), sorted; () where it does not exist."""

    @abstractmethod
    def files(self, path: str = "") -> Mapping[str, FileInfo]:
        """The files right below ``path``: name to size and time; {} where it does not exist."""

    @abstractmethod
    def read(self, path: str, start: int = 0, length: int | None = None) -> bytes:
        """Bytes of a file from ``start``; fewer than ``length`` at its end.

        Raises:
            OSError: the file is not there or cannot be read.
        """

    def tree(self, path: str = "") -> dict[str, FileInfo]:
        """All files below ``path``, by their path relative to it."""
        found = dict(self.files(path))
        for name in self.directories(path):
            below = f"{path}/{name}" if path else name
            found.update({f"{name}/{inner}": info for inner, info in self.tree(below).items()})
        return found

    def exists(self, path: str) -> bool:
        parent, _, name = path.rpartition("/")
        return name in self.files(parent) or name in self.directories(parent)


class LocalListing(Listing):
    """A directory on this machine."""

    def __init__(self, root: str | Path) -> None:
        self.root = str(root)
        self._root = Path(root)

    def _scan(self, path: str) -> tuple[tuple[str, ...], dict[str, FileInfo]]:
        raise NotImplementedError

    def directories(self, path: str = "") -> tuple[str, ...]:
        return self._scan(path)[0]

    def files(self, path: str = "") -> Mapping[str, FileInfo]:
        return self._scan(path)[1]

    def read(self, path: str, start: int = 0, length: int | None = None) -> bytes:
        with open(self._root / path, "rb") as file:
            file.seek(start)
            return file.read() if length is None else file.read(length)
