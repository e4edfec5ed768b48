"""What lies in a directory, seen the same way on a disk, in an object store and in a test's manifest.

Paths are relative to the listing's root and use ``/``. Times are seconds since the epoch (UTC), sizes bytes.
"""

from __future__ import annotations

import os
import stat
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class FileInfo:
    """A file's size in bytes and, where the listing knows it, its modification time."""

    size: int
    modified: float | None = None


class Unreachable(Exception):
    """A directory that cannot be listed; says why and what to do."""


class UnknownContent(OSError):
    """A listing knows a file's size but not what is in it. Such a file is taken for whole unless its size says otherwise."""


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
            UnknownContent: the listing holds no content for this file.
            OSError: the file is not there or cannot be read.
        """

    @property
    def name(self) -> str:
        """The root's own name: the last part of its path."""
        return self.root.replace("\\", "/").rstrip("/").rpartition("/")[2]

    def tree(self, path: str = "") -> dict[str, FileInfo]:
        """All files below ``path``, by their path relative to it. A directory that links back to one above it is left out."""
        return dict(self._below(path, "", ()))

    def _below(self, path: str, prefix: str, above: tuple[object, ...]) -> Iterator[tuple[str, FileInfo]]:
        identity = self._identity(path)
        if identity in above:
            return
        for name, info in self.files(path).items():
            yield prefix + name, info
        for name in self.directories(path):
            yield from self._below(f"{path}/{name}" if path else name, f"{prefix}{name}/", (*above, identity))

    def _identity(self, path: str) -> object:
        """What two paths of one directory have in common."""
        return path

    def exists(self, path: str) -> bool:
        parent, _, name = path.rpartition("/")
        return name in self.files(parent) or name in self.directories(parent)


class LocalListing(Listing):
    """A directory on this machine. Each directory below it is read once, when first asked for, and remembered.

    Symbolic links are followed; broken ones, and what is neither file nor directory (sockets, pipes), are left out.
    """

    def __init__(self, root: str | Path) -> None:
        self.root = str(root)
        self._root = Path(root).expanduser()
        self._seen: dict[str, tuple[tuple[str, ...], dict[str, FileInfo]]] = {}

    @property
    def name(self) -> str:
        return Path(os.path.abspath(self._root)).name  # noqa: PTH100  (resolve() would follow a link to another name)

    def directories(self, path: str = "") -> tuple[str, ...]:
        return self._scan(path)[0]

    def files(self, path: str = "") -> Mapping[str, FileInfo]:
        return self._scan(path)[1]

    def read(self, path: str, start: int = 0, length: int | None = None) -> bytes:
        with self._place(path).open("rb") as file:
            file.seek(start)
            return file.read() if length is None else file.read(length)

    def _place(self, path: str) -> Path:
        return self._root / path

    def _scan(self, path: str) -> tuple[tuple[str, ...], dict[str, FileInfo]]:
        """One directory's sub-directories and files.

        Raises:
            Unreachable: it exists but cannot be listed.
        """
        if path not in self._seen:
            self._seen[path] = self._look(path)
        return self._seen[path]

    def _look(self, path: str) -> tuple[tuple[str, ...], dict[str, FileInfo]]:
        place = self._place(path)
        directories: list[str] = []
        files: dict[str, FileInfo] = {}
        try:
            with os.scandir(place) as entries:
                for entry in entries:
                    kind = _kind(entry)
                    if kind is None:
                        directories.append(entry.name)
                    elif kind:
                        files[entry.name] = kind[0]
        except FileNotFoundError:
            return (), {}
        except NotADirectoryError:
            if path:
                return (), {}
            raise Unreachable(f"{place} is a file, not a directory; name the directory that holds the checkpoints") from None
        except PermissionError:
            raise Unreachable(f"{place} cannot be listed: permission denied; run as a user who may read it") from None
        except (OSError, ValueError) as error:
            why = (error.strerror if isinstance(error, OSError) else None) or str(error)
            raise Unreachable(f"{place} cannot be listed: {why}; check that the storage is mounted and answers") from None
        return tuple(sorted(directories)), dict(sorted(files.items()))

    def _identity(self, path: str) -> object:
        return self._place(path).resolve()


def _kind(entry: os.DirEntry[str]) -> tuple[FileInfo, ...] | None:
    """None: a directory. (info,): a file. (): gone in the meantime, a broken or circular link, or neither of both."""
    try:
        if entry.is_dir():
            return None
        state = entry.stat()
    except OSError:
        return ()
    return (FileInfo(state.st_size, state.st_mtime),) if stat.S_ISREG(state.st_mode) else ()
