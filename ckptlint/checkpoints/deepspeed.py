"""DeepSpeed's own part of a checkpoint: ``latest`` and the folder of one tag that it names.

File names: deepspeed/runtime/engine.py ``_get_ckpt_name``, ``_get_zero_ckpt_name`` (0.16), with and without the underscore that
older releases left out before ``optim_states``. What is missing raises at the start; nothing of it is silent.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from ckptlint.checkpoints import integrity
from ckptlint.checkpoints.folder import Folder, Part
from ckptlint.run import State

_ZERO_OPTIMIZER = re.compile(r"(?:bf16_|fp16_)?zero_pp_rank_(\d+)_mp_rank_(\d+)_?optim_states\.pt")
_ZERO_MODEL = re.compile(r"zero_pp_rank_(\d+)_mp_rank_(\d+)_model_states\.pt")
_MODEL = re.compile(r"mp_rank_(\d+)_model_states\.pt")
_MANY = 1_000_000  # no world is larger; a number above it in a file name is nonsense


def tag(folder: Folder) -> tuple[str | None, str]:
    """The sub-folder that ``latest`` names, or None and what is wrong with it."""
    if "latest" not in folder.names:
        return None, "latest is missing: DeepSpeed then finds nothing to load"
    try:
        named = folder.text("latest")
    except OSError as error:
        return None, f"latest {integrity.unreadable(error)}"
    if named is None:
        named = max((name for name in folder.folders if _is_tag(folder, name)), key=_trailing_number, default="?")
    if not named.strip("\0"):
        return None, "latest is empty"
    if named not in folder.folders:
        return None, f"latest names {named[:80]!r}, which is not there"
    return named, ""


def _is_tag(folder: Folder, name: str) -> bool:
    return any(inner.endswith("_states.pt") for inner in folder.inside(name))


def _trailing_number(name: str) -> int:
    match = re.search(r"(\d+)$", name)
    return int(match[1]) if match else -1


def stage(folder: Folder) -> str:
    """What a message calls the backend."""
    named, _ = tag(folder)
    names = folder.inside(named) if named else ()
    if any(_ZERO_MODEL.fullmatch(name) for name in names):
        return "DeepSpeed ZeRO-3"
    return "DeepSpeed ZeRO-1/2" if any(_ZERO_OPTIMIZER.fullmatch(name) for name in names) else "DeepSpeed"


def states(folder: Folder, tag: str) -> Part:
    """The files of one tag: model states (one a model-parallel rank; ZeRO-3: a rank) and an optimizer state of each rank."""
    names = folder.inside(tag)
    optimizers, models = _ranks(names, _ZERO_OPTIMIZER), _ranks(names, _ZERO_MODEL)
    whole = [name for name in names if _MODEL.fullmatch(name)]
    says = told(folder, tag)
    broken = list(folder.faults(f"{tag}/{name}" for name in names if name.endswith("_states.pt")))
    if not models and not whole and not any(name.startswith("layer_") for name in names):
        broken.append(f"{tag} holds no model states")
    if not optimizers and (models or (whole and says.get("optimizer", integrity.SOMETHING) is None)):
        broken.append(f"{tag} holds no optimizer states")
    world = _world(optimizers, models, says)
    broken += _gaps(tag, optimizers, "optim_states", world) + _gaps(tag, models, "model_states", world)
    processes = world * max(len(optimizers), 1) or None
    if broken:
        return Part(broken=tuple(broken), world_size=processes, unfinished=True)
    return Part(state=frozenset({State.MODEL, State.OPTIMIZER}), world_size=processes)


def _ranks(names: tuple[str, ...], pattern: re.Pattern[str]) -> dict[int, set[int]]:
    """Model-parallel rank to the data-parallel ranks that have a file."""
    found: dict[int, set[int]] = {}
    for match in filter(None, map(pattern.fullmatch, names)):
        if int(match[1]) < _MANY:
            found.setdefault(int(match[2]), set()).add(int(match[1]))
    return found


def _world(optimizers: Mapping[int, set[int]], models: Mapping[int, set[int]], says: Mapping[str, object]) -> int:
    """How many data-parallel ranks wrote: by the highest one that has a file, or by what rank 0 says; 0: not known."""
    if not optimizers and not models:
        return 0
    seen = max(max(ranks) + 1 for ranks in (*optimizers.values(), *models.values()))
    said = says.get("dp_world_size")
    return max(seen, said) if isinstance(said, int) and said < _MANY else seen


def _gaps(tag: str, ranks: Mapping[int, set[int]], kind: str, world: int) -> list[str]:
    faults = []
    for parallel, have in sorted(ranks.items()):
        lost = [rank for rank in range(world) if rank not in have]
        if lost:
            name = f"{tag}/…zero_pp_rank_{lost[0]}_mp_rank_{parallel:02}_{kind}.pt"
            faults.append(f"{name} is missing" + (f", as those of {len(lost) - 1} more ranks" if len(lost) > 1 else ""))
    return faults


def told(folder: Folder, tag: str) -> Mapping[str, object]:
    """What the first model state says of the save it belongs to; {} where it does not tell."""
    names = folder.inside(tag)
    name = next((name for name in names if _MODEL.fullmatch(name) or _ZERO_MODEL.fullmatch(name)), None)
    if name is None:
        return {}
    path = f"{tag}/{name}"
    try:
        pickle = integrity.pickle_of(folder.listing, folder.at(path), folder.tree[path].size)
    except OSError:
        return {}
    return integrity.values(pickle, ("dp_world_size", "lr_scheduler", "optimizer"))
