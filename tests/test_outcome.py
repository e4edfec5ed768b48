"""What becomes of a run, from facts alone. The words for real files are tested with their frameworks."""

from __future__ import annotations

import pytest

from ckptlint.outcome import Kind, outcome
from ckptlint.run import (
    NEVER,
    Amount,
    Choice,
    Interval,
    Location,
    Misfit,
    Missing,
    Obstacle,
    PathExpr,
    Read,
    Refusal,
    Release,
    Retention,
    Run,
    Setting,
    State,
    Storage,
    Switch,
    Unit,
    Unknown,
    Write,
)
from ckptlint.source.text import SourceText

TEXT = SourceText("run.yaml", "save: 500\n")
SETTING = Setting("save", 500, TEXT.span(6, 9), TEXT.span(0, 4))
STEPS = Amount(500, Unit.STEP)
WRITE = Write(
    Location(PathExpr.of_text("/data/run", expanded=False), SETTING), Interval(STEPS, True, SETTING), Retention(None, SETTING)
)
READ = Read(Choice.NEWEST, SETTING)
RUN = Run("toy", "Toy", Release("1"), TEXT.span(0, 4), Amount(3, Unit.EPOCH), SETTING, (WRITE,), (READ,))


def _saving(every: object, *, at_end: bool = True) -> Run:
    return RUN._replace(writes=(WRITE._replace(interval=Interval(every, at_end, SETTING)),))  # type: ignore[arg-type]


def _into(path: object) -> Run:
    return RUN._replace(writes=(WRITE._replace(directory=Location(path, SETTING)),))  # type: ignore[arg-type]


def _reading(**facts: object) -> Run:
    return RUN._replace(reads=(READ._replace(**facts),))  # type: ignore[arg-type]


def _path(text: str, *, expanded: bool = True) -> PathExpr:
    return PathExpr.of_text(text, expanded=expanded)


CASES = {
    "a run that saves and finds the newest": (RUN, Kind.EXACT, "resumes exactly, repeating at most 500 steps"),
    "the longest of two intervals counts": (
        RUN._replace(writes=(WRITE, WRITE._replace(interval=Interval(Amount(900, Unit.STEP), True, SETTING)))),
        Kind.EXACT,
        "resumes exactly, repeating at most 900 steps",
    ),
    "never, but once at the end": (
        _saving(NEVER),
        Kind.RESTARTS,
        "restarts at step 0: the only checkpoint is written when training ends",
    ),
    "never at all": (_saving(NEVER, at_end=False), Kind.RESTARTS, "restarts at step 0: no checkpoint is ever written"),
    "an interval beyond the end": (
        _saving(Amount(4, Unit.EPOCH)),
        Kind.RESTARTS,
        "restarts at step 0: the first checkpoint comes after 4 epochs, and the run ends after 3 epochs",
    ),
    "nothing is kept": (
        RUN._replace(writes=(WRITE._replace(retention=Retention(0, SETTING)),)),
        Kind.RESTARTS,
        "restarts at step 0: with `save: 500` no checkpoint is kept",
    ),
    "nothing is taken up": (_reading(choice=Choice.NOTHING), Kind.RESTARTS, "restarts at step 0: `save: 500`"),
    "nothing is taken up, with a reason": (
        _reading(choice=Choice.NOTHING, why="the loader ignores it"),
        Kind.RESTARTS,
        "restarts at step 0: the loader ignores it",
    ),
    "a new directory at every start": (
        _into(_path("out/$(date)")),
        Kind.RESTARTS,
        "restarts at step 0: every start saves into a new directory",
    ),
    "a directory that dies": (_into(_path("/tmp/x")), Kind.RESTARTS, "restarts at step 0: `/tmp` dies with the container"),
    "a directory that nobody knows": (_into(Unknown("it is computed")), Kind.UNKNOWN, "unknown because it is computed"),
    "a placeholder": (
        _into(_path("/path/to/x")),
        Kind.UNKNOWN,
        "unknown because the save directory is still open: `/path/to/x`",
    ),
    "a variable that nobody replaces": (
        _into(_path("$X/run", expanded=False)),
        Kind.UNKNOWN,
        "unknown because the save directory is still open: `$X/run`",
    ),
    "a variable that the loader replaces": (_into(_path("$X/run")), Kind.EXACT, "resumes exactly, repeating at most 500 steps"),
    "an interval that nobody knows": (_saving(Unknown("it is a variable")), Kind.UNKNOWN, "unknown because it is a variable"),
    "a resume that nobody knows": (
        _reading(choice=Choice.UNKNOWN, why="the path is computed"),
        Kind.UNKNOWN,
        "unknown because the path is computed",
    ),
    "a pin": (
        _reading(choice=Choice.FIXED, path=_path("/data/run/checkpoint-5"), raises_when_missing=True),
        Kind.LOSING,
        "resumes, but always from `/data/run/checkpoint-5`: losing all that was done since",
    ),
    "state is missing": (
        RUN._replace(writes=(WRITE._replace(missing=(Missing(State.OPTIMIZER, SETTING), Missing(State.RNG, SETTING))),)),
        Kind.LOSING,
        "resumes, losing optimizer state, random-number state and at most 500 steps",
    ),
    "a switch that loses the data": (
        RUN._replace(switches=(Switch(SETTING, "the data begin again", loses=frozenset({State.DATA})),)),
        Kind.LOSING,
        "resumes, losing data position and at most 500 steps",
    ),
    "a resume that fails where nothing is": (
        _reading(raises_when_missing=True),
        Kind.CANNOT,
        "does not start the first time: `save: 500` wants a checkpoint",
    ),
    "a value that stops the launch": (
        RUN._replace(refusals=(Refusal(SETTING, "no number", "write one"),)),
        Kind.CANNOT,
        "does not start: `save: 500` is refused",
    ),
    "a value that is only misread": (
        RUN._replace(refusals=(Refusal(SETTING, "text is true", "write true", stops=False),)),
        Kind.EXACT,
        "resumes exactly, repeating at most 500 steps",
    ),
    "a resume value that is no checkpoint": (
        RUN._replace(misfits=(Misfit(SETTING, "a word", "name one"),)),
        Kind.CANNOT,
        "does not start: `save: 500` names no checkpoint",
    ),
    "a stage that cannot resume": (
        RUN._replace(obstacles=(Obstacle(SETTING, "weights only"),)),
        Kind.CANNOT,
        "cannot resume: weights only",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_the_outcome_of_a_restart(name: str) -> None:
    run, kind, text = CASES[name]
    found = outcome(run)
    assert (found.kind, found.text) == (kind, text)


def test_what_keeps_a_run_from_starting_comes_before_all_that_would_happen_later() -> None:
    run = _saving(NEVER)._replace(refusals=(Refusal(SETTING, "no number", "write one"),))
    assert outcome(run).kind is Kind.CANNOT


def test_what_loses_everything_comes_before_what_is_unknown() -> None:
    run = _saving(NEVER)._replace(reads=(Read(Choice.UNKNOWN, SETTING, why="computed"),))
    assert outcome(run).kind is Kind.RESTARTS


def test_a_directory_that_the_settings_declare_durable_does_not_die() -> None:
    run = _into(_path("/tmp/nfs/run"))._replace(storage=Storage(durable=("/tmp/nfs",)))
    assert outcome(run).kind is Kind.EXACT
