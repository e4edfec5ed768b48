"""The files beside a script: what it sources, and the configurations its commands name."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cached_property, lru_cache
from pathlib import Path

from ckptlint.source.file import SourceFile
from ckptlint.source.paths import shown
from ckptlint.source.text import SourceError, SourceText

# No configuration or script of a launch is larger; a path may also name a data set.
LARGEST = 4_000_000


class Project:
    """What lies around one script, opened when somebody asks for it. A file that cannot be read is as if it were not there."""

    def __init__(self, path: str) -> None:
        self.path = path

    @cached_property
    def directories(self) -> tuple[str, ...]:
        """Where a relative name may start: beside the script, in the working directory, and upwards to the repository's top."""
        beside = os.path.dirname(self.path) or "."  # noqa: PTH120 - strings: as the user knows the paths
        found = dict.fromkeys((beside, "."))
        found.update(dict.fromkeys(_upwards(beside)))
        return tuple(found)

    def neighbour(self, name: str) -> SourceText | None:
        """The text of another script by the name a script gives it."""
        file = self.open(name)
        if file is None:
            return None
        try:
            return file.text
        except SourceError:
            return None

    def open(self, name: str) -> SourceFile | None:
        """The file of this name, None where there is none."""
        for path in self._candidates(name):
            file = _opened(path)
            if file is not None:
                return file
        return None

    def _candidates(self, name: str) -> Iterator[str]:
        if not name or "\0" in name or "://" in name:
            return
        name = os.path.expanduser(name)  # noqa: PTH111
        if os.path.isabs(name):  # noqa: PTH117
            yield shown(name)
            return
        yield from (shown(os.path.normpath(os.path.join(directory, name))) for directory in self.directories)  # noqa: PTH118


def _upwards(directory: str) -> Iterator[str]:
    """The directories above one, up to the top of its repository; none where there is no such top."""
    found: list[str] = []
    at = os.path.abspath(directory)  # noqa: PTH100
    while True:
        found.append(shown(at))
        if os.path.exists(os.path.join(at, ".git")):  # noqa: PTH110, PTH118
            yield from found
            return
        parent = os.path.dirname(at)  # noqa: PTH120
        if parent == at:
            return
        at = parent


def _opened(path: str) -> SourceFile | None:
    try:
        status = os.stat(path)  # noqa: PTH116
    except (OSError, ValueError):
        return None
    if not os.path.isfile(path) or status.st_size > LARGEST:  # noqa: PTH113
        return None
    return _read(path, status.st_mtime_ns, status.st_size)


@lru_cache(maxsize=256)
def _read(path: str, _changed: int, _size: int) -> SourceFile | None:
    try:
        return SourceFile(path, Path(path).read_bytes())
    except OSError:
        return None
