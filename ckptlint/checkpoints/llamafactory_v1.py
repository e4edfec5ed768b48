"""The checkpoints of LLaMA-Factory's v1 trainer (``USE_V1=1``).

LLaMA-Factory v1/core/utils/checkpoint.py writes, in order: metadata.json, model/ and optimizer/, scheduler.pt,
dataloader/rank_R.pt, rng_state/rank_R.pt, and after a barrier the empty file CHECKPOINT_COMPLETE. Its ``auto`` takes the newest
folder with that file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ckptlint.checkpoints import deepspeed, integrity
from ckptlint.checkpoints.checkpoint import Checkpoint, Layout, Progress, Verdict
from ckptlint.checkpoints.folder import Folder, Part, number, verdict, whole_number
from ckptlint.checkpoints.listing import Listing, Unreachable
from ckptlint.run import State

MARKER = "CHECKPOINT_COMPLETE"
_CHECKPOINT = re.compile(r"checkpoint-(\d+)")
_RANK = re.compile(r"rank_(\d+)\.pt")


class LlamaFactoryV1Layout(Layout):
    """Folders ``checkpoint-N`` with metadata.json and, once they are finished, CHECKPOINT_COMPLETE."""

    name = "llamafactory-v1"
    title = "LLaMA-Factory v1"

    def recognises(self, listing: Listing) -> bool:
        return next(_places(listing), None) is not None

    def scan(self, listing: Listing, *, deep: bool = False, now: float | None = None) -> tuple[Checkpoint, ...]:
        return tuple(self.walk(listing, deep=deep, now=now))

    def walk(self, listing: Listing, *, deep: bool = False, now: float | None = None) -> Iterator[Checkpoint]:
        for path, step in _places(listing):
            folder = Folder(listing, path, deep)
            try:
                yield _judged(folder, step, now)
            except Unreachable as error:
                yield Checkpoint(path, step, Verdict.DAMAGED, (str(error),))


def _places(listing: Listing) -> Iterator[tuple[str, int | None]]:
    matches = [match for name in listing.directories() if (match := _CHECKPOINT.fullmatch(name))]
    numbered = sorted(((int(match[1]), match[0]) for match in matches), reverse=True)
    mine = [(name, step) for step, name in numbered if _is_v1(listing, name)]
    if mine or matches:
        yield from mine
    elif _is_v1(listing, ""):
        match = _CHECKPOINT.fullmatch(listing.name)
        yield "", int(match[1]) if match else None


def _is_v1(listing: Listing, path: str) -> bool:
    try:
        names, folders = listing.files(path), listing.directories(path)
    except Unreachable:
        return False
    if "trainer_state.json" in names or ".metadata" in names or "common.pt" in names:  # the latter are Megatron's
        return False
    return MARKER in names or ("metadata.json" in names and (not folders or bool(_FOLDERS & set(folders)) or "latest" in names))


_FOLDERS = frozenset(("model", "optimizer", "dataloader", "rng_state", "pytorch_model"))


def _judged(folder: Folder, step: int | None, now: float | None) -> Checkpoint:
    metadata = _metadata(folder, step)
    under_deepspeed = "latest" in folder.names or "pytorch_model" in folder.folders
    parts = [_marker(folder), metadata]
    if under_deepspeed:
        parts += [_deepspeed(folder)]
    else:
        parts += [_model(folder), _optimizer(folder), _scheduler(folder), _ranks(folder, "rng_state", State.RNG)]
    data = _ranks(folder, "dataloader", State.DATA)
    parts.append(data)
    modified = folder.modified
    judged, reasons = verdict(parts, modified, now)
    progress = metadata.progress or Progress(step)
    return Checkpoint(
        folder.path,
        step if step is not None else progress.step,
        judged,
        reasons,
        data.world_size,
        folder.bytes,
        modified,
        frozenset().union(*(part.state for part in parts)),
        progress,
        deepspeed.stage(folder) if under_deepspeed else "FSDP sharded" if ".metadata" in folder.inside("model") else "plain",
        under_deepspeed,
        any(name.startswith("adapter_") for name in folder.inside("model")) if "model" in folder.folders else None,
    )


def _marker(folder: Folder) -> Part:
    if MARKER in folder.names:
        return Part()
    return Part(broken=(f"{MARKER} is missing: the save did not finish",), unfinished=True)


def _metadata(folder: Folder, step: int | None) -> Part:
    content = folder.json("metadata.json")
    if isinstance(content, str):
        return Part(broken=(content,), unfinished=True)
    if content is None:
        return Part(state=frozenset({State.PROGRESS}), progress=Progress(step))
    at, epoch, total = (content.get(key) for key in ("global_step", "epoch", "num_training_steps"))
    progress = Progress(whole_number(at), number(epoch), whole_number(total))
    if progress.step is None or progress.epoch is None:
        return Part(broken=("metadata.json does not say which step and epoch it is of",), progress=progress)
    if step is not None and progress.step != step:
        why = f"metadata.json is of step {progress.step}, not {step}: the folder was renamed, or holds files of two saves"
        return Part(broken=(why,), progress=progress)
    return Part(state=frozenset({State.PROGRESS}), progress=progress)


def _model(folder: Folder) -> Part:
    """Hugging Face weights, or a DCP folder under FSDP. The trainer reads every weight file it finds there."""
    inside = folder.inside("model")
    if ".metadata" in inside or any(name.endswith(".distcp") for name in inside):
        fault = integrity.dcp_fault(folder.listing, folder.at("model"), "model")
        return Part(broken=(fault,), unfinished=True) if fault else Part(state=frozenset({State.MODEL}))
    weights = [f"model/{name}" for name in inside if name.endswith((".safetensors", ".bin"))]
    if not weights:
        return Part(broken=("model/ holds no weights",), unfinished=True)
    faults = [*folder.faults(weights), *_missing_shards(inside)]
    return Part(broken=tuple(faults), unfinished=True) if faults else Part(state=frozenset({State.MODEL}))


def _missing_shards(inside: tuple[str, ...]) -> list[str]:
    shards = [match for name in inside if (match := re.fullmatch(r"model-(\d{5})-of-(\d{5})\.safetensors", name))]
    count = max((int(shard[2]) for shard in shards), default=0)
    have = {int(shard[1]) for shard in shards}
    missing = [number for number in range(1, count + 1) if number not in have]
    return [f"model/model-{number:05}-of-{count:05}.safetensors is missing" for number in missing[:3]]


def _optimizer(folder: Folder) -> Part:
    inside = folder.inside("optimizer")
    if ".metadata" in inside or any(name.endswith(".distcp") for name in inside):
        fault = integrity.dcp_fault(folder.listing, folder.at("optimizer"), "optimizer")
    elif "state_dict.pt" in inside:
        fault = folder.fault("optimizer/state_dict.pt")
    else:
        return Part(absent=("optimizer/ holds no state: a start would go on with a fresh optimizer, without a word",))
    return Part(broken=(fault,), unfinished=True) if fault else Part(state=frozenset({State.OPTIMIZER}))


def _scheduler(folder: Folder) -> Part:
    if "scheduler.pt" not in folder.names:
        return Part(absent=("scheduler.pt is missing: a start would begin the schedule anew, without a word",))
    fault = folder.fault("scheduler.pt")
    return Part(broken=(fault,), unfinished=True) if fault else Part(state=frozenset({State.SCHEDULER}))


def _ranks(folder: Folder, name: str, state: State) -> Part:
    """One file a rank; a missing one is skipped with a warning, a damaged one stops its rank."""
    ranks = _rank_files(folder, name)
    faults = folder.faults(ranks.values())
    if faults:
        return Part(broken=faults, unfinished=True)
    if not ranks:
        return Part(remarks=(f"{name}/ holds no file: this state starts anew",))
    world = max(max(_rank_files(folder, each), default=0) for each in ("dataloader", "rng_state")) + 1
    lost = [str(rank) for rank in range(min(world, 100_000)) if rank not in ranks]
    remarks = (f"{name} is missing for rank {', '.join(lost[:8])}",) if lost else ()
    return Part(remarks=remarks, state=frozenset() if lost else frozenset({state}), world_size=world)


def _rank_files(folder: Folder, name: str) -> dict[int, str]:
    return {int(match[1]): f"{name}/{match[0]}" for file in folder.inside(name) if (match := _RANK.fullmatch(file))}


def _deepspeed(folder: Folder) -> Part:
    """Accelerate's save_state: DeepSpeed's own save with the tag ``pytorch_model``."""
    tag, wrong = deepspeed.tag(folder)
    if tag is None:
        return Part(broken=(wrong,), unfinished=True)
    return deepspeed.states(folder, tag)
