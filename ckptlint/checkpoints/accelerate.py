"""The folders that Accelerate's ``save_state`` writes: ``checkpoint_N`` by its own naming, any name by a script's.

accelerate/checkpointing.py (1.15) writes in this order, in place and without a mark at the end: the models, optimizer.bin,
scheduler.bin, the dataloaders' state, scaler.pt, random_states_R.pkl of each rank, custom_checkpoint_N.pkl. What was prepared
stands in no file, so a folder is held against the one before it. ``load_state`` stops on a file that is missing, except for
random numbers, which it passes over with a message.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial

from ckptlint.checkpoints import deepspeed, distributed, huggingface
from ckptlint.checkpoints.checkpoint import Checkpoint
from ckptlint.checkpoints.folder import Folder, Part, examined
from ckptlint.checkpoints.listing import Listing
from ckptlint.checkpoints.placed import Place, PlacedLayout, any_is, files, folders, numbered
from ckptlint.run import State

_CHECKPOINT = re.compile(r"(?:.*[^\d.])?(\d+)")
_RANDOM = re.compile(r"random_states_(\d+)\.pkl")
_WEIGHTS = re.compile(
    r"(?:.*/)?(?:model|pytorch_model|diffusion_pytorch_model|pytorch_lora_weights|adapter_model).*\.(?:safetensors|bin)"
)
_OPTIMIZER = re.compile(r"optimizer(?:_\d+)?\.bin")
_STATES = (
    (State.SCHEDULER, re.compile(r"scheduler(?:_\d+)?\.bin")),
    (State.DATA, re.compile(r"(?:sampler|dl_state_dict)(?:_\d+)?\.bin")),
    (State.SCALER, re.compile(r"scaler\.pt")),
    (State.CALLBACKS, re.compile(r"custom_checkpoint_\d+\.pkl")),
)
_FSDP = "pytorch_model_fsdp"


class AccelerateLayout(PlacedLayout):
    """Folders with random_states_R.pkl, or with optimizer.bin or scheduler.bin and no trainer_state.json."""

    name = "accelerate"
    title = "Accelerate"

    def places(self, listing: Listing) -> Iterator[Place]:
        found = numbered(listing, _CHECKPOINT)
        mine = partial(is_accelerate, listing)
        if any_is(found, mine):
            forms = {_form(path) for _, path in found[:32] if mine(path)}
            kept = [(step, path) for step, path in found if _form(path) in forms]
            for at, (step, path) in enumerate(kept):
                if not _is_foreign(listing, path):
                    older = (path for _, path in kept[at + 1 : at + 3])
                    yield Place(path, step, tuple(path for path in older if not _is_foreign(listing, path)))
        elif is_accelerate(listing, "") and not huggingface.holds_trainer_state(listing, ""):
            match = _CHECKPOINT.fullmatch(listing.name)
            yield Place("", int(match[1]) if match and len(match[1]) < 16 else None)

    def judge(self, folder: Folder, place: Place, now: float | None) -> Checkpoint:
        older = [Folder(folder.listing, path) for path in place.older]
        backend = _backend(folder)
        ranks = {int(match[1]) for name in folder.names if (match := _RANDOM.fullmatch(name)) and len(match[1]) < 7}
        parts = [*_model(folder, backend, older), _others(folder), _lost(folder, older), _random(folder, ranks)]
        same = backend.startswith("DeepSpeed")
        return examined(folder, place.step, parts, now, backend=backend, same_world_size=same)


def _form(path: str) -> str:
    return re.sub(r"\d+", "#", path)


def is_accelerate(listing: Listing, path: str) -> bool:
    """Whether a folder was surely written by save_state."""
    names = files(listing, path)
    if _is_foreign(listing, path):
        return False
    if any(map(_RANDOM.fullmatch, names)):
        return True
    weights = any(map(_WEIGHTS.fullmatch, names)) or any(name.startswith(_FSDP) for name in folders(listing, path))
    return "optimizer.bin" in names and (weights or "scheduler.bin" in names)


def _is_foreign(listing: Listing, path: str) -> bool:
    names = files(listing, path)
    return "trainer_state.json" in names or "CHECKPOINT_COMPLETE" in names or "metadata.json" in names


def _backend(folder: Folder) -> str:
    if "latest" in folder.names or "pytorch_model" in folder.folders:
        return deepspeed.stage(folder)
    return "FSDP sharded" if any(name.startswith(_FSDP) for name in folder.folders) else "plain"


def _model(folder: Folder, backend: str, older: list[Folder]) -> list[Part]:
    if not folder.tree:
        return [Part(broken=("the folder is empty",), unfinished=True)]
    if backend.startswith("DeepSpeed"):
        tag, wrong = deepspeed.tag(folder)
        return [Part(broken=(wrong,), unfinished=True) if tag is None else deepspeed.states(folder, tag)]
    if backend == "FSDP sharded":
        return _fsdp(folder)
    weights = huggingface.weights(folder)
    nested = [name for name in folder.tree if "/" in name and _WEIGHTS.fullmatch(name)]
    if nested or any(name.startswith("pytorch_lora_weights") for name in folder.names):
        wanted = [*nested, *(name for name in folder.names if _WEIGHTS.fullmatch(name))]
        faults = folder.faults(wanted)
        weights = Part(broken=faults, state=frozenset() if faults else frozenset({State.MODEL}), unfinished=bool(faults))
    return [weights, _optimizer(folder, older)]


def _fsdp(folder: Folder) -> list[Part]:
    parts = []
    for prefix, state in ((_FSDP, State.MODEL), ("optimizer", State.OPTIMIZER)):
        places = [name for name in folder.folders if re.fullmatch(rf"{prefix}(?:_\d+)?", name)]
        if not places and f"{prefix}.bin" not in folder.names:
            parts.append(Part(broken=(f"{prefix}_0/ is missing",), unfinished=True))
        parts += [distributed.dcp(folder, place, frozenset({state})) for place in places]
    return parts


def _optimizer(folder: Folder, older: list[Folder]) -> Part:
    names = [name for name in folder.names if _OPTIMIZER.fullmatch(name)]
    if names:
        faults = folder.faults(names)
        state = frozenset() if faults else frozenset({State.OPTIMIZER})
        return Part(broken=faults, state=state, unfinished=bool(faults))
    if any(_OPTIMIZER.fullmatch(name) for other in older for name in other.names):
        return Part()  # said by _lost
    why = "optimizer.bin is missing: the optimizer was not prepared, or the save was interrupted before it"
    return Part(absent=(why,), unfinished=True)


def _others(folder: Folder) -> Part:
    broken, state = [], set()
    for held, pattern in _STATES:
        names = [name for name in folder.names if pattern.fullmatch(name)]
        faults = [fault for name in names if (fault := folder.torch_fault(name))]
        broken += faults
        state |= {held} if names and not faults else set()
    return Part(broken=tuple(broken), state=frozenset(state), unfinished=bool(broken))


def _lost(folder: Folder, older: list[Folder]) -> Part:
    """Files that the folder before has, and this one has not: random numbers apart, a start stops without them."""
    if not older or not folder.tree:
        return Part()
    wanted = [pattern for _, pattern in _STATES] + [_OPTIMIZER]
    before = [name for name in older[0].names if any(pattern.fullmatch(name) for pattern in wanted)]
    lost = [f"{name} is missing, which {older[0].path} holds" for name in before if name not in folder.names]
    return Part(broken=tuple(lost), unfinished=bool(lost))


def _random(folder: Folder, ranks: set[int]) -> Part:
    """One file a rank; ``load_state`` passes over one that is missing or cannot be read."""
    if not ranks:
        return Part(remarks=("there is no random_states file: random numbers start anew",))
    world = max(ranks) + 1
    lost = [str(rank) for rank in range(min(world, 100_000)) if rank not in ranks]
    wrong = [fault for rank in sorted(ranks)[:64] if (fault := folder.torch_fault(f"random_states_{rank}.pkl"))]
    remarks = [f"random-number state is missing for rank {', '.join(lost[:8])}"] if lost else []
    remarks += [f"{fault} (random numbers start anew)" for fault in wrong[:2]]
    return Part(remarks=tuple(remarks), state=frozenset({State.RNG}) if not remarks else frozenset(), world_size=world)
