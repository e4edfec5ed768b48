"""The checkpoints of JAX: Orbax's numbered folders, and the single files of flax.training.checkpoints.

Orbax (0.5 to 0.12) writes into ``<step>.orbax-checkpoint-tmp-<n>`` and renames; on object stores, where that cannot be, it
writes in place and at the end commit_success.txt. So a folder of the final name is whole on a disk. flax's
``save_checkpoint`` writes ``checkpoint_tmp`` and renames it to ``checkpoint_N``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ckptlint.checkpoints.checkpoint import Checkpoint
from ckptlint.checkpoints.folder import Folder, Part, examined
from ckptlint.checkpoints.listing import Listing
from ckptlint.checkpoints.placed import Place, PlacedLayout, files, folders, number_of
from ckptlint.checkpoints.single_file import OneFile
from ckptlint.run import State

_STEP = re.compile(r"(?:.*[^\d.])?(\d+)")
_TEMPORARY = re.compile(r"(?:.*[^\d.])?(\d+)\.orbax-checkpoint-tmp(?:-\d+)?")
_FLAX = re.compile(r"(?:checkpoint_|ckpt_?)(\d+)")
_SURE = frozenset(("_CHECKPOINT_METADATA", "_METADATA", "commit_success.txt", "manifest.ocdbt"))


class OrbaxLayout(PlacedLayout):
    """Folders ``N`` or ``prefix_N`` of Orbax, and files ``checkpoint_N`` of flax."""

    name = "orbax"
    title = "Orbax / flax"

    def places(self, listing: Listing) -> Iterator[Place]:
        found: list[tuple[int, int, str]] = []
        for name in listing.directories():
            match, unfinished = _STEP.fullmatch(name), _TEMPORARY.fullmatch(name)
            step = number_of((unfinished or match)[1]) if unfinished or match else None  # type: ignore[index]
            if step is not None and (unfinished or len(found) < _MOST):
                found.append((step, 0 if unfinished else 1, name))
        found.sort(reverse=True)
        sure = {_form(name) for _, finished, name in found[:_ENOUGH] if finished and is_orbax(listing, name)}
        kept = [one for one in found if _form(one[2]) in sure or (not one[1] and _TEMPORARY.fullmatch(one[2]))]
        kept += [(step, 1, name) for name in listing.files() if (step := _flax_step(listing, name)) is not None]
        for step, _, name in sorted(kept, reverse=True):
            yield Place(name, step)
        if not kept and is_orbax(listing, ""):
            match = _STEP.fullmatch(listing.name)
            yield Place("", number_of(match[1]) if match else None)

    def judge(self, folder: Folder, place: Place, now: float | None) -> Checkpoint:
        info = folder.listing.files().get(place.path) if place.path else None
        if info is not None:
            one = OneFile(folder.listing, place.path, info, folder.deep)
            broken: tuple[str, ...] = (f"{place.path} is empty",) if info.size == 0 else ()
            broken += (
                (f"{place.path} holds nothing but zero bytes",) if not broken and _zeros(folder.listing, place.path) else ()
            )
            return examined(one, place.step, [Part(broken=broken, state=_STATE, unfinished=bool(broken))], now)
        return examined(folder, place.step, [_orbax(folder)], now, backend="Orbax")


_STATE = frozenset({State.MODEL, State.OPTIMIZER, State.PROGRESS})
_MOST = 100_000
_ENOUGH = 32


def _form(name: str) -> str:
    return re.sub(r"\d+", "#", name)


def is_orbax(listing: Listing, path: str) -> bool:
    """Whether a folder holds what Orbax writes."""
    names, inside = files(listing, path), folders(listing, path)
    if _SURE & set(names) and "trainer_state.json" not in names:
        return True
    return any(_SURE & set(files(listing, f"{path}/{name}" if path else name)) for name in inside[:4])


def _flax_step(listing: Listing, name: str) -> int | None:
    """The step of a file that flax wrote: a msgpack map without a suffix."""
    match = _FLAX.fullmatch(name)
    if match is None:
        return None
    try:
        head = listing.read(name, 0, 1)
    except OSError:
        return number_of(match[1])
    is_map = not head or head == b"\0" or 0x80 <= head[0] <= 0x8F or head[0] in (0xDE, 0xDF)
    return number_of(match[1]) if is_map else None


def _zeros(listing: Listing, path: str) -> bool:
    try:
        return not listing.read(path, 0, 64).strip(b"\0")
    except OSError:
        return False


def _orbax(folder: Folder) -> Part:
    if _TEMPORARY.fullmatch(folder.path.rpartition("/")[2]):
        return Part(broken=("the folder still has its temporary name: the save was interrupted",), unfinished=True)
    if not folder.tree:
        return Part(broken=("the folder is empty",), unfinished=True)
    broken = []
    if "_CHECKPOINT_METADATA" in folder.names:
        content = folder.json("_CHECKPOINT_METADATA")
        if isinstance(content, str):
            broken.append(content)
        elif content is not None and "commit_timestamp_nsecs" in content and content["commit_timestamp_nsecs"] is None:
            broken.append("_CHECKPOINT_METADATA says that the save was not committed")
    for name, info in folder.tree.items():
        last = name.rpartition("/")[2]
        if info.size == 0 and last in ("_METADATA", "_sharding", "manifest.ocdbt", "checkpoint"):
            broken.append(f"{name} is empty")
        elif last == "_METADATA" and isinstance(wrong := folder.json(name), str):
            broken.append(wrong)
    for name in folder.folders:
        inside = set(folder.inside(name))
        nested = folders(folder.listing, folder.at(name))
        if "_METADATA" in inside and not ({"manifest.ocdbt", "checkpoint"} & inside) and not nested:
            broken.append(f"{name}/ holds no arrays")
        if "d" in nested and "manifest.ocdbt" not in inside:
            broken.append(f"{name}/manifest.ocdbt is missing")
    if broken:
        return Part(broken=tuple(broken), unfinished=True)
    return Part(state=_STATE)
