"""Folders of torch.distributed.checkpoint, alone and as Megatron's ``torch_dist`` wraps them.

torch writes ``__<rank>_<n>.distcp`` and last, by a temporary file and a rename, ``.metadata`` (filesystem.py, 2.2 to 2.14),
which names every file and what lies where. Megatron core then writes metadata.json (dist_checkpointing/serialization.py), and
up to 0.18 before the shards common.pt; from 0.19 on that is a shard too, under the key ``common_state/shard_0_1``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from ckptlint.checkpoints import integrity
from ckptlint.checkpoints.folder import Folder, Part, missing_ranks
from ckptlint.checkpoints.listing import UnknownContent
from ckptlint.checkpoints.placed import files
from ckptlint.run import State

SHARD = re.compile(r"__(\d+)_\d+\.distcp")
_RANK_STATE = re.compile(r"extra_state_rank_(\d+)\.pt")
_HF_SHARD = re.compile(r"model-(\d{5})-of-(\d{5})\.(?:safetensors|bin)")


def under(place: str, name: str) -> str:
    """A name inside a folder's sub-folder; ``place`` "" is the folder itself."""
    return f"{place}/{name}" if place else name


def is_dcp(names: Iterable[str]) -> bool:
    """Whether files of these names are a DCP folder's."""
    return any(name == ".metadata" or name.endswith(".distcp") for name in names)


def metadata(folder: Folder, place: str = "") -> bytes | None:
    """The bytes of ``.metadata``; None where they are not there or not known."""
    try:
        return folder.listing.read(folder.at(under(place, ".metadata")))
    except OSError:
        return None


def dcp(folder: Folder, place: str = "", state: frozenset[State] = frozenset()) -> Part:
    """A DCP folder: ``.metadata`` and every file that it names, each as long as it says."""
    names = files(folder.listing, folder.at(place))
    label = under(place, "")
    world = world_size(names)
    if ".metadata" not in names:
        left = f" ({label}.metadata.tmp is left of it)" if ".metadata.tmp" in names else ""
        return Part(broken=(f"{label}.metadata is missing: the save did not finish{left}",), world_size=world, unfinished=True)
    if names[".metadata"].size == 0:
        return Part(broken=(f"{label}.metadata is empty",), world_size=world, unfinished=True)
    broken: list[str] = []
    try:
        needed = integrity.dcp_needed(folder.listing.read(folder.at(f"{label}.metadata")))
    except integrity.Broken as error:
        broken.append(f"{label}.metadata {error}")
    except UnknownContent:
        broken += [f"{label}{name} is empty" for name, info in names.items() if name.endswith(".distcp") and info.size == 0]
    except OSError as error:
        broken.append(f"{label}.metadata {integrity.unreadable(error)}")
    else:
        world = world_size(needed) or world  # shards that it does not name are left of another save
        for name, least in sorted(needed.items()):
            if name not in names:
                broken.append(f"{label}{name} is missing, and {label}.metadata names it")
            elif names[name].size < least:
                broken.append(f"{label}{name} is cut short: {least} bytes by .metadata, {names[name].size} on disk")
        broken += _zeros(folder, label, list(needed)) if not broken else []
    if broken:
        return Part(broken=tuple(broken), world_size=world, unfinished=True)
    return Part(state=state, world_size=world)


def _zeros(folder: Folder, label: str, names: list[str]) -> list[str]:
    """Files that cannot be read, or end in zero bytes as after a loss of power: a torch file, as its items are, does not."""
    wrong = []
    for name in sorted(names)[:_SAMPLED] if not folder.deep else sorted(names):
        info = folder.tree.get(f"{label}{name}")
        if info is None or info.size < _END:
            continue
        try:
            ends_in_zeros = not folder.listing.read(folder.at(f"{label}{name}"), info.size - _END, _END).strip(b"\0")
        except UnknownContent:
            continue
        except OSError as error:
            wrong.append(f"{label}{name} {integrity.unreadable(error)}")
            continue
        if ends_in_zeros:
            wrong.append(f"{label}{name} ends in zero bytes")
    return wrong


_END = 22  # a ZIP end record
_SAMPLED = 600


def world_size(names: Iterable[str]) -> int | None:
    """How many ranks wrote shards, by the highest that did."""
    ranks = [int(match[1]) for name in names if (match := SHARD.fullmatch(name)) and len(match[1]) < 7]
    return max(ranks) + 1 if ranks else None


def shards(folder: Folder, place: str = "") -> list[str]:
    """The data files of a DCP folder, relative to the checkpoint."""
    return [under(place, name) for name in files(folder.listing, folder.at(place)) if name.endswith(".distcp")]


def megatron(folder: Folder, place: str, state: State) -> Part:
    """Megatron's torch_dist inside another checkpoint: metadata.json is written last, and common.pt where core is old."""
    names = files(folder.listing, folder.at(place))
    part = dcp(folder, place, frozenset({state, State.PROGRESS}))
    broken = list(part.broken)
    if not names:
        broken = [f"{place} is empty: nothing was saved, or the asynchronous save never finished"]
    elif "metadata.json" not in names:
        broken.append(f"{under(place, 'metadata.json')} is missing: the save did not finish")
    else:
        fault = folder.fault(under(place, "metadata.json"))
        broken += [fault] if fault else []
    broken += common(folder, place)
    if broken:
        return Part(broken=tuple(broken), world_size=part.world_size, unfinished=True)
    return part


def common(folder: Folder, place: str = "") -> list[str]:
    """What is wrong with common.pt: it must be whole, and be there unless ``.metadata`` holds its content as a shard."""
    name = under(place, "common.pt")
    if name in folder.tree:
        fault = folder.torch_fault(name)
        return [fault] if fault else []
    data = metadata(folder, place)
    if data is None or b"common_state/shard_" in data:
        return []
    return [f"{name} is missing"]


def extra_state(folder: Folder) -> Part:
    """MindSpeed's FSDP trainers: extra_state/extra_state_rank_R.pt of every rank (schedule, step, random numbers, data).

    A rank whose file is not there stops with FileNotFoundError, so the number of processes cannot change.
    """
    names = files(folder.listing, folder.at("extra_state"))
    ranks = {int(match[1]): f"extra_state/{match[0]}" for name in names if (match := _RANK_STATE.fullmatch(name))}
    if not ranks:
        why = "extra_state/ holds nothing: the weights alone were saved, and a start would begin at step 0, without a word"
        return Part(absent=(why,))
    world = max(max(ranks) + 1, world_size(folder.names) or 1)
    broken = (*missing_ranks("extra_state/extra_state_rank_{}.pt", ranks, world), *folder.faults(ranks.values()))
    held = frozenset({State.SCHEDULER, State.PROGRESS, State.RNG})
    return Part(broken=broken, state=frozenset() if broken else held, world_size=world, unfinished=bool(broken))


def missing_shards(place: str, names: Iterable[str]) -> tuple[str, ...]:
    """Gaps in weights that transformers saved in several files."""
    matches = [match for name in names if (match := _HF_SHARD.fullmatch(name))]
    count = min(max((int(match[2]) for match in matches), default=0), 100_000)
    have = {int(match[1]) for match in matches}
    lost = [number for number in range(1, count + 1) if number not in have]
    return tuple(f"{under(place, f'model-{number:05}-of-{count:05}')} is missing" for number in lost[:3])
