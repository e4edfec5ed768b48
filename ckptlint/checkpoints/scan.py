"""What lies in a directory: whose layout it is, what a restart would take, and what a user should know before it does."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from ckptlint.checkpoints.checkpoint import Checkpoint, Layout, Notice, Verdict, newest_complete
from ckptlint.checkpoints.listing import Listing

# A higher step counts as written earlier only if it is this many seconds older: copies and slow saves stay below it.
_BACKWARDS_SECONDS = 60.0


@dataclass(frozen=True)
class Scan:
    """The checkpoints of one layout in one directory, newest first, and the one a restart should take (None: there is none)."""

    directory: str
    layout: Layout
    checkpoints: tuple[Checkpoint, ...]
    restart: Checkpoint | None
    notices: tuple[Notice, ...]

    @property
    def title(self) -> str:
        return self.layout.title


@lru_cache(maxsize=1)
def layouts() -> tuple[Layout, ...]:
    """One instance of every layout that can be told from the directory alone."""
    from ckptlint.checkpoints.accelerate import AccelerateLayout
    from ckptlint.checkpoints.dcp import DCPLayout
    from ckptlint.checkpoints.deepspeed_engine import DeepSpeedLayout
    from ckptlint.checkpoints.huggingface import HuggingFaceLayout
    from ckptlint.checkpoints.lightning import LightningLayout
    from ckptlint.checkpoints.llamafactory_v1 import LlamaFactoryV1Layout
    from ckptlint.checkpoints.megatron import MegatronLayout, MindSpeedRLLayout
    from ckptlint.checkpoints.megatron_swift import MegatronSwiftLayout
    from ckptlint.checkpoints.mindspeed_fsdp2 import MindSpeedFSDP2Layout
    from ckptlint.checkpoints.mindspore import MindFormersLayout, MindSporeLayout
    from ckptlint.checkpoints.ms_swift import MsSwiftLayout
    from ckptlint.checkpoints.orbax import OrbaxLayout
    from ckptlint.checkpoints.rank_files import RankFilesLayout
    from ckptlint.checkpoints.single_file import SingleFileLayout
    from ckptlint.checkpoints.verl import VerlLayout

    return (
        HuggingFaceLayout(),
        LlamaFactoryV1Layout(),
        MsSwiftLayout(),
        VerlLayout(),
        MegatronLayout(),
        MindSpeedRLLayout(),
        MegatronSwiftLayout(),
        MindSpeedFSDP2Layout(),
        DeepSpeedLayout(),
        AccelerateLayout(),
        DCPLayout(),
        LightningLayout(),
        MindSporeLayout(),
        MindFormersLayout(),
        RankFilesLayout(),
        OrbaxLayout(),
        SingleFileLayout(),
    )


def scan(listing: Listing, *, deep: bool = False, now: float | None = None) -> tuple[Scan, ...]:
    """One result for each layout that the directory holds checkpoints of; () where it holds none that are known.

    Raises:
        Unreachable: the directory cannot be listed.
    """
    return tuple(scan_layout(layout, listing, deep=deep, now=now) for layout in layouts() if layout.recognises(listing))


def scan_layout(layout: Layout, listing: Listing, *, deep: bool = False, now: float | None = None) -> Scan:
    """The checkpoints of one layout, with what follows from the disk alone.

    Raises:
        Unreachable: the directory cannot be listed.
    """
    checkpoints = layout.scan(listing, deep=deep, now=now)
    notices = tuple(disk_notices(layout, listing, checkpoints))
    return Scan(listing.root, layout, checkpoints, newest_complete(checkpoints), notices)


def disk_notices(layout: Layout, listing: Listing, checkpoints: tuple[Checkpoint, ...]) -> Iterator[Notice]:
    """The notices that need no run: names as in the rule catalogue."""
    restart = newest_complete(checkpoints)
    yield from layout.notices(listing, checkpoints)
    yield from _unfinished(listing, checkpoints)
    yield from _superseded(listing, checkpoints)
    if restart is None:
        yield from _nothing(listing, checkpoints)
        return
    yield from _newer(listing, checkpoints, restart)
    yield from _window(listing, checkpoints, restart)
    yield from _mixed(layout, listing, checkpoints, restart)


def shown(listing: Listing, checkpoint: Checkpoint) -> str:
    """How a message names a checkpoint: its folder's name."""
    return checkpoint.path.rpartition("/")[2] or listing.name or listing.root


def _unfinished(listing: Listing, checkpoints: Iterable[Checkpoint]) -> Iterator[Notice]:
    for checkpoint in checkpoints:
        if checkpoint.verdict is Verdict.IN_PROGRESS:
            why = checkpoint.reasons[0] if checkpoint.reasons else "it is not whole"
            text = (
                f"{shown(listing, checkpoint)} was written to in the last minutes and is not whole ({why}): a run may be saving"
            )
            yield Notice("live-run", text)


def _superseded(listing: Listing, checkpoints: Iterable[Checkpoint]) -> Iterator[Notice]:
    for checkpoint in checkpoints:
        if checkpoint.superseded:
            why = checkpoint.reasons[0] if checkpoint.reasons else "a later run has written into this directory"
            yield Notice("mixed-runs", f"{shown(listing, checkpoint)} is passed over: {why}")
            return


def _nothing(listing: Listing, checkpoints: tuple[Checkpoint, ...]) -> Iterator[Notice]:
    if not checkpoints:
        return
    newest = checkpoints[0]
    why = f": {newest.reasons[0]}" if newest.reasons else ""
    several = f"none of the {len(checkpoints)} checkpoints is" if len(checkpoints) > 1 else "the only checkpoint is not"
    yield Notice("nothing-resumable", f"{several} complete ({shown(listing, newest)}{why}); the next run overwrites them")
    yield from _weights(listing, checkpoints)


def _newer(listing: Listing, checkpoints: Iterable[Checkpoint], restart: Checkpoint) -> Iterator[Notice]:
    newer = [checkpoint for checkpoint in checkpoints if _step(checkpoint) > _step(restart)]
    for checkpoint in newer:
        if checkpoint.verdict is Verdict.DAMAGED:
            why = f": {checkpoint.reasons[0]}" if checkpoint.reasons else ""
            text = f"{shown(listing, checkpoint)} is newer than {shown(listing, restart)} but damaged{why}"
            yield Notice("newer-damaged", text)
    yield from _weights(listing, newer)


def _weights(listing: Listing, checkpoints: Iterable[Checkpoint]) -> Iterator[Notice]:
    for checkpoint in checkpoints:
        if checkpoint.verdict is Verdict.WEIGHTS_ONLY:
            why = "; ".join(checkpoint.reasons)
            yield Notice("weights-only-skipped", f"{shown(listing, checkpoint)} cannot be resumed exactly: {why}")


def _window(listing: Listing, checkpoints: tuple[Checkpoint, ...], restart: Checkpoint) -> Iterator[Notice]:
    """Only one is left to go back to, although the run must have saved before (or another one lies there and is of no use)."""
    if sum(checkpoint.complete for checkpoint in checkpoints) != 1:
        return
    interval = restart.progress.save_steps
    saved_before = interval is not None and 1 <= interval < _step(restart)
    if saved_before or len(checkpoints) > 1:
        text = f"{shown(listing, restart)} is the only checkpoint a restart can take: if it is lost, the run begins anew"
        yield Notice("retention-window", text)


def _mixed(layout: Layout, listing: Listing, checkpoints: Iterable[Checkpoint], restart: Checkpoint) -> Iterator[Notice]:
    """Of two neighbours by step the higher is older, and their logs (where they can be read) do not belong together."""
    dated = [c for c in checkpoints if c.complete and c.step is not None and c.modified is not None]
    dated.sort(key=_step)
    for lower, higher in pairwise(dated):
        earlier, later = higher.modified or 0.0, lower.modified or 0.0
        if earlier + _BACKWARDS_SECONDS < later and not layout.same_run(listing, lower, higher):
            stale, fresh = shown(listing, higher), shown(listing, lower)
            effect = ", and a restart takes the older attempt's" if higher == restart else ""
            why = "a later attempt began again at a lower step, so two attempts lie in one directory"
            yield Notice("mixed-runs", f"{stale} is older than {fresh}: {why}{effect}")
            return


def _step(checkpoint: Checkpoint) -> int:
    return checkpoint.step if checkpoint.step is not None else -1
