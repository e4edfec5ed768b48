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
_OWN = frozenset(("_CHECKPOINT_METADATA", "commit_success.txt"))


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
        kept.sort(reverse=True)
        for at, (step, _, name) in enumerate(kept):
            yield Place(name, step, tuple(older for _, _, older in kept[at + 1 : at + 2]))
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
        return examined(folder, place.step, [_committed(folder, place), _orbax(folder)], now, backend="Orbax")


_STATE = frozenset({State.MODEL, State.OPTIMIZER, State.PROGRESS})
_MOST = 100_000
_ENOUGH = 32


def _form(name: str) -> str:
    return re.sub(r"\d+", "#", name)


def is_orbax(listing: Listing, path: str) -> bool:
    """Whether a folder is a checkpoint of Orbax: its own marks, or those of items in it that are no checkpoints themselves."""
    names = set(files(listing, path))
    if (
        path.rpartition("/")[2].startswith("ocdbt.process_")
        or listing.name.startswith("ocdbt.process_")
        or "trainer_state.json" in names
    ):
        return False
    if _OWN & names or {"_METADATA", "manifest.ocdbt"} <= names:
        return True
    inside = (set(files(listing, f"{path}/{name}" if path else name)) for name in folders(listing, path)[:4])
    return any("_METADATA" in each and not _OWN & each for each in inside)


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


_COMMITTED = "commit_success.txt"


def _committed(folder: Folder, place: Place) -> Part:
    """Where a folder cannot be renamed this file is written last; then the folder before has one."""
    if _COMMITTED in folder.names or not any(_COMMITTED in files(folder.listing, older) for older in place.older):
        return Part()
    return Part(broken=(f"{_COMMITTED} is missing: the save did not finish",), unfinished=True)


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
    for name, info in folder.tree.items():
        last = name.rpartition("/")[2]
        if info.size == 0 and last in ("_METADATA", "_sharding", "manifest.ocdbt", "checkpoint"):
            broken.append(f"{name} is empty")
        elif last == "_METADATA" and isinstance(wrong := folder.json(name), str):
            broken.append(wrong)
    for name in ("", *folder.folders):
        broken += _arrays(folder, name)
    if broken:
        return Part(broken=tuple(broken), unfinished=True)
    return Part(state=_STATE)


def _arrays(folder: Folder, item: str) -> list[str]:
    """An item's arrays: manifest.ocdbt and the folder ``d`` belong together. Other files in it a restore does without."""
    inside, nested = set(files(folder.listing, folder.at(item))), folders(folder.listing, folder.at(item))
    label = f"{item}/" if item else ""
    faults = []
    if item and "_METADATA" in inside and not ({"manifest.ocdbt", "checkpoint"} & inside) and not nested:
        faults.append(f"{label} holds no arrays")
    if "d" in nested and "manifest.ocdbt" not in inside:
        faults.append(f"{label}manifest.ocdbt is missing")
    if "manifest.ocdbt" in inside and not files(folder.listing, folder.at(f"{label}d")):
        faults.append(f"{label}d/ is missing or empty: it holds the arrays")
    return faults
