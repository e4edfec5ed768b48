"""The resume contract: what a run saves, when, where, and what it takes up again after a kill.

Framework readers build a ``Run``; rules, outcomes and resume plans work on nothing else. Nothing here knows a syntax or a
framework. ``Unknown`` stands wherever the analysis cannot see; a rule about an absence says nothing on an unknown.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping
from enum import Enum
from types import MappingProxyType
from typing import Literal as TypingLiteral
from typing import NamedTuple, Protocol, TypeAlias, TypeVar

from ckptlint.source.text import Edit, Span

T = TypeVar("T")


class Unknown(NamedTuple):
    """A fact that could not be decided: why, and what the user can do to settle it."""

    why: str
    settle: str = ""


Fact: TypeAlias = T | Unknown


class State(str, Enum):
    """What a training run consists of. The value is how a message names it."""

    MODEL = "model weights"
    OPTIMIZER = "optimizer state"
    SCHEDULER = "learning-rate schedule"
    SCALER = "loss-scaler state"
    EMA = "EMA weights"
    RNG = "random-number state"
    DATA = "data position"
    PROGRESS = "step counter"
    BEST_METRIC = "best metric"
    CALLBACKS = "callback state"
    ROLLOUT = "rollout state"


# What "training state" means in the messages: all that a restart needs to go on as if nothing had happened.
TRAINING_STATE = frozenset({State.MODEL, State.OPTIMIZER, State.SCHEDULER, State.PROGRESS})


class Unit(str, Enum):
    """What a length or an interval counts. The value is how a message names it."""

    STEP = "step"
    EPOCH = "epoch"
    FRACTION = "of the run"
    MINUTE = "minute"
    SAMPLE = "sample"
    TOKEN = "token"


class Amount(NamedTuple):
    """A length or an interval in the unit the author used."""

    value: float
    unit: Unit

    def __str__(self) -> str:
        number = f"{self.value:g}" if self.value < 1e6 else f"{self.value:.0f}"
        if self.unit is Unit.FRACTION:
            return f"{self.value * 100:g} % of the run"
        return f"{number} {self.unit.value}" + ("" if self.value == 1 else "s")


# ------------------------------------------------------------------------------------------------ settings


class Editor(Protocol):
    """How one setting is changed in the text it is written in (or would be written in)."""

    def set(self, value: object) -> tuple[Edit, ...]:
        """Raises CannotEdit where that would change something else."""

    def remove(self) -> tuple[Edit, ...]:
        """Raises CannotEdit likewise."""


class Setting(NamedTuple):
    """One setting in the framework's own spelling.

    ``value`` is what the framework's loader makes of the text, or Unknown. ``span`` is the written value, None for a default;
    ``source`` then says whose default it is ("default of LLaMA-Factory 0.9.5"). ``joint`` stands between name and value where
    this is written: ``save_steps: 500``, ``--save-interval 500``, ``trainer.save_freq=500``. ``path`` is a value that is a path
    with parts which only the launch knows; ``text`` is how to show a value that its span does not (``$ARGS``).
    """

    name: str
    value: object
    span: Span | None = None
    key_span: Span | None = None
    source: str = ""
    editor: Editor | None = None
    joint: str = ": "
    path: PathExpr | None = None
    text: str = ""

    @property
    def written(self) -> bool:
        return self.span is not None

    @property
    def place(self) -> Span | None:
        """Where a finding about this setting stands: the value, or the key if the value is not written."""
        if self.span is not None and self.span.start == self.span.end and self.key_span is not None:
            return self.key_span
        return self.span

    def __str__(self) -> str:
        """``save_steps: 500`` as the author wrote it, for messages."""
        if self.span is not None:
            text = _on_one_line(self.text or self.span.text)
            own = text and (self.text or self.span != self.key_span)
            return self.spelled(text) if own else f"{self.name}{self.joint}".rstrip()
        return self.name if isinstance(self.value, Unknown) else f"{self.name} ({shown(self.value)}, {self.source})"

    def spelled(self, value: object) -> str:
        """``save_steps: 500`` as the author would write it with another value; a flag that is on has a name only."""
        if value is True and self.joint == " ":
            return self.name
        return f"{self.name}{self.joint}{shown(value)}"

    def set(self, value: object) -> tuple[Edit, ...]:
        return self.editor.set(value) if self.editor else ()

    def remove(self) -> tuple[Edit, ...]:
        return self.editor.remove() if self.editor else ()


_LONGEST = 200  # characters of a value in a message


def _on_one_line(text: str) -> str:
    """A value as it is written, for a message: the middle of a long one is left out."""
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST // 2]}…{text[-_LONGEST // 2 :]}"


def shown(value: object) -> str:
    """A value as configuration files spell it."""
    if value is None:
        return "null"
    return str(value).lower() if isinstance(value, bool) else str(value)


# ------------------------------------------------------------------------------------------------ paths


class Literal(NamedTuple):
    """Text that is always the same."""

    text: str


class Variable(NamedTuple):
    """An environment or shell variable. ``expanded`` says whether this framework's loader puts its value there."""

    text: str
    name: str
    default: str | None = None
    expanded: bool = True


class Changing(NamedTuple):
    """A part that differs at every start: a time, a process number, a random name, a version counter.

    ``by``: the setting by which the framework itself adds it; "" where the author's own text does.
    """

    text: str
    what: str
    by: str = ""


class Placeholder(NamedTuple):
    """A part of a template that somebody still has to fill in."""

    text: str


class Opaque(NamedTuple):
    """A part that is computed where the analysis cannot follow."""

    text: str
    why: str


Part: TypeAlias = Literal | Variable | Changing | Placeholder | Opaque

_PARTS = re.compile(
    r"""\$\{oc\.env:(?P<oc>[A-Za-z_]\w*)(?:,(?P<oc_default>[^}]*))?\}
    |\$\{(?P<braced>[A-Za-z_]\w*)(?::?-(?P<default>[^}]*))?\}
    |\$(?P<bare>[A-Za-z_]\w*)
    |(?P<computed>\$\{[^}]*\}|\$\([^)]*\)|`[^`]*`)
    |(?P<placeholder><[^<>/]*[A-Za-z][^<>/]*>|\{\{[^{}]*\}\}|/?\bpath/to\b(?:/[\w.-]+)*|/?\bpath[_-]to[_-][\w.-]+
        |^(?:YOUR|Your|your|[Pp]ath\ to)\ [\w\ .:/-]+$|\b(?:YOUR|your)[_-][\w.-]+|\bYOUR\b|/x{3,}(?=/|$)|^x{3,}(?=/|$))""",
    re.X,
)


class UnsetVariable(Exception):
    """A path names a variable that the environment does not hold."""

    def __init__(self, name: str, path: str) -> None:
        super().__init__(f"`{path}` needs the environment variable {name}, which is not set")
        self.name = name
        self.path = path


class PathExpr(NamedTuple):
    """A path with the parts it is made of, so that "absolute", "stable" and "durable" are questions to it."""

    parts: tuple[Part, ...]
    written: str

    @classmethod
    def of_text(cls, text: str, *, expanded: bool) -> PathExpr:
        """Read the variables and placeholders in a path as somebody typed it.

        ``expanded``: whether the framework's loader replaces variables (a shell does, most YAML loaders do not).
        """
        parts: list[Part] = []
        at = 0
        for match in _PARTS.finditer(text):
            if match.start() > at:
                parts.append(Literal(text[at : match.start()]))
            parts.append(_part(match, expanded))
            at = match.end()
        if at < len(text) or not parts:
            parts.append(Literal(text[at:]))
        return cls(tuple(parts), text)

    @property
    def literal(self) -> str | None:
        """The whole path, if nothing in it is open."""
        texts = [part.text for part in self.parts if isinstance(part, Literal)]
        return "".join(texts) if len(texts) == len(self.parts) else None

    @property
    def head(self) -> str:
        """The known text the path begins with; may be empty."""
        return self.parts[0].text if self.parts and isinstance(self.parts[0], Literal) else ""

    @property
    def known_directory(self) -> str:
        """The innermost directory that surely holds the path, without ``..``: ``/tmp`` for ``/tmp/run_$USER``; may be empty."""
        head = self.head if len(self.parts) <= 1 else self.head.rpartition("/")[0]
        return head if "://" in head else _plain(head)

    @property
    def absolute(self) -> bool | None:
        """None: it begins with something open."""
        if not self.head:
            return None
        return self.head.startswith(("/", "~")) or "://" in self.head

    def of(self, kind: type[T]) -> Iterator[T]:
        """The parts of one kind."""
        return (part for part in self.parts if isinstance(part, kind))

    def expand(self, environment: Mapping[str, str]) -> str:
        """The path with every variable replaced, whether or not the framework would do it.

        Raises:
            UnsetVariable: names the variable.
            ValueError: a part is computed, changes at each start or is still a placeholder; names it.
        """
        pieces = []
        for part in self.parts:
            if isinstance(part, Literal):
                pieces.append(part.text)
            elif isinstance(part, Variable):
                value = environment.get(part.name) or part.default
                if value is None:
                    raise UnsetVariable(part.name, self.written)
                pieces.append(value)
            else:
                raise ValueError(f"`{part.text}` in `{self.written}` has no value before the run starts")  # noqa: TRY004
        return "".join(pieces)

    def __str__(self) -> str:
        return self.written


DATE = "the date"  # as ``what`` of a Changing: two starts on one day share it

# strftime's directives that tell no time of day, and date's padding in front of them.
_OF_DATES = frozenset("aAbBCdDeFgGhjmuUVwWxyY%")


def is_date(text: str) -> bool:
    """Whether a computed part, ``$(date +%Y%m%d)`` or ``${now:%m-%d}``, is the day and no time of it."""
    directives = re.findall(r"%[-_0^#]?([A-Za-z%])", text)
    return bool(directives) and _OF_DATES.issuperset(directives)


def _part(match: re.Match[str], expanded: bool) -> Part:
    text = match[0]
    if match["oc"]:
        return Variable(text, match["oc"], match["oc_default"], expanded)
    if match["braced"] or match["bare"]:
        return Variable(text, match["braced"] or match["bare"], match["default"], expanded)
    if match["computed"]:
        if not expanded:
            return Placeholder(text)
        if re.search(r"now:|date|time|uuid|random|pid|\$\$", text, re.I):
            return Changing(text, DATE if is_date(text) else "a time or a random value")
        return Opaque(text, "computed")
    return Placeholder(text)


def inside(path: str, root: str) -> bool:
    """Whether a path is ``root`` or lies below it, by its text alone."""
    path, root = path.rstrip("/"), root.rstrip("/")
    return path == root or path.startswith(root + "/")


def same_directory(path: str, other: str) -> bool:
    """Whether two texts surely name one directory.

    ``/work/saves/a/sft`` and ``saves/a/sft`` do, for a launch in ``/work``: an absolute path that ends with all of a relative
    one of at least two parts is taken for the same.
    """
    path, other = _plain(path), _plain(other)
    short, long = sorted((path, other), key=len)
    if path == other or short.startswith(("/", "~", "..")) or not long.startswith(("/", "~")):
        return path == other
    return "/" in short and long.endswith("/" + short)


def _plain(path: str) -> str:
    return re.sub("^//", "/", posixpath.normpath(path)) if path else path  # POSIX keeps two leading slashes


# ------------------------------------------------------------------------------------------------ saving


class Never(Enum):
    """An interval that never comes."""

    NEVER = "never"


NEVER = Never.NEVER


class Interval(NamedTuple):
    """How often a checkpoint is written. ``every`` NEVER: not while training; ``at_end``: once more when it ends.

    ``setting`` decides; ``disabled`` means that the value, not the absence of one, says never. ``repair`` is what to write so
    that checkpoints come while the run trains; () where that is not known.
    """

    every: Fact[Amount | Never]
    at_end: Fact[bool]
    setting: Setting
    disabled: bool = False
    why: str = ""
    repair: tuple[tuple[Setting, object], ...] = ()

    def as_long_as(self, length: Fact[Amount]) -> bool:
        """Whether the first save comes no sooner than the end of a run of this length; False where that is not known."""
        if isinstance(self.every, (Unknown, Never)):
            return False
        if self.every.unit is Unit.FRACTION:
            return self.every.value >= 1
        return not isinstance(length, Unknown) and self.every.unit is length.unit and self.every.value >= length.value


class Retention(NamedTuple):
    """How many checkpoints stay. ``keep`` None: all, 0: none. ``keeps_best``: the best one stays besides."""

    keep: Fact[int | None]
    setting: Setting
    keeps_best: bool = False
    writes_before_deleting: Fact[bool] = True


class Missing(NamedTuple):
    """A kind of state that a checkpoint will not hold, and the setting that decides so.

    ``effect``: what a restart from such a checkpoint does, where it is worse than going on without that state. ``advice`` is
    what to do where that is more, or less, than giving the setting its safe value.
    """

    state: State
    setting: Setting
    safe_value: object = None
    effect: str = ""
    advice: str = ""


class Location(NamedTuple):
    """A directory, with the setting that names it. ``dies``: why it goes with the container; "" where nothing says so."""

    path: Fact[PathExpr]
    setting: Setting
    dies: str = ""


class Write(NamedTuple):
    """One stream of checkpoints. A run with several roles (actor, critic) has one Write for each that saves apart."""

    directory: Location
    interval: Interval
    retention: Retention
    missing: tuple[Missing, ...] = ()
    role: str = ""


# ------------------------------------------------------------------------------------------------ resuming


class Choice(str, Enum):
    """How the checkpoint to resume is chosen."""

    NEWEST = "newest"  # the framework looks into its own save directory
    FIXED = "fixed"  # exactly the one that is named
    NOTHING = "nothing"  # every start begins at step 0
    UNKNOWN = "unknown"


class Read(NamedTuple):
    """What a start takes up.

    ``raises_when_missing``: the start fails where the checkpoint it wants is not there. ``auto``: the value of the setting that
    finds the newest at every start and begins at step 0 where there is none; None where the framework has no such value.
    ``needs_off``: switches that would take over if the setting were taken out. ``why`` says what a start does instead where it
    takes up nothing, ``advice`` what to do about it, ``repair`` what to write so that every start takes up the newest.
    ``drops`` is what checkpoints hold and a start leaves in them.
    """

    choice: Choice
    setting: Setting
    path: PathExpr | None = None
    raises_when_missing: Fact[bool] = False
    why: str = ""
    auto: object = None
    needs_off: tuple[Setting, ...] = ()
    role: str = ""
    advice: str = ""
    repair: tuple[tuple[Setting, object], ...] = ()
    drops: tuple[Dropped, ...] = ()


class Dropped(NamedTuple):
    """A kind of state that checkpoints hold and that a start does not take back, and the setting that decides so.

    ``effect`` says what training does then; ``off`` is the value that restores it, ``safe`` whether the first launch and an
    uninterrupted run stay as they were with it.
    """

    state: State
    setting: Setting
    effect: str
    off: object = None
    safe: bool = False


class UnusedSetting(NamedTuple):
    """A setting about ``topic`` that nothing reads as things are, and why. ``repair`` is what to write so that it counts."""

    setting: Setting
    topic: TypingLiteral["resume", "save"]
    why: str
    instead: str
    repair: tuple[tuple[Setting, object], ...] = ()
    safe: bool = False


class LostReference(NamedTuple):
    """The model that the policy is held against is loaded from where the policy is resumed, so that a restart replaces it.

    ``setting`` is where the reference comes from now, ``repair`` what names the original; () where its path is not known.
    """

    setting: Setting
    why: str
    instead: str
    repair: tuple[tuple[Setting, object], ...] = ()


class WarmStart(NamedTuple):
    """Weights taken from a checkpoint of this very run as if that were resuming: step, optimizer and schedule start anew."""

    setting: Setting
    path: PathExpr
    instead: str = ""
    repair: tuple[tuple[Setting, object], ...] = ()  # what to write so that the start resumes


class Switch(NamedTuple):
    """A setting that makes a restart begin again although there is something to resume.

    ``off`` is the value that makes it harmless (None: take the setting out), ``also`` what must change with it, ``safe``
    whether that leaves an uninterrupted run and the first launch as they were.
    """

    setting: Setting
    effect: str
    loses: frozenset[State] = TRAINING_STATE
    off: object = None
    also: tuple[tuple[Setting, object], ...] = ()
    safe: bool = False
    advice: str = ""


class Obstacle(NamedTuple):
    """Why this stage, engine or release cannot resume whatever the settings say."""

    setting: Setting
    why: str
    instead: str = ""


class Misfit(NamedTuple):
    """A resume value that cannot be a checkpoint of this framework."""

    setting: Setting
    why: str
    instead: str


class Refusal(NamedTuple):
    """A value that the framework refuses or takes for something else.

    ``replacement`` is what was surely meant (written by a fix), None where that is open. ``stops``: the launch fails.
    ``removes``: what was meant is what holds without the setting.
    """

    setting: Setting
    effect: str
    instead: str
    replacement: object = None
    stops: bool = True
    removes: bool = False


class StrangeKey(NamedTuple):
    """A key that this framework's release does not know. ``nearest``: the real key it looks like; "" where it looks like none.

    ``remove`` takes it out, where nothing comes of it.
    """

    name: str
    span: Span
    nearest: str
    effect: str
    rename: tuple[Edit, ...] = ()
    remove: tuple[Edit, ...] = ()


# ------------------------------------------------------------------------------------------------ the launch


class MaskedExit(NamedTuple):
    """A failure of the launch does not become the exit status of its script. ``repair`` mends that; () where nothing does.

    ``succeeds``: the script then ends with status 0; else with the status of something else.
    """

    span: Span
    why: str
    instead: str
    repair: tuple[Edit, ...] = ()
    succeeds: bool = True


class LostArguments(NamedTuple):
    """What a script seems to pass and the program does not get. ``lost`` is how messages show it."""

    span: Span
    why: str
    instead: str
    lost: str = ""
    repair: tuple[Edit, ...] = ()


class Wipe(NamedTuple):
    """Something at the start deletes what a restart would read. ``directory`` is how it is named there."""

    span: Span
    command: str
    directory: str


class Platform(NamedTuple):
    """What the description of a job says of the place that outlives it: ``mount`` None where it declares none.

    ``durable`` and ``scratch`` are the tiers below the mount, as paths; "" where the platform has none.
    """

    name: str
    mount: PathExpr | None
    setting: Setting
    durable: str = ""
    scratch: str = ""
    repair: tuple[tuple[Setting, object], ...] = ()


# ------------------------------------------------------------------------------------------------ the run


class Release(NamedTuple):
    """The framework release whose facts were used. ``pinned``: where the project says so; None: assumed."""

    text: str
    pinned: Span | None = None

    def before(self, other: str) -> bool:
        """Whether this release is older, by the numbers of both."""
        return _numbers(self.text) < _numbers(other)

    def __str__(self) -> str:
        return self.text if self.pinned else f"{self.text} (assumed)"


# Directories that die with the container or the node's power, whatever the project's settings say.
EPHEMERAL = ("/tmp", "/var/tmp", "/dev/shm", "/run")


class Storage(NamedTuple):
    """What the project's settings say about places: roots that outlive a job, and roots that die with it."""

    durable: tuple[str, ...] = ()
    ephemeral: tuple[str, ...] = ()

    def outlives(self, path: PathExpr) -> bool:
        """Whether a path lies below a root that is declared durable."""
        return any(inside(path.known_directory, root) for root in self.durable)

    def dies_below(self, path: PathExpr) -> str | None:
        """The root below which a path dies with the job; None where none is known, or a durable one lies deeper."""
        if self.outlives(path):
            return None
        return next((root for root in (*EPHEMERAL, *self.ephemeral) if inside(path.known_directory, root)), None)


def _numbers(release: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", release)[:3])


class Run(NamedTuple):
    """One training run as the files describe it. The evidence spans may lie in several files."""

    framework: str
    title: str
    release: Release
    where: Span
    length: Fact[Amount]
    length_setting: Setting
    writes: tuple[Write, ...]
    reads: tuple[Read, ...]
    name: str = ""
    warm_starts: tuple[WarmStart, ...] = ()
    switches: tuple[Switch, ...] = ()
    obstacles: tuple[Obstacle, ...] = ()
    misfits: tuple[Misfit, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    strange_keys: tuple[StrangeKey, ...] = ()
    unused_settings: tuple[UnusedSetting, ...] = ()
    lost_references: tuple[LostReference, ...] = ()
    model: str = ""  # what is trained, as the author names it; its size may stand in the name
    settings: Mapping[str, Setting] = MappingProxyType({})
    partial: bool = False  # a file that is read beside a run's own (DeepSpeed's): only what is wrong in itself is known
    exit_masks: tuple[MaskedExit, ...] = ()
    lost_arguments: tuple[LostArguments, ...] = ()
    wipes: tuple[Wipe, ...] = ()
    platform: Platform | None = None
    world_size: int | None = None  # processes over all nodes
    ways: tuple[Run, ...] = ()  # the same launch as it is on other ways through its script
    neighbours: tuple[str, ...] = ()  # other runs of this check that save into the same directory
    storage: Storage = Storage()

    @property
    def short(self) -> bool:
        """A smoke test: so short that a restart loses nothing worth a warning."""
        if isinstance(self.length, Unknown):
            return False
        return self.length.unit is Unit.STEP and self.length.value <= SHORT_STEPS

    @property
    def unknowns(self) -> Iterator[Unknown]:
        """All that could not be decided."""
        facts: list[object] = [self.length]
        for write in self.writes:
            facts += [write.directory.path, write.interval.every, write.interval.at_end, write.retention.keep]
        for read in self.reads:
            facts.append(read.raises_when_missing)
            if read.choice is Choice.UNKNOWN:
                facts.append(Unknown(read.why))
        seen = set()
        for fact in facts:
            if isinstance(fact, Unknown) and fact.why not in seen:
                seen.add(fact.why)
                yield fact


# Runs of at most this many steps are smoke tests: LLaMA-Factory's v1 examples take 10, MindSpeed's CI scripts 5 to 20.
SHORT_STEPS = 50


def at(setting: Setting, run: Run) -> Span:
    """Where a finding about a setting stands: its text, or the run where only a default speaks."""
    return setting.place or run.where
