"""A configuration in, a resume plan out; and applying it.

A plan is decided from the run and from what lies on disk, and says which checkpoint, why that one, why not the newer ones, and
which edits. Nothing is deleted. Planning and applying again changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ckptlint.checkpoints.checkpoint import Checkpoint, Layout, Notice, Verdict
from ckptlint.checkpoints.listing import Listing, LocalListing, Unreachable
from ckptlint.checkpoints.scan import disk_notices
from ckptlint.fixing import ChangedMeanwhile, replace_file
from ckptlint.frameworks import all_frameworks
from ckptlint.frameworks.framework import Framework, Pin, PinRequest, SaveRoot, Searched
from ckptlint.run import Run, UnsetVariable
from ckptlint.source.file import SourceFile
from ckptlint.source.paths import shown
from ckptlint.source.text import CannotEdit, Edit, EditConflict, SourceError, SourceText, apply

# Two processes on one file: each reads, plans and replaces anew until its plan rests on what the file holds.
_ATTEMPTS = 50

# Notices that say what the start will do; without one of a framework's own, the generic words stand.
_TELLS_THE_START = frozenset({"first-launch", "nothing-resumable", "launch-refused"})


class CannotPlan(Exception):
    """A target that cannot be pinned: names the file, what is wrong and what to do."""


@dataclass(frozen=True)
class Skipped:
    """A checkpoint newer than the chosen one (or, where none was chosen, any), and why it was not taken; the main reason first."""

    path: str
    step: int | None
    verdict: Verdict
    reasons: tuple[str, ...]

    @property
    def reason(self) -> str:
        """All of them in one line."""
        return "; ".join(self.reasons)


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

    ``directory`` is where the run saves, ``arguments`` say the same as the edits on the command line of the launch.
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
    layout = framework.layout(run)
    if layout is None:
        why = f"a {framework.title} run cannot be pinned yet"
        raise CannotPlan(f"{file.path}: {why}; `ckptlint check` says how it would resume")
    try:
        search = _search(framework, layout, run, framework.roots(run, environment, save_dir), environment, deep)
        request = PinRequest(search.searched, search.chosen, environment)
        pin = framework.pin(run, request)
        edits = (*request.save.root.edits, *pin.edits)
        after = apply(file.text, edits).encode("utf-8")
    except UnsetVariable as error:
        remedy = f"set it (export {error.name}=...) before `ckptlint resume`, or name the directory with --save-dir"
        raise CannotPlan(f"{file.path}: {error}; {remedy}") from None
    except (CannotEdit, EditConflict) as error:
        raise CannotPlan(f"{file.path}: {error}; write that setting out by hand") from None
    except (Unreachable, ValueError) as error:
        raise CannotPlan(f"{file.path}: {error}") from None
    _refuse_unreadable(framework, file, after)
    return Plan(
        target=file.path,
        title=framework.title,
        framework=framework.name,
        directory=request.save.root.directory,
        chosen=request.chosen,
        chosen_path=request.chosen_path,
        skipped=tuple(_skipped(search, framework, run, environment)),
        changes=tuple(_changes(file.text, edits)),
        notices=tuple(_notices(search, pin)),
        arguments=pin.arguments,
        before=file.data,
        after=after,
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


# ------------------------------------------------------------------------------------------------ the file


def _read(target: str) -> SourceFile:
    path = Path(target)
    if path.is_dir():
        raise CannotPlan(f"{target}: this is a directory; name the configuration file of the run")
    try:
        return SourceFile(shown(target), path.read_bytes())
    except OSError as error:
        raise CannotPlan(f"{target}: {(error.strerror or str(error)).lower()}") from None


def _recognise(file: SourceFile) -> tuple[Framework, Run]:
    for framework in all_frameworks():
        if file.suffix not in framework.suffixes or not framework.mentions(file.data):
            continue
        runs = [run for run in framework.read(file) if not run.partial]
        if runs:
            return framework, runs[0]
    titles = ", ".join(framework.title for framework in all_frameworks())
    raise CannotPlan(f"{file.path}: this is no training run that can be pinned (known are those of {titles})")


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


# ------------------------------------------------------------------------------------------------ the disk


@dataclass(frozen=True)
class _Search:
    """What was found.

    ``chosen`` is the newest complete checkpoint that this start can take up, ``disk`` is what the disk alone tells.
    """

    searched: tuple[Searched, ...]
    chosen: Checkpoint | None
    disk: tuple[Notice, ...]


def _search(
    framework: Framework, layout: Layout, run: Run, roots: Iterable[SaveRoot], environment: Mapping[str, str], deep: bool
) -> _Search:
    """Look through the directories in turn until one holds a checkpoint to take."""

    def fits(checkpoint: Checkpoint) -> bool:
        return checkpoint.complete and not framework.unfit(run, checkpoint, environment)

    searched: list[Searched] = []
    disk: list[Notice] = []
    for root in roots:
        listing = LocalListing(Path(root.directory).absolute())  # a `~` that nobody expands is a folder's name
        found, chosen, next_older = _look_through(layout, listing, root, fits, deep)
        searched.append(Searched(root, found, frozenset(listing.files()), frozenset(listing.directories())))
        disk += _from_disk(layout, listing, root, [*(one for one in found if fits(one) or not one.complete), *next_older])
        if chosen is not None:
            return _Search(tuple(searched), chosen, tuple(disk))
    return _Search(tuple(searched), None, tuple(disk))


def _look_through(
    layout: Layout, listing: Listing, root: SaveRoot, fits: Callable[[Checkpoint], bool], deep: bool
) -> tuple[tuple[Checkpoint, ...], Checkpoint | None, tuple[Checkpoint, ...]]:
    """Down to the chosen checkpoint; that one; and the next older one that could be taken (with ``deep`` it is not read)."""
    found: list[Checkpoint] = []
    chosen = None
    for checkpoint in layout.walk(listing, deep=deep):
        if root.only not in (None, checkpoint.path):
            continue
        if chosen is not None and fits(checkpoint):
            return tuple(found), chosen, (checkpoint,)
        if chosen is None:
            found.append(checkpoint)
            chosen = checkpoint if fits(checkpoint) else None
        if chosen is not None and deep:
            break
    return tuple(found), chosen, ()


def _from_disk(layout: Layout, listing: Listing, root: SaveRoot, checkpoints: Iterable[Checkpoint]) -> Iterator[Notice]:
    """The notices of a directory, without what only holds of a whole one: of this one a single checkpoint may be meant."""
    for notice in disk_notices(layout, listing, tuple(checkpoints)):
        if notice.name != "nothing-resumable" and (root.only is None or notice.name != "retention-window"):
            yield notice


def _skipped(search: _Search, framework: Framework, run: Run, environment: Mapping[str, str]) -> Iterator[Skipped]:
    for searched in search.searched:
        for checkpoint in searched.found:
            if checkpoint is search.chosen:
                return
            unfit = framework.unfit(run, checkpoint, environment) if checkpoint.complete else ""
            reasons = (unfit,) if unfit else checkpoint.reasons or (checkpoint.verdict.value,)
            yield Skipped(searched.root.checkpoint(checkpoint.path), checkpoint.step, checkpoint.verdict, reasons)


def _notices(search: _Search, pin: Pin) -> Iterator[Notice]:
    yield from search.disk
    if search.chosen is None and not any(notice.name in _TELLS_THE_START for notice in pin.notices):
        yield _without_checkpoint(search.searched)
    yield from pin.notices


def _without_checkpoint(searched: tuple[Searched, ...]) -> Notice:
    count = sum(len(one.found) for one in searched)
    places = " and ".join(_place(one.root) for one in searched if one.found or not count)
    if not count:
        return Notice("first-launch", f"there is no checkpoint in {places} yet: the run begins at step 0")
    none = "the only checkpoint is not complete" if count == 1 else f"none of the {count} checkpoints is complete"
    effect = "the run begins at step 0 and overwrites what is there; move it away first if you need it"
    return Notice("nothing-resumable", f"in {places} {none}: {effect}")


def _place(root: SaveRoot) -> str:
    """A directory with what its path means here: started elsewhere, a relative one is another."""
    return f"`{root.path}`" if Path(root.path).is_absolute() else f"`{root.path}` ({Path(root.directory).absolute()})"


# ------------------------------------------------------------------------------------------------ the lines


def _changes(text: SourceText, edits: Iterable[Edit]) -> Iterator[Change]:
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
