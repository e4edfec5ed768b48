"""One checkpoint's folder while it is examined, and what its parts tell."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from ckptlint.checkpoints import integrity
from ckptlint.checkpoints.checkpoint import Checkpoint, Progress, Verdict
from ckptlint.checkpoints.listing import FileInfo, Listing, UnknownContent
from ckptlint.run import State

# A folder that lacks something and was written to less than this many seconds ago may still be being written.
LIVE_SECONDS = 300.0

# A file that is younger than the mark of completeness by more than this many seconds is of a later save.
RESAVED_SECONDS = 120.0

_FEW = 6
_MANY = 24  # of more files than this the first ones are examined, and of the others head and tail
_EXAMINED = 4


@dataclass(frozen=True, eq=False)
class Folder:
    """A folder below a listing. Names are relative to it and may lie in sub-folders."""

    listing: Listing
    path: str
    deep: bool = False

    def at(self, name: str) -> str:
        return f"{self.path}/{name}" if self.path and name else self.path or name

    @cached_property
    def tree(self) -> dict[str, FileInfo]:
        """Every file below the folder. Raises Unreachable."""
        return self.listing.tree(self.path)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The files that lie in the folder itself."""
        return tuple(name for name in self.tree if "/" not in name)

    @cached_property
    def folders(self) -> tuple[str, ...]:
        return self.listing.directories(self.path)

    @property
    def bytes(self) -> int:
        return sum(info.size for info in self.tree.values())

    @property
    def modified(self) -> float | None:
        return max((info.modified for info in self.tree.values() if info.modified is not None), default=None)

    def inside(self, folder: str) -> tuple[str, ...]:
        """The files right below a sub-folder, by their bare names."""
        return tuple(self.listing.files(self.at(folder)))

    def fault(self, name: str, *, ends: bool = False) -> str | None:
        """What is wrong with a file, as a sentence; None: it is whole, or its content is not known."""
        info = self.tree.get(name)
        if info is None:
            return f"{name} is missing"
        wrong = integrity.fault(self.listing, self.at(name), info, deep=self.deep, ends=ends)
        return f"{name} {wrong}" if wrong else None

    def faults(self, names: Iterable[str]) -> tuple[str, ...]:
        """What is wrong with files that are alike: of many, all but the first are judged by head and tail."""
        names = tuple(names)
        many = len(names) > _MANY
        found = (self.fault(name, ends=many and place >= _EXAMINED) for place, name in enumerate(names))
        return tuple(fault for fault in found if fault)

    def torch_fault(self, name: str) -> str | None:
        """The same for a file that torch.save wrote, whatever its name."""
        info = self.tree.get(name)
        if info is None or info.size == 0:
            return f"{name} is {'empty' if info else 'missing'}"
        try:
            integrity.torch_file(self.listing, self.at(name), info.size, deep=self.deep)
        except integrity.Broken as broken:
            return f"{name} {broken}"
        except UnknownContent:
            return None
        except OSError as error:
            return f"{name} {integrity.unreadable(error)}"
        return None

    def younger(self, mark: str, payload: Iterable[str]) -> str | None:
        """A file that is younger than ``mark``, which is written after it, while others are not: a later save is half done.

        A save into a folder that was there before leaves the old mark beside it until its end.
        """
        done = self.tree.get(mark)
        times = [(self.tree[name].modified, name) for name in payload if name in self.tree]
        if done is None or done.modified is None or any(modified is None for modified, _ in times):
            return None
        later = sorted(name for modified, name in times if (modified or 0.0) > done.modified + RESAVED_SECONDS)
        return later[0] if later and len(later) < len(times) else None

    def text(self, name: str) -> str | None:
        """A small file's text, without surrounding blanks; None where the listing does not know it.

        Raises:
            OSError: it cannot be read.
        """
        try:
            return self.listing.read(self.at(name), 0, 4096).decode("utf-8", "replace").strip()
        except UnknownContent:
            return None

    def json(self, name: str) -> dict[str, object] | str | None:
        """A JSON file's object, or what is wrong with it as a sentence; None where the listing does not know its content."""
        info = self.tree.get(name)
        if info is None or info.size == 0:
            return f"{name} is {'empty' if info else 'missing'}"
        try:
            return integrity.json_object(self.listing, self.at(name))
        except UnknownContent:
            return None
        except integrity.Broken as broken:
            return f"{name} {broken}"
        except OSError as error:
            return f"{name} {integrity.unreadable(error)}"

    def tensors(self, name: str) -> dict[str, object] | str | None:
        """A safetensors file's header, or what is wrong with the file; None where the listing does not know its content."""
        info = self.tree[name]
        if info.size == 0:
            return f"{name} is empty"
        try:
            return integrity.safetensors_header(self.listing, self.at(name), info.size)
        except integrity.Broken as broken:
            return f"{name} {broken}"
        except UnknownContent:
            return None
        except OSError as error:
            return f"{name} {integrity.unreadable(error)}"

    def old_torch(self, names: Iterable[str]) -> tuple[str, ...]:
        """Which files are in torch's old format."""
        return tuple(name for name in names if integrity.is_old_torch(self.listing, self.at(name)))


@dataclass(frozen=True)
class Part:
    """What one part of a checkpoint tells.

    ``broken``: a start would fail on it or take up something wrong. ``absent``: a start would silently go on without it.
    ``remarks``: worth knowing, but a start takes the checkpoint up as it is.
    """

    broken: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    state: frozenset[State] = frozenset()
    world_size: int | None = None
    unfinished: bool = False  # what is missing is what a save that is still going on would write next
    progress: Progress | None = None


def resaved(name: str | None, mark: str, likewise: bool) -> Part:
    """What follows where ``Folder.younger`` found a file.

    ``likewise``: the folder before this one shows the same, or there is none. Copying changes times too, of all folders alike,
    so that only one that stands out is called damaged.
    """
    if name is None:
        return Part()
    why = f"{name} is younger than {mark}, which is written after it: a later save into this folder was interrupted"
    return Part(remarks=(f"{why}, or it was copied so",)) if likewise else Part(broken=(why,), unfinished=True)


def examined(
    folder: Folder,
    step: int | None,
    parts: Iterable[Part],
    now: float | None,
    *,
    backend: str = "plain",
    same_world_size: bool = False,
    adapter: bool | None = None,
    parallel: Mapping[str, int] | None = None,
) -> Checkpoint:
    """The checkpoint that a folder is, by what its parts tell."""
    parts = tuple(parts)
    modified = folder.modified
    judged, reasons = verdict(parts, modified, now)
    progress = next((part.progress for part in parts if part.progress is not None), Progress(step))
    return Checkpoint(
        folder.path,
        step if step is not None else progress.step,
        judged,
        reasons,
        next((part.world_size for part in parts if part.world_size is not None), None),
        folder.bytes,
        modified,
        frozenset().union(*(part.state for part in parts)),
        progress,
        backend,
        same_world_size,
        adapter,
        parallel or {},
    )


def missing_ranks(name: str, have: Iterable[int], world: int) -> tuple[str, ...]:
    """A sentence on the files ``name`` (with ``{}`` for the rank) of which some are not there; () where all are."""
    have = set(have)
    lost = [rank for rank in range(min(world, 100_000)) if rank not in have]
    if not lost:
        return ()
    more = f", as those of {len(lost) - 1} more ranks" if len(lost) > 1 else ""
    return (f"{name.format(lost[0])} is missing{more}",)


def verdict(parts: Iterable[Part], modified: float | None, now: float | None) -> tuple[Verdict, tuple[str, ...]]:
    """The verdict on a checkpoint of these parts, and its reasons."""
    parts = tuple(parts)
    broken = _few([reason for part in parts for reason in part.broken])
    absent = _few([reason for part in parts for reason in part.absent])
    remarks = _few([reason for part in parts for reason in part.remarks])
    if any(part.unfinished for part in parts) and is_young(modified, now):
        young = "it was written to in the last minutes, so a save may be going on"
        return Verdict.IN_PROGRESS, (*broken, *absent, young, *remarks)
    if broken:
        return Verdict.DAMAGED, (*broken, *absent, *remarks)
    if absent:
        return Verdict.WEIGHTS_ONLY, (*absent, *remarks)
    return Verdict.COMPLETE, remarks


def _few(reasons: list[str]) -> tuple[str, ...]:
    """The first reasons of a long list; a disk that filled up under 512 ranks gives hundreds of the same."""
    if len(reasons) <= _FEW:
        return tuple(reasons)
    return (*reasons[:_FEW], f"… and {len(reasons) - _FEW} more like these")


def is_young(modified: float | None, now: float | None) -> bool:
    """Whether a time lies within ``LIVE_SECONDS`` of now (either side: clocks of machines differ)."""
    if modified is None:
        return False
    return abs((time.time() if now is None else now) - modified) < LIVE_SECONDS


def number(value: object) -> float | None:
    """A JSON number that can be one of steps or epochs; None for anything else."""
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 1e15 else None


def whole_number(value: object) -> int | None:
    """The same for a whole number."""
    return value if isinstance(value, int) and number(value) is not None else None
