"""DeepSpeed's own part of a checkpoint: ``latest`` and the folder of one tag that it names.

File names: deepspeed/runtime/engine.py ``_get_ckpt_name``, ``_get_zero_ckpt_name`` (0.16), with and without the underscore that
older releases left out before ``optim_states``. What is missing raises at the start; nothing of it is silent.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from ckptlint.checkpoints import integrity
from ckptlint.checkpoints.folder import Folder, Part
from ckptlint.run import State

_ZERO_OPTIMIZER = re.compile(r"(?:bf16_|fp16_)?zero_pp_rank_(\d+)_mp_rank_(\d+)_?optim_states\.pt")
_ZERO_MODEL = re.compile(r"zero_pp_rank_(\d+)_mp_rank_(\d+)_model_states\.pt")
_EXPERT = re.compile(r"layer_(\d+)_expert_(\d+)_mp_rank_\d+_model_states\.pt")
_EXPERT_OPTIMIZER = re.compile(r"expp_rank_\d+_mp_rank_\d+_optim_states\.pt")
_MODEL = re.compile(r"mp_rank_(\d+)_model_states\.pt")
_STATES = re.compile(r"(?:(?:bf16_|fp16_)?zero_pp_rank_|mp_rank_|layer_|expp_rank_)[\w-]*(?:model|optim)_states\.pt")
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
    return stage_of(folder.inside(named) if named else ())


def is_states(name: str) -> bool:
    """Whether a file is one of a tag's."""
    return _STATES.fullmatch(name) is not None


def stage_of(names: Iterable[str]) -> str:
    """The same by the names of a tag's files."""
    names = tuple(names)
    if any(_ZERO_MODEL.fullmatch(name) for name in names):
        return "DeepSpeed ZeRO-3"
    return "DeepSpeed ZeRO-1/2" if any(_ZERO_OPTIMIZER.fullmatch(name) for name in names) else "DeepSpeed"


def states(folder: Folder, tag: str, before: Iterable[str] = ()) -> Part:
    """The files of one tag: model states (one a model-parallel rank; ZeRO-3: a rank) and an optimizer state of each rank.

    ``tag``: the sub-folder, "" for the folder itself. ``before``: the file names of an earlier tag of the same run; what the
    names themselves do not tell (layers of a pipeline, experts) must be there again where as many ranks wrote.
    """
    names = folder.inside(tag)
    optimizers, models = _ranks(names, _ZERO_OPTIMIZER), _ranks(names, _ZERO_MODEL)
    whole = [name for name in names if _MODEL.fullmatch(name)]
    says = told(folder, tag)
    label = f"{tag}/" if tag else ""
    where = tag or "it"
    broken = list(folder.faults(f"{label}{name}" for name in names if name.endswith("_states.pt")))
    if not models and not whole and not any(name.startswith("layer_") for name in names):
        broken.append(f"{where} holds no model states")
    experts = any(map(_EXPERT_OPTIMIZER.fullmatch, names))
    if not optimizers and not experts and (models or (whole and says.get("optimizer", integrity.SOMETHING) is None)):
        broken.append(f"{where} holds no optimizer states")
    world = _world(optimizers, models, says)
    broken += _gaps(label, optimizers, "optim_states", world) + _gaps(label, models, "model_states", world)
    broken += _lost_names(label, names, whole, says)
    processes = world * max(len(optimizers), 1) or None
    before = tuple(before)
    if _ranks(before, _ZERO_OPTIMIZER) == optimizers and not broken:
        lost = sorted(name for name in set(before) - set(names) if name.endswith("_states.pt"))
        broken += [f"{label}{name} is missing, which the tag before holds" for name in lost]
    if broken:
        return Part(broken=tuple(broken), world_size=processes, unfinished=True)
    return Part(state=frozenset({State.MODEL, State.OPTIMIZER}), world_size=processes)


def _lost_names(label: str, names: tuple[str, ...], whole: list[str], says: Mapping[str, object]) -> list[str]:
    """Model-parallel ranks and experts without a file, where others of their kind have one."""
    ranks = {int(match[1]) for match in map(_MODEL.fullmatch, whole) if match}
    said = says.get("mp_world_size")
    count = said if isinstance(said, int) and 0 < said < _MANY else max(ranks, default=-1) + 1
    faults = [f"{label}mp_rank_{rank:02}_model_states.pt is missing" for rank in range(count) if ranks and rank not in ranks]
    experts: dict[str, set[int]] = {}
    for match in filter(None, map(_EXPERT.fullmatch, names)):
        if int(match[2]) < _MANY:
            experts.setdefault(match[1], set()).add(int(match[2]))
    count = max((max(have) + 1 for have in experts.values()), default=0)
    for layer, have in experts.items():
        lost = [expert for expert in range(count) if expert not in have]
        faults += [f"{label}layer_{layer}_expert_{expert}_…_model_states.pt is missing" for expert in lost[:1]]
    return faults


def _ranks(names: tuple[str, ...], pattern: re.Pattern[str]) -> dict[int, set[int]]:
    """Model-parallel rank to the data-parallel ranks that have a file."""
    found: dict[int, set[int]] = {}
    for match in filter(None, map(pattern.fullmatch, names)):
        if int(match[1]) < _MANY:
            found.setdefault(int(match[2]), set()).add(int(match[1]))
    return found


def _world(optimizers: Mapping[int, set[int]], models: Mapping[int, set[int]], says: Mapping[str, object]) -> int:
    """How many data-parallel ranks wrote: by what rank 0 says, else by the highest one that has a file; 0: not known.

    Files of higher ranks are left of an earlier save into the same folder, by more processes.
    """
    if not optimizers and not models:
        return 0
    said = says.get("dp_world_size")
    if isinstance(said, int) and 0 < said < _MANY:
        return said
    return max(max(ranks) + 1 for ranks in (*optimizers.values(), *models.values()))


def _gaps(label: str, ranks: Mapping[int, set[int]], kind: str, world: int) -> list[str]:
    faults = []
    for parallel, have in sorted(ranks.items()):
        lost = [rank for rank in range(world) if rank not in have]
        if lost:
            name = f"{label}…zero_pp_rank_{lost[0]}_mp_rank_{parallel:02}_{kind}.pt"
            faults.append(f"{name} is missing" + (f", as those of {len(lost) - 1} more ranks" if len(lost) > 1 else ""))
    return faults


def told(folder: Folder, tag: str) -> Mapping[str, object]:
    """What the first model state says of the save it belongs to; {} where it does not tell."""
    names = folder.inside(tag)
    name = next((name for name in names if _MODEL.fullmatch(name) or _ZERO_MODEL.fullmatch(name)), None)
    if name is None:
        return {}
    path = f"{tag}/{name}" if tag else name
    try:
        pickle = integrity.pickle_of(folder.listing, folder.at(path), folder.tree[path].size)
    except OSError:
        return {}
    return integrity.values(pickle, ("dp_world_size", "mp_world_size", "lr_scheduler", "optimizer", "global_steps"))
