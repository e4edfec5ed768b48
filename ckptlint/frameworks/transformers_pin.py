"""Pointing a script on the Hugging Face Trainer, started with the options of ``TrainingArguments``, at a checkpoint.

Whether the script hands ``--resume_from_checkpoint`` on to ``Trainer.train`` stands in its own text: transformers' examples and
nearly all scripts with ``HfArgumentParser(TrainingArguments)`` do.

Sources: transformers 4.57.1 and 5.23.0 ``training_args.py``, ``trainer.py``, ``examples/pytorch/*/run_*.py``.
"""

from __future__ import annotations

from collections.abc import Mapping

from ckptlint.checkpoints.checkpoint import Checkpoint, Layout, Notice
from ckptlint.frameworks import trainer_pin
from ckptlint.frameworks.framework import Framework, Pin, PinRequest, SaveRoot
from ckptlint.frameworks.trainer import CHECKPOINT_NAME
from ckptlint.frameworks.trainer_start import about, other_world_size
from ckptlint.run import Run, Setting
from ckptlint.source.file import SourceFile


class TransformersScript(Framework):
    """Runs that are read from a command line only."""

    name = "transformers"
    title = "transformers"
    suffixes = ()

    def mentions(self, data: bytes) -> bool:
        return False

    def read(self, file: SourceFile) -> tuple[Run, ...]:
        return ()

    def layout(self, run: Run) -> Layout:
        from ckptlint.checkpoints.huggingface import HuggingFaceLayout

        return HuggingFaceLayout()

    def roots(self, run: Run, environment: Mapping[str, str], save_dir: str | None) -> tuple[SaveRoot, ...]:
        return trainer_pin.roots(_with_settings(run), environment, save_dir)

    def unfit(self, run: Run, checkpoint: Checkpoint, environment: Mapping[str, str]) -> str:
        return other_world_size(checkpoint, trainer_pin.world_size(environment))

    def pin(self, run: Run, request: PinRequest) -> Pin:
        return pin(_with_settings(run), request)


def _with_settings(run: Run) -> Run:
    write = run.writes[0]
    settings: dict[str, Setting] = {
        "output_dir": write.directory.setting,
        "save_steps": write.interval.setting,
        "resume_from_checkpoint": run.reads[0].setting,
    }
    return run._replace(settings={**settings, **run.settings})


def pin(run: Run, request: PinRequest) -> Pin:
    """Name the chosen checkpoint in ``--resume_from_checkpoint``; without one, take out the name of one that is gone."""
    resume = run.settings["resume_from_checkpoint"]
    if request.chosen is not None:
        value = trainer_pin.value_for(request, resume, request.chosen)
        notices = about(run, request.chosen, trainer_pin.world_size(request.environment))
        return Pin(() if value == resume.value else resume.set(value), tuple(notices))
    written = resume.value if resume.written and isinstance(resume.value, str) else ""
    there = trainer_pin.named(request, written)
    if there is not None and trainer_pin.loads(there):
        return Pin((), (trainer_pin.goes_on_with_weights(run, written, there),))
    if CHECKPOINT_NAME.fullmatch(written.rstrip("/").rpartition("/")[2]) is None:
        return Pin()
    effect = "is not there any more" if there is None else "cannot be loaded"
    message = f"`{resume}` {effect}, nor is any other checkpoint in `{request.save.root.path}`: the run begins at step 0"
    return Pin(resume.remove(), (Notice("nothing-resumable", message),))
