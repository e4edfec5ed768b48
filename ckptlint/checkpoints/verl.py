"""The checkpoints of verl: PPO and its kin (folders ``actor`` and ``critic``), and SFT (the same files without a role).

Order of writes in ``ray_trainer._save_checkpoint`` (0.4 to 0.9): each role's model, optimizer and extra state on all ranks,
then ``huggingface/`` and fsdp_config.json by rank 0, after the last role data.pt, and at last the tracker. The step is the
folder's name. ``utils/checkpoint/fsdp_checkpoint_manager.py`` names the rank files, ``megatron_checkpoint_manager.py`` the
others.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ckptlint.checkpoints import distributed, pickles, tracker
from ckptlint.checkpoints.checkpoint import Checkpoint, Notice
from ckptlint.checkpoints.folder import Folder, Part, examined, missing_ranks, resaved, whole_number
from ckptlint.checkpoints.listing import Listing
from ckptlint.checkpoints.placed import Place, PlacedLayout, any_is, files, folders, numbered, places_of
from ckptlint.run import State

_CHECKPOINT = re.compile(r"global_step_(\d+)")
_ROLES = ("actor", "critic", "reward", "reward_model")  # `reward`: recipes that train the reward model too (prime)
_RANK_FILE = re.compile(r"(model|optim|extra_state)_world_size_(\d+)_rank_(\d+)\.pt")
_DATA = re.compile(r"data(?:_\d+)?\.pt")  # SFT: one a data-parallel rank
_LEGACY_MODEL = re.compile(r"mp_rank_\d+(?:_\d+)*")

# Kind of rank file: what it holds, and what a start without it does.
_KINDS = {
    "model": (State.MODEL, "a start finds no weights"),
    "optim": (State.OPTIMIZER, "the optimizer was not saved"),
    "extra_state": (State.SCHEDULER, "neither schedule nor random-number state were saved"),
}
_MEGATRON_MARKS = frozenset(("dist_ckpt", "transformer_config.json", "ckpt_contents.json", "adapter_checkpoint"))
_MEGATRON_V2 = ("model", "optimizer", "extra")


class VerlLayout(PlacedLayout):
    """Folders ``global_step_N`` beside the tracker."""

    name = "verl"
    title = "verl"

    def places(self, listing: Listing) -> Iterator[Place]:
        found = numbered(listing, _CHECKPOINT)
        if any_is(found, lambda path: is_verl(listing, path)):
            yield from places_of(found)
            return
        match = _CHECKPOINT.fullmatch(listing.name)
        if match and not found and is_verl(listing, ""):
            yield Place("", int(match[1]))

    def judge(self, folder: Folder, place: Place, now: float | None) -> Checkpoint:
        roles = _roles(folder)
        data = _data(folder)
        if not roles:
            return examined(folder, place.step, [_husk(folder)], now)
        older = [Folder(folder.listing, path) for path in place.older]
        parts = [part for role in roles for part in _role(folder, role, older)]
        parts += [_lost_roles(roles, older), data if data is not None else _no_data(older)]
        parts.append(_resaved(folder, older))
        backend = "verl FSDP" if any(_is_fsdp(folder, role) for role in roles) else "verl Megatron"
        checkpoint = examined(folder, place.step, parts, now, backend=backend, same_world_size=backend == "verl FSDP")
        return tracker.superseded(checkpoint, tracker.read(folder.listing, tracker.MEGATRON)) if folder.path else checkpoint

    def notices(self, listing: Listing, checkpoints: tuple[Checkpoint, ...]) -> Iterator[Notice]:
        if all(checkpoint.path for checkpoint in checkpoints):
            otherwise = "`resume_mode: auto` begins at step 0 and writes over what is here"
            yield from tracker.notices(tracker.read(listing, tracker.MEGATRON), checkpoints, otherwise)


def is_verl(listing: Listing, path: str) -> bool:
    """Whether a folder of the name ``global_step_N`` holds what verl writes there."""
    names, inside = files(listing, path), folders(listing, path)
    if any(role in inside for role in ("actor", "critic")) or any(map(_RANK_FILE.fullmatch, names)):
        return True
    if any(map(_DATA.fullmatch, names)) and "extra_state" not in inside:
        return True
    return bool(_MEGATRON_MARKS & {*names, *inside}) or ("config.json" in names and "extra_state" not in inside)


def _roles(folder: Folder) -> tuple[str, ...]:
    """The folders of the roles; ("",) where the files lie in the checkpoint itself (SFT)."""
    roles = tuple(role for role in _ROLES if role in folder.folders)
    if roles:
        return roles
    own = any(map(_RANK_FILE.fullmatch, folder.names)) or bool(_MEGATRON_MARKS & {*folder.names, *folder.folders})
    return ("",) if own or "config.json" in folder.names else ()


def _husk(folder: Folder) -> Part:
    """verl's retention deletes the roles' folders and leaves data.pt."""
    if not folder.tree:
        return Part(broken=("the folder is empty",), unfinished=True)
    left = " and ".join(folder.names[:2]) or next(iter(folder.tree))
    return Part(broken=(f"only {left} is left: the rest was deleted by the retention limit",), unfinished=True)


def _under(role: str, name: str) -> str:
    return f"{role}/{name}" if role else name


def _inside(folder: Folder, role: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Files and folders right below a role's folder."""
    return tuple(files(folder.listing, folder.at(role))), folders(folder.listing, folder.at(role))


def _is_fsdp(folder: Folder, role: str) -> bool:
    names, _ = _inside(folder, role)
    return "fsdp_config.json" in names or any(map(_RANK_FILE.fullmatch, names))


def _role(folder: Folder, role: str, older: list[Folder]) -> list[Part]:
    names, inside = _inside(folder, role)
    if _is_fsdp(folder, role):
        return [_fsdp(folder, role, names, older)]
    nested = [folders(folder.listing, folder.at(_under(role, name))) for name in inside]
    if "ckpt_contents.json" in names or any("dist_ckpt" in each for each in nested):
        return _megatron_v2(folder, role)
    if "dist_ckpt" in inside:
        return _megatron_v1(folder, role, older)
    if "model" in inside:
        return [_megatron_v0(folder, role)]
    if "config.json" in names:  # SFT of 0.2 to 0.4.1 saves the model as transformers does
        return [Part(absent=("it holds the model's weights alone",), state=frozenset({State.MODEL}))]
    where = role or "the folder"
    return [Part(broken=(f"{where} holds no files of a checkpoint",), unfinished=True)]


# ------------------------------------------------------------------------------------------------ FSDP


def _fsdp(folder: Folder, role: str, names: tuple[str, ...], older: list[Folder]) -> Part:
    """A file of each kind from every rank. fsdp_config.json says how many there are, and where it does not the names do.

    verl's merger of weights reads it; a resume does not.
    """
    matches = [match for name in names if (match := _RANK_FILE.fullmatch(name))]
    worlds = {int(match[2]) for match in matches if len(match[2]) < 7}
    config = folder.json(_under(role, "fsdp_config.json")) if "fsdp_config.json" in names else None
    broken: list[str] = []
    said = whole_number(config.get("world_size")) if isinstance(config, dict) else None
    world = said if said is not None and 0 < said < 1_000_000 else max(worlds, default=0)
    ranks = {kind: {int(match[3]) for match in matches if match[1] == kind and match[2] == str(world)} for kind in _KINDS}
    absent, state = [], set()
    for kind, (held, without) in _KINDS.items():
        pattern = _under(role, f"{kind}_world_size_{world}_rank_{{}}.pt")
        saved_before = any(
            _older_has(older, role, f"{kind}_world_size_{each}_rank_0.pt") for each in {world, *_worlds(older, role)}
        )
        if not ranks[kind] and kind != "model" and not saved_before and not broken:
            absent.append(f"{pattern.format('*')} is missing: {without}")
            continue
        broken += missing_ranks(pattern, ranks[kind], max(world, 1))
        state.add(held)
    mine = sorted((match for match in matches if match[2] == str(world)), key=lambda match: (int(match[3]), match[1]))
    broken += folder.faults(_under(role, match[0]) for match in mine)
    if broken:
        return Part(broken=tuple(broken), world_size=world or None, unfinished=True)
    others = sorted(worlds - {world})
    left = ", ".join(map(str, others))
    remarks = [f"{role or 'it'} also holds files of a save with {left} ranks"] if others else []
    if isinstance(config, str):
        remarks.append(f"{config} (not needed to resume)")
    if State.SCHEDULER in state:
        state.add(State.RNG)
    return Part((), tuple(absent), tuple(remarks), frozenset({State.PROGRESS, *state}), world)


def _worlds(older: list[Folder], role: str) -> set[int]:
    names = [name for folder in older for name in _inside(folder, role)[0]]
    return {int(match[2]) for name in names if (match := _RANK_FILE.fullmatch(name)) and len(match[2]) < 7}


def _older_has(older: list[Folder], role: str, name: str) -> bool:
    return any(name in _inside(folder, role)[0] for folder in older)


# ------------------------------------------------------------------------------------------------ Megatron


def _megatron_v2(folder: Folder, role: str) -> list[Part]:
    """0.9: ckpt_contents.json is written last, by a temporary file and os.replace, so its presence tells that all is there."""
    name = _under(role, "ckpt_contents.json")
    if name not in folder.tree:
        return [Part(broken=(f"{name} is missing: the save was interrupted",), unfinished=True)]
    contents = folder.json(name)
    if isinstance(contents, str):
        return [Part(broken=(contents,), unfinished=True)]
    listed = contents.get("contents") if contents else None
    if contents is not None and not isinstance(listed, dict):
        return [Part(broken=(f"{name} does not say what was saved",))]
    saved = pickles.attributes(listed)
    paths = [path for path in saved.values() if isinstance(path, str)] if contents else list(_MEGATRON_V2)
    parts = [_dist_or_weights(folder, role, path.strip("/")) for path in paths]
    if "optim" not in " ".join([*map(str, saved), *paths]):
        parts.append(Part(absent=("the optimizer was not saved",)))
    world = whole_number(contents.get("world_size")) if contents else None
    said = whole_number(contents.get("global_step")) if contents else None
    match = _CHECKPOINT.fullmatch(folder.path.rpartition("/")[2] or folder.listing.name)
    if said is not None and match and said != int(match[1]):
        why = f"{name} is of step {said}, not {match[1]}: the folder was renamed, or holds files of two saves"
        parts.append(Part(broken=(why,)))
    return [Part(state=frozenset({State.PROGRESS}), world_size=world), *parts]


def _dist_or_weights(folder: Folder, role: str, path: str) -> Part:
    """One of the folders that ckpt_contents.json names: Megatron's distributed files, or transformers' weights."""
    whole = _under(role, path)
    for place in (whole, f"{whole}/dist_ckpt", f"{whole}/huggingface"):
        names = files(folder.listing, folder.at(place))
        if any(name.endswith(".distcp") for name in names) or ".metadata" in names:
            return distributed.megatron(folder, place, State.OPTIMIZER if "optim" in path else State.MODEL)
        weights = [f"{place}/{name}" for name in names if name.endswith((".safetensors", ".bin"))]
        if weights:
            faults = (*folder.faults(weights), *distributed.missing_shards(place, names))
            return Part(broken=faults, unfinished=True) if faults else Part(state=frozenset({State.MODEL}))
    if any(name.startswith(f"{whole}/") for name in folder.tree) or whole in folder.tree:
        return Part()
    return Part(broken=(f"{whole} is missing, and ckpt_contents.json names it",), unfinished=True)


def _holds_weights(folder: Folder, below: str) -> bool:
    return any(name.endswith(".safetensors") for name in files(folder.listing, folder.at(below)))


def _megatron_v1(folder: Folder, role: str, older: list[Folder]) -> list[Part]:
    """0.4 to 0.8: one distributed checkpoint. With mbridge (the default since 0.7) the weights lie in huggingface/ instead."""
    place = _under(role, "dist_ckpt")
    parts = [distributed.megatron(folder, place, State.OPTIMIZER)]
    below = _under(role, "huggingface")
    weights = [name for name in folder.tree if name.startswith(f"{below}/") and name.endswith(".safetensors")]
    if not weights and any(_holds_weights(one, below) for one in older):
        return [*parts, Part(broken=(f"{below} holds no weights, as earlier checkpoints do",), unfinished=True)]
    shards = distributed.missing_shards(below, [name.rpartition("/")[2] for name in weights])
    faults = (*folder.faults(weights), *shards)
    held = State.MODEL if weights or not faults else State.PROGRESS
    parts.append(Part(broken=faults, state=frozenset({held, State.PROGRESS}), unfinished=bool(faults)))
    return parts


def _megatron_v0(folder: Folder, role: str) -> Part:
    """Up to 0.3: model/mp_rank_*/model.pt, and optim/ and rng_states/ beside it."""
    wanted = []
    for kind, name in (("model", "model.pt"), ("optim", "optim.pt")):
        ranks = [each for each in folders(folder.listing, folder.at(_under(role, kind))) if _LEGACY_MODEL.fullmatch(each)]
        wanted += [_under(role, f"{kind}/{rank}/{name}") for rank in ranks]
    models = [name for name in wanted if name.startswith(_under(role, "model/"))]
    optimizers = [name for name in folder.tree if name.startswith(_under(role, "optim/")) and name.endswith(".pt")]
    if not models:
        return Part(broken=(f"{_under(role, 'model')} holds no weights",), unfinished=True)
    faults = folder.faults([*models, *optimizers])
    if faults:
        return Part(broken=faults, unfinished=True)
    if not optimizers:
        why = f"{_under(role, 'optim')} holds nothing: the optimizer was not saved"
        return Part(absent=(why,), state=frozenset({State.MODEL}))
    return Part(state=frozenset({State.MODEL, State.OPTIMIZER, State.PROGRESS}))


# ------------------------------------------------------------------------------------------------ what belongs to all roles


def _lost_roles(roles: tuple[str, ...], older: list[Folder]) -> Part:
    """A role that the checkpoints before had. Which roles a run trains stands in its configuration alone."""
    before = {role for other in older for role in _roles(other) if role}
    lost = sorted(before - set(roles)) if roles != ("",) else []
    return Part(broken=tuple(f"{role}/ is missing, which earlier checkpoints hold" for role in lost), unfinished=bool(lost))


def _data(folder: Folder) -> Part | None:
    """The dataloader's state: data.pt; of SFT one a data-parallel rank; RLinf keeps it in data/."""
    names = [name for name in folder.tree if _DATA.fullmatch(name.removeprefix("data/"))]
    if not names:
        return None
    faults = folder.faults(names)
    return Part(broken=faults, unfinished=True) if faults else Part(state=frozenset({State.DATA}))


def _no_data(older: list[Folder]) -> Part:
    why = "data.pt is missing: a start would begin the data anew, without a word"
    if any(_data(other) is not None for other in older):
        return Part(absent=(f"{why}; earlier checkpoints hold it, so the save was interrupted",), unfinished=True)
    return Part(remarks=(why,))


def _resaved(folder: Folder, older: list[Folder]) -> Part:
    """Files of the roles that are younger than the data.pt written after them."""

    def found(one: Folder) -> tuple[str | None, str]:
        mark = next((name for name in one.tree if _DATA.fullmatch(name)), "data.pt")
        payload = [name for name in one.tree if name.endswith((".pt", ".distcp")) and not _DATA.fullmatch(name)]
        return one.younger(mark, payload), mark

    name, mark = found(folder)
    if name is None:
        return Part()
    return resaved(name, mark, not older or found(older[0])[0] is not None)
