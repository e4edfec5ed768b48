"""One checkpoint on disk, and what a layout answers about it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum
from typing import ClassVar

from ckptlint.checkpoints.listing import Listing
from ckptlint.run import State


class Verdict(str, Enum):
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

    ``path`` is relative to the root ("" where the root is the checkpoint itself), ``reasons`` say in words why it is not complete,
    or what to know about it where it is. ``bytes`` counts all its files; ``modified`` is the newest of their times.
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

    @property
    def complete(self) -> bool:
        return self.verdict is Verdict.COMPLETE


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


def newest_complete(checkpoints: Iterable[Checkpoint]) -> Checkpoint | None:
    """What a restart should take: the highest step among the complete ones."""
    whole = [checkpoint for checkpoint in checkpoints if checkpoint.complete]
    return max(whole, key=lambda checkpoint: checkpoint.step if checkpoint.step is not None else -1, default=None)
