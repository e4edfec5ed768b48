"""The checkpoints of Megatron-LM and of what is built on it (MindSpeed-LLM, MindSpeed-MM, Megatron-SWIFT).

Folders ``iter_NNNNNNN`` beside latest_checkpointed_iteration.txt, in one of these formats (megatron/training/checkpointing.py
``get_checkpoint_name``, ``save_checkpoint``; core 0.12 and 0.20):

========================  ====================================================================================================
torch (legacy)            mp_rank_TT[_PPP][_EEE]/model_optim_rng.pt, and before it distrib_optim.pt with a distributed optimizer
torch_dist                [common.pt], __R_K.distcp, .metadata, metadata.json, in this order
torch_dcp, fsdp_dtensor   __R_K.distcp, .metadata
MindSpeed-MM FSDP         extra_state/extra_state_rank_R.pt, __R_K.distcp, .metadata
========================  ====================================================================================================

The tracker is written last of all. ``release`` holds weights by convention, ``non_persistent`` has iterations of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import product

from ckptlint.checkpoints import distributed, pickles, tracker
from ckptlint.checkpoints.checkpoint import Checkpoint, Layout, Notice, Progress, Verdict, newest_complete
from ckptlint.checkpoints.folder import Folder, Part, examined, resaved, whole_number
from ckptlint.checkpoints.listing import Listing, Unreachable
from ckptlint.checkpoints.placed import Place, PlacedLayout, any_is, files, folders, numbered, places_of
from ckptlint.run import State

_CHECKPOINT = re.compile(r"iter_(\d{7,})")
_RANK = re.compile(r"mp_rank_(\d{2})(?:_(\d{3}))?(?:_(\d{3}))?")
_MODEL = "model_optim_rng.pt"
_OPTIMIZER = "distrib_optim.pt"
_NON_PERSISTENT = "non_persistent"
_AT_START = "training begins at iteration 0 and writes over what is here"


class MegatronLayout(PlacedLayout):
    """Folders ``iter_NNNNNNN`` and ``release``."""

    name = "megatron"
    title = "Megatron"

    def places(self, listing: Listing) -> Iterator[Place]:
        found = numbered(listing, _CHECKPOINT)
        extra = [one for one in numbered(listing, _CHECKPOINT, _NON_PERSISTENT) if is_iteration(listing, one[1])]
        tracked = tracker.MEGATRON in listing.files()
        released = _is_release(listing, tracked)
        if not extra and not released and not (found and (tracked or any_is(found, lambda path: is_iteration(listing, path)))):
            match = _CHECKPOINT.fullmatch(listing.name)
            if not found and match and is_iteration(listing, ""):
                yield Place("", int(match[1]))
            return
        both = (*places_of(found), *places_of(extra))
        yield from sorted(both, key=lambda place: (place.step or 0, place.path), reverse=True)
        if released:
            yield Place("release", None)

    def judge(self, folder: Folder, place: Place, now: float | None) -> Checkpoint:
        checkpoint = judged(folder, place, now)
        if not folder.path or "/" in folder.path:
            return checkpoint
        return tracker.superseded(checkpoint, tracker.read(folder.listing, tracker.MEGATRON))

    def notices(self, listing: Listing, checkpoints: tuple[Checkpoint, ...]) -> Iterator[Notice]:
        found = tracker.read(listing, tracker.MEGATRON)
        own = tuple(one for one in checkpoints if not one.path.startswith(f"{_NON_PERSISTENT}/"))
        if all(checkpoint.path for checkpoint in own):
            yield from tracker.notices(found, own, _AT_START)


def _is_release(listing: Listing, tracked: bool) -> bool:
    return "release" in listing.directories() and tracked and is_iteration(listing, "release")


def is_iteration(listing: Listing, path: str) -> bool:
    """Whether a folder holds what one of Megatron's formats puts there."""
    names, inside = files(listing, path), folders(listing, path)
    if any(map(_RANK.fullmatch, inside)) or distributed.is_dcp(names):
        return True
    return bool({"metadata.json", "common.pt", "extra_state"} & {*names, *inside})


def judged(folder: Folder, place: Place, now: float | None) -> Checkpoint:
    """The checkpoint of one iteration. Raises Unreachable."""
    older = [Folder(folder.listing, path) for path in place.older]
    if any(map(_RANK.fullmatch, folder.folders)):
        return _legacy(folder, place, older, now)
    extra = []
    if place.step is None:
        extra.append(Part(absent=("release holds weights to start from, not a state to go on from",)))
    elif place.path.startswith(f"{_NON_PERSISTENT}/"):
        extra.append(Part(remarks=("a non-persistent checkpoint: only a run with --non-persistent-ckpt-type global finds it",)))
    if "extra_state" in folder.folders:
        parts = [distributed.dcp(folder, "", _STATE), distributed.extra_state(folder), _resaved(folder, older)]
        return examined(folder, place.step, [*parts, *extra], now, backend="MindSpeed FSDP", same_world_size=True)
    if distributed.is_dcp(folder.names) or "metadata.json" in folder.names or "common.pt" in folder.names:
        return _distributed(folder, place, older, extra, now)
    return examined(folder, place.step, [*extra, _weights(folder)], now)


_STATE = frozenset({State.MODEL, State.OPTIMIZER, State.PROGRESS})


def _weights(folder: Folder) -> Part:
    """MindSpeed-MM with save_format hf writes weights alone; ``.hf-save-*.done`` is left where that was interrupted."""
    if not folder.tree:
        return Part(broken=("the folder is empty",), unfinished=True)
    weights = [name for name in folder.names if name.endswith((".safetensors", ".bin"))]
    if not weights:
        return Part(broken=("it holds no file of a format that Megatron reads",), unfinished=True)
    left = [name for name in folder.names if name.startswith(".hf-save-") and name.endswith(".done")]
    broken = (
        *folder.faults(weights),
        *distributed.missing_shards("", weights),
        *(f"{name} is left of a save" for name in left),
    )
    if broken:
        return Part(broken=broken, unfinished=True)
    return Part(absent=("it holds weights in Hugging Face's format alone",), state=frozenset({State.MODEL}))


# ------------------------------------------------------------------------------------------------ torch_dist, torch_dcp


def _distributed(folder: Folder, place: Place, older: list[Folder], extra: list[Part], now: float | None) -> Checkpoint:
    told = _common(folder)
    parts = [distributed.dcp(folder, "", frozenset({State.MODEL, State.PROGRESS})), *extra, _optimizer(folder, told)]
    data = distributed.metadata(folder)
    core = "metadata.json" in folder.names or "common.pt" in folder.names or (data and b"common_state/shard_" in data)
    if core or any("metadata.json" in other.names for other in older):
        parts.append(_core(folder))
    parts.append(_same_step(told, place.step))
    parts.append(_resaved(folder, older))
    arguments = pickles.attributes(told.get("args"))
    progress = Progress(place.step, total_steps=whole_number(arguments.get("train_iters")))
    parts.insert(0, Part(world_size=whole_number(arguments.get("world_size")), progress=progress))
    backend = "Megatron torch_dist" if core else "Megatron torch_dcp"
    return examined(folder, place.step, parts, now, backend=backend, parallel=_parallel(arguments))


def _core(folder: Folder) -> Part:
    """What torch_dist has besides a DCP folder: metadata.json, its last file, and common.pt."""
    if "metadata.json" not in folder.names:
        return Part(broken=("metadata.json is missing: the save did not finish",), unfinished=True)
    content = folder.json("metadata.json")
    broken = [content] if isinstance(content, str) else []
    if isinstance(content, dict) and "sharded_backend" not in content:
        broken.append("metadata.json names no sharded_backend")
    zarr = isinstance(content, dict) and content.get("sharded_backend") == "zarr"
    broken += distributed.common(folder)
    if broken:
        return Part(broken=tuple(broken), unfinished=True)
    return Part(remarks=("its tensors are in the zarr format, which cannot be verified",) if zarr else ())


def _common(folder: Folder) -> Mapping[object, object]:
    if "common.pt" not in folder.names:
        return {}
    return pickles.content(folder.listing, folder.at("common.pt"), folder.tree["common.pt"].size) or {}


def _optimizer(folder: Folder, told: Mapping[object, object]) -> Part:
    """Whether the optimizer was saved, by the keys in ``.metadata`` and common.pt; --no-save-optim leaves it out."""
    data = distributed.metadata(folder)
    if data is None or b"optim" in data or "optimizer" in told or b"exp_avg" in data:
        return Part(state=frozenset({State.OPTIMIZER, State.SCHEDULER}))
    if not data.strip(b"\0"):
        return Part()
    return Part(absent=(".metadata names no optimizer state: it was saved without (--no-save-optim), or converted",))


def _resaved(folder: Folder, older: list[Folder]) -> Part:
    name = folder.younger(".metadata", distributed.shards(folder))
    if name is None:
        return Part()
    proof = folder.tree.get("integrity.json")
    if proof and (proof.modified or 0.0) >= (folder.tree[name].modified or 0.0):
        return Part()
    likewise = not older or older[0].younger(".metadata", distributed.shards(older[0])) is not None
    return resaved(name, ".metadata", likewise)


# ------------------------------------------------------------------------------------------------ legacy


def _legacy(folder: Folder, place: Place, older: list[Folder], now: float | None) -> Checkpoint:
    ranks = sorted(name for name in folder.folders if _RANK.fullmatch(name))
    first = f"{ranks[0]}/{_MODEL}"
    told: Mapping[object, object] = {}
    if first in folder.tree:
        told = pickles.content(folder.listing, folder.at(first), folder.tree[first].size) or {}
    arguments = pickles.attributes(told.get("args"))
    parallel = _parallel(arguments)
    broken = [f"{name}/ is missing" for name in _lost(ranks, parallel, older)]
    broken += folder.faults(f"{rank}/{_MODEL}" for rank in ranks)
    apart = [rank for rank in ranks if f"{rank}/{_OPTIMIZER}" in folder.tree]
    expected = bool(apart) or _had_optimizer(older)
    if expected and "optimizer" not in told:
        broken += folder.faults(f"{rank}/{_OPTIMIZER}" for rank in ranks)
    elif apart:
        broken += folder.faults(f"{rank}/{_OPTIMIZER}" for rank in apart)
    absent = []
    if told and not expected and "optimizer" not in told:
        absent.append("no optimizer state: it was saved without (--no-save-optim), or converted from another format")
    if told and "opt_param_scheduler" not in told and "lr_scheduler" not in told and not absent:
        absent.append("no schedule: opt_param_scheduler is missing")
    if place.step is None:
        absent.append("release holds weights to start from, not a state to go on from")
    remarks = ["no random-number state"] if told and "rng_state" not in told and not absent else []
    state = {State.MODEL, State.OPTIMIZER, State.SCHEDULER, State.PROGRESS} if not absent else {State.MODEL}
    state |= {State.RNG} if "rng_state" in told else set()
    world = whole_number(arguments.get("world_size"))
    part = Part(tuple(broken), tuple(absent), tuple(remarks), frozenset(state), world, unfinished=bool(broken))
    progress = Part(progress=Progress(place.step, total_steps=whole_number(arguments.get("train_iters"))))
    parts = [part, _same_step(told, place.step), _legacy_resaved(folder, place), progress]
    return examined(folder, place.step, parts, now, backend="Megatron torch", same_world_size=True, parallel=parallel)


def _had_optimizer(older: list[Folder]) -> bool:
    return any(name.endswith(f"/{_OPTIMIZER}") for folder in older[:1] for name in folder.tree)


def _lost(ranks: list[str], parallel: Mapping[str, int], older: list[Folder]) -> list[str]:
    """Folders of model-parallel ranks that are not there, by the arguments, the numbers in the names and the save before."""
    expected = _by_arguments(parallel) or _by_names(ranks)
    before = [name for name in older[0].folders if _RANK.fullmatch(name)] if older else []
    if before and len(before[0]) == len(ranks[0]) and not parallel:
        expected |= set(before)
    return sorted(expected - set(ranks))[:8]


def _by_arguments(parallel: Mapping[str, int]) -> set[str]:
    """With expert tensor parallelism below the tensor's, not every pair exists: then the names alone tell."""
    tensor, pipeline, expert = (parallel.get(name, 1) for name in ("tensor", "pipeline", "expert"))
    if not parallel or (expert > 1 and parallel.get("expert tensor", tensor) != tensor) or tensor * pipeline * expert > 65536:
        return set()
    axes = [range(tensor), *([range(pipeline)] if pipeline > 1 else []), *([range(expert)] if expert > 1 else [])]
    return {"mp_rank_" + "_".join(f"{number:0{3 if at else 2}}" for at, number in enumerate(each)) for each in product(*axes)}


def _by_names(ranks: list[str]) -> set[str]:
    """Every combination of the numbers that occur, with each axis without gaps; only as far as all of it has one form."""
    matches = [match.groups() for name in ranks if (match := _RANK.fullmatch(name))]
    if len({sum(part is not None for part in each) for each in matches}) != 1:
        return set()
    axes = [max(int(number) for number in axis) + 1 for axis in zip(*matches, strict=True) if all(axis)]
    if len(axes) == 3:  # folders of experts need not form a full grid
        return set()
    grid = product(*(range(length) for length in axes))
    return {"mp_rank_" + "_".join(f"{number:0{3 if at else 2}}" for at, number in enumerate(each)) for each in grid}


def _same_step(told: Mapping[object, object], step: int | None) -> Part:
    said = whole_number(told.get("iteration"))
    if said is None or step is None or said == step or said == 0:
        return Part()
    return Part(broken=(f"it is of iteration {said}, not {step}: the folder was renamed, or holds files of two saves",))


def _legacy_resaved(folder: Folder, place: Place) -> Part:
    """The tracker names this very iteration and was written before some of its files: a later save is half done."""
    if not folder.path or "/" in folder.path or place.step is None:
        return Part()
    found = tracker.read(folder.listing, tracker.MEGATRON)
    if found.step != place.step or found.modified is None:
        return Part()
    times = {name: info.modified for name, info in folder.tree.items() if name.endswith(".pt")}
    later = sorted(name for name, time in times.items() if time is not None and time > found.modified + _LATER_SECONDS)
    if not later:
        return Part()
    return resaved(later[0], found.name, len(later) == len(times))


_LATER_SECONDS = 120.0

_SIZES = {
    "tensor": "tensor_model_parallel_size",
    "pipeline": "pipeline_model_parallel_size",
    "expert": "expert_model_parallel_size",
    "context": "context_parallel_size",
    "expert tensor": "expert_tensor_parallel_size",
    "data": "data_parallel_size",
}


def _parallel(arguments: Mapping[object, object]) -> dict[str, int]:
    """The partition of the model, by the arguments that Megatron saves with it."""
    sizes = {name: whole_number(arguments.get(key)) for name, key in _SIZES.items()}
    return {name: size for name, size in sizes.items() if size is not None and 0 < size < 1_000_000}


# ------------------------------------------------------------------------------------------------ MindSpeed-RL


class MindSpeedRLLayout(Layout):
    """Two models that are trained together, each with a Megatron directory of its own: a restart needs one step of both.

    A checkpoint's path is the actor's; the other roles' folders have the same name.
    """

    name = "mindspeed-rl"
    title = "MindSpeed-RL"
    _roles = ("actor", "critic")

    def recognises(self, listing: Listing) -> bool:
        return all(role in listing.directories() and self._steps(listing, role) for role in self._roles)

    def _steps(self, listing: Listing, role: str) -> list[tuple[int, str]]:
        found = numbered(listing, _CHECKPOINT, role)
        return found if any_is(found, lambda path: is_iteration(listing, path)) else []

    def scan(self, listing: Listing, *, deep: bool = False, now: float | None = None) -> tuple[Checkpoint, ...]:
        return tuple(self.walk(listing, deep=deep, now=now))

    def walk(self, listing: Listing, *, deep: bool = False, now: float | None = None) -> Iterator[Checkpoint]:
        if not self.recognises(listing):
            return
        places = {role: {place.step: place for place in places_of(self._steps(listing, role))} for role in self._roles}
        steps = {step for each in places.values() for step in each if step is not None}
        for step in sorted(steps, reverse=True):
            yield _pair({role: _of_role(listing, places[role].get(step), deep, now) for role in self._roles}, step)

    def notices(self, listing: Listing, checkpoints: tuple[Checkpoint, ...]) -> Iterator[Notice]:
        if newest_complete(checkpoints) is None:
            return
        for role in self._roles:
            found = tracker.read(listing, f"{role}/{tracker.MEGATRON}")
            yield from tracker.notices(found, checkpoints, f"the {role} begins anew")


def _of_role(listing: Listing, place: Place | None, deep: bool, now: float | None) -> Checkpoint | None:
    if place is None:
        return None
    try:
        return judged(Folder(listing, place.path, deep), place, now)
    except Unreachable as error:
        return Checkpoint(place.path, place.step, Verdict.DAMAGED, (str(error),))


_WORST = (Verdict.DAMAGED, Verdict.IN_PROGRESS, Verdict.WEIGHTS_ONLY, Verdict.COMPLETE)


def _pair(roles: Mapping[str, Checkpoint | None], step: int | None) -> Checkpoint:
    have = {role: one for role, one in roles.items() if one is not None}
    first = next(iter(have.values()))
    lost = tuple(f"the {role} has no checkpoint of this step" for role, one in roles.items() if one is None)
    reasons = (*lost, *(f"{role}: {reason}" for role, one in have.items() for reason in one.reasons))
    verdict = Verdict.DAMAGED if lost else min((one.verdict for one in have.values()), key=_WORST.index)
    state = frozenset.intersection(*(one.state for one in have.values()))
    times = [one.modified for one in have.values() if one.modified is not None]
    size = sum(one.bytes for one in have.values())
    return replace(
        first, step=step, verdict=verdict, reasons=reasons, state=state, bytes=size, modified=max(times, default=None)
    )
