"""The small file in which a framework writes down its newest checkpoint: evidence, not truth. What is complete decides."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ckptlint.checkpoints import integrity
from ckptlint.checkpoints.checkpoint import Checkpoint, Notice, Verdict, newest_complete
from ckptlint.checkpoints.listing import Listing, UnknownContent
from ckptlint.checkpoints.placed import number_of

MEGATRON = "latest_checkpointed_iteration.txt"  # verl, MindSpeed-LLM and MindSpeed-MM write one of the same name
WRONG = "tracker-wrong"

# A tracker must be younger than a checkpoint's last file by more than this many seconds to have been written in a later run.
_LATER_SECONDS = 60.0


@dataclass(frozen=True)
class Tracker:
    """``name``: its path. ``text``: what it says; None where it is missing or its content is not known.

    ``fault``: why it says nothing ("" where it does).
    """

    name: str
    text: str | None
    modified: float | None = None
    fault: str = ""

    @property
    def step(self) -> int | None:
        return number_of(self.text)


def read(listing: Listing, name: str) -> Tracker:
    """The tracker of a directory."""
    parent, _, base = name.rpartition("/")
    info = listing.files(parent).get(base)
    if info is None:
        return Tracker(name, None, None, "is missing")
    try:
        text = listing.read(name, 0, 4096).decode("utf-8", "replace").strip()
    except UnknownContent:
        return Tracker(name, None, info.modified)
    except OSError as error:
        return Tracker(name, None, info.modified, integrity.unreadable(error))
    if not text.strip("\0"):
        return Tracker(name, "", info.modified, "holds nothing but zero bytes" if text else "is empty")
    return Tracker(name, text, info.modified)


def superseded(checkpoint: Checkpoint, tracker: Tracker) -> Checkpoint:
    """The checkpoint, marked where a later run has set the tracker back to a lower step since it was written."""
    if tracker.step is None or checkpoint.step is None or checkpoint.step <= tracker.step:
        return checkpoint
    if tracker.modified is None or checkpoint.modified is None or checkpoint.modified + _LATER_SECONDS >= tracker.modified:
        return checkpoint
    if checkpoint.verdict is not Verdict.COMPLETE:
        return checkpoint
    why = f"{tracker.name} was set to {tracker.step} after it was written, so it belongs to an earlier run"
    return replace(checkpoint, superseded=True, reasons=(why, *checkpoint.reasons))


def notices(tracker: Tracker, checkpoints: tuple[Checkpoint, ...], otherwise: str) -> Iterator[Notice]:
    """What is wrong with a tracker that holds a step, beside these checkpoints.

    ``otherwise``: what the framework's own start does where the tracker says nothing.
    """
    best = newest_complete(checkpoints)
    if best is None or best.step is None or (tracker.text is None and not tracker.fault):
        return
    if tracker.fault:
        yield Notice(WRONG, f"{tracker.name} {tracker.fault}, so that {otherwise}, although step {best.step} is complete")
    elif tracker.step is None:
        yield Notice(WRONG, f"{tracker.name} says {(tracker.text or '')[:40]!r}, but step {best.step} is complete")
    elif tracker.step < best.step:
        lost = best.step - tracker.step
        yield Notice(
            WRONG, f"{tracker.name} says {tracker.step}, but {best.step} is complete: {lost} steps would be done again"
        )
    elif tracker.step > best.step:
        named = next((one for one in checkpoints if one.step == tracker.step), None)
        why = f"is {named.verdict.value}" if named else "is not there"
        yield Notice(WRONG, f"{tracker.name} says {tracker.step}, which {why}; the newest complete step is {best.step}")
