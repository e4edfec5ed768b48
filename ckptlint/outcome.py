"""What a user wants to know of a run as a whole: what happens when it is killed and started again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from ckptlint.run import NEVER, Amount, Changing, Choice, Opaque, PathExpr, Placeholder, Run, State, Unknown, Variable, Write


class Kind(str, Enum):
    """The five answers."""

    EXACT = "exact"
    LOSING = "losing"
    RESTARTS = "restarts"
    CANNOT = "cannot"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Outcome:
    """One answer, and one line of words for it."""

    kind: Kind
    text: str


def outcome(run: Run) -> Outcome:
    """The outcome of a restart, from the same facts the rules see; the first thing that decides it wins."""
    for found in _deciding(run):
        return found
    return Outcome(Kind.EXACT, f"resumes exactly{_repeated(run)}")


def _deciding(run: Run) -> Iterator[Outcome]:
    yield from _does_not_start(run)
    yield from _restarts(run)
    yield from _unknown(run)
    yield from _losing(run)


def _does_not_start(run: Run) -> Iterator[Outcome]:
    for refusal in (refusal for refusal in run.refusals if refusal.stops):
        yield Outcome(Kind.CANNOT, f"does not start: `{refusal.setting}` is refused")
    for misfit in run.misfits:
        yield Outcome(Kind.CANNOT, f"does not start: `{misfit.setting}` names no checkpoint")
    for read in run.reads:
        if read.choice is Choice.NEWEST and read.raises_when_missing is True:
            yield Outcome(Kind.CANNOT, f"does not start the first time: `{read.setting}` wants a checkpoint")
    for obstacle in run.obstacles:
        yield Outcome(Kind.CANNOT, f"cannot resume: {obstacle.why}")


def _restarts(run: Run) -> Iterator[Outcome]:
    for write in run.writes:
        why = _nothing_saved(write, run)
        if why:
            yield Outcome(Kind.RESTARTS, f"restarts at step 0: {why}")
    for read in run.reads:
        if read.choice is Choice.NOTHING:
            yield Outcome(
                Kind.RESTARTS, f"restarts at step 0: `{read.setting}`" if not read.why else f"restarts at step 0: {read.why}"
            )
    for write in run.writes:
        path = write.directory.path
        if not isinstance(path, PathExpr):
            continue
        if any(path.of(Changing)) and any(read.choice is not Choice.FIXED for read in run.reads):
            yield Outcome(Kind.RESTARTS, "restarts at step 0: every start saves into a new directory")
        root = run.storage.dies_below(path)
        if root is not None:
            yield Outcome(Kind.RESTARTS, f"restarts at step 0: `{root}` dies with the container")


def _nothing_saved(write: Write, run: Run) -> str:
    interval = write.interval
    if interval.every is NEVER:
        return (
            "the only checkpoint is written when training ends" if interval.at_end is True else "no checkpoint is ever written"
        )
    if write.retention.keep == 0:
        return f"with `{write.retention.setting}` no checkpoint is kept"
    if interval.as_long_as(run.length):
        return f"the first checkpoint comes after {interval.every}, and the run ends after {run.length}"
    return ""


def _unknown(run: Run) -> Iterator[Outcome]:
    for write in run.writes:
        path = write.directory.path
        if isinstance(path, Unknown):
            yield Outcome(Kind.UNKNOWN, f"unknown because {path.why}")
        elif any(path.of(Placeholder)) or any(path.of(Opaque)) or any(not part.expanded for part in path.of(Variable)):
            yield Outcome(Kind.UNKNOWN, f"unknown because the save directory is still open: `{path}`")
        if isinstance(write.interval.every, Unknown):
            yield Outcome(Kind.UNKNOWN, f"unknown because {write.interval.every.why}")
    for read in run.reads:
        if read.choice is Choice.UNKNOWN:
            yield Outcome(Kind.UNKNOWN, f"unknown because {read.why}")


def _losing(run: Run) -> Iterator[Outcome]:
    for read in run.reads:
        if read.choice is Choice.FIXED:
            yield Outcome(Kind.LOSING, f"resumes, but always from `{read.path}`: losing all that was done since")
    lost = [missing.state for write in run.writes for missing in write.missing]
    lost += [state for switch in run.switches for state in sorted(switch.loses, key=list(State).index)]
    if lost:
        yield Outcome(Kind.LOSING, f"resumes, losing {_listed(lost)}{_repeated(run, ' and ')}")


def _listed(states: list[State]) -> str:
    return ", ".join(dict.fromkeys(state.value for state in states))


def _repeated(run: Run, joint: str = ", repeating ") -> str:
    intervals = [write.interval.every for write in run.writes]
    known = [every for every in intervals if isinstance(every, Amount)]
    return f"{joint}at most {max(known, key=lambda every: every.value)}" if known else ""
