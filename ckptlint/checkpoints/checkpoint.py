"""One checkpoint on disk, and what a layout answers about it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import ClassVar

from ckptlint.checkpoints.listing import Listing
from ckptlint.run import State


class Verdict(str, Enum):
    """What a restart can make of a checkpoint. Weights only: it would go on silently without optimizer, schedule or step."""

    COMPLETE = "complete"
    WEIGHTS_ONLY = "weights-only"
    DAMAGED = "damaged"
    IN_PROGRESS = "in-progress"


@dataclass(frozen=True)
class Progress:
    """How far the run was when it wrote this checkpoint, and the intervals and totals it was running with."""

    step: int | None = None
    epoch: float | None = None
    total_steps: int | None = None
    total_epochs: float | None = None
    save_steps: float | None = None


@dataclass(frozen=True)
class Checkpoint:
    """One checkpoint below a listing's root.

    ``path`` is relative to the root ("" where the root is the checkpoint itself), ``reasons`` say in words why it is not
    complete, or what to know about it where it is. ``bytes`` counts all its files; ``modified`` is the newest of their times.
    ``backend`` says who wrote the optimizer ("plain", "DeepSpeed ZeRO-2", "FSDP sharded"); ``same_world_size``: it can only be
    taken up by as many processes as wrote it; ``adapter``: the weights are an adapter's (None: they are not there to tell).
    ``parallel`` is the model's partition where the checkpoint tells ("tensor": 2, "pipeline": 4); ``superseded``: it is an
    earlier run's (or attempt's), left in a directory that a later one has written into since, so a restart does not take it.
    """

    path: str
    step: int | None
    verdict: Verdict
    reasons: tuple[str, ...] = ()
    world_size: int | None = None
    bytes: int = 0
    modified: float | None = None
    state: frozenset[State] = frozenset()
    progress: Progress = field(default_factory=Progress)
    backend: str = "plain"
    same_world_size: bool = False
    adapter: bool | None = None
    parallel: Mapping[str, int] = field(default_factory=dict)
    superseded: bool = False

    @property
    def complete(self) -> bool:
        """Whether a restart can take it."""
        return self.verdict is Verdict.COMPLETE and not self.superseded


@dataclass(frozen=True)
class Notice:
    """A fact of one start, not a fault of the file. Names are fixed in the rule catalogue ("Notices of a resume plan")."""

    name: str
    message: str


class Layout(ABC):
    """How one family of frameworks lays its checkpoints out."""

    name: ClassVar[str]
    title: ClassVar[str]

    @abstractmethod
    def recognises(self, listing: Listing) -> bool:
        """Whether the directory holds checkpoints of this layout, or is one."""

    @abstractmethod
    def scan(self, listing: Listing, *, deep: bool = False, now: float | None = None) -> tuple[Checkpoint, ...]:
        """Every checkpoint, newest (highest step) first. Never unpickles. ``deep`` also verifies checksums (reads all bytes).

        ``now``: the time by which a young, unfinished folder counts as being written; default: the clock.
        """

    def walk(self, listing: Listing, *, deep: bool = False, now: float | None = None) -> Iterator[Checkpoint]:
        """The same one by one, newest first: whoever stops at the first complete one leaves the older ones unread."""
        yield from self.scan(listing, deep=deep, now=now)

    def same_run(self, listing: Listing, one: Checkpoint, other: Checkpoint) -> bool | None:
        """Whether two checkpoints surely belong (True) or surely do not belong (False) to one course of training."""
        return None

    def notices(self, listing: Listing, checkpoints: tuple[Checkpoint, ...]) -> Iterator[Notice]:
        """What this layout's own marks on disk (a tracker, leftovers) say about these checkpoints; most have nothing to say."""
        yield from ()


def newest_complete(checkpoints: Iterable[Checkpoint]) -> Checkpoint | None:
    """What a restart should take: the highest step among the complete ones."""
    whole = [checkpoint for checkpoint in checkpoints if checkpoint.complete]
    return max(whole, key=lambda checkpoint: checkpoint.step if checkpoint.step is not None else -1, default=None)
