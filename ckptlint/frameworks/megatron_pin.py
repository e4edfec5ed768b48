"""How a run of Megatron's family is pointed at a checkpoint: what it saves becomes what it loads, and what forbids goes.

Where the tracker names another step than the chosen one, a *resume view* is loaded instead: a directory of our own beside the
checkpoints with a tracker and a link to that one. Nothing of the author's changes, and it works in every version and format.

Sources: NVIDIA/Megatron-LM core_v0.12.1 and d98e8a64 ``training/checkpointing.py`` (``read_metadata``, ``load_checkpoint``);
Ascend/MindSpeed-LLM c77308a1 ``dpo_trainer.py`` (``_init_reference_model``), ``initialize.py`` (hf2mg).
"""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterator, Mapping

from ckptlint.checkpoints.checkpoint import Checkpoint, Notice
from ckptlint.checkpoints.tracker import MEGATRON
from ckptlint.frameworks.framework import Pin, PinRequest, ResumeView, SaveRoot
from ckptlint.frameworks.megatron import REFERENCE_STAGES, number, path_of, same
from ckptlint.frameworks.tracker_pin import aside_where_nothing_loads, said, save_root, tracker_of
from ckptlint.frameworks.trainer_pin import world_size
from ckptlint.frameworks.trainer_start import other_world_size
from ckptlint.run import Amount, PathExpr, Run, Setting, Unit, Unknown
from ckptlint.source.text import Edit

VIEWS = ".ckptlint-resume"

# What makes a start begin anew, or leave a part of the checkpoint; and what makes the next ones impossible to resume.
_FORBID = (
    *("finetune", "no_load_optim", "no_load_rng", "no_save_optim", "no_save_rng"),
    *("enable_hf2mg_convert", "moe_use_upcycling"),
)


def roots(run: Run, environment: Mapping[str, str], save_dir: str | None) -> tuple[SaveRoot, ...]:
    """The directory it saves into.

    Raises:
        UnsetVariable, ValueError: it is not known.
    """
    setting = run.settings["save"]
    return (save_root(setting, path_of(setting), environment, save_dir),)


def unfit(run: Run, checkpoint: Checkpoint, environment: Mapping[str, str]) -> str:
    """Why a whole checkpoint cannot be taken up: LoRA's alone, or ranks of another number; "" where nothing says so."""
    setting = run.settings.get("lora_ckpt_filter")
    if setting is not None and setting.value is True:
        return f"with `{setting}` it holds the adapter alone, which `--load` does not take up"
    return other_world_size(checkpoint, world_size(environment))


def pin(run: Run, request: PinRequest) -> Pin:
    """Load the chosen checkpoint, with all that is in it; where there is none, the launch stays as it was written."""
    return _unpinned(run, request) if request.chosen is None else _pinned(run, request, request.chosen)


def _pinned(run: Run, request: PinRequest, chosen: Checkpoint) -> Pin:
    tracker = tracker_of(request)
    view = None if tracker.step == chosen.step and "/" not in chosen.path else _view(request, chosen, said(tracker))
    target = request.save.root.directory if view is None else view.path
    load = run.settings["load"]
    edits: list[Edit] = []
    if load.value != target and not (view is None and _is_own(run)):
        edits += load.set(target)
    edits += _freed(run)
    edits += _kept_beside(run, load)
    return Pin(tuple(edits), tuple(_about(run, load, chosen)), disk=() if view is None else (view,))


def _is_own(run: Run) -> bool:
    """Whether --load names the directory of --save already, however it is written."""
    return same(path_of(run.settings["load"]), path_of(run.settings["save"])) is True


def _freed(run: Run) -> Iterator[Edit]:
    for name in _FORBID:
        setting = run.settings.get(name)
        if setting is not None and isinstance(setting.value, Unknown):
            raise ValueError(f"whether `{setting.name}` is given is not known ({setting.value.why}); write the arguments out")
        if setting is not None and setting.value is True:
            yield from setting.set(False)
    step = run.settings.get("ckpt_step")
    if step is not None and number(step.value):
        yield from step.remove()


def _kept_beside(run: Run, load: Setting) -> Iterator[Edit]:
    """What was read from the old --load and must be named now."""
    reference = run.settings.get("ref_model")
    if _needs_reference(run) and reference is not None and isinstance(load.value, str):
        yield from reference.set(load.value)
    back, config = run.settings.get("enable_mg2hf_convert"), run.settings.get("hf_cfg_dir")
    if back is not None and back.value is True and config is not None and config.value is None and _is_base(run):
        yield from config.set(load.value)


def _is_base(run: Run) -> bool:
    """Whether --load names weights to begin with: another directory than that of --save."""
    load = run.settings["load"]
    base = isinstance(load.value, str) and bool(load.value) and f"/{VIEWS}/" not in load.value
    return base and same(path_of(load), path_of(run.settings["save"])) is False


def _needs_reference(run: Run) -> bool:
    stage, reference = run.settings.get("stage"), run.settings.get("ref_model")
    if stage is None or stage.value not in REFERENCE_STAGES or reference is None:
        return False
    return reference.value is None and _is_base(run)


def _view(request: PinRequest, chosen: Checkpoint, why: str) -> ResumeView:
    directory = request.save.root.directory
    name = posixpath.basename(chosen.path)
    path = posixpath.join(directory, VIEWS, name)
    target = os.path.relpath(posixpath.join(directory, chosen.path), path)
    message = f"{MEGATRON} {why}; `{path}` shows step {chosen.step} alone, and is loaded instead of `{directory}`"
    return ResumeView(path, name, target, MEGATRON, str(chosen.step), message)


# ------------------------------------------------------------------------------------------------ what to know about it


def _about(run: Run, load: Setting, chosen: Checkpoint) -> Iterator[Notice]:
    length = run.length
    if isinstance(length, Amount) and length.unit is Unit.STEP and chosen.step is not None:
        if chosen.step >= length.value:
            yield Notice("finished", f"no steps remain: the checkpoint is at step {chosen.step}, and the run takes {length}")
        stored = chosen.progress.total_steps
        if stored is not None and stored != length.value:
            message = (
                f"the checkpoint's run was to take {stored} steps, this one takes {length}: the scheduler compares what hangs "
                "on that with what was saved, and stops where it differs (unless --lr-decay-iters is as before)"
            )
            yield Notice("schedule-changed", message)
    if _needs_reference(run):
        yield Notice("reference-model", f"the reference model is loaded from `{shown_path(load)}` as before, by `--ref-model`")
    elif run.lost_references:
        lost = run.lost_references[0]
        yield Notice("reference-model", f"{lost.why}; {lost.instead}")


def shown_path(setting: Setting) -> str:
    """A setting's path as the author wrote it."""
    path: PathExpr | None = path_of(setting)
    return str(setting.value) if path is None else path.written


def _unpinned(run: Run, request: PinRequest) -> Pin:
    for found in request.save.found:
        why = unfit(run, found, request.environment) if found.complete else ""
        if why:
            path = request.save.root.checkpoint(found.path)
            advice = "start it as it was started when it saved, or name a new directory"
            return Pin((), (Notice("launch-refused", f"no whole checkpoint fits this launch (`{path}`: {why}); {advice}"),))
    load = run.settings["load"]
    if f"/{VIEWS}/" in str(load.value) and not isinstance(load.value, Unknown):
        message = f"`{load}` showed a checkpoint that is not whole any more: name what the run is to begin with"
        return Pin((), (Notice("launch-refused", message),))
    if not _is_own(run):
        return Pin()
    return Pin(disk=aside_where_nothing_loads(request, "every start ends, up to core 0.19 with exit status 0"))
