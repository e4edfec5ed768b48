"""``[tool.ckptlint]`` in pyproject.toml, and ckptlint.toml: read, validated, and found for each checked file.

The nearest file upwards wins, ckptlint.toml before pyproject.toml in one directory; a directory with ``.git`` ends the search.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ckptlint.rule import UnknownRule, select
from ckptlint.run import Storage
from ckptlint.source.paths import shown

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

OWN_FILE = "ckptlint.toml"
PROJECT_FILE = "pyproject.toml"

_WORDS = "a list of strings"
EXPECTED = {
    "select": _WORDS,
    "ignore": _WORDS,
    "extend-select": _WORDS,
    "per-file-ignores": "a table of glob = list of rules",
    "exclude": _WORDS,
    "durable-paths": _WORDS,
    "ephemeral-paths": _WORDS,
}
_RULE_LISTS = ("select", "ignore", "extend-select")


class SettingsError(Exception):
    """A settings file that cannot be used; names the file, the key and what to write."""

    def __init__(self, path: str, line: int | None, problem: str) -> None:
        super().__init__(f"{path}{f':{line}' if line else ''}: {problem}")


class Settings(NamedTuple):
    """What one settings file says; the defaults where there is none. ``root`` is the directory its globs start from."""

    path: str = ""
    root: str = ""
    select: tuple[str, ...] = ("ALL",)
    ignore: tuple[str, ...] = ()
    extend_select: tuple[str, ...] = ()
    per_file_ignores: tuple[tuple[str, tuple[str, ...]], ...] = ()
    exclude: tuple[str, ...] = ()
    durable_paths: tuple[str, ...] = ()
    ephemeral_paths: tuple[str, ...] = ()

    @property
    def storage(self) -> Storage:
        return Storage(self.durable_paths, self.ephemeral_paths)

    def enabled(self) -> frozenset[str]:
        """The codes that are on, before per-file-ignores."""
        return (select(self.select) | select(self.extend_select)) - select(self.ignore)

    def ignored_for(self, path: str) -> frozenset[str]:
        """The codes that per-file-ignores takes from one file."""
        inner = self.inner_path(path) if self.per_file_ignores else None
        if inner is None:
            return frozenset()
        words = [word for glob, words in self.per_file_ignores if glob_spec([glob]).match_file(inner) for word in words]
        return select(words)

    def inner_path(self, path: str) -> str | None:
        """A file's path below ``root``; None where it lies elsewhere."""
        inner = os.path.relpath(os.path.abspath(path), self.root).replace(os.sep, "/")  # noqa: PTH100 - keeps symbolic links
        return None if inner.startswith("../") else inner


DEFAULTS = Settings()


def glob_spec(patterns: Iterable[str]) -> GitIgnoreSpec:
    """Globs as .gitignore means them."""
    from pathspec import GitIgnoreSpec

    return GitIgnoreSpec.from_lines(patterns)


class Choice(NamedTuple):
    """What the command line says about rules. It is applied after the settings file; ``select`` starts anew."""

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    extend_select: tuple[str, ...] = ()

    def apply(self, enabled: frozenset[str]) -> frozenset[str]:
        """Raises UnknownRule."""
        chosen = select(self.select) if self.select else enabled
        return (chosen | select(self.extend_select)) - select(self.ignore)


class SettingsFinder:
    """The settings that hold in a directory, each file read once. ``fixed``: one file for everything (``--config``)."""

    def __init__(self, fixed: Settings | None = None) -> None:
        self._fixed = fixed
        self._known: dict[str, Settings] = {}

    def of(self, directory: str | Path) -> Settings:
        """Raises SettingsError."""
        if self._fixed is not None:
            return self._fixed
        return self._of(os.path.abspath(directory))  # noqa: PTH100 - keeps symbolic links

    def _of(self, directory: str) -> Settings:
        known = self._known.get(directory)
        if known is None:
            known = self._known[directory] = self._look(directory)
        return known

    def _look(self, directory: str) -> Settings:
        here = in_directory(directory)
        if here is not None:
            return here
        parent = os.path.dirname(directory)  # noqa: PTH120 - a string in, a string out; this runs for every directory
        if parent == directory or os.path.exists(os.path.join(directory, ".git")):  # noqa: PTH110, PTH118
            return DEFAULTS
        return self._of(parent)


def in_directory(directory: str) -> Settings | None:
    """The settings that a directory itself holds.

    Raises:
        SettingsError: they cannot be used.
    """
    for name in (OWN_FILE, PROJECT_FILE):
        path = os.path.join(directory, name)  # noqa: PTH118
        if os.path.isfile(path):  # noqa: PTH113
            settings = read(path)
            if settings is not None:
                return settings
    return None


def read(path: str) -> Settings | None:
    """The settings of one file; None for a pyproject.toml without ``[tool.ckptlint]``.

    Raises:
        SettingsError: it cannot be read, is not TOML, or holds something unknown.
    """
    name = shown(path)
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise SettingsError(name, None, f"cannot be read: {error.strerror}") from None
    own = Path(path).name != PROJECT_FILE
    if not own and b"ckptlint" not in data:
        return None
    text, table = _toml(name, data)
    if not own:
        tool = table.get("tool")
        table = tool.get("ckptlint") if isinstance(tool, dict) else None
        if table is None:
            return None
    return _settings(_File(name, text, own), table, os.path.dirname(os.path.abspath(path)))  # noqa: PTH100, PTH120


def _toml(name: str, data: bytes) -> tuple[str, Any]:
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    try:
        text = data.decode("utf-8")
        return text, tomllib.loads(text)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise SettingsError(name, line, "not UTF-8; save the file as UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(name, None, f"not valid TOML: {error}") from None


class _File(NamedTuple):
    path: str
    text: str
    own: bool

    def error(self, key: str, problem: str) -> SettingsError:
        where = re.search(rf"""^[ \t]*(?:\[[^\]\n]*)?["']?{re.escape(key)}["']?[ \t]*[=.\]]""", self.text, re.M)
        line = self.text.count("\n", 0, where.start()) + 1 if where else None
        return SettingsError(self.path, line, problem if self.own else f"[tool.ckptlint] {problem}")


def _settings(file: _File, table: object, root: str) -> Settings:
    import msgspec

    if not isinstance(table, dict):
        raise file.error("ckptlint", "must be a table")
    for key in table:
        if key not in EXPECTED:
            raise file.error(key, _unknown_key(key))

    class Keys(msgspec.Struct, rename="kebab", forbid_unknown_fields=True):
        select: tuple[str, ...] = ("ALL",)
        ignore: tuple[str, ...] = ()
        extend_select: tuple[str, ...] = ()
        per_file_ignores: dict[str, tuple[str, ...]] = {}
        exclude: tuple[str, ...] = ()
        durable_paths: tuple[str, ...] = ()
        ephemeral_paths: tuple[str, ...] = ()

    try:
        keys = msgspec.convert(table, Keys)
    except msgspec.ValidationError as error:
        raise _wrong_type(file, table, str(error)) from None
    _check_rules(file, table)
    for key in ("exclude", "per-file-ignores"):
        for glob in table.get(key, ()):
            _check_glob(file, key, glob)
    return Settings(
        path=file.path,
        root=root,
        select=keys.select,
        ignore=keys.ignore,
        extend_select=keys.extend_select,
        per_file_ignores=tuple(keys.per_file_ignores.items()),
        exclude=keys.exclude,
        durable_paths=keys.durable_paths,
        ephemeral_paths=keys.ephemeral_paths,
    )


def _unknown_key(key: str) -> str:
    import difflib

    near = difflib.get_close_matches(key.replace("_", "-"), EXPECTED, 1)
    return f"no setting is called `{key}`; " + (f"did you mean `{near[0]}`?" if near else f"there are: {', '.join(EXPECTED)}")


def _wrong_type(file: _File, table: dict[str, object], words: str) -> SettingsError:
    """msgspec says "Expected `array`, got `str` - at `$.select`"; TOML users know other names."""
    place = re.search(r"\$\.([\w-]+)", words)
    key = place[1] if place else next(iter(table))
    return file.error(key, f"{key} must be {EXPECTED[key]}, such as {_EXAMPLES[key]}; found {_toml_name(words)}")


_EXAMPLES = {
    "select": '["CKP2", "keep-one"]',
    "ignore": '["keep-one"]',
    "extend-select": '["keep-one"]',
    "per-file-ignores": '{ "smoke/*.yaml" = ["keep-one"] }',
    "exclude": '["third_party/"]',
    "durable-paths": '["/mnt/durable"]',
    "ephemeral-paths": '["/scratch"]',
}
_TOML_NAMES = {
    "str": "a string",
    "int": "a number",
    "float": "a number",
    "bool": "true or false",
    "array": "a list",
    "object": "a table",
    "datetime": "a date",
}


def _toml_name(words: str) -> str:
    got = re.search(r"got `(\w+)`", words)
    return _TOML_NAMES.get(got[1], got[1]) if got else words


def _check_rules(file: _File, table: dict[str, Any]) -> None:
    for key in _RULE_LISTS:
        _check_words(file, key, table.get(key, ()))
    for words in table.get("per-file-ignores", {}).values():
        _check_words(file, "per-file-ignores", words)


def _check_words(file: _File, key: str, words: Iterable[str]) -> None:
    try:
        select(words)
    except UnknownRule as error:
        raise file.error(key, f"{key}: {error}") from None


def _check_glob(file: _File, key: str, glob: str) -> None:
    try:
        glob_spec([glob])
    except ValueError:
        raise file.error(key, f"{key}: `{glob}` is not a pattern; write it as in .gitignore") from None
