"""Texts in an editor, and the check of one of them beside the files that lie next to it on the disk."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from urllib.parse import unquote, urlsplit

from ckptlint.frameworks import all_frameworks
from ckptlint.frameworks.releases import forget as forget_pinned_releases
from ckptlint.linter import FileReport, Linter
from ckptlint.rule import Diagnostic
from ckptlint.settings import DEFAULTS, SettingsError, SettingsFinder, glob_spec
from ckptlint.source.file import SourceFile
from ckptlint.source.paths import shown
from ckptlint.source.text import SourceError, SourceText

LANGUAGES = {"yaml": ".yaml"}  # a language as editors call it, and the suffix of a text that has no name yet

# A directory of generated configurations must not be read at every save: its files are checked as if each were alone.
MOST_NEIGHBOURS = 500
LARGEST_NEIGHBOUR = 1_000_000  # bytes


@dataclass(frozen=True)
class Buffer:
    """One text. ``path`` is what reports call it; ``directory`` is where it lies, "" for a text that lies nowhere yet."""

    uri: str
    path: str
    directory: str
    text: str = field(default="", repr=False)
    version: int | None = None

    @cached_property
    def file(self) -> SourceFile:
        """The text as a file. What UTF-8 cannot hold (half a surrogate pair) stays visible as bytes that are not UTF-8."""
        return SourceFile(self.path, self.text.encode("utf-8", "surrogatepass"))

    @cached_property
    def source(self) -> SourceText:
        """The text with positions, even where it is no file that can be read."""
        return SourceText(self.path, self.text)

    def holding(self, text: str, version: int | None) -> Buffer:
        """The same place with another text."""
        return replace(self, text=text, version=version)


def buffer_at(uri: str, language: str) -> Buffer | None:
    """The buffer for a document; None where it is none of ours: another language, or a text that some tool shows (``git:``)."""
    try:
        parts = urlsplit(uri)
    except ValueError:
        return None
    path = unquote(parts.path)
    if "\0" in path or parts.scheme not in ("file", "untitled"):
        return None
    if parts.scheme == "untitled" or not path:
        suffix = LANGUAGES.get(language)
        return Buffer(uri, f"{os.path.basename(path) or 'untitled'}{suffix}", "") if suffix else None  # noqa: PTH119
    path = f"//{parts.netloc}{path}" if parts.netloc not in ("", "localhost") else path
    if not (_is_input(path) or language in LANGUAGES):
        return None
    return Buffer(uri, shown(path), os.path.dirname(path))  # noqa: PTH120


def _is_input(path: str) -> bool:
    return any(path.lower().endswith(framework.suffixes) for framework in all_frameworks())


@dataclass(frozen=True, eq=False)
class Checked:
    """One buffer and what was found in it. ``refusal``: why it was not checked, where something is wrong around it."""

    buffer: Buffer
    linter: Linter
    report: FileReport | None = None
    refusal: str = ""

    @property
    def file(self) -> SourceFile:
        return self.buffer.file

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        return self.report.diagnostics if self.report else ()

    def again(self, file: SourceFile) -> tuple[Diagnostic, ...]:
        """The findings of another text in the same place.

        Raises:
            SourceError: it could not be checked.
        """
        if file is self.file:
            return self.diagnostics
        report = self.linter.check_file(file, named=False)
        for trouble in report.troubles:
            raise SourceError(file.text.whole, trouble.message)
        return report.diagnostics


class Surroundings:
    """The linter of each directory: its settings, its project's pins, and what the other runs there write."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[SettingsFinder, Linter]] = {}

    def forget(self) -> None:
        """Read everything around the buffers anew."""
        self._known.clear()
        forget_pinned_releases()

    def check(self, buffer: Buffer, others: Iterable[Buffer]) -> Checked:
        """Check a buffer. ``others`` are the buffers open besides; in their directory they stand for their files."""
        if not buffer.directory:
            linter = Linter(SettingsFinder(DEFAULTS))
            return Checked(buffer, linter, linter.check_file(buffer.file, named=False))
        known = self._known.get(buffer.directory)
        settings, linter = known or _fresh()
        try:
            if _excluded(buffer, settings):
                return Checked(buffer, linter)
            if known is None:
                linter.check_files((file, False) for file in _neighbours(buffer, others, linter))
                self._known[buffer.directory] = settings, linter
            return Checked(buffer, linter, linter.check_file(buffer.file, named=False))
        except SettingsError as error:
            return Checked(buffer, linter, refusal=str(error) if _mentions(buffer.file) else "")


def _fresh() -> tuple[SettingsFinder, Linter]:
    settings = SettingsFinder()
    return settings, Linter(settings)


def _excluded(buffer: Buffer, settings: SettingsFinder) -> bool:
    """Whether ``ckptlint check .`` would leave the file out."""
    found = settings.of(buffer.directory)
    inner = found.inner_path(buffer.path) if found.exclude else None
    return inner is not None and glob_spec(found.exclude).match_file(inner)


def _mentions(file: SourceFile) -> bool:
    return any(framework.mentions(file.data) for framework in all_frameworks() if file.suffix in framework.suffixes)


def _neighbours(buffer: Buffer, others: Iterable[Buffer], linter: Linter) -> Iterator[SourceFile]:
    """The files of a buffer's directory that describe runs, the buffer's own first; each file once, by whatever name."""
    known = set()
    for own in (buffer, *(other for other in others if other.directory == buffer.directory)):
        real = os.path.realpath(own.path)
        if real not in known:
            known.add(real)
            yield own.file
    for path in _beside(buffer.directory):
        if os.path.realpath(path) in known:
            continue
        file = _read(path)
        if file is not None and any(framework.mentions(file.data) for framework in linter.frameworks):
            yield file


def _beside(directory: str) -> list[str]:
    try:
        with os.scandir(directory) as entries:
            inputs = [entry.path for entry in entries if _is_input(entry.name) and not entry.is_symlink()]
    except OSError:
        return []
    return sorted(inputs) if len(inputs) <= MOST_NEIGHBOURS else []


def _read(path: str) -> SourceFile | None:
    try:
        if not os.path.isfile(path) or os.path.getsize(path) > LARGEST_NEIGHBOUR:  # noqa: PTH113, PTH202
            return None
        with open(path, "rb") as file:  # noqa: PTH123
            return SourceFile(shown(path), file.read())
    except OSError:
        return None
