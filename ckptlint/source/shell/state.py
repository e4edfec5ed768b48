"""What a shell knows at one point of one way through the script."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from ckptlint.source.shell.syntax import Function
from ckptlint.source.shell.values import Kind, Known, Unknown, Value
from ckptlint.source.text import Span

# Set in every session, so an empty environment says nothing about them.
ALWAYS_SET = frozenset(
    [
        "HOME",
        "USER",
        "LOGNAME",
        "PATH",
        "PWD",
        "OLDPWD",
        "HOSTNAME",
        "SHELL",
        "TERM",
        "LANG",
        "UID",
        "EUID",
        "PPID",
        "RANDOM",
        "SRANDOM",
        "SECONDS",
        "LINENO",
        "BASHPID",
        "HOSTTYPE",
        "MACHTYPE",
        "OSTYPE",
        "BASH",
        "BASH_VERSION",
        "SHLVL",
    ]
)
CLOCKS = frozenset({"EPOCHSECONDS", "EPOCHREALTIME"})


class Variable(NamedTuple):
    """``items`` of an array, ``named`` an associative one; ``place`` is the assignment, ``settled``: under no condition."""

    value: Value = ()
    items: Mapping[str, Value] | None = None
    named: bool = False
    exported: bool = False
    readonly: bool = False
    attribute: str = ""
    place: Span | None = None
    settled: bool = False


class Status(NamedTuple):
    """An exit status: ``code`` if known, ``default`` in an empty environment when commands succeed.

    ``commands`` are those whose failure it would be; ``inverted`` when it says the opposite (``!``).
    """

    code: int | None = 0
    default: int | None = 0
    commands: frozenset[int] = frozenset()
    inverted: bool = False
    suspects: frozenset[int] = frozenset()


SUCCESS = Status()
FAILURE = Status(1, 1)


class Trace(NamedTuple):
    """The commands so far, last first; more than one parent where ways came together, the way as shipped first."""

    command: int | None
    parents: tuple[Trace, ...]


START = Trace(None, ())


@dataclass(slots=True, eq=False)
class State:
    """Mutable; every way through the script has its own.

    ``positional`` is None when the caller is unknown, ``shifted`` then counts what ``shift`` took. ``flow`` is why the rest of
    the list is skipped: ``exit``, ``return``, ``break`` or ``continue`` (with ``levels``). ``shipped``: the way taken in
    an empty environment without arguments. ``failed``: commands that failed on this way; ``failures``: those that
    would have ended it.
    """

    variables: dict[str, Variable] = field(default_factory=dict)
    unset: frozenset[str] = frozenset()
    functions: dict[str, Function] = field(default_factory=dict)
    options: frozenset[str] = frozenset()
    positional: tuple[Value, ...] | None = None
    shifted: int = 0
    frames: tuple[dict[str, Variable | None], ...] = ()
    decided: dict[object, bool] = field(default_factory=dict)
    directory: Value = ()
    status: Status = SUCCESS
    previous: Status = SUCCESS
    trace: Trace = START
    output: Value = ()
    flow: str = ""
    levels: int = 0
    shipped: bool = True
    failed: frozenset[int] = frozenset()
    failures: frozenset[int] = frozenset()
    jobs: frozenset[int] = frozenset()
    pipe_statuses: tuple[frozenset[int], ...] = ()

    def copy(self) -> State:
        return State(
            dict(self.variables),
            self.unset,
            dict(self.functions),
            self.options,
            self.positional,
            self.shifted,
            tuple(dict(frame) for frame in self.frames),
            dict(self.decided),
            self.directory,
            self.status,
            self.previous,
            self.trace,
            self.output,
            self.flow,
            self.levels,
            self.shipped,
            self.failed,
            self.failures,
            self.jobs,
            self.pipe_statuses,
        )

    def same_as(self, other: State) -> bool:
        """Whether the rest of the script would go the same way from both."""
        return (
            self.flow == other.flow
            and self.levels == other.levels
            and self.options == other.options
            and self.status.code == other.status.code
            and self.positional == other.positional
            and self.shifted == other.shifted
            and self.unset == other.unset
            and self.output == other.output
            and self.directory == other.directory
            and self.variables == other.variables
            and self.functions == other.functions
            and self.frames == other.frames
        )

    def absorb(self, other: State) -> None:
        """Takes in another way that goes on the same."""
        if self.trace is not other.trace:
            first = other.shipped and not self.shipped
            self.trace = Trace(None, (other.trace, self.trace) if first else (self.trace, other.trace))
        self.status = merged_status(self.status, other.status)
        self.shipped = self.shipped or other.shipped
        self.failed &= other.failed
        self.failures |= other.failures
        self.jobs |= other.jobs
        for key in [key for key, holds in self.decided.items() if other.decided.get(key) is not holds]:
            del self.decided[key]

    def blend(self, other: State) -> None:
        """Takes in a way that goes on differently: what differs becomes unknown."""
        for name in {*self.variables, *other.variables}:
            mine, theirs = self.variables.get(name), other.variables.get(name)
            if mine != theirs:
                self.variables[name] = blended(name, mine, theirs, other.shipped)
        if self.positional != other.positional or self.shifted != other.shifted:
            self.positional, self.shifted = None, max(self.shifted, other.shifted)
        self.unset &= other.unset
        self.functions = {**other.functions, **self.functions}
        self.options &= other.options
        if self.output != other.output:
            self.output = (Unknown(Kind.BRANCH, "$(…)"),)
        if self.status.code != other.status.code:
            self.status = Status(None, self.status.default, self.status.commands)
        self.absorb(other)


def merged_status(one: Status, other: Status) -> Status:
    """The status where two ways come together."""
    if one == other:
        return one
    code = one.code if one.code == other.code else None
    default = one.default if one.default == other.default else None
    return Status(code, default, one.commands | other.commands, one.inverted, one.suspects | other.suspects)


def blended(name: str, one: Variable | None, other: Variable | None, prefer_other: bool) -> Variable:
    """A variable whose value hangs on the way taken; its default is that of the way taken as shipped."""
    first = (other if prefer_other else one) or Variable()
    default = first.value if first.items is None else None
    exported = bool(one and one.exported and other and other.exported)
    if first.items is not None or (one and one.items is not None) or (other and other.items is not None):
        return Variable((), {"0": (Unknown(Kind.BRANCH, f"${{{name}[@]}}", "@"),)}, False, exported)
    return Variable((Unknown(Kind.BRANCH, f"${name}", name, default),), None, False, exported)


def literal(text: str) -> Value:
    """A text that is written nowhere."""
    return (Known(text),) if text else ()
