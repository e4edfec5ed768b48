"""Folders of torch.distributed.checkpoint, one a step, whoever wrote them.

torchtitan ``step-N``, NeMo AutoModel ``epoch_E_step_N/{model,optim}``, prime-rl ``step_N/trainer``, NeMo on Megatron
``…-consumed_samples=N-last`` with an empty ``…-unfinished`` beside a save that goes on. What each must hold besides its shards
stands in no file, so a folder is held against the one before it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial

from ckptlint.checkpoints import distributed, tracker
from ckptlint.checkpoints.checkpoint import Checkpoint, Notice, newest_complete
from ckptlint.checkpoints.folder import Folder, Part, examined, resaved
from ckptlint.checkpoints.listing import Listing
from ckptlint.checkpoints.placed import Place, PlacedLayout, files, folders, number_of
from ckptlint.run import State

# What orders the folders: the first of these that a name has.
_NUMBERS = (
    re.compile(r"(?:^|[^a-z])(?:global_?)?step[=_-]?(\d+)", re.IGNORECASE),
    re.compile(r"consumed_samples[=_-]?(\d+)"),
    re.compile(r"(?:^|[^a-z])(?:iter|iteration|ckpt|checkpoint|epoch)[=_-]?(\d+)", re.IGNORECASE),
    re.compile(r"^(\d+)$"),
)
# Names that belong to a layout of its own.
_FOREIGN = re.compile(r"iter_\d{7,}.*|(?:pytorch_model_fsdp|optimizer)(?:_\d+)?|release|.*\.ckpt|.*_universal")
_POINTERS = ("LATEST", "latest")
_UNFINISHED = "-unfinished"
_ENOUGH = 32


class DCPLayout(PlacedLayout):
    """Folders that hold, themselves or in folders of their parts, ``.metadata`` and ``__R_K.distcp``."""

    name = "dcp"
    title = "torch distributed checkpoint"

    def places(self, listing: Listing) -> Iterator[Place]:
        names = [name for name in listing.directories() if not _FOREIGN.fullmatch(name)]
        found = sorted(((step, name) for name in names if (step := step_of(name)) is not None), reverse=True)
        mine = partial(_is_mine, listing)
        forms = {_form(name) for _, name in found[:_ENOUGH] if mine(name)}
        kept = [(step, name) for step, name in found if _form(name) in forms]
        for at, (step, name) in enumerate(kept):
            yield Place(name, step, tuple(older for _, older in kept[at + 1 : at + 3]))
        if not kept and _is_root(listing):
            yield Place("", step_of(listing.name))

    def judge(self, folder: Folder, place: Place, now: float | None) -> Checkpoint:
        older = [Folder(folder.listing, path) for path in place.older]
        where = _parts(folder)
        parts = [_marked(folder), *(_dcp(folder, each) for each in where), _lost(where, older)]
        parts += [_torch_files(folder), _optimizer(folder, where, older), *(_resaved(folder, each, older) for each in where)]
        if not where:
            parts.append(Part(broken=("it holds no file of a distributed checkpoint",), unfinished=True))
        return examined(folder, place.step, parts, now, backend="DCP")

    def notices(self, listing: Listing, checkpoints: tuple[Checkpoint, ...]) -> Iterator[Notice]:
        best = newest_complete(checkpoints)
        if best is None or not best.path:
            return
        for name in _POINTERS:
            text = tracker.read(listing, name).text if name in listing.files() else None
            if text is not None and text.strip("/").rpartition("/")[2] != best.path:
                yield Notice(tracker.WRONG, f"{name} says {text[:80]!r}, but the newest complete checkpoint is {best.path}")


def step_of(name: str) -> int | None:
    """The number in a folder's name that counts steps, samples or epochs."""
    match = next((match for pattern in _NUMBERS if (match := pattern.search(name))), None)
    return number_of(match[1]) if match else None


def _form(name: str) -> str:
    """A name without its numbers and without what a marker adds; folders of one form are of one run."""
    return re.sub(r"\d+(?:\.\d+)?", "#", name)


def _is_mine(listing: Listing, path: str) -> bool:
    names, inside = files(listing, path), folders(listing, path)
    if any(
        re.fullmatch(r"random_states_\d+\.pkl|trainer_state\.json|scheduler\.bin|CHECKPOINT_COMPLETE", name) for name in names
    ):
        return False
    if {"extra_state", "actor", "critic", "dist_ckpt"} & set(inside) or any(
        name.startswith("pytorch_model_fsdp") for name in inside
    ):
        return False
    return distributed.is_dcp(names) or any(
        distributed.is_dcp(files(listing, distributed.under(path, name))) for name in inside[:8]
    )


def _is_root(listing: Listing) -> bool:
    names, inside = listing.files(), listing.directories()
    if _FOREIGN.fullmatch(listing.name) or "extra_state" in inside or "meta.pt" in names:  # meta.pt: Lightning's, sharded
        return False
    return distributed.is_dcp(names) or (step_of(listing.name) is not None and _is_mine(listing, ""))


def _parts(folder: Folder) -> tuple[str, ...]:
    """Where its DCP folders are: itself ("") or some of its sub-folders."""
    if distributed.is_dcp(folder.names):
        return ("",)
    return tuple(name for name in folder.folders if distributed.is_dcp(folder.inside(name)))


def _marked(folder: Folder) -> Part:
    """NeMo writes an empty file ``<name>-unfinished`` before a save, and takes it away at its end."""
    mark = f"{folder.path}{_UNFINISHED}"
    beside = folder.listing.files() if folder.path and "/" not in folder.path else {}
    if mark in beside or mark in (folder.listing.directories() if folder.path and "/" not in folder.path else ()):
        return Part(broken=(f"{mark} lies beside it: the save did not finish",), unfinished=True)
    return Part()


def _dcp(folder: Folder, place: str) -> Part:
    held = {State.PROGRESS, State.OPTIMIZER} if "optim" in place else {State.PROGRESS, State.MODEL}
    names = files(folder.listing, folder.at(place))
    if {"common.pt", "metadata.json"} & set(names):
        return distributed.megatron(folder, place, State.MODEL)
    return distributed.dcp(folder, place, frozenset(held))


def _lost(where: tuple[str, ...], older: list[Folder]) -> Part:
    """Parts that the folder before has and this one has not."""
    if not older:
        return Part()
    before = set(_parts(older[0]))
    if "" in before or "" in where:
        return Part()
    lost = tuple(f"{name}/ is missing, which {older[0].path} holds" for name in sorted(before - set(where)))
    return Part(broken=lost, unfinished=bool(lost))


def _torch_files(folder: Folder) -> Part:
    """What lies beside the shards: data.pt, train_state.pt, rng states of ranks."""
    names = [name for name in folder.tree if name.endswith((".pt", ".pth")) and name.rpartition("/")[2] != "common.pt"]
    faults = folder.faults(names)
    return Part(broken=faults, unfinished=bool(faults))


def _optimizer(folder: Folder, where: tuple[str, ...], older: list[Folder]) -> Part:
    """Whether its metadata names optimizer state. A last save of weights alone (torchtitan) stands out from those before."""
    if _has_optimizer(folder, where):
        return Part(state=frozenset({State.OPTIMIZER}))
    if any(distributed.metadata(folder, place) is None for place in where):
        return Part()
    if older and _has_optimizer(older[0], _parts(older[0])):
        return Part(absent=(f"it names no optimizer state, as {older[0].path} does: the weights alone were saved",))
    return Part(remarks=("its metadata names no optimizer state",))


def _has_optimizer(folder: Folder, where: tuple[str, ...]) -> bool:
    data = [distributed.metadata(folder, place) or b"" for place in where]
    return any("optim" in place for place in where) or any(b"optim" in each or b"exp_avg" in each for each in data)


def _resaved(folder: Folder, place: str, older: list[Folder]) -> Part:
    mark = distributed.under(place, ".metadata")
    name = folder.younger(mark, distributed.shards(folder, place))
    if name is None:
        return Part()
    return resaved(name, mark, not older or older[0].younger(mark, distributed.shards(older[0], place)) is not None)
