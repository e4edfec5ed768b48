"""Which checkpoint a start takes: a run and the disk in, the choice with its reasons out. Files and command lines share it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from ckptlint.checkpoints.checkpoint import Checkpoint, Layout, Notice, Verdict
from ckptlint.checkpoints.listing import Listing, LocalListing
from ckptlint.checkpoints.scan import disk_notices
from ckptlint.frameworks.framework import DiskChange, Framework, Pin, PinRequest, SaveRoot, Searched
from ckptlint.run import Run
from ckptlint.source.text import Edit

# Notices that say what the start will do; without one of a framework's own, the generic words stand.
_TELLS_THE_START = frozenset({"first-launch", "nothing-resumable", "launch-refused"})


class CannotPlan(Exception):
    """A target that cannot be pinned: names the file, what is wrong and what to do."""


class NotThereYet(CannotPlan):
    """A checkpoint that another node has decided on, and that this one does not see (yet)."""


@dataclass(frozen=True)
class Skipped:
    """A checkpoint newer than the chosen one (or any, where none was chosen), and why it was not taken; main reason first."""

    path: str
    step: int | None
    verdict: Verdict
    reasons: tuple[str, ...]

    @property
    def reason(self) -> str:
        """All of them in one line."""
        return "; ".join(self.reasons)


@dataclass(frozen=True)
class Agreed:
    """What the nodes of a job have agreed on: for each directory a run saves into, the path of the checkpoint, or None.

    Paths are relative to the directory the checkpoint was found in, which is the key's neighbour: (directory, path).
    """

    choices: Mapping[str, tuple[str, str] | None]


@dataclass(frozen=True)
class Wishes:
    """What the caller asks for beyond the files: a directory, a step, whole reading, or what other nodes have decided."""

    save_dir: str | None = None
    deep: bool = False
    step: int | None = None
    agreed: Agreed | None = None


@dataclass(frozen=True)
class Search:
    """What was found.

    ``chosen`` is the newest complete checkpoint that this start can take up, ``disk`` is what the disk alone tells.
    """

    searched: tuple[Searched, ...]
    chosen: Checkpoint | None
    disk: tuple[Notice, ...]


@dataclass(frozen=True)
class Decision:
    """The choice for one run: what was found, the pin, and what to say of it."""

    request: PinRequest
    pin: Pin
    skipped: tuple[Skipped, ...]
    notices: tuple[Notice, ...]

    @property
    def edits(self) -> tuple[Edit, ...]:
        return (*self.request.save.root.edits, *self.pin.edits)


def decide(framework: Framework, run: Run, environment: Mapping[str, str], wishes: Wishes) -> Decision:
    """The choice for one run of a framework.

    Raises:
        CannotPlan: the framework's checkpoints are not known, or the step that is asked for cannot be taken.
        UnsetVariable, ValueError, Unreachable, CannotEdit: as the framework's ``roots`` and ``pin`` and the listing raise them.
    """
    layout = framework.layout(run)
    if layout is None:
        raise CannotPlan(f"a {run.title} run cannot be pinned yet; `ckptlint check` says how it would resume")
    search = _search(framework, layout, run, framework.roots(run, environment, wishes.save_dir), environment, wishes)
    request = PinRequest(search.searched, search.chosen, environment)
    pin = framework.pin(run, request)
    skipped = tuple(_skipped(search, framework, run, environment, wishes))
    return Decision(request, pin, skipped, tuple(_notices(search, pin)))


# ------------------------------------------------------------------------------------------------ the disk


def _search(
    framework: Framework, layout: Layout, run: Run, roots: Iterable[SaveRoot], environment: Mapping[str, str], wishes: Wishes
) -> Search:
    """Look through the directories in turn until one holds a checkpoint to take."""

    def fits(checkpoint: Checkpoint) -> bool:
        if not checkpoint.complete or framework.unfit(run, checkpoint, environment):
            return False
        return wishes.step is None or checkpoint.step == wishes.step

    roots = tuple(roots)
    if wishes.agreed is not None:
        return _as_agreed(layout, roots, wishes.agreed)
    searched: list[Searched] = []
    disk: list[Notice] = []
    for root in roots:
        listing = _listing(root)
        found, chosen, next_older = _look_through(layout, listing, root, fits, wishes)
        searched.append(Searched(root, found, frozenset(listing.files()), frozenset(listing.directories())))
        told = _from_disk(layout, listing, root, [*(one for one in found if fits(one) or not one.complete), *next_older])
        disk += (notice for notice in told if wishes.step is None or notice.name != "retention-window")
        if chosen is not None:
            return Search(tuple(searched), chosen, tuple(disk))
    if wishes.step is not None:
        raise CannotPlan(_without_step(wishes.step, searched, framework, run, environment))
    return Search(tuple(searched), None, tuple(disk))


def _listing(root: SaveRoot) -> LocalListing:
    return LocalListing(Path(root.directory).absolute())  # a `~` that nobody expands is a folder's name


def _look_through(
    layout: Layout, listing: Listing, root: SaveRoot, fits: Callable[[Checkpoint], bool], wishes: Wishes
) -> tuple[tuple[Checkpoint, ...], Checkpoint | None, tuple[Checkpoint, ...]]:
    """Down to the chosen checkpoint; that one; and the next older one that could be taken (with ``deep`` it is not read)."""
    found: list[Checkpoint] = []
    chosen = None
    for checkpoint in layout.walk(listing, deep=wishes.deep):
        if root.only not in (None, checkpoint.path):
            continue
        if chosen is not None and fits(checkpoint):
            return tuple(found), chosen, (checkpoint,)
        if chosen is None:
            found.append(checkpoint)
            chosen = checkpoint if fits(checkpoint) else None
        if chosen is not None and (wishes.deep or wishes.step is not None):
            break
    return tuple(found), chosen, ()


def _as_agreed(layout: Layout, roots: tuple[SaveRoot, ...], agreed: Agreed) -> Search:
    """The checkpoint that the leading node has decided on, whatever this node makes of it: it may see less of the storage."""
    if roots[0].directory not in agreed.choices:
        raise CannotPlan(
            f"the leading node saves into {', '.join(agreed.choices) or 'no directory'}, this one into {roots[0].directory}; "
            "start all nodes with the same command in the same directory"
        )
    choice = agreed.choices[roots[0].directory]
    searched: list[Searched] = []
    for root in roots:
        listing = _listing(root)
        names = frozenset(listing.files()), frozenset(listing.directories())
        here = choice is not None and choice[0] == root.directory
        found = tuple(one for one in layout.walk(listing) if one.path == choice[1]) if here and choice is not None else ()
        searched.append(Searched(root, found, *names))
        if found:
            return Search(tuple(searched), found[0], ())
    if choice is not None:
        raise NotThereYet(f"the leading node resumes from {'/'.join(choice)}, and this node does not see it")
    return Search(tuple(searched), None, ())


def _from_disk(layout: Layout, listing: Listing, root: SaveRoot, checkpoints: Iterable[Checkpoint]) -> Iterator[Notice]:
    """The notices of a directory, without what only holds of a whole one: of this one a single checkpoint may be meant."""
    for notice in disk_notices(layout, listing, tuple(checkpoints)):
        if notice.name != "nothing-resumable" and (root.only is None or notice.name != "retention-window"):
            yield notice


# ------------------------------------------------------------------------------------------------ in words


def _without_step(
    step: int, searched: Iterable[Searched], framework: Framework, run: Run, environment: Mapping[str, str]
) -> str:
    """Why a step cannot be taken, and which ones could."""
    there: list[str] = []
    why = ""
    for one in searched:
        for checkpoint in one.found:
            lack = _lack(checkpoint, framework, run, environment)
            if checkpoint.step == step and not why:
                why = f"`{one.root.checkpoint(checkpoint.path)}`: {lack}"
            if not lack and checkpoint.step is not None:
                there.append(str(checkpoint.step))
    what = f"step {step} cannot be resumed ({why})" if why else f"there is no checkpoint of step {step}"
    return f"{what}; {'complete are: ' + ', '.join(there) if there else 'no other is complete'}"


def _lack(checkpoint: Checkpoint, framework: Framework, run: Run, environment: Mapping[str, str]) -> str:
    if checkpoint.complete:
        return framework.unfit(run, checkpoint, environment)
    return f"{checkpoint.verdict.value}; {checkpoint.reasons[0]}" if checkpoint.reasons else checkpoint.verdict.value


def _skipped(
    search: Search, framework: Framework, run: Run, environment: Mapping[str, str], wishes: Wishes
) -> Iterator[Skipped]:
    for searched in search.searched:
        for checkpoint in searched.found:
            if checkpoint is search.chosen:
                return
            unfit = framework.unfit(run, checkpoint, environment) if checkpoint.complete else ""
            if checkpoint.complete and not unfit and wishes.step is not None:
                unfit = f"step {wishes.step} is asked for"
            reasons = (unfit,) if unfit else checkpoint.reasons or (checkpoint.verdict.value,)
            yield Skipped(searched.root.checkpoint(checkpoint.path), checkpoint.step, checkpoint.verdict, reasons)


def with_repairs(notices: Iterable[Notice], disk: Iterable[DiskChange]) -> tuple[Notice, ...]:
    """The notices of a plan that makes these changes: what repairs a tracker says what was wrong with it."""
    repairs = tuple(Notice("tracker-repaired", change.why) for change in disk if change.why)
    return (*(notice for notice in notices if not (repairs and notice.name == "tracker-wrong")), *repairs)


def _notices(search: Search, pin: Pin) -> Iterator[Notice]:
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
