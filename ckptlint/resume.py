"""A configuration in, a resume plan out; and applying it.

A plan is decided from the run and from what lies on disk, and says which checkpoint, why that one, why not the newer ones, and
which edits. Nothing is deleted. Planning and applying again changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ckptlint.checkpoints.checkpoint import Checkpoint, Notice
from ckptlint.checkpoints.listing import Unreachable
from ckptlint.decision import CannotPlan, Decision, Skipped, Wishes, decide, with_repairs
from ckptlint.disk import carry_out_on_disk
from ckptlint.fixing import ChangedMeanwhile, replace_file
from ckptlint.frameworks import all_frameworks
from ckptlint.frameworks.framework import DiskChange, Framework
from ckptlint.run import Run, UnsetVariable
from ckptlint.source.file import SourceFile
from ckptlint.source.paths import shown
from ckptlint.source.text import CannotEdit, Edit, EditConflict, SourceError, SourceText, apply

__all__ = ["CannotPlan", "Change", "Plan", "Skipped", "carry_out", "changes", "plan", "read_target", "recognise"]

# Two processes on one file: each reads, plans and replaces anew until its plan rests on what the file holds.
_ATTEMPTS = 50


@dataclass(frozen=True)
class Change:
    """One changed place of a file, as whole lines; ``before`` is "" where lines are added."""

    path: str
    line: int
    before: str
    after: str


@dataclass(frozen=True)
class Plan:
    """What one target needs so that its next start takes the newest complete checkpoint.

    ``directory`` is where the run saves, ``arguments`` say the same as the edits on the command line of the launch. ``disk`` is
    what changes beside the checkpoints. ``command`` is the command line as it will be run; None where a file is the target.
    ``place`` is the directory the chosen one was found in, and its path there.
    """

    target: str
    title: str
    framework: str
    directory: str
    chosen: Checkpoint | None
    chosen_path: str | None
    skipped: tuple[Skipped, ...]
    changes: tuple[Change, ...]
    notices: tuple[Notice, ...]
    arguments: tuple[str, ...]
    before: bytes = field(repr=False)
    after: bytes = field(repr=False)
    disk: tuple[DiskChange, ...] = ()
    command: tuple[str, ...] | None = None
    place: tuple[str, str] | None = None

    @property
    def refused(self) -> bool:
        """The framework will not start as things lie."""
        return any(notice.name == "launch-refused" for notice in self.notices)


def plan(
    target: str, environment: Mapping[str, str], *, save_dir: str | None = None, deep: bool = False, step: int | None = None
) -> Plan:
    """The plan for one configuration file. Relative paths are taken from the working directory, as the launch will do.

    ``step``: take the checkpoint of that step instead of the newest.

    Raises:
        CannotPlan: the file cannot be read, is no training run of a known framework, its save directory is not known, or the
            step that is asked for cannot be taken.
        SourceError: the file is not what it should be.
    """
    file = read_target(target)
    reader, run = recognise(file)
    framework = _pinning(reader, run)
    decision = _decided(file.path, framework, run, environment, Wishes(save_dir, deep, step))
    elsewhere = next((edit.span for edit in decision.edits if edit.span.source is not file.text), None)
    if elsewhere is not None:
        place = f"line {elsewhere.line} of {elsewhere.path}" if elsewhere.path != file.path else "the command in it"
        advice = "put `ckptlint launch --` in front of the command instead"
        raise CannotPlan(f"{file.path}: {place} would have to change, which `ckptlint resume` does not do here; {advice}")
    try:
        after = apply(file.text, decision.edits).encode("utf-8")
    except (CannotEdit, EditConflict) as error:
        raise CannotPlan(f"{file.path}: {error}; write that setting out by hand") from None
    _refuse_unreadable(reader, file, after)
    request = decision.request
    return Plan(
        target=file.path,
        title=run.title,
        framework=run.framework,
        directory=request.save.root.directory,
        chosen=request.chosen,
        chosen_path=request.chosen_path,
        skipped=decision.skipped,
        changes=tuple(changes(file.text, decision.edits)),
        notices=with_repairs(decision.notices, decision.pin.disk),
        arguments=decision.pin.arguments,
        before=file.data,
        after=after,
        disk=decision.pin.disk,
    )


def _decided(path: str, framework: Framework, run: Run, environment: Mapping[str, str], wishes: Wishes) -> Decision:
    try:
        return decide(framework, run, environment, wishes)
    except UnsetVariable as error:
        remedy = f"set it (export {error.name}=...) before `ckptlint resume`, or name the directory with --save-dir"
        raise CannotPlan(f"{path}: {error}; {remedy}") from None
    except (CannotEdit, EditConflict) as error:
        raise CannotPlan(f"{path}: {error}; write that setting out by hand") from None
    except (Unreachable, ValueError) as error:
        raise CannotPlan(f"{path}: {error}") from None
    except CannotPlan as error:
        raise CannotPlan(f"{path}: {error}") from None


def carry_out(decided: Plan, again: Callable[[], Plan]) -> Plan:
    """Write a plan. ``again`` makes a new plan where the file was changed in between; the plan that was written comes back.

    Raises:
        CannotWrite: the file cannot be replaced.
        CannotPlan, SourceError: from planning again.
    """
    for _ in range(_ATTEMPTS):
        carry_out_on_disk(decided.disk)
        if decided.after == decided.before:
            return decided
        try:
            replace_file(Path(decided.target), decided.after, expected=decided.before)
        except ChangedMeanwhile:
            decided = again()
            continue
        return decided
    raise CannotPlan(f"{decided.target}: other processes keep changing the file; run again when they are done")


# ------------------------------------------------------------------------------------------------ the file


def read_target(target: str) -> SourceFile:
    """A target's file. Raises CannotPlan: it cannot be read."""
    path = Path(target)
    if path.is_dir():
        raise CannotPlan(f"{target}: this is a directory; name the configuration file of the run")
    try:
        return SourceFile(shown(target), path.read_bytes())
    except OSError as error:
        raise CannotPlan(f"{target}: {(error.strerror or str(error)).lower()}") from None


def recognise(file: SourceFile) -> tuple[Framework, Run]:
    """Whose file it is, and the run it describes. Raises CannotPlan: it describes none, or several."""
    for framework in all_frameworks():
        if file.suffix not in framework.suffixes or not framework.mentions(file.data):
            continue
        runs = [run for run in framework.read(file) if not run.partial]
        if runs:
            return framework, _only(framework, runs, file)
    titles = ", ".join(framework.title for framework in all_frameworks())
    raise CannotPlan(f"{file.path}: this is no training run that can be pinned (known are those of {titles})")


def _only(reader: Framework, runs: Sequence[Run], file: SourceFile) -> Run:
    """The run of a file; of a script, one that does not hang on how it is started."""
    if runs[0].framework != reader.name and (len(runs) > 1 or runs[0].ways):
        what = f"{len(runs)} trainings are started" if len(runs) > 1 else "what the training gets hangs on how it is started"
        raise CannotPlan(f"{file.path}: {what}; put `ckptlint launch --` in front of the command that runs this file")
    return runs[0]


def _pinning(reader: Framework, run: Run) -> Framework:
    """Who pins a run: the framework of the file, or that of the launch in a script."""
    if run.framework == reader.name:
        return reader
    from ckptlint.frameworks.pinners import pinner

    return pinner(run) or reader


def _refuse_unreadable(framework: Framework, file: SourceFile, after: bytes) -> None:
    """No plan may leave a file that its framework does not read any more."""
    if after == file.data:
        return
    try:
        if framework.read(SourceFile(file.path, after)):
            return
        why = "it would be no training run any more"
    except SourceError as error:
        why = str(error)
    raise CannotPlan(f"{file.path}: the change would spoil the file ({why}), so it stays as it is; change the setting by hand")


# ------------------------------------------------------------------------------------------------ the lines


def changes(text: SourceText, edits: Iterable[Edit]) -> Iterator[Change]:
    """The lines that edits touch, before and after; edits on one line are one change."""
    groups: list[tuple[int, int, list[Edit]]] = []
    for edit in sorted(edits, key=lambda edit: (edit.span.start, edit.span.end)):
        start, end = text.line_at(edit.span.start).start, text.line_at(edit.span.end).end
        if groups and start <= groups[-1][1]:
            first, last, same = groups.pop()
            groups.append((first, max(last, end), [*same, edit]))
        else:
            groups.append((start, end, [edit]))
    for start, end, together in groups:
        change = _change(text, start, end, together)
        if change.before != change.after:
            yield change


def _change(text: SourceText, start: int, end: int, edits: Iterable[Edit]) -> Change:
    pieces, at = [], start
    for edit in edits:
        pieces += [text.text[at : edit.span.start], edit.replacement]
        at = edit.span.end
    before, after = text.text[start:end], "".join(pieces) + text.text[at:end]
    line, _ = text.position(start)
    if after.startswith(before) and after[len(before) :].startswith(("\n", "\r")):
        line, before, after = line + before.count("\n") + 1, "", after[len(before) :]
    return Change(text.path, line, before.strip("\r\n"), after.strip("\r\n"))
