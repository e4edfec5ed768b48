"""What a start of the Hugging Face Trainer makes of one checkpoint, whichever framework stands on it.

Sources: transformers 4.57.1 and 5.23.0 ``trainer.py`` (``train``, ``init_training_references``), ``training_args.py``
(``__post_init__``), ``integrations/deepspeed.py``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from math import ceil, isfinite
from pathlib import Path

from ckptlint.checkpoints.checkpoint import Checkpoint, Notice
from ckptlint.frameworks.trainer import number
from ckptlint.run import Amount, Run, Setting, Unit

# ------------------------------------------------------------------------------------------------ what it cannot take up


def other_backend(deepspeed: Setting, checkpoint: Checkpoint, environment: Mapping[str, str]) -> str:
    """Why a run with this ``deepspeed`` setting cannot take the checkpoint up; "" if it can.

    Under DeepSpeed the Trainer wants a global_step folder; without, it takes no optimizer out of one.
    """
    # accelerate launch says it by a variable (training_args.py __post_init__).
    by_accelerate = environment.get("ACCELERATE_USE_DEEPSPEED", "").lower() in ("true", "1", "y", "yes", "t", "on")
    wanted, there = bool(deepspeed.value) or by_accelerate, checkpoint.backend.startswith("DeepSpeed")
    if wanted and not there:
        by = f"`{deepspeed}`" if deepspeed.value else "ACCELERATE_USE_DEEPSPEED"
        return f"it was saved without DeepSpeed, and this run uses it ({by})"
    if there and not wanted:
        return (
            f"it was saved by {checkpoint.backend}, and this run names no `deepspeed` configuration "
            "(set ACCELERATE_USE_DEEPSPEED=true if accelerate starts it with DeepSpeed)"
        )
    return _other_zero_stage(deepspeed, checkpoint)


def _other_zero_stage(deepspeed: Setting, checkpoint: Checkpoint) -> str:
    """ZeRO-3 keeps the weights in shards, and neither reads the other's (an AssertionError)."""
    stage = _zero_stage(deepspeed.value)
    needs = "" if stage is None else "DeepSpeed ZeRO-3" if stage == 3 else "DeepSpeed ZeRO-1/2"
    if not needs or not checkpoint.backend.startswith("DeepSpeed ZeRO") or checkpoint.backend == needs:
        return ""
    return f"it was saved by {checkpoint.backend}, and `{deepspeed}` is of ZeRO stage {stage}"


def _zero_stage(value: object) -> int | None:
    """The stage that a DeepSpeed configuration sets, 1 to 3; None where it cannot be seen."""
    if isinstance(value, str):
        try:
            value = json.loads(Path(value).read_bytes())
        except (OSError, ValueError, RecursionError):
            return None
    zero = value.get("zero_optimization") if isinstance(value, dict) else None
    stage = zero.get("stage") if isinstance(zero, dict) else None
    return stage if isinstance(stage, int) and stage in (1, 2, 3) and stage is not True else None


def other_world_size(checkpoint: Checkpoint, world: int | None) -> str:
    """Why so many processes (None: not known) cannot take the checkpoint up; "" if they can."""
    if not checkpoint.same_world_size or None in (world, checkpoint.world_size) or world == checkpoint.world_size:
        return ""
    return f"{checkpoint.world_size} processes wrote it, this launch has {world}, and {checkpoint.backend} needs as many"


# ------------------------------------------------------------------------------------------------ what to know about it


def about(run: Run, chosen: Checkpoint, world: int | None) -> Iterator[Notice]:
    """What to know about a start from a checkpoint with so many processes (None: not known)."""
    yield from _finished(run, chosen)
    yield from _length_changed(run, chosen)
    yield from _interval_changed(run, chosen)
    yield from _world_size_changed(chosen, world)


def _finished(run: Run, chosen: Checkpoint) -> Iterator[Notice]:
    done, length = chosen.progress, run.length
    if not isinstance(length, Amount) or not isfinite(length.value) or done.step is None:
        return
    if length.unit is Unit.STEP and done.step >= length.value:
        yield Notice("finished", f"no steps remain: the checkpoint is at step {done.step}, and the run takes {length}")
    elif length.unit is Unit.EPOCH and done.epoch is not None and _is_last_step(chosen, length.value):
        yield Notice("finished", f"no steps remain: the checkpoint is at epoch {done.epoch:g}, and the run takes {length}")


def _is_last_step(chosen: Checkpoint, epochs: float) -> bool:
    """The last step can end a little below a whole epoch, where samples are left over that make no step."""
    done = chosen.progress
    if done.epoch is None or done.step is None:
        return False
    at_end = done.total_steps is not None and done.step >= done.total_steps and done.total_epochs == ceil(epochs)
    return done.epoch >= epochs or (at_end and epochs - done.epoch < done.epoch / max(done.step, 1))


def _length_changed(run: Run, chosen: Checkpoint) -> Iterator[Notice]:
    """Totals come from the configuration again. trainer_state.json holds epochs rounded up."""
    done, length = chosen.progress, run.length
    if not isinstance(length, Amount) or not isfinite(length.value):
        return
    in_steps = length.unit is Unit.STEP
    stored, wanted = (done.total_steps, length.value) if in_steps else (done.total_epochs, ceil(length.value))
    if stored is not None and stored != wanted:
        yield Notice(
            "schedule-changed",
            f"the checkpoint's run was to take {Amount(stored, length.unit)}, this one takes {length}: the learning rate is "
            "computed anew for that length and jumps",
        )


def _interval_changed(run: Run, chosen: Checkpoint) -> Iterator[Notice]:
    """The interval comes from trainer_state.json, whatever the configuration says."""
    setting, stored = run.settings["save_steps"], chosen.progress.save_steps
    wanted = number(setting.value)
    counts = run.writes[0].interval.setting.name == setting.name and setting.written
    if counts and stored and wanted is not None and wanted >= 1 and wanted != stored:
        yield Notice(
            "schedule-changed",
            f"after resuming the run saves every {stored:g} steps, as the checkpoint's trainer_state.json says; `{setting}` "
            "has no effect on a resumed run",
        )


def _world_size_changed(chosen: Checkpoint, world: int | None) -> Iterator[Notice]:
    if None not in (world, chosen.world_size) and world != chosen.world_size:
        yield Notice(
            "world-size-changed",
            f"{chosen.world_size} processes wrote the checkpoint, {world} will read it: a step is now another number of "
            "samples, so the data position shifts",
        )
