"""Releases of frameworks: how they compare, from when to when a fact holds, and which one a project pins."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from ckptlint.source.text import SourceError, SourceText, Span, decode

# ------------------------------------------------------------------------------------------------ comparing


@lru_cache(maxsize=1024)
def number(release: str) -> tuple[int, ...]:
    """The numeric release part of a version: ``1!2.10.0rc1`` is (2, 10). () where there is none.

    Epoch, pre-, post-, development and local parts are dropped, so that 0.9.6.dev0 has the facts of 0.9.6. Trailing zeros count
    for nothing, because PEP 440 compares ``5.0`` and ``5.0.0`` as equal.
    """
    match = re.match(r"\s*v?(?:\d+!)?v?([0-9]+(?:\.[0-9]+)*)", release)
    parts = [int(part[:9]) for part in match[1].split(".")] if match else []  # a hash of digits is no number to convert whole
    while parts and parts[-1] == 0:
        parts.pop()
    return tuple(parts)


@dataclass(frozen=True)
class Lifetime:
    """The releases in which something exists: ``since`` one, up to, without, ``until``.

    ``since`` None: it was there in the oldest release read. ``until`` None: it still is in the newest.
    """

    since: str | None = None
    until: str | None = None

    def holds(self, release: str) -> bool:
        """Whether it exists in one release."""
        return self.overlaps(release, release)

    def overlaps(self, oldest: str, newest: str | None) -> bool:
        """Whether it exists in some release of the range, both ends included; ``newest`` None: no upper end."""
        begun = self.since is None or newest is None or number(self.since) <= number(newest)
        return begun and (self.until is None or number(oldest) < number(self.until))


ALWAYS = Lifetime()


def by_name(groups: Mapping[Lifetime, str]) -> dict[str, Lifetime]:
    """Names written in groups, one after another, as a table from name to lifetime."""
    return {name: lifetime for lifetime, names in groups.items() for name in names.split()}


# ------------------------------------------------------------------------------------------------ what a project pins

LARGEST = 1_000_000  # bytes; a larger file is not looked into
LONGEST = 2_000  # characters; a longer line is no requirement that a person wrote, and the patterns take quadratic time over it

_FILES = re.compile(
    r"""(?:requirements|constraints)[\w.-]*\.(?:txt|in) | pyproject\.toml | setup\.cfg | (?:conda|environment)[\w.-]*\.ya?ml
    | (?:uv|poetry|pdm)\.lock | pylock(?:\.[\w-]+)?\.toml | Pipfile(?:\.lock)?""",
    re.X,
)
_LOCKS = re.compile(r"(?:uv|poetry|pdm)\.lock|pylock.*\.toml")


@dataclass(frozen=True)
class Pin:
    """One statement of a project about a distribution. ``exact``: it allows this release only."""

    release: str
    span: Span
    exact: bool


def pinned_release(config: str, names: Collection[str], text: SourceText | None = None) -> tuple[str, Span] | None:
    """The release of a distribution that the project of a configuration pins, and where; None where it pins none, or several.

    A pin is ``NAME==1.2.3`` (with extras, ``===``, conda's ``=1.2.3``, Poetry's bare version, a git tag, an entry of a lock
    file), or ``NAME~=1.2.3`` with at least three numbers where nothing is exact. Ranges, upper bounds and wildcards are none.

    Looked for in the comments of the configuration (``text``; read from ``config`` where None), then in requirements,
    constraints, pyproject.toml, setup.cfg, conda environments and lock files of its directory and each one above it, up to the
    root of the repository (else the working directory, else no further). The nearest directory that pins decides. Names are
    compared as PEP 503 does: case and the kind of ``-``, ``_`` and ``.`` do not matter. What cannot be read is passed over.
    """
    wanted = frozenset(_normal(name) for name in names)
    text = text or _read(Path(config))
    if text is not None and (pin := agreed(_in_comments(text, wanted))):
        return pin.release, pin.span
    for directory in _above(config):
        if pins := _in_directory(directory, wanted):
            pin = agreed(pins)
            return (pin.release, pin.span) if pin else None
    return None


def forget() -> None:
    """Read everything anew at the next question; for programs that outlive an edit of a requirements file."""
    _in_directory.cache_clear()
    _up_to_root.cache_clear()


def agreed(pins: Iterable[Pin]) -> Pin | None:
    """The pin that all others agree with, exact ones before compatible ones; None where they disagree or there are none."""
    pins = list(pins)
    counting = [pin for pin in pins if pin.exact] or pins
    return counting[0] if len({number(pin.release) for pin in counting}) == 1 else None


def _above(config: str) -> tuple[Path, ...]:
    try:
        # abspath: `..` is taken out, a symbolic link is not followed, because the project is where the user named the file
        return _up_to_root(Path(os.path.abspath(config)).parent, Path.cwd())  # noqa: PTH100
    except (OSError, ValueError):
        return ()


@lru_cache(maxsize=4096)
def _up_to_root(start: Path, here: Path) -> tuple[Path, ...]:
    """From a directory up to the root of its repository; without one up to the working directory; else the directory alone."""
    above = (start, *start.parents)
    for at, directory in enumerate(above):
        if os.path.lexists(directory / ".git"):
            return above[: at + 1]
    return above[: above.index(here) + 1] if here in above else (start,)


@lru_cache(maxsize=4096)
def _in_directory(directory: Path, names: frozenset[str]) -> tuple[Pin, ...]:
    try:
        with os.scandir(directory) as entries:
            files = sorted(entry.name for entry in entries if _FILES.fullmatch(entry.name))
    except OSError:
        return ()
    pins: list[Pin] = []
    for file in files:
        text = _read(directory / file)
        if text is not None:
            pins += _in_text(text, file, names)
    return tuple(pins)


def _read(path: Path) -> SourceText | None:
    """A regular file's text; None where it is none, too large, out of reach or not UTF-8."""
    try:
        if not path.is_file() or path.stat().st_size > LARGEST:
            return None
        with path.open("rb") as file:
            return decode(_shown(path), file.read(LARGEST))
    except (OSError, SourceError, ValueError):
        return None


def _shown(path: Path) -> str:
    """Relative to the working directory where it lies below it, as reports show paths."""
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)


# ------------------------------------------------------------------------------------------------ reading one file

_VERSION = r"v?[0-9]+(?:\.[0-9]+)*(?:[._-]?(?:a|b|rc|alpha|beta|dev|post)[._-]?[0-9]*)*(?:\+[\w.]+)?(?![\w.*])"

# NAME[extras] >=1,==1.2.3 · NAME @ git+https://host/repository@v1.2.3
_REQUIREMENT = r"""(?<![\w.-])(?P<pin>(?:{names})(?![\w.-])\s*(?:\[[^\]\n]*\])?\s*
    (?:(?:(?:[<>!]=?|~=|={{2,3}})\s*[^\s,;\#"']+\s*,\s*)*(?P<operator>={{2,3}}|~=)\s*|@\s*git\+[^\s;"']+@)
    (?P<version>{version}))"""

# conda's NAME=1.2.3 and NAME=1.2.3=build: one `=` also means 1.2.3.anything, so two numbers leave the release open
_CONDA = r"""(?<![\w.-])(?P<pin>(?:{names})\s*=\s*(?P<version>[0-9]+\.[0-9]+\.[0-9]+{suffix}))(?=\s*(?:=|["'\s]|$))"""

# Poetry's and Pipfile's NAME = "1.2.3" and NAME = {{version = "1.2.3"}}, uv's NAME = {{git = ..., tag = "v1.2.3"}}
_TOML = r"""^\s*(?P<pin>["']?(?:{names})["']?\s*=\s*(?:\{{[^}}\n]*?\b(?:version|tag)\s*=\s*)?
    ["'](?P<operator>={{2,3}}|~=?)?\s*(?P<version>{version}))["']"""

# lock files: name, then version
_LOCK = r"""^name[\ ]?=[\ ]?["'](?:{names})["']\r?\nversion[\ ]?=[\ ]?["'](?P<pin>(?P<version>{version}))["']"""
_JSON_LOCK = r""""(?:{names})"\s*:\s*\{{[^{{}}]*?"version"\s*:\s*"(?P<pin>={{2,3}}(?P<version>{version}))\""""

# A line up to its comment. Nothing can fail behind a part of it that matched, so it takes linear time.
_STATEMENT = re.compile(r"""^(?:"[^"\r\n]*"|'[^'\r\n]*'|[^\#\r\n"']+|["']|(?<![\s\ufeff])(?<!^)\#)+""", re.X | re.M)

# A comment that names a release in order to warn of it.
_WARNING = re.compile(r"\b(?:not|never|avoid|break\w*|broken|bug\w*|fail\w*|unlike|instead)\b|n't\b", re.I)


@lru_cache(maxsize=64)
def _pattern(shape: str, names: frozenset[str]) -> re.Pattern[str]:
    spelled = "|".join("[-_.]+".join(map(re.escape, name.split("-"))) for name in sorted(names))
    suffix = r"(?:\.[0-9]+)*(?:(?:a|b|rc|\.?dev|\.?post)[0-9]*)*"
    return re.compile(shape.format(names=spelled, version=_VERSION, suffix=suffix), re.X | re.I | re.M)


def _normal(name: str) -> str:
    """PEP 503: one spelling a distribution."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _in_text(text: SourceText, file: str, names: frozenset[str]) -> Iterator[Pin]:
    if not _pattern("(?:{names})", names).search(text.text):  # most files name none: spares going through their lines
        return iter(())
    if _LOCKS.fullmatch(file):
        return _matches(text, _pattern(_LOCK, names), text.whole)
    if file == "Pipfile.lock":
        return _matches(text, _pattern(_JSON_LOCK, names), text.whole)
    shapes = [_REQUIREMENT]
    if file in ("pyproject.toml", "Pipfile"):
        shapes.append(_TOML)
    if file.endswith((".yml", ".yaml")):
        shapes.append(_CONDA)
    patterns = [_pattern(shape, names) for shape in shapes]
    return (pin for line in _statements(text) for pattern in patterns for pin in _matches(text, pattern, line))


def _in_comments(text: SourceText, names: frozenset[str]) -> Iterator[Pin]:
    pattern = _pattern(_REQUIREMENT, names)
    for match in re.finditer(r"(?:^|(?<=[\s\ufeff]))#[^\r\n]*", text.text):
        if match.end() - match.start() <= LONGEST and not _WARNING.search(match[0]):
            yield from _matches(text, pattern, text.span(*match.span()))


def _statements(text: SourceText) -> Iterator[Span]:
    """Each line without its comment: from a ``#`` that begins the line or follows a blank, and stands in no quotes."""
    for match in _STATEMENT.finditer(text.text):
        if match.end() - match.start() <= LONGEST:
            yield text.span(*match.span())


def _matches(text: SourceText, pattern: re.Pattern[str], where: Span) -> Iterator[Pin]:
    for match in pattern.finditer(text.text, where.start, where.end):
        groups = match.groupdict()
        exact = not (groups.get("operator") or "").startswith("~")
        if exact or groups["version"].count(".") >= 2:
            yield Pin(groups["version"].removeprefix("v"), text.span(*match.span("pin")), exact)
