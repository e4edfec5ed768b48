"""Paths in, files out: what a check reads.

A file that is named is always read. A directory is walked: hidden and generated directories, what .gitignore names and what the
``exclude`` setting names are left out, and only suffixes that some framework reads are taken.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from ckptlint.settings import Settings, SettingsFinder, glob_spec
from ckptlint.source.paths import shown

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

SKIPPED_DIRECTORIES = frozenset({"node_modules", "__pycache__", "venv", "site-packages"})  # and every hidden one
IGNORE_FILE = ".gitignore"
LARGEST = 1_000_000  # bytes; JSON above it is data, not settings, and is not read unless it is named


class Target(NamedTuple):
    """A file to read. ``named``: the user gave this very path."""

    path: str
    named: bool = False


class Trouble(NamedTuple):
    """Something that kept a file from being checked; the others go on. ``detail`` is for whoever mends ckptlint."""

    path: str
    message: str
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.path}: {self.message}"


class Found(NamedTuple):
    """What the paths stand for, by path, each file once."""

    targets: tuple[Target, ...]
    troubles: tuple[Trouble, ...] = ()


def find(paths: Iterable[str], suffixes: frozenset[str], settings: SettingsFinder) -> Found:
    """The files that the paths stand for.

    Raises:
        SettingsError: a settings file on the way cannot be used.
    """
    walk = _Walk(suffixes, settings)
    named: dict[str, Target] = {}
    for path in paths:
        if os.path.isdir(path):  # noqa: PTH112 - strings throughout: pathlib costs more than the walk
            walk.root(path)
        elif os.path.lexists(path) and not os.path.exists(path):  # noqa: PTH110
            walk.troubles.append(Trouble(shown(path), "is a symbolic link to something that does not exist"))
        elif not os.path.exists(path):  # noqa: PTH110
            walk.troubles.append(Trouble(shown(path), "no such file or directory"))
        else:
            named[shown(path)] = Target(shown(path), named=True)
    targets = {target.path: target for target in walk.files()} | named
    return Found(tuple(targets[path] for path in sorted(targets)), tuple(walk.troubles))


class _Walk:
    """One walk over any number of directories. A directory that is reached twice, by a link or by name, is read once."""

    def __init__(self, suffixes: frozenset[str], settings: SettingsFinder) -> None:
        self._suffixes = suffixes
        self._settings = settings
        self._seen: set[tuple[int, int]] = set()
        self._plain: list[str] = []
        self._links: list[str] = []
        self.troubles: list[Trouble] = []

    def root(self, path: str) -> None:
        """Walk one directory. Linked directories come last, so that a file is known by its own name first."""
        pending = [(path, _specs_above(path))]
        linked: list[tuple[str, tuple[_Ignore, ...]]] = []
        while pending or linked:
            directory, ignores = (pending or linked).pop()
            pending += self._directory(directory, ignores, linked)

    def _directory(
        self, path: str, ignores: tuple[_Ignore, ...], linked: list[tuple[str, tuple[_Ignore, ...]]]
    ) -> list[tuple[str, tuple[_Ignore, ...]]]:
        try:
            status = os.stat(path)  # noqa: PTH116
            if (status.st_dev, status.st_ino) in self._seen:
                return []
            self._seen.add((status.st_dev, status.st_ino))
            with os.scandir(path) as scan:
                entries = sorted(scan, key=lambda entry: entry.name, reverse=True)
        except OSError as error:
            self.troubles.append(Trouble(shown(path), f"cannot be read: {error.strerror}"))
            return []
        settings = self._settings.of(path)
        if any(entry.name == IGNORE_FILE for entry in entries):
            ignores += tuple(_read_ignore(path))
        below = []
        for entry in entries:
            is_directory = _is_directory(entry)
            if entry.name.startswith(".") or (is_directory and entry.name in SKIPPED_DIRECTORIES):
                continue
            if not is_directory and not self._is_input(entry):
                continue
            inner = os.path.join(path, entry.name)  # noqa: PTH118
            if _ignored(inner, is_directory, ignores) or _excluded(inner, is_directory, settings):
                continue
            if not is_directory:
                (self._links if entry.is_symlink() else self._plain).append(inner)
            elif entry.is_symlink():
                linked.append((inner, ignores))
            else:
                below.append((inner, ignores))
        return below

    def _is_input(self, entry: os.DirEntry[str]) -> bool:
        if os.path.splitext(entry.name)[1].lower() not in self._suffixes:  # noqa: PTH122
            return False
        try:
            return entry.is_file() and (not entry.name.lower().endswith(".json") or entry.stat().st_size <= LARGEST)
        except OSError:
            return False

    def files(self) -> Iterator[Target]:
        """The files found; a linked file only where the walk does not meet it under its own name."""
        for path in self._plain:
            yield Target(shown(path))
        if not self._links:
            return
        known = {_identity(path) for path in self._plain}
        for path in sorted(self._links):
            identity = _identity(path)
            if identity not in known:
                known.add(identity)
                yield Target(shown(path))


def _is_directory(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False


def _identity(path: str) -> tuple[int, int] | str:
    try:
        status = os.stat(path)  # noqa: PTH116
    except OSError:
        return path
    return status.st_dev, status.st_ino


# ------------------------------------------------------------------------------------------------ what is left out


class _Ignore(NamedTuple):
    """One .gitignore; it speaks about everything below its directory."""

    directory: str
    spec: GitIgnoreSpec


def _read_ignore(directory: str) -> Iterator[_Ignore]:
    try:
        with open(os.path.join(directory, IGNORE_FILE), encoding="utf-8", errors="replace") as file:  # noqa: PTH118, PTH123
            lines = file.read().splitlines()
    except OSError:
        return
    if any(line.strip() and not line.startswith("#") for line in lines):
        yield _Ignore(os.path.abspath(directory), _lenient_spec(lines))  # noqa: PTH100


def _lenient_spec(lines: list[str]) -> GitIgnoreSpec:
    """git passes over a pattern that it cannot read; so do we."""
    try:
        return glob_spec(lines)
    except ValueError:
        return glob_spec([line for line in lines if _is_pattern(line)])


def _is_pattern(line: str) -> bool:
    try:
        glob_spec([line])
    except ValueError:
        return False
    return True


def _specs_above(path: str) -> tuple[_Ignore, ...]:
    """The .gitignore files between a directory and the top of its repository, outermost first; () outside of one."""
    found: list[_Ignore] = []
    directory = os.path.abspath(path)  # noqa: PTH100
    while not os.path.exists(os.path.join(directory, ".git")):  # noqa: PTH110, PTH118
        parent = os.path.dirname(directory)  # noqa: PTH120
        if parent == directory:
            return ()
        directory = parent
        found[:0] = _read_ignore(directory)
    return tuple(found)


def _ignored(path: str, is_directory: bool, ignores: tuple[_Ignore, ...]) -> bool:
    """The innermost .gitignore that has a word on a path decides."""
    if not ignores:
        return False
    path = os.path.abspath(path)  # noqa: PTH100
    for ignore in reversed(ignores):
        inner = path[len(ignore.directory.rstrip(os.sep)) + 1 :].replace(os.sep, "/")
        verdict = ignore.spec.check_file(inner + "/" if is_directory else inner).include
        if verdict is not None:
            return verdict
    return False


def _excluded(path: str, is_directory: bool, settings: Settings) -> bool:
    if not settings.exclude:
        return False
    inner = settings.inner_path(path)
    return inner is not None and _exclude_spec(settings.exclude).match_file(inner + "/" if is_directory else inner)


@lru_cache(maxsize=64)
def _exclude_spec(patterns: tuple[str, ...]) -> GitIgnoreSpec:
    return glob_spec(patterns)
