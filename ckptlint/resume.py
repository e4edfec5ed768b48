"""A configuration in, a resume plan out; and applying it.

A plan is decided from the run and from what lies on disk, and says which checkpoint, why that one, why not the newer ones, and
which edits. Nothing is deleted. Planning and applying again changes nothing.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ckptlint.checkpoints.checkpoint import Checkpoint, Notice, Verdict
from ckptlint.checkpoints.listing import LocalListing
from ckptlint.fixing import ChangedMeanwhile, replace_file
from ckptlint.frameworks import all_frameworks
from ckptlint.frameworks.framework import Framework, PinRequest, SaveRoot
from ckptlint.run import Run, UnsetVariable
from ckptlint.source.file import SourceFile
from ckptlint.source.paths import shown
from ckptlint.source.text import CannotEdit, Edit, SourceError, apply

# Two processes on one file: each reads, plans and replaces anew until its plan rests on what the file holds.
_ATTEMPTS = 50


class CannotPlan(Exception):
    """A target that cannot be pinned: names the file, what is wrong and what to do."""


@dataclass(frozen=True)
class Skipped:
    """A checkpoint newer than the chosen one (or, where none was chosen, any), and why it was not taken."""

    path: str
    step: int | None
    verdict: Verdict
    reason: str


@dataclass(frozen=True)
class Change:
    """One changed place of a file, as whole lines; ``before`` is "" where lines are added."""

    path: str
    line: int
    before: str
    after: str


@dataclass(frozen=True)
class Plan:
    """What one target needs so that its next start takes the newest complete checkpoint."""

    target: str
    title: str
    framework: str
    directory: str
    chosen: Checkpoint | None
    chosen_path: str | None
    skipped: tuple[Skipped, ...]
    changes: tuple[Change, ...]
    notices: tuple[Notice, ...]
    before: bytes = field(repr=False)
    after: bytes = field(repr=False)

    @property
    def refused(self) -> bool:
        """The framework will not start as things lie."""
        return any(notice.name == "launch-refused" for notice in self.notices)


def plan(target: str, environment: Mapping[str, str], *, save_dir: str | None = None, deep: bool = False) -> Plan:
    """The plan for one configuration file. Relative paths are taken from the working directory, as the launch will do.

    Raises:
        CannotPlan: the file cannot be read, is no training run of a known framework, or its save directory is not known.
        SourceError: the file is not what it should be.
    """
    file = _read(target)
    framework, run = _recognise(file)
    try:
        roots = framework.roots(run, environment, save_dir)
    except UnsetVariable as error:
        remedy = f"set it, or name the directory with --save-dir (export {error.name}=… before `ckptlint resume`)"
        raise CannotPlan(f"{file.path}: {error}; {remedy}") from None
    except ValueError as error:
        raise CannotPlan(f"{file.path}: {error}; name the directory with --save-dir") from None
    root, found, files = _search(framework, run, roots, deep)
    chosen = next((checkpoint for checkpoint in found if checkpoint.complete), None)
    try:
        pin = framework.pin(run, PinRequest(root, chosen, found, files, environment))
        after = apply(file.text, pin.edits)
    except CannotEdit as error:
        raise CannotPlan(f"{file.path}: {error}; write that setting out by hand") from None
    return Plan(
        target=file.path,
        title=framework.title,
        framework=framework.name,
        directory=root.directory,
        chosen=chosen,
        chosen_path=root.checkpoint(chosen.path) if chosen else None,
        skipped=tuple(_skipped(root, found, chosen)),
        changes=tuple(_changes(file, pin.edits)),
        notices=(*_from_disk(root, found, chosen), *pin.notices),
        before=file.data,
        after=after.encode("utf-8"),
    )


def carry_out(decided: Plan, again: Callable[[], Plan]) -> Plan:
    """Write a plan. ``again`` makes a new plan where the file was changed in between; the plan that was written comes back.

    Raises:
        CannotWrite: the file cannot be replaced.
        CannotPlan, SourceError: from planning again.
    """
    for _ in range(_ATTEMPTS):
        if decided.after == decided.before:
            return decided
        try:
            replace_file(Path(decided.target), decided.after, expected=decided.before)
        except ChangedMeanwhile:
            decided = again()
            continue
        return decided
    raise CannotPlan(f"{decided.target}: other processes keep changing the file; run again when they are done")


def _read(target: str) -> SourceFile:
    path = Path(target)
    if path.is_dir():
        raise CannotPlan(f"{target}: this is a directory; name the configuration file of the run")
    try:
        return SourceFile(shown(target), path.read_bytes())
    except OSError as error:
        raise CannotPlan(f"{target}: {(error.strerror or str(error)).lower()}") from None


def _recognise(file: SourceFile) -> tuple[Framework, Run]:
    problem: SourceError | None = None
    for framework in all_frameworks():
        if file.suffix not in framework.suffixes or not framework.mentions(file.data):
            continue
        runs = framework.read(file)
        if runs:
            return framework, runs[0]
    titles = ", ".join(framework.title for framework in all_frameworks())
    raise CannotPlan(f"{file.path}: no training run of a framework that can be pinned ({titles})") from problem


def _search(
    framework: Framework, run: Run, roots: Iterable[SaveRoot], deep: bool
) -> tuple[SaveRoot, tuple[Checkpoint, ...], frozenset[str]]:
    """The first directory with a complete checkpoint; the one the run saves into where there is none."""
    first: tuple[SaveRoot, tuple[Checkpoint, ...], frozenset[str]] | None = None
    layout = framework.layout(run)
    for root in roots:
        listing = LocalListing(root.directory)
        found = []
        for checkpoint in layout.walk(listing, deep=deep):
            if root.only is None or checkpoint.path == root.only:
                found.append(checkpoint)
                if checkpoint.complete:
                    break
        result = (root, tuple(found), frozenset(listing.files()))
        if found and found[-1].complete:
            return result
        first = first or result
    assert first is not None
    return first


def _skipped(root: SaveRoot, found: tuple[Checkpoint, ...], chosen: Checkpoint | None) -> Iterable[Skipped]:
    for checkpoint in found:
        if checkpoint is chosen:
            return
        reason = "; ".join(checkpoint.reasons) or checkpoint.verdict.value
        yield Skipped(root.checkpoint(checkpoint.path), checkpoint.step, checkpoint.verdict, reason)


def _from_disk(root: SaveRoot, found: tuple[Checkpoint, ...], chosen: Checkpoint | None) -> Iterable[Notice]:
    if not found:
        yield Notice("first-launch", f"nothing to resume in `{root.path}` yet: the run starts at step 0")
        return
    newer = [checkpoint for checkpoint in found if checkpoint is not chosen]
    if chosen is None:
        yield Notice(
            "nothing-resumable",
            f"`{root.path}` holds {_count(len(newer))} and none is complete: the next run begins at step 0 and overwrites them; "
            "move them away first if you need them",
        )
    for verdict, name, words in (
        (Verdict.DAMAGED, "newer-damaged", "is damaged and was passed over"),
        (Verdict.WEIGHTS_ONLY, "weights-only-skipped", "holds weights only and was passed over"),
        (Verdict.IN_PROGRESS, "live-run", "is being written: another process may be running this very run"),
    ):
        for checkpoint in newer:
            if checkpoint.verdict is verdict and (chosen is not None or verdict is not Verdict.DAMAGED):
                yield Notice(name, f"`{root.checkpoint(checkpoint.path)}` {words}")


def _count(number: int) -> str:
    return f"{number} checkpoint" + ("" if number == 1 else "s")


def _changes(file: SourceFile, edits: Iterable[Edit]) -> Iterable[Change]:
    """The lines that edits touch, before and after."""
    text = file.text
    for edit in sorted(edits, key=lambda edit: edit.span.start):
        first, last = text.line_at(edit.span.start), text.line_at(edit.span.end)
        before = text.text[first.start : last.end]
        after = text.text[first.start : edit.span.start] + edit.replacement + text.text[edit.span.end : last.end]
        line = first.line
        if after.startswith(before) and after[len(before) : len(before) + 1] in ("\n", "\r"):
            after, before, line = after[len(before) :].strip("\r\n"), "", line + 1
        if after != before:
            yield Change(os.fspath(file.path), line, before.strip("\r\n"), after.strip("\r\n"))
