"""How a LLaMA-Factory run is pointed at a checkpoint.

Sources: ``hparams/parser.py`` (``get_train_args``) for what the normal trainer does with each value, ``v1/core/utils/checkpoint.py``
(``find_latest_checkpoint``, ``resume``) for the new one. An explicit path is taken whatever ``overwrite_output_dir`` says.
"""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterator, Mapping

from ckptlint.checkpoints.checkpoint import Checkpoint, Notice, Verdict
from ckptlint.frameworks.framework import Pin, PinRequest, SaveRoot
from ckptlint.frameworks.trainer import CHECKPOINT_NAME, number
from ckptlint.run import Amount, Changing, Choice, PathExpr, Run, Setting, Unit
from ckptlint.source.text import Edit

# Any of these in the output directory itself, without a checkpoint-N beside it, stops the launch (extras/constants.py CHECKPOINT_NAMES).
FINAL_WEIGHTS = frozenset(
    {
        "adapter_model.bin",
        "adapter_model.safetensors",
        "model.safetensors",
        "model.safetensors.index.json",
        "pytorch_model.bin",
        "pytorch_model.bin.index.json",
    }
)


# ------------------------------------------------------------------------------------------------ where to look


def roots(run: Run, environment: Mapping[str, str], save_dir: str | None) -> tuple[SaveRoot, ...]:
    """The output directory; then, where the resume value names another place, that place."""
    output = run.settings["output_dir"]
    root = _output_root(run, output, environment) if save_dir is None else _given_root(output, save_dir)
    other = _pinned_root(run, environment)
    if other is None:
        return (root,)
    if _same(root.directory, other.directory):
        # The author's own spelling of the same place, unless it is only one of several.
        return (SaveRoot(root.path if root.edits else other.path, root.directory, root.edits),)
    return (root, other)


def _output_root(run: Run, output: Setting, environment: Mapping[str, str]) -> SaveRoot:
    path = run.writes[0].directory.path
    if not isinstance(path, PathExpr):
        raise ValueError(path.why)
    if any(path.of(Changing)):
        raise ValueError(f"{output.name} is not set, and the default is a new directory at every start")
    directory = path.expand(environment)
    if path.literal is not None:
        expanded = _home(directory, environment)
        return SaveRoot(expanded, expanded)
    return SaveRoot(directory, _home(directory, environment), output.set(directory))


def _given_root(output: Setting, save_dir: str) -> SaveRoot:
    edits = () if output.value == save_dir else output.set(save_dir)
    return SaveRoot(save_dir, save_dir, edits)


def _pinned_root(run: Run, environment: Mapping[str, str]) -> SaveRoot | None:
    """The directory that the resume value names or lies in."""
    read = run.reads[0]
    setting = run.settings["resume_from_checkpoint"]
    if not isinstance(setting.value, str) or not setting.value or setting.value == "auto":
        return None
    path = (read.path or PathExpr.of_text(setting.value, expanded=False)).expand(environment)
    directory = _home(path, environment)
    parent, name = posixpath.split(directory.rstrip("/"))
    if not CHECKPOINT_NAME.fullmatch(name):
        return SaveRoot(path.rstrip("/") or path, directory) if "/" in path or os.path.isdir(directory) else None  # noqa: PTH112
    style = posixpath.split(path.rstrip("/"))[0] if directory == path else parent
    return SaveRoot(style or ".", parent or ".", only=name)


def _home(path: str, environment: Mapping[str, str]) -> str:
    """transformers replaces a leading ``~`` in output_dir; in a resume path nobody does."""
    home = environment.get("HOME", "")
    return home + path[1:] if home and (path == "~" or path.startswith("~/")) else path


def _same(one: str, other: str) -> bool:
    return os.path.realpath(one) == os.path.realpath(other)


# ------------------------------------------------------------------------------------------------ the normal trainer


def pin(run: Run, request: PinRequest) -> Pin:
    """Name the chosen checkpoint; where there is none, leave a value with which the launch works."""
    if run.obstacles:
        return Pin(request.root.edits, tuple(_not_resumable(run, request)))
    if request.chosen is None:
        return _unpinned(run, request)
    resume = run.settings["resume_from_checkpoint"]
    value = request.root.checkpoint(request.chosen.path)
    edits = () if resume.value == value else resume.set(value)
    return Pin((*request.root.edits, *edits), tuple(_about(run, request.chosen, request.environment)))


def _unpinned(run: Run, request: PinRequest) -> Pin:
    resume, overwrite = run.settings["resume_from_checkpoint"], run.settings["overwrite_output_dir"]
    notices: list[Notice] = []
    edits: tuple[Edit, ...] = ()
    finds_by_itself = overwrite.value is not True
    would_crash = finds_by_itself and bool(request.found) and not _loads(request.found[0])
    names_something = resume.value is not None and resume.value is not False
    if would_crash and resume.value is not False:
        # null would make get_last_checkpoint take the damaged one; false begins at step 0 without looking (parser.py).
        edits = resume.set(False)
    elif names_something:
        edits = resume.set(None)
    if finds_by_itself and not request.found and request.files & FINAL_WEIGHTS and not _false_after(resume, edits):
        notices.append(
            Notice(
                "launch-refused",
                f"{run.title} will stop: `{request.root.path}` holds final weights and no checkpoint ({_first(request.files)}), so there "
                "is nothing to resume; name a new output_dir, or move the weights away (overwrite_output_dir would disable "
                "resuming for every later start)",
            )
        )
    return Pin((*request.root.edits, *edits), tuple(notices))


def _false_after(resume: Setting, edits: tuple[Edit, ...]) -> bool:
    return not edits and resume.value is False


def _first(files: frozenset[str]) -> str:
    return sorted(files & FINAL_WEIGHTS)[0]


def _loads(checkpoint: Checkpoint) -> bool:
    """Whether the Trainer gets through loading it: a weights-only one with its trainer_state.json goes on with a fresh optimizer."""
    return checkpoint.complete or (checkpoint.verdict is Verdict.WEIGHTS_ONLY and checkpoint.progress.step is not None)


def _not_resumable(run: Run, request: PinRequest) -> Iterator[Notice]:
    obstacle = run.obstacles[0]
    resume, overwrite = run.settings["resume_from_checkpoint"], run.settings["overwrite_output_dir"]
    found = next((checkpoint for checkpoint in request.found), None)
    names_something = resume.value is not None and resume.value is not False
    crashes = run.settings["finetuning_type"].value in ("lora", "oft")
    if crashes and (names_something or (found is not None and overwrite.value is not True and resume.value is None)):
        what = f"`{resume}`" if names_something else f"`{request.root.checkpoint(found.path if found else '')}`"
        yield Notice(
            "launch-refused", f"{run.title} will take up {what} and stop, at every start: {obstacle.why}; {obstacle.instead}"
        )
    elif found is not None:
        yield Notice("nothing-resumable", f"the next start begins at step 0 and overwrites what is there: {obstacle.why}")


# ------------------------------------------------------------------------------------------------ the new trainer


def pin_v1(run: Run, request: PinRequest) -> Pin:
    """ "auto" finds the newest marked folder at every start and begins at step 0 where there is none."""
    resume = run.settings["resume_from_checkpoint"]
    read = run.reads[0]
    if request.chosen is None:
        misled = bool(request.found) or read.choice is not Choice.NEWEST
        edits = resume.set("auto") if resume.value and misled and resume.value != "auto" else ()
        return Pin((*request.root.edits, *edits))
    finds_it = request.found[0].path == request.chosen.path and request.root.only is None
    value = "auto" if finds_it else request.root.checkpoint(request.chosen.path)
    edits = () if resume.value == value else resume.set(value)
    return Pin((*request.root.edits, *edits), tuple(_about(run, request.chosen, request.environment)))


# ------------------------------------------------------------------------------------------------ what to know about the start


def _about(run: Run, chosen: Checkpoint, environment: Mapping[str, str]) -> Iterator[Notice]:
    yield from _finished(run, chosen)
    yield from _schedule_changed(run, chosen)
    yield from _world_size_changed(chosen, environment)


def _finished(run: Run, chosen: Checkpoint) -> Iterator[Notice]:
    done, length = chosen.progress, run.length
    if not isinstance(length, Amount):
        return
    if length.unit is Unit.STEP and done.step is not None and done.step >= length.value:
        yield Notice("finished", f"no steps remain: the checkpoint is at step {done.step}, and `{run.length_setting}`")
    elif length.unit is Unit.EPOCH and done.epoch is not None and done.epoch >= length.value:
        yield Notice("finished", f"no steps remain: the checkpoint is at epoch {done.epoch:g}, and `{run.length_setting}`")


def _schedule_changed(run: Run, chosen: Checkpoint) -> Iterator[Notice]:
    """trainer.py: totals come from the configuration again, save_steps and the other intervals from trainer_state.json."""
    done, length = chosen.progress, run.length
    if isinstance(length, Amount):
        stored = done.total_steps if length.unit is Unit.STEP else done.total_epochs
        if stored is not None and stored != length.value:
            unit = "steps" if length.unit is Unit.STEP else "epochs"
            yield Notice(
                "schedule-changed",
                f"the checkpoint's run was to take {stored:g} {unit}, this one takes {length}: the learning-rate schedule is computed "
                "anew and jumps",
            )
    save_steps = run.settings["save_steps"]
    wanted = number(save_steps.value)
    if done.save_steps and save_steps.written and wanted is not None and wanted >= 1 and wanted != done.save_steps:
        yield Notice(
            "schedule-changed",
            f"after resuming the run saves every {done.save_steps:g} steps, as trainer_state.json says, not every {wanted:g} as "
            f"`{save_steps}` says",
        )


def _world_size_changed(chosen: Checkpoint, environment: Mapping[str, str]) -> Iterator[Notice]:
    """llamafactory-cli starts NNODES times NPROC_PER_NODE processes (launcher.py)."""
    per_node = environment.get("NPROC_PER_NODE", "")
    nodes = environment.get("NNODES", "1")
    if not per_node.isdigit() or not nodes.isdigit() or chosen.world_size is None:
        return
    world = int(per_node) * int(nodes)
    if world == chosen.world_size:
        return
    change = f"{chosen.world_size} processes wrote the checkpoint, {world} will read it"
    if chosen.same_world_size:
        yield Notice("launch-refused", f"{change}: {chosen.backend} cannot take it up with another world size")
    else:
        yield Notice("world-size-changed", f"{change}: a step now means another number of samples, so the data position shifts")
