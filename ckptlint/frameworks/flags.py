"""Settings of a run that stand on a command line, as argparse reads it; and what launched program a command line is of.

Sources: CPython's ``argparse`` (the last of two wins, ``--a v`` and ``--a=v``, abbreviations); Megatron-LM's parser is made
with ``allow_abbrev=False`` in every release read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol

from ckptlint.frameworks.megatron_keys import Flag
from ckptlint.run import DATE, Changing, Literal, Opaque, PathExpr, Setting, Unknown, Variable, is_date
from ckptlint.source.text import CannotEdit, Edit, Span

if TYPE_CHECKING:  # a check of YAML files alone is not to pay for the shell
    from ckptlint.frameworks.settings import Settings
    from ckptlint.source.shell.values import Argument, Piece

# ------------------------------------------------------------------------------------------------ arguments


class CommandEditor(Protocol):
    """Changes the arguments of one command in the text they are written in; each raises CannotEdit where that spoils more."""

    def replace(self, argument: Argument, start: int, text: str) -> tuple[Edit, ...]:
        """Put ``text`` where the argument's text from ``start`` on stands, wherever that is written."""

    def remove(self, arguments: Sequence[Argument]) -> tuple[Edit, ...]:
        """Take arguments out, with the continuations they leave behind."""

    def append(self, texts: Sequence[str]) -> tuple[Edit, ...]:
        """Add arguments at the end of the command, in front of pipes and redirections."""


def known_text(argument: Argument) -> str | None:
    """The text of an argument, ``${X:-default}`` giving its default; None where only the launch knows a part of it."""
    return _known_text(argument.pieces)


def _known_text(pieces: Sequence[Piece]) -> str | None:
    from ckptlint.source.shell.values import Known

    texts = []
    for piece in pieces:
        if isinstance(piece, Known):
            text: str | None = piece.text
        else:
            text = None if piece.default is None else _known_text(piece.default)
        if text is None:
            return None
        texts.append(text)
    return "".join(texts)


def known_head(argument: Argument) -> str:
    """The text in front of the first part that only the launch knows."""
    from ckptlint.source.shell.values import Known

    texts = []
    for piece in argument.pieces:
        if not isinstance(piece, Known):
            break
        texts.append(piece.text)
    return "".join(texts)


def tail(argument: Argument, start: int) -> Argument:
    """What is left of an argument without its first characters, which are known."""
    from ckptlint.source.shell.values import Known

    pieces: list[Piece] = []
    for piece in argument.pieces:
        if start and isinstance(piece, Known):
            if len(piece.text) > start:
                pieces.append(piece.cut(start, len(piece.text)))
            start = max(0, start - len(piece.text))
        else:
            pieces.append(piece)
    return replace(argument, pieces=tuple(pieces))


def place_of(argument: Argument) -> Span:
    """Where an argument is written: its own text, the default of a variable, else the word of the command it comes from."""
    from ckptlint.source.shell.values import Known

    if argument.written is not None:
        return argument.written
    only = argument.pieces[0] if len(argument.pieces) == 1 else None
    if only is not None and not isinstance(only, Known) and only.default:
        return place_of(replace(argument, pieces=only.default))
    return argument.span


def path_of(argument: Argument) -> PathExpr:
    """An argument as a path, with the parts that only the launch knows."""
    parts = [part for piece in argument.pieces for part in _path_parts(piece)]
    return PathExpr(tuple(parts) or (Literal(""),), argument.template())


def _path_parts(piece: Piece) -> Iterator[Literal | Variable | Changing | Opaque]:
    from ckptlint.source.shell.values import Kind, Known

    if isinstance(piece, Known):
        yield from (part for part in PathExpr.of_text(piece.text, expanded=False).parts)  # type: ignore[misc]
    elif piece.kind is Kind.TIME:
        yield Changing(piece.shown, DATE if is_date(piece.shown) else "the time")
    elif piece.name in ("RANDOM", "SRANDOM", "$", "BASHPID", "EPOCHSECONDS", "EPOCHREALTIME"):
        yield Changing(piece.shown, "a process number" if piece.name in ("$", "BASHPID") else "a time or a random value")
    elif piece.kind in (Kind.ENVIRONMENT, Kind.POSITIONAL) and piece.name:
        default = None if piece.default is None else _known_text(piece.default)
        yield Variable(piece.shown, piece.name, default, True)
    else:
        yield Opaque(piece.shown, "computed")


# ------------------------------------------------------------------------------------------------ the launched program


@dataclass(frozen=True)
class Program:
    """A Python program as it is launched: a module or the path of a script, and its own arguments."""

    name: str
    arguments: tuple[Argument, ...]
    is_module: bool = False

    @property
    def script(self) -> str:
        """The script's name without its folder; the whole name of a module."""
        return self.name if self.is_module else self.name.rpartition("/")[2]


_PYTHON = re.compile(r"(?:python|pypy)[\d.]*")
_LAUNCHERS = frozenset({"torchrun", "msrun", "deepspeed", "accelerate", "horovodrun", "mpirun"})
_DISTRIBUTED = frozenset({"torch.distributed.launch", "torch.distributed.run", "accelerate.commands.launch"})
_PYTHON_VALUES = frozenset({"-W", "-X", "--check-hash-based-pycs"})


def program(argv: Sequence[Argument]) -> Program | None:
    """The Python program that a command launches, behind ``python``, ``torchrun``, ``msrun`` and their kin; else None."""
    name = known_text(argv[0]) if argv else None
    if name is None:
        return None
    name = name.rpartition("/")[2]
    if _PYTHON.fullmatch(name):
        return _behind_python(argv[1:])
    if name in _LAUNCHERS:
        return _behind_launcher(argv[1:])
    return None


def _behind_python(argv: Sequence[Argument]) -> Program | None:
    at = 0
    while at < len(argv):
        text = _script_text(argv[at])
        if text is None or text == "-c":
            return None
        if text == "-m":
            module = known_text(argv[at + 1]) if at + 1 < len(argv) else None
            if module is None:
                return None
            rest = tuple(argv[at + 2 :])
            return _behind_launcher(rest) if module in _DISTRIBUTED else Program(module, rest, True)
        if not text.startswith("-"):
            return Program(text, tuple(argv[at + 1 :]))
        at += 2 if text in _PYTHON_VALUES else 1
    return None


def _script_text(argument: Argument) -> str | None:
    """The text of an argument; of ``$root/train.py``, whose folder only the launch knows, as the script spells it."""
    text = known_text(argument)
    if text is None and argument.template().endswith(".py"):
        return argument.template()
    return text


def _behind_launcher(argv: Sequence[Argument]) -> Program | None:
    """The first script or ``-m module``; what stands before are the launcher's own options and their values."""
    for at, argument in enumerate(argv):
        text = _script_text(argument)
        if text is None:
            continue
        if text in ("-m", "--module") and at + 1 < len(argv):
            module = known_text(argv[at + 1])
            return None if module is None else Program(module, tuple(argv[at + 2 :]), True)
        if text.endswith(".py") and not text.startswith("-"):
            return Program(text, tuple(argv[at + 1 :]))
    return None


# ------------------------------------------------------------------------------------------------ argparse


@dataclass(frozen=True)
class Occurrence:
    """One time that an option is given: its argument, those of its values, and where in the last one the value begins."""

    option: Argument
    values: tuple[Argument, ...]
    start: int = 0

    @property
    def arguments(self) -> tuple[Argument, ...]:
        return (self.option, *(value for value in self.values if value is not self.option))


@dataclass(frozen=True, eq=False)
class FlagSettings:
    """The options of a command line, by their argparse destinations.

    ``place`` is the command as a whole. ``abbreviations``: a parser that takes ``--save-int`` for ``--save-interval``.
    """

    arguments: Sequence[Argument]
    flags: tuple[Flag, ...]
    default_source: str
    place: Span
    editor: CommandEditor | None = None
    abbreviations: bool = False
    _given: dict[str, list[Occurrence]] = field(default_factory=dict, init=False, repr=False)
    _strange: dict[str, Argument] = field(default_factory=dict, init=False, repr=False)
    _open: list[str] = field(default_factory=list, init=False, repr=False)

    def __post_init__(self) -> None:
        options = {option: flag for flag in self.flags for option in flag.options}
        at = 0
        while at < len(self.arguments):
            at = self._read(at, options)

    @property
    def where(self) -> Span:
        return self.place

    def names(self) -> Iterator[str]:
        """Every destination that is given, and every option that the table does not have."""
        yield from self._given
        yield from self._strange

    def __contains__(self, name: str) -> bool:
        return name in self._given or name in self._strange

    def value(self, name: str) -> object:
        return self.setting(name).value

    def setting(self, name: str) -> Setting:
        if name in self._strange:
            place = place_of(self._strange[name])
            return Setting(name, True, place, place, joint=" ")
        flag = self._flag(name)
        given = self._given.get(name, [])
        editor = FlagEditor(self, flag, tuple(given))
        if not given:
            value = Unknown(f"`{self._open[0]}` may hold arguments") if self._open else flag.default
            return Setting(flag.options[0], value, source=self.default_source, editor=editor, joint=" ")
        last = given[-1]
        option = known_text(last.option) or flag.options[0]
        shown = option.partition("=")[0]
        if flag.kind in ("on", "off"):
            place = place_of(last.option)
            return Setting(shown, flag.kind == "on", place, place, editor=editor, joint=" ")
        return self._valued(flag, last, shown, editor)

    def _valued(self, flag: Flag, last: Occurrence, shown: str, editor: FlagEditor) -> Setting:
        values = [tail(last.option, last.start)] if last.start else list(last.values)
        texts = [known_text(value) for value in values]
        key_place = place_of(last.option)
        if not values:
            return Setting(shown, Unknown(f"`{shown}` has no value"), key_place, key_place, editor=editor, joint=" ")
        place, whole = place_of(values[0]), " ".join(value.template() for value in values)
        text = "" if len(values) == 1 and place != values[0].span else whole
        known = [part for part in texts if part is not None]
        path = path_of(values[0]) if len(known) < len(texts) and len(values) == 1 else None
        value: object = Unknown(f"`{shown} {whole}` is known only to the launch")
        if len(known) == len(texts):
            converted = [_converted(flag, part) for part in known]
            value = converted if flag.many else _converted(flag, " ".join(known))
        if values[0].text is None and path is None and flag.kind == "str":
            path = path_of(values[0])
        return Setting(shown, value, place, key_place, editor=editor, joint=" ", path=path, text=text)

    def _flag(self, name: str) -> Flag:
        return next((flag for flag in self.flags if flag.name == name), Flag(name, ("--" + name.replace("_", "-"),)))

    def rename(self, name: str, to: str) -> tuple[Edit, ...]:
        argument = self._strange.get(name)
        if argument is None or to in self or self.editor is None:
            return ()
        try:
            return self.editor.replace(argument, 0, self._flag(to).options[0])
        except CannotEdit:
            return ()

    # -------------------------------------------------------------------------------- reading

    def _read(self, at: int, options: dict[str, Flag]) -> int:
        """Take the argument at a place, with its values; gives the place behind them."""
        argument = self.arguments[at]
        text = known_text(argument) if argument.text is None else argument.text
        head = known_head(argument) if text is None else text
        if not head.startswith("--"):
            if not head and text is None and not argument.is_rest and not argument.vanishes:
                self._open.append(argument.template())
            return at + 1
        option, equals, _ = head.partition("=")
        flag = self._matching(option, options)
        if flag is None:
            self._strange.setdefault(option, argument)
            return at + 1 if equals else at + 1 + self._is_value(at + 1)
        if equals:
            self._given.setdefault(flag.name, []).append(Occurrence(argument, (argument,), len(option) + 1))
            return at + 1
        values = () if flag.kind in ("on", "off") else self._values(at + 1, flag)
        self._given.setdefault(flag.name, []).append(Occurrence(argument, values))
        return at + 1 + len(values)

    def _is_value(self, at: int) -> bool:
        """Whether an argument that only the launch knows stands behind an option, and so is its value."""
        following = self.arguments[at] if at < len(self.arguments) else None
        return following is not None and not following.is_rest and following.text is None and not _is_option(following)

    def _matching(self, option: str, options: dict[str, Flag]) -> Flag | None:
        if option in options or not self.abbreviations:
            return options.get(option)
        found = {flag.name: flag for name, flag in options.items() if name.startswith(option)}
        return next(iter(found.values())) if len(found) == 1 else None

    def _values(self, at: int, flag: Flag) -> tuple[Argument, ...]:
        """The arguments that are an option's value: one, or all up to the next option.

        A placeholder of several words in a variable, ``--save your model save path``, is taken as one; argparse would stop.
        """
        values: list[Argument] = []
        while at < len(self.arguments):
            argument = self.arguments[at]
            if _is_option(argument) or argument.is_rest:
                break
            if values and not flag.many and not (argument.split and argument.span == values[0].span):
                break
            values.append(argument)
            at += 1
        return tuple(values)


def _is_option(argument: Argument) -> bool:
    head = known_head(argument)
    return head.startswith("-") and re.match(r"-\d|-\.\d|-$", head) is None


def _converted(flag: Flag, text: str) -> object:
    """What argparse's ``type`` makes of a text; the text itself where it would stop."""
    try:
        if flag.kind == "int":
            return int(text)
        if flag.kind == "float":
            return float(text)
        if flag.kind == "bool":
            return text.strip().lower() in ("true", "1", "yes", "y", "t", "on")
    except ValueError:
        return text
    return text


@dataclass(frozen=True, eq=False)
class OverFile:
    """A command line over the file it names: what is given wins, all else is as the file says."""

    given: FlagSettings
    file: Settings

    @property
    def where(self) -> Span:
        return self.given.place

    def names(self) -> Iterator[str]:
        return iter(dict.fromkeys((*self.given.names(), *self.file.names())))

    def __contains__(self, name: str) -> bool:
        return name in self.given or name in self.file

    def value(self, name: str) -> object:
        return self.setting(name).value

    def setting(self, name: str) -> Setting:
        return self.given.setting(name) if name in self.given else self.file.setting(name)


@dataclass(frozen=True)
class FlagEditor:
    """Gives an option another value, wherever that is written, or takes it out, every time it is given."""

    settings: FlagSettings
    flag: Flag
    given: tuple[Occurrence, ...]

    def set(self, value: object) -> tuple[Edit, ...]:
        editor = self._editor()
        if value is None or value is False:
            return self.remove()
        option = self.flag.options[0]
        if self.flag.kind in ("on", "off"):
            return () if self.given else editor.append((option,))
        if not self.given:
            return editor.append((option, str(value)))
        last = self.given[-1]
        if last.start:
            return editor.replace(last.option, last.start, str(value))
        if len(last.values) != 1:
            raise CannotEdit(f"`{option}` has {len(last.values)} values")
        return editor.replace(last.values[0], 0, str(value))

    def remove(self) -> tuple[Edit, ...]:
        if not self.given:
            return ()
        return self._editor().remove([argument for occurrence in self.given for argument in occurrence.arguments])

    def _editor(self) -> CommandEditor:
        if self.settings.editor is None:
            raise CannotEdit(f"`{self.flag.options[0]}` cannot be changed on this command line")
        return self.settings.editor
