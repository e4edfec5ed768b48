"""What the reading of a script gives: the commands it may run, and what its syntax lost."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from ckptlint.source.shell.state import Trace
from ckptlint.source.shell.syntax import Comment
from ckptlint.source.shell.values import Argument, Value
from ckptlint.source.text import Edit, SourceText, Span

Neighbour = Callable[[str], "SourceText | None"]


class Mask(str, Enum):
    """Why a failure of a command does not become the exit status of the script."""

    PIPE = "pipe"
    BACKGROUND = "background"
    CONDITION = "condition"
    ALTERNATIVE = "alternative"
    SUBSTITUTION = "substitution"
    LATER = "later"


@dataclass(frozen=True)
class Failure:
    """Whether the script exits with a status other than 0 when the command fails; the masks say why it does not.

    ``pipefail`` tells whether ``set -o pipefail`` alone would mend it.
    """

    reaches_exit: bool
    masks: tuple[Mask, ...] = ()
    pipefail: bool = False


@dataclass(frozen=True)
class Condition:
    """A text a command stands under, and whether it must hold; None for a loop or a ``case``."""

    span: Span
    holds: bool | None


class Place(NamedTuple):
    """Where in the script a command stands."""

    conditions: tuple[Condition, ...] = ()
    loops: int = 0
    function: str = ""
    subshell: bool = False
    background: bool = False
    substitution: bool = False
    carrier: int | None = None


@dataclass(frozen=True)
class Redirection:
    """``operator`` as written, ``number`` of the descriptor ("" for the usual one), ``target`` None for a heredoc."""

    operator: str
    number: str
    target: Argument | None
    span: Span


@dataclass(frozen=True, eq=False)
class Command:
    """A simple command that may run, with every argument traced to where it is written.

    ``words`` are all its words, ``argv`` those of the innermost command behind wrappers (``nohup``, ``srun``, ``env`` …).
    ``assignments`` hold for this command alone, ``exported`` for everything. ``piped_into`` are the commands its output goes
    through. ``as_shipped``: it runs in an empty environment without arguments. ``place.carrier`` is the number of the command
    that carried this one in a string or runs the script it stands in. ``span`` is the command as written; with
    ``in_text`` it is read from a text that was put together (``eval``, ``bash -c``), and ``span`` is a place in that text.
    """

    number: int
    words: tuple[Argument, ...]
    argv: tuple[Argument, ...]
    assignments: Mapping[str, Value]
    exported: Mapping[str, Value] = field(repr=False)
    redirections: tuple[Redirection, ...]
    stdin: Value | None = field(repr=False)
    piped_into: tuple[tuple[Argument, ...], ...]
    directory: Value
    place: Place
    failure: Failure
    as_shipped: bool
    span: Span
    in_text: bool = False

    @property
    def name(self) -> str | None:
        """The program without its folder; None when it is unknown."""
        text = self.argv[0].text if self.argv else None
        return None if text is None else text.rpartition("/")[2]

    @property
    def wrappers(self) -> tuple[Argument, ...]:
        return self.words[: len(self.words) - len(self.argv)]

    def __str__(self) -> str:
        return " ".join(word.template() for word in self.words)


class Loss(str, Enum):
    """How a script loses what it seems to say."""

    COMMENT = "a comment inside a continued command ends it"
    BLANK = "a blank behind the backslash makes it an argument and ends the command"
    MISSING_BACKSLASH = "the line before has no backslash, so the command ended there"
    AFTER_PIPE = "words behind the pipe go to the other program"
    DEFEATED_DEFAULT = "the variable is set just before, so its default is never used"
    SYNTAX = "bash stops reading here"
    CARRIAGE_RETURN = "lines end with carriage returns, which bash takes into the words"


@dataclass(frozen=True)
class Notice:
    """Something lost to syntax: ``span`` is the cause, ``lost`` the texts that do not arrive."""

    loss: Loss
    span: Span
    lost: tuple[Span, ...] = ()
    detail: str = ""


@dataclass(frozen=True, eq=False)
class ShellSource:
    """A shell script as read: ``complete`` is false when the reading was cut short for its size.

    ``reads`` are texts that a condition, a loop or a ``case`` looks at: place of the condition, places of the text.
    """

    source: SourceText
    commands: tuple[Command, ...]
    notices: tuple[Notice, ...]
    comments: tuple[Comment, ...] = field(repr=False)
    ends: tuple[Trace, ...] = field(repr=False)
    reads: tuple[tuple[Span, tuple[Span, ...]], ...] = field(repr=False)
    complete: bool = True
    neighbour: Neighbour | None = field(default=None, repr=False)

    def reread(self, edits: Sequence[Edit]) -> ShellSource:
        """The script as it is after the edits, its neighbours included."""
        from ckptlint.source.shell import read
        from ckptlint.source.text import apply

        changed: dict[SourceText, list[Edit]] = {}
        for edit in edits:
            changed.setdefault(edit.span.source, []).append(edit)
        texts = {source.path: SourceText(source.path, apply(source, parts)) for source, parts in changed.items()}

        def neighbour(name: str) -> SourceText | None:
            found = self.neighbour(name) if self.neighbour is not None else None
            return None if found is None else texts.get(found.path, found)

        own = texts[self.source.path] if self.source in changed else self.source
        return read(own, neighbour if self.neighbour is not None else None)

    def shipped(self) -> tuple[Command, ...]:
        """What runs in an empty environment without arguments when every command succeeds, each as often as it runs."""
        by_number = {command.number: command for command in self.commands}
        found: list[Command] = []
        trace = self.ends[0] if self.ends else None
        while trace is not None:
            if trace.command is not None:
                found.append(by_number[trace.command])
            trace = trace.parents[0] if trace.parents else None
        return tuple(reversed(found))

    def paths(self, limit: int = 64) -> Iterator[tuple[Command, ...]]:
        """Ways through the script, each the commands it runs in order; at most ``limit`` of them."""
        by_number = {command.number: command for command in self.commands}
        stack: list[tuple[Trace, tuple[int, ...]]] = [(end, ()) for end in reversed(self.ends)]
        seen: set[tuple[int, ...]] = set()
        steps = 0
        while stack and len(seen) < limit and steps < 200_000:
            steps += 1
            trace, behind = stack.pop()
            if trace.command is not None:
                behind = (trace.command, *behind)
            if trace.parents:
                stack += [(parent, behind) for parent in reversed(trace.parents)]
            elif behind not in seen:
                seen.add(behind)
                yield tuple(by_number[number] for number in behind)
