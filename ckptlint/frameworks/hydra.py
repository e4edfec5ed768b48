"""Settings of a run that Hydra puts together: YAML files, the overrides of a command line, the framework's defaults.

Sources: hydra-core 1.3.2 and 1.3.8 ``grammar/OverrideLexer.g4``, ``grammar/OverrideParser.g4``,
``core/override_parser/overrides_visitor.py``, ``_internal/config_loader_impl.py``; omegaconf 2.3 ``grammar``. The parser is
tested against Hydra's own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from collections.abc import Mapping as MappingOf
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from ckptlint.frameworks.flags import CommandEditor, known_head, known_text, path_of, place_of, tail
from ckptlint.frameworks.nested_settings import NestedSettings
from ckptlint.run import Literal, Part, PathExpr, Setting, Unknown
from ckptlint.source.text import CannotEdit, Edit, Span

if TYPE_CHECKING:
    from ckptlint.source.shell.values import Argument

# ------------------------------------------------------------------------------------------------ the grammar


class OverrideError(Exception):
    """Hydra would stop at this override; says why."""


class Kind(str, Enum):
    """What an override does with its key. The value is what stands in front of it."""

    CHANGE = ""  # the key must be there
    ADD = "+"  # it must not
    FORCE = "++"
    DELETE = "~"


@dataclass(frozen=True)
class Override:
    """One override: ``value`` is what Hydra makes of the text behind ``=``. ``start`` is where that text begins."""

    kind: Kind
    key: str
    value: object
    start: int

    @property
    def is_group(self) -> bool:
        """Whether it may choose a file of a config group (``model_engine=megatron``) rather than set a value."""
        return "." not in self.key and isinstance(self.value, str)


_KEY = re.compile(r"(?P<kind>\+\+?|~)?(?P<key>[A-Za-z_$][\w$-]*(?:[./][\w$-]+)*(?:@[\w$.:-]*)?)", re.ASCII)
_INT = re.compile(r"[+-]?(?:0|[1-9](?:_?[0-9])*)")
_POINT = r"(?:[0-9](?:_?[0-9])*\.(?:[0-9](?:_?[0-9])*)?|\.[0-9](?:_?[0-9])*)"
_FLOAT = re.compile(
    rf"[+-]?(?:(?:{_POINT}|(?:0|[1-9](?:_?[0-9])*))[eE][+-]?[0-9](?:_?[0-9])*|{_POINT}|[iI][nN][fF]|[nN][aA][nN])"
)
_BOOL = re.compile(r"[tT][rR][uU][eE]|[fF][aA][lL][sS][eE]")
_NULL = re.compile(r"[nN][uU][lL][lL]")
_ESCAPED = re.compile(r"\\([\\()\[\]{}:=, \t])")
_FUNCTION = re.compile(r"[A-Za-z_][\w-]*\(")
# What may stand in a value without quotes, besides letters and digits.
_UNQUOTED = frozenset("/-\\+.$%*@?|:_ \t")

SWEEP = Unknown("Hydra reads a list without brackets as a sweep")
COMPUTED = Unknown("Hydra computes the value")


def parse_override(text: str) -> Override:
    """Read one argument as Hydra does.

    Raises:
        OverrideError: it is none; Hydra stops.
    """
    match = _KEY.match(text)
    if match is None:
        raise OverrideError("it has no key")
    kind = Kind(match["kind"] or "")
    at = match.end()
    if at == len(text) and kind is Kind.DELETE:
        return Override(kind, match["key"], None, at)
    if not text.startswith("=", at):
        raise OverrideError("`=` is missing behind the key" if at == len(text) else f"`{text[at]}` cannot stand in a key")
    reader = _ValueReader(text, at + 1)
    return Override(kind, match["key"], reader.whole(), at + 1)


class _ValueReader:
    """A cursor over the text behind ``=``."""

    def __init__(self, text: str, at: int) -> None:
        self.text = text
        self.at = at

    def whole(self) -> object:
        self.blanks()
        if self.at == len(self.text):
            return ""
        first = self.element("")
        if self.peek() != ",":
            self.end()
            return first
        while self.peek() == ",":
            self.at += 1
            self.element("")
        self.end()
        return SWEEP

    def end(self) -> None:
        if self.at < len(self.text):
            raise OverrideError(f"`{self.text[self.at]}` cannot stand in a value without quotes")

    def peek(self) -> str:
        return self.text[self.at : self.at + 1]

    def blanks(self) -> None:
        while self.peek() and self.peek() in " \t":
            self.at += 1

    def element(self, closing: str) -> object:
        self.blanks()
        char = self.peek()
        if char in ("'", '"') and char:
            value: object = self.quoted(char)
        elif char == "[":
            value = self.listed()
        elif char == "{":
            value = self.mapped()
        elif _FUNCTION.match(self.text, self.at):
            value = self.function()
        else:
            return self.primitive(closing)
        behind = self.text[self.at :].lstrip(" \t")
        if behind.startswith((",", closing) if closing else ","):
            self.blanks()
        return value

    def quoted(self, quote: str) -> str:
        body = re.compile(rf"{quote}((?:[^\\{quote}]|\\.)*){quote}", re.S).match(self.text, self.at)
        if body is None:
            raise OverrideError("a quote is not closed")
        self.at = body.end()
        # Backslashes count only in front of a quote, the closing one included.
        return re.sub(rf"\\+(?={quote}|$)", lambda run: "\\" * (len(run[0]) // 2), body[1])

    def listed(self) -> list[object]:
        self.at += 1
        items: list[object] = []
        self.blanks()
        if self.peek() == "]":
            self.at += 1
            return items
        while True:
            items.append(self.element("]"))
            if self.closes("]"):
                return items

    def mapped(self) -> dict[object, object]:
        self.at += 1
        items: dict[object, object] = {}
        self.blanks()
        if self.peek() == "}":
            self.at += 1
            return items
        while True:
            self.blanks()
            key = self.primitive(":")
            self.blanks()
            if self.peek() != ":":
                raise OverrideError("`:` is missing in the braces")
            self.at += 1
            items[key] = self.element("}")
            if self.closes("}"):
                return items

    def closes(self, closing: str) -> bool:
        char = self.peek()
        if char not in (",", closing) or not char:
            raise OverrideError(f"`{closing}` is missing")
        self.at += 1
        return char == closing

    def function(self) -> Unknown:
        depth = 0
        for at in range(self.at, len(self.text)):
            depth += {"(": 1, ")": -1}.get(self.text[at], 0)
            if self.text[at] == ")" and not depth:
                self.at = at + 1
                return COMPUTED
        raise OverrideError("`)` is missing")

    def primitive(self, closing: str) -> object:
        start = self.at
        while self.at < len(self.text):
            char = self.text[self.at]
            if self.text.startswith("${", self.at):
                self.at = _interpolation_end(self.text, self.at)
            elif _ESCAPED.match(self.text, self.at):
                self.at += 2
            elif char == ":" == closing or not ((char.isascii() and char.isalnum()) or char in _UNQUOTED):
                break
            else:
                self.at += 1
        text = _trimmed(self.text[start : self.at])
        if not text:
            raise OverrideError(
                f"`{self.peek()}` cannot stand in a value without quotes" if self.peek() else "a value is missing"
            )
        return primitive(text)


def _trimmed(text: str) -> str:
    """Without the blanks at the end, unless they belong to a colon (``WS? ':' WS?`` is one token) or one is escaped."""
    bare = text.rstrip(" \t")
    before = bare.rstrip(":")
    if bare != before and (len(bare) - len(before) > 1 or (len(before) - len(before.rstrip("\\"))) % 2 == 0):
        return text
    odd = (len(bare) - len(bare.rstrip("\\"))) % 2 == 1
    return text[: len(bare) + 1] if odd and len(text) > len(bare) else bare


def primitive(text: str) -> object:
    """What Hydra makes of a value without quotes."""
    if _INT.fullmatch(text):
        return int(text)
    if _FLOAT.fullmatch(text):
        return float(text)
    if _BOOL.fullmatch(text):
        return text.lower() == "true"
    if _NULL.fullmatch(text):
        return None
    return text if "${" in text else _ESCAPED.sub(r"\1", text)


def _interpolation_end(text: str, at: int) -> int:
    """Hydra 1.3 OverrideLexer.g4: ``INTERPOLATION: '${' ~('}')+ '}'``, so the first closing brace ends it."""
    end = text.find("}", at + 2)
    if end < 0:
        raise OverrideError("`${` is not closed")
    if end == at + 2:
        raise OverrideError("`${}` names nothing")
    return end + 1


# ------------------------------------------------------------------------------------------------ interpolation

_REFERENCE = re.compile(r"\$\{(\.*[A-Za-z_][\w.]*)\}")
_DEEP = 8


def interpolated(name: str, value: object, lookup: Callable[[str], object], depth: int = 0) -> object:
    """A value with the ``${a.b}`` in it replaced, as OmegaConf does; ``${oc.env:X}`` and other resolvers stay as they are.

    Unknown where a reference leads to nothing known.
    """
    if not isinstance(value, str) or "${" not in value:
        return value
    if depth > _DEEP:
        return Unknown(f"`{value}` refers to itself")
    whole = _REFERENCE.fullmatch(value)
    if whole is not None:
        found = lookup(absolute(name, whole[1]))
        return interpolated(absolute(name, whole[1]), found, lookup, depth + 1)
    open_: list[Unknown] = []

    def replaced(match: re.Match[str]) -> str:
        target = absolute(name, match[1])
        found = interpolated(target, lookup(target), lookup, depth + 1)
        if isinstance(found, Unknown):
            open_.append(found)
        return str(found)

    text = _REFERENCE.sub(replaced, value)
    return open_[0] if open_ else text


def absolute(name: str, reference: str) -> str:
    """``.save_contents`` as seen from ``actor.checkpoint.load_contents`` is ``actor.checkpoint.save_contents``."""
    dots = len(reference) - len(reference.lstrip("."))
    if not dots:
        return reference
    return ".".join([*name.split(".")[:-dots], reference.lstrip(".")])


# ------------------------------------------------------------------------------------------------ settings


@dataclass(frozen=True, eq=False)
class Written:
    """An override of a command line, with the places of key and value."""

    override: Override
    key_span: Span
    value_span: Span
    setting: Callable[[str, object], Setting]


@dataclass(frozen=True, eq=False)
class HydraSettings:
    """What a run's configuration says after composition: the last override, else the first file with the name, else a default.

    ``files`` are the YAML files, the one that wins first. ``missing`` says why a name that is written nowhere is not known: a
    file that belongs to the composition was not found; "" where all was.
    """

    files: tuple[NestedSettings, ...]
    defaults: MappingOf[str, object]
    default_source: str
    overrides: Sequence[Written] = ()
    missing: str = ""
    place: Span | None = None
    editor: CommandEditor | None = None

    @property
    def where(self) -> Span:
        if self.place is not None:
            return self.place
        return self.files[0].where

    def names(self) -> Iterator[str]:
        """Every name that is written, once."""
        found = dict.fromkeys(written.override.key for written in self.overrides)
        for file in self.files:
            found.update(dict.fromkeys(file.names()))
        return iter(found)

    def __contains__(self, name: str) -> bool:
        return self._override(name) is not None or any(name in file for file in self.files)

    def value(self, name: str) -> object:
        return self.setting(name).value

    def setting(self, name: str) -> Setting:
        found = self._raw(name)
        value = interpolated(name, found.value, lambda other: self._raw(other).value)
        if value is found.value:
            return found
        path = self._path(name, found.value) if isinstance(value, Unknown) and isinstance(found.value, str) else None
        return found._replace(value=value, path=path)

    def _path(self, name: str, text: str, depth: int = 0) -> PathExpr | None:
        """A text with ``${a.b}`` in it as a path, where what they stand for is known only to the launch."""
        parts: list[Part] = []
        written, at = [], 0
        for match in _REFERENCE.finditer(text):
            inner = self._raw(absolute(name, match[1]))
            path = inner.path
            if path is None and isinstance(inner.value, str):
                path = self._path(absolute(name, match[1]), inner.value, depth + 1) if depth < _DEEP else None
            if path is None:
                return None
            between = PathExpr.of_text(text[at : match.start()], expanded=True)
            parts += [*between.parts, *path.parts]
            written += [text[at : match.start()], path.written]
            at = match.end()
        parts += PathExpr.of_text(text[at:], expanded=True).parts
        kept = [part for part in parts if part.text]
        return PathExpr(tuple(kept) or (Literal(""),), "".join(written) + text[at:])

    def rename(self, name: str, to: str) -> tuple[Edit, ...]:
        """In the file that has the name; an override stays as it is."""
        if to in self or self._override(name) is not None:
            return ()
        return next((file.rename(name, to) for file in self.files if name in file), ())

    def _raw(self, name: str) -> Setting:
        written = self._override(name)
        if written is not None:
            return written
        for file in self.files:
            if name in file:
                return file.setting(name)
        at = self._unwritten(name)
        if self.missing:
            return at._replace(value=Unknown(self.missing), source="")
        if name not in self.defaults:
            return at._replace(value=None, source=self.default_source)
        return at._replace(value=self.defaults[name], source=self.default_source)

    def _unwritten(self, name: str) -> Setting:
        """Where a name would be written: behind the command's arguments, else in the first file."""
        if self.editor is not None:
            return Setting(name, None, editor=_Addition(self.editor, name, "" if name in self.defaults else "++"), joint="=")
        return self.files[0].setting(name) if self.files else Setting(name, None, joint="=")

    def _override(self, name: str) -> Setting | None:
        for written in reversed(self.overrides):
            key = written.override.key
            if key == name:
                return written.setting(name, written.override.value)
            inner = _inside(written.override.value, key, name)
            if inner is not None:
                return written.setting(name, inner[0])
        return None


def _inside(value: object, key: str, name: str) -> tuple[object] | None:
    """The value of a name in a mapping that was given for a part of it: ``trainer={save_freq: 5}``."""
    if not name.startswith(key + ".") or not isinstance(value, dict):
        return None
    for part in name[len(key) + 1 :].split("."):
        if not isinstance(value, dict) or part not in value:
            return None
        value = value[part]
    return (value,)


# ------------------------------------------------------------------------------------------------ command lines


@dataclass(frozen=True, eq=False)
class HydraCommand:
    """What stands behind a program that Hydra configures.

    ``config_name`` and ``config_path`` are the options of these names, None where they are not given; ``refused`` are the
    arguments at which Hydra stops, each with its reason.
    """

    overrides: tuple[Written, ...]
    config_name: Argument | None = None
    config_path: Argument | None = None
    refused: tuple[tuple[Argument, str], ...] = ()


_OPTIONS = {"--config-name": "name", "-cn": "name", "--config-path": "path", "-cp": "path"}


def read_command(arguments: Sequence[Argument], editor: CommandEditor | None = None) -> HydraCommand:
    """The overrides and options of a command line, in order."""
    written: list[Written] = []
    refused: list[tuple[Argument, str]] = []
    options: dict[str, Argument] = {}
    at = 0
    while at < len(arguments):
        argument = arguments[at]
        at += 1
        head = known_head(argument)
        option, equals, _ = head.partition("=")
        if head.startswith("-"):
            if option in _OPTIONS:
                value = tail(argument, len(option) + 1) if equals else next(iter(arguments[at : at + 1]), None)
                at += 0 if equals or value is None else 1
                if value is not None:
                    options[_OPTIONS[option]] = value
            continue
        if argument.is_rest or (not head and argument.text is None):
            continue
        try:
            written.append(_written(argument, editor))
        except OverrideError as error:
            refused.append((argument, str(error)))
    return HydraCommand(tuple(written), options.get("name"), options.get("path"), tuple(refused))


def _written(argument: Argument, editor: CommandEditor | None) -> Written:
    text = known_text(argument)
    override = _half_known(argument) if text is None else parse_override(text)
    value = tail(argument, override.start) if override.start <= len(known_head(argument)) else argument
    key_place = place_of(argument)
    value_place = place_of(value) if value.pieces else key_place

    def setting(name: str, read: object) -> Setting:
        shown = "" if value_place not in (key_place, value.span) else value.template()
        path = path_of(value) if argument.text is None else None
        edit = _OverrideEditor(editor, argument, override, override.key == name)
        return Setting(name, read, value_place, key_place, editor=edit, joint="=", path=path, text=shown)

    return Written(override, key_place, value_place, setting)


def _half_known(argument: Argument) -> Override:
    """An override whose value only the launch knows."""
    head = known_head(argument)
    match = _KEY.match(head)
    if match is None or not head.startswith("=", match.end()):
        raise OverrideError("its key is known only to the launch")
    value = Unknown(f"`{argument.template()}` is known only to the launch")
    return Override(Kind(match["kind"] or ""), match["key"], value, match.end() + 1)


def spelled(value: object) -> str:
    """A value as it stands behind ``=``, in quotes where Hydra's grammar needs them."""
    if value is None:
        return "null"
    if isinstance(value, (bool, int, float)):
        return str(value)
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(spelled(item) for item in value) + "]"
    text = str(value)
    try:
        if parse_override(f"a={text}").value == text and text:
            return text
    except OverrideError:
        pass
    escaped = text.replace("\\'", "\\\\'").replace("'", "\\'")
    return f"'{escaped}'"


@dataclass(frozen=True)
class _OverrideEditor:
    """Changes one override, or takes it out."""

    command: CommandEditor | None
    argument: Argument
    override: Override
    whole: bool

    def set(self, value: object) -> tuple[Edit, ...]:
        return self._command().replace(self.argument, self.override.start, spelled(value))

    def remove(self) -> tuple[Edit, ...]:
        return self._command().remove([self.argument])

    def _command(self) -> CommandEditor:
        if self.command is None or not self.whole:
            raise CannotEdit(f"`{self.override.key}` cannot be changed on this command line")
        return self.command


@dataclass(frozen=True)
class _Addition:
    """Adds an override behind the last."""

    command: CommandEditor
    name: str
    sign: str

    def set(self, value: object) -> tuple[Edit, ...]:
        return self.command.append((f"{self.sign}{self.name}={spelled(value)}",))

    def remove(self) -> tuple[Edit, ...]:
        return ()
