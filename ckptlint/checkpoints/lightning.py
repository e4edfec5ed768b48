"""The checkpoints of (PyTorch) Lightning: files ``*.ckpt``, or folders of that name under FSDP and DeepSpeed.

pytorch/trainer/connectors/checkpoint_connector.py ``dump_checkpoint`` (1.0 to 2.6) writes ``epoch``, ``global_step`` and
``pytorch-lightning_version`` first, and ``optimizer_states``, ``lr_schedulers`` and ``loops`` unless weights alone are saved.
Neither the time nor the name tells which is newest: ``last-v1`` is a second life's, whose steps began again. The step inside
does.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial

from ckptlint.checkpoints import deepspeed, distributed, integrity, pickles
from ckptlint.checkpoints.checkpoint import Checkpoint, Progress
from ckptlint.checkpoints.folder import Folder, Part, examined, number, whole_number
from ckptlint.checkpoints.listing import FileInfo, Listing
from ckptlint.checkpoints.placed import Place, PlacedLayout, files, folders, number_of, numbered
from ckptlint.checkpoints.single_file import OneFile
from ckptlint.run import State

_VERSION = b"pytorch-lightning_version"
_NAMED = re.compile(r"(?:.*[^\w])?(?:epoch|step)=\d+.*\.ckpt|last(?:-v\d+)?\.ckpt|hpc_ckpt_\d+\.ckpt|.*-last\.ckpt")
_OWN_NAME = re.compile(r"(?:^|[^\w])(?:epoch|step)=\d+")
_STEP = re.compile(r"step=(\d+)")
_VERSION_FOLDER = re.compile(r"version_(\d+)")
_HEAD = 400  # bytes of a file in which its first keys lie
_MOST = 2000  # files of which the step is read


class LightningLayout(PlacedLayout):
    """Files and folders ``*.ckpt``."""

    name = "lightning"
    title = "Lightning"

    def places(self, listing: Listing) -> Iterator[Place]:
        names = _names(listing, "") or [name for version in _versions(listing) for name in _names(listing, version)]
        steps = {name: _step(listing, name) for name in names[:_MOST]}
        for name in sorted(steps, key=partial(_order, listing, steps), reverse=True):
            yield Place(name, steps[name])

    def judge(self, folder: Folder, place: Place, now: float | None) -> Checkpoint:
        info = _info(folder.listing, place.path)
        if info is None:
            return _folder(folder, place, now)
        return _file(folder.listing, place, info, folder.deep, now)


def _order(listing: Listing, steps: dict[str, int | None], name: str) -> tuple[int, float, str]:
    """By step, and of two at one step the one written last (``last.ckpt`` is a copy of the newest)."""
    step, info = steps[name], _info(listing, name)
    return step if step is not None else -1, (info.modified if info else None) or 0.0, name


def _info(listing: Listing, path: str) -> FileInfo | None:
    parent, _, name = path.rpartition("/")
    return files(listing, parent).get(name)


def _names(listing: Listing, below: str) -> list[str]:
    """The checkpoints of one directory, files and folders."""
    names = [*files(listing, below), *(name for name in folders(listing, below) if name.endswith(".ckpt"))]
    paths = [distributed.under(below, name) for name in names if name.endswith(".ckpt")]
    return [path for path in paths if (is_lightning(listing, path) if _info(listing, path) else _is_folder(listing, path))]


def _versions(listing: Listing) -> list[str]:
    """Where a logger makes a new directory at each start: version_N/checkpoints, also below lightning_logs."""
    found = [version for below in ("", "lightning_logs") for _, version in numbered(listing, _VERSION_FOLDER, below)]
    return [f"{version}/checkpoints" for version in found]


def is_lightning(listing: Listing, name: str) -> bool:
    """Whether a file is Lightning's: by its name where that is of Lightning's own form, else by its first keys."""
    if not name.endswith(".ckpt"):
        return False
    if _OWN_NAME.search(name):
        return True
    start = pickles.head(listing, name, _HEAD)
    if start:
        return _VERSION in start
    return bool(_NAMED.fullmatch(name.rpartition("/")[2])) and not integrity.is_old_torch(listing, name)


def _is_folder(listing: Listing, name: str) -> bool:
    names = files(listing, name)
    return "meta.pt" in names or distributed.is_dcp(names) or "latest" in names or "checkpoint" in folders(listing, name)


def _step(listing: Listing, name: str) -> int | None:
    match = _STEP.search(name)
    if match:
        return number_of(match[1])
    inside = integrity.values(pickles.head(listing, name, _HEAD), ("global_step",)).get("global_step")
    return whole_number(inside)


def _file(listing: Listing, place: Place, info: FileInfo, deep: bool, now: float | None) -> Checkpoint:
    folder = OneFile(listing, place.path, info, deep)
    fault = folder.torch_fault(place.path)
    if fault:
        return examined(folder, place.step, [Part(broken=(fault,), unfinished=True)], now)
    found = pickles.top(listing, place.path, info.size)
    if found is None:
        held = frozenset({State.MODEL, State.OPTIMIZER, State.PROGRESS})
        return examined(folder, place.step, [Part(state=held)], now)
    return examined(folder, place.step, [_told(found, place.step)], now)


_KEYS = {
    "state_dict": State.MODEL,
    "optimizer_states": State.OPTIMIZER,
    "lr_schedulers": State.SCHEDULER,
    "loops": State.PROGRESS,
    "global_step": State.PROGRESS,
    "callbacks": State.CALLBACKS,
}


def _told(found: pickles.Top, step: int | None) -> Part:
    keys = found.items
    state = {held for key, held in _KEYS.items() if key in keys}
    absent = []
    if found.whole and "optimizer_states" not in keys:
        absent.append("it holds the weights alone (save_weights_only): no optimizer state")
    if found.whole and "state_dict" not in keys:
        absent.append("it holds no model weights")
    epoch = number(keys.get("epoch"))
    return Part(absent=tuple(absent), state=frozenset(state), progress=Progress(step, epoch))


def _folder(folder: Folder, place: Place, now: float | None) -> Checkpoint:
    """FSDP: meta.pt and a DCP folder. DeepSpeed: a tag ``checkpoint`` and ``latest``."""
    if "latest" in folder.names or "checkpoint" in folder.folders:
        tag, wrong = deepspeed.tag(folder)
        part = Part(broken=(wrong,), unfinished=True) if tag is None else deepspeed.states(folder, tag)
        return examined(folder, place.step, [part], now, backend=deepspeed.stage(folder), same_world_size=True)
    held = frozenset({State.MODEL, State.OPTIMIZER})
    parts = [distributed.dcp(folder, "", held)]
    fault = folder.torch_fault("meta.pt")
    if fault:
        parts.append(Part(broken=(fault,), unfinished=True))
        return examined(folder, place.step, parts, now, backend="FSDP sharded")
    found = pickles.content(folder.listing, folder.at("meta.pt"), folder.tree["meta.pt"].size) or {}
    step = whole_number(found.get("global_step"))
    parts.append(Part(state=frozenset({State.PROGRESS}), progress=Progress(step, number(found.get("epoch")))))
    data = distributed.metadata(folder)
    if data is not None and b"optim" not in data:
        parts.append(Part(absent=("it holds the weights alone: no optimizer state",)))
    return examined(folder, place.step if place.step is not None else step, parts, now, backend="FSDP sharded")
