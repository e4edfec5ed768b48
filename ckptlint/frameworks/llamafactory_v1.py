"""LLaMA-Factory's new trainer (``USE_V1=1 llamafactory-cli train run.yaml``).

Sources: LLaMA-Factory at ff6d4d12, ``v1/config/training_args.py`` (keys and defaults), ``v1/core/base_trainer.py`` (when it
saves), ``v1/core/utils/checkpoint.py`` (how it resumes).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from ckptlint.checkpoints.checkpoint import Checkpoint, Layout
from ckptlint.frameworks.framework import Framework, Pin, PinRequest, SaveRoot, release_of
from ckptlint.frameworks.llamafactory import refuse_what_the_loader_refuses
from ckptlint.frameworks.llamafactory_keys import ASSUMED, V1_CHECKPOINT_KEYS, V1_KEYS
from ckptlint.frameworks.spelling import strange_keys
from ckptlint.frameworks.trainer import by_usual_interval, number
from ckptlint.frameworks.trainer_keys import NoDefault, find_key
from ckptlint.frameworks.yaml_settings import YamlSettings, documents_of
from ckptlint.run import (
    NEVER,
    Amount,
    Changing,
    Choice,
    Fact,
    Interval,
    Literal,
    Location,
    PathExpr,
    Read,
    Refusal,
    Release,
    Retention,
    Run,
    Setting,
    StrangeKey,
    Unit,
    Unknown,
    Write,
    shown,
)
from ckptlint.source.file import SourceFile
from ckptlint.source.yaml import OMEGACONF, Scalar
from ckptlint.source.yaml import Mapping as YamlMapping

TITLE = "LLaMA-Factory v1"
_NAMES = tuple(dict.fromkeys(key.name for key in V1_CHECKPOINT_KEYS))
_RANDOM_OUTPUT = PathExpr((Literal("outputs/"), Changing("<a random name>", "a random name")), "outputs/<a random name>")

# Keys whose misspelling costs progress.
CHECKPOINT_KEYS = (
    "output_dir",
    "resume_from_checkpoint",
    "save_steps",
    "save_epochs",
    "save_total_limit",
    "max_steps",
    "num_train_epochs",
)

# What marks a file that cannot be parsed as one of these all the same.
_KEYS_OF_A_RUN = (re.compile(rb"^model[ \t]*:", re.M), re.compile(rb"^train_dataset[ \t]*:", re.M))

# Beside `model` and `train_dataset`, what no other framework's training file has.
_MARKS = ("model_class", "kernel_config", "dist_config", "sample_backend", "peft_config", "quant_config", "micro_batch_size")


class LlamaFactoryV1(Framework):
    """The v1 YAML: ``model`` and ``train_dataset``, with plug-in configurations."""

    name = "llamafactory-v1"
    title = TITLE
    suffixes = (".yaml", ".yml")

    def mentions(self, data: bytes) -> bool:
        return b"train_dataset" in data and b"model" in data and any(mark.encode() in data for mark in _MARKS)

    def read(self, file: SourceFile) -> tuple[Run, ...]:
        documents = documents_of(file, _KEYS_OF_A_RUN)
        if not documents or not isinstance(documents[0].root, YamlMapping) or not _is_training(documents[0].root):
            return ()
        release = release_of(file, ("llamafactory",), ASSUMED)
        refuse_what_the_loader_refuses(file, release, TITLE)
        settings = YamlSettings(
            file.yaml,
            documents[0].root,
            OMEGACONF,
            _defaults(release),
            f"default of {TITLE}",
            ("output_dir", "max_steps", "learning_rate"),
        )
        return (_read_run(settings, release),)

    def layout(self, run: Run) -> Layout:
        from ckptlint.checkpoints.llamafactory_v1 import LlamaFactoryV1Layout

        return LlamaFactoryV1Layout()

    def roots(self, run: Run, environment: Mapping[str, str], save_dir: str | None) -> tuple[SaveRoot, ...]:
        from ckptlint.frameworks.llamafactory_pin import roots

        return roots(run, environment, save_dir)

    def unfit(self, run: Run, checkpoint: Checkpoint, environment: Mapping[str, str]) -> str:
        from ckptlint.frameworks.llamafactory_pin import unfit_v1

        return unfit_v1(checkpoint, environment)

    def pin(self, run: Run, request: PinRequest) -> Pin:
        from ckptlint.frameworks.llamafactory_pin import pin_v1

        return pin_v1(run, request)


def _is_training(root: YamlMapping) -> bool:
    names = {name for name, _ in root.items()}
    model = root.get("model")
    return (
        model is not None
        and isinstance(model.value, Scalar)
        and "train_dataset" in names
        and any(mark in names for mark in _MARKS)
        and "do_train" not in names
    )


def _defaults(release: Release) -> dict[str, object]:
    """The defaults of this release; those of the newest read for keys that it does not have yet."""
    keys = (find_key(V1_CHECKPOINT_KEYS, name, release.text) or find_key(V1_CHECKPOINT_KEYS, name, ASSUMED) for name in _NAMES)
    return {key.name: None if isinstance(key.default, NoDefault) else key.default for key in keys if key is not None}


def _read_run(settings: YamlSettings, release: Release) -> Run:
    length, length_setting = _length(settings)
    output_dir = settings.setting("output_dir")
    return Run(
        framework=LlamaFactoryV1.name,
        title=TITLE,
        release=release,
        where=settings.where,
        length=length,
        length_setting=length_setting,
        writes=(Write(Location(_output_path(output_dir), output_dir), _interval(settings), _retention(settings)),),
        reads=(_resume(settings.setting("resume_from_checkpoint")),),
        refusals=tuple(_refusals(settings)),
        strange_keys=tuple(_strange_keys(settings)),
        model=shown(settings.value("model") or ""),
        settings=settings.settings(_NAMES),
    )


def _length(settings: YamlSettings) -> tuple[Fact[Amount], Setting]:
    """base_trainer.py: max_steps if it is set and positive, else the epochs."""
    steps, epochs = settings.setting("max_steps"), settings.setting("num_train_epochs")
    count = number(steps.value)
    if count is not None and count > 0:
        return Amount(count, Unit.STEP), steps
    count = number(epochs.value)
    return (Amount(count, Unit.EPOCH) if count is not None else Unknown(f"`{epochs}` is not a number")), epochs


def _output_path(setting: Setting) -> Fact[PathExpr]:
    if not setting.written:
        return _RANDOM_OUTPUT
    if not isinstance(setting.value, str):
        return Unknown(f"`{setting}` is not a path")
    return PathExpr.of_text(setting.value, expanded=False)


def _interval(settings: YamlSettings) -> Interval:
    """Only save_steps and save_epochs make checkpoints; at the end the model alone is written. save_epochs wins."""
    epochs, steps = settings.setting("save_epochs"), settings.setting("save_steps")
    if epochs.value is not None:
        return Interval(_every_epochs(epochs), False, epochs, repair=((epochs, 0.1),))
    every = number(steps.value)
    resume = settings.setting("resume_from_checkpoint")
    repair = by_usual_interval(steps, _length(settings)[0]) + (() if resume.value else ((resume, "auto"),))
    if steps.value is None:
        return Interval(NEVER, False, steps, repair=repair)
    if every is None:
        return Interval(Unknown(f"`{steps}` is not a number of steps"), False, steps)
    if every == 0:
        return Interval(NEVER, False, steps, disabled=True, repair=repair)
    return Interval(Amount(abs(every), Unit.STEP), False, steps)


def _every_epochs(setting: Setting) -> Fact[Amount]:
    """base_trainer.py: ``max(1, int(steps_per_epoch * save_epochs))`` steps."""
    every = number(setting.value)
    if every is None:
        return Unknown(f"`{setting}` is not a number of epochs")
    return Amount(every, Unit.EPOCH) if every > 0 else Amount(1, Unit.STEP)


def _retention(settings: YamlSettings) -> Retention:
    limit = settings.setting("save_total_limit")
    count = number(limit.value)
    if limit.value is not None and count is None:
        return Retention(Unknown(f"`{limit}` is not a number"), limit)
    return Retention(None if count is None or count < 0 else int(count), limit)


def _resume(setting: Setting) -> Read:
    """checkpoint.py resolve_resume_checkpoint_path: falsy is never, "auto" the newest that is marked complete, else a path."""
    value = setting.value
    if not value:
        return Read(Choice.NOTHING, setting, auto="auto")
    if value == "auto":
        return Read(Choice.NEWEST, setting)
    path = PathExpr.of_text(str(value), expanded=False)
    if path.literal is None or not isinstance(value, str):
        return Read(Choice.UNKNOWN, setting, path, why=f"`{setting}` names no checkpoint")
    return Read(Choice.FIXED, setting, path, raises_when_missing=True)


def _refusals(settings: YamlSettings) -> Iterator[Refusal]:
    resume = settings.setting("resume_from_checkpoint")
    if resume.value is True:
        yield Refusal(resume, f"{TITLE} takes it for a path and stops with a ValueError", 'write "auto"', "auto")
    limit = settings.setting("save_total_limit")
    count = number(limit.value)
    if count is not None and count <= 0:
        # checkpoint.py rotate_checkpoints: `while len(complete_dirs) > limit`, the new one included
        effect = "every checkpoint is deleted as soon as it is written" if count == 0 else f"{TITLE} stops at the first save"
        yield Refusal(limit, effect, "write 2 or more, or remove it to keep all", 2, stops=count < 0)
    epochs = settings.setting("save_epochs")
    if epochs.value is not None and settings.value("batching_strategy") == "dynamic_batching":
        yield Refusal(epochs, f"with `dynamic_batching` {TITLE} stops with a ValueError", "write save_steps instead")


def _strange_keys(settings: YamlSettings) -> Iterator[StrangeKey]:
    effect = f"{TITLE} stops with a ValueError, or ignores it where ALLOW_EXTRA_KEYS=1 is set"
    return strange_keys(settings, V1_KEYS, CHECKPOINT_KEYS, effect)
