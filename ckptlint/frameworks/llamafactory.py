"""LLaMA-Factory, the normal trainer (``llamafactory-cli train run.yaml``).

Sources: LLaMA-Factory at ff6d4d12 (0.9.6.dev0) and the wheels 0.8.3, 0.9.1, 0.9.3, 0.9.5: ``hparams/parser.py``
(``get_train_args`` is the whole resume logic), ``hparams/training_args.py``, ``train/*/workflow.py``. What the Trainer
underneath does is in ``trainer.py``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from ckptlint.checkpoints.checkpoint import Checkpoint, Layout
from ckptlint.frameworks import trainer
from ckptlint.frameworks.framework import Framework, Pin, PinRequest, SaveRoot, release_of
from ckptlint.frameworks.llamafactory_keys import ASSUMED, V0_CHECKPOINT_KEYS, V0_KEYS, transformers_of, v0_key, v0_keys
from ckptlint.frameworks.settings import Layered, Settings
from ckptlint.frameworks.spelling import keys_of_another_release, strange_keys
from ckptlint.frameworks.trainer_keys import TRAINER_CHECKPOINT_KEYS, TRAINER_KEYS, Key, NoDefault
from ckptlint.frameworks.yaml_settings import YamlSettings, documents_of
from ckptlint.run import (
    Choice,
    Interval,
    Location,
    Misfit,
    Missing,
    Obstacle,
    PathExpr,
    Read,
    Refusal,
    Release,
    Run,
    State,
    StrangeKey,
    Switch,
    Unknown,
    Variable,
    WarmStart,
    Write,
    same_directory,
    shown,
)
from ckptlint.source.file import SourceFile
from ckptlint.source.text import SourceError
from ckptlint.source.yaml import OMEGACONF, SAFE_LOAD, Scalar
from ckptlint.source.yaml import Mapping as YamlMapping

TITLE = "LLaMA-Factory"

STAGES = ("pt", "sft", "rm", "ppo", "dpo", "kto")  # hparams/finetuning_args.py
FINETUNING_TYPES = ("lora", "oft", "freeze", "full")

# hparams/parser.py read_args: OmegaConf.load; 0.9.3 and older call yaml.safe_load.
_OMEGACONF_SINCE = "0.9.4"

# Optimizers that live outside the Trainer's own: a dummy is saved in their place (train/trainer_utils.py DummyOptimizer).
_UNSAVED_OPTIMIZERS = (("use_galore", "galore_layerwise"), ("use_apollo", "apollo_layerwise"))

# Words that people write for "the newest one"; this loader takes each for a folder's name.
_WORDS = ("auto", "latest", "last", "True", "true", "None", "none", "newest", "")

# What marks a file that cannot be parsed as one of these all the same.
_KEYS_OF_A_RUN = (re.compile(rb"^do_train[ \t]*:", re.M), re.compile(rb"^(?:stage|finetuning_type)[ \t]*:", re.M))

# An export; and openMind's configuration, which has our keys beside a key for the model that LLaMA-Factory refuses.
_NOT_OURS = ("export_dir", "model_id")

_TRAINING_KEYS = ("learning_rate", "num_train_epochs", "max_steps", "per_device_train_batch_size", "save_steps")


class LlamaFactory(Framework):
    """The v0 YAML: flat, with ``stage`` or ``finetuning_type`` and ``do_train: true``."""

    name = "llamafactory"
    title = TITLE
    suffixes = (".yaml", ".yml")

    def mentions(self, data: bytes) -> bool:
        return b"do_train" in data and (b"stage" in data or b"finetuning_type" in data)

    def read(self, file: SourceFile) -> tuple[Run, ...]:
        documents = documents_of(file, _KEYS_OF_A_RUN)
        if not documents or not isinstance(documents[0].root, YamlMapping) or not _is_training(documents[0].root):
            return ()
        return (_Reader(*_settings(file, documents[0].root)).run(),)

    def layout(self, run: Run) -> Layout:
        from ckptlint.checkpoints.huggingface import HuggingFaceLayout

        return HuggingFaceLayout()

    def roots(self, run: Run, environment: Mapping[str, str], save_dir: str | None) -> tuple[SaveRoot, ...]:
        from ckptlint.frameworks.llamafactory_pin import roots

        return roots(run, environment, save_dir)

    def unfit(self, run: Run, checkpoint: Checkpoint, environment: Mapping[str, str]) -> str:
        from ckptlint.frameworks.llamafactory_pin import unfit

        return unfit(run, checkpoint, environment)

    def pin(self, run: Run, request: PinRequest) -> Pin:
        from ckptlint.frameworks.llamafactory_pin import pin

        return pin(run, request)


def _settings(file: SourceFile, root: YamlMapping) -> tuple[YamlSettings, Release]:
    release = release_of(file, ("llamafactory",), ASSUMED)
    refuse_what_the_loader_refuses(file, release, TITLE)
    schema = SAFE_LOAD if release.before(_OMEGACONF_SINCE) else OMEGACONF
    source = f"default of {TITLE} {release.text}"
    after = ("resume_from_checkpoint", "output_dir", "overwrite_output_dir")
    return YamlSettings(file.yaml, root, schema, defaults(release), source, after), release


def read_over(file: SourceFile, over: Settings) -> Run | None:
    """The run of a YAML with ``key=value`` arguments behind it; None where it trains nothing.

    Raises:
        SourceError: LLaMA-Factory refuses the file.
    """
    root = file.yaml.documents[0].root
    if not isinstance(root, YamlMapping):
        return None
    under, release = _settings(file, root)
    settings = Layered(over, under)
    return _Reader(settings, release).run() if _trains(settings) else None


def read_arguments(settings: Settings, release: Release) -> Run | None:
    """The run of ``--flag value`` arguments; None where they train nothing."""
    return _Reader(settings, release).run() if _trains(settings) else None


def _trains(settings: Settings) -> bool:
    if not trainer.is_on(settings.value("do_train")) or any(name in settings for name in _NOT_OURS):
        return False
    return settings.value("stage") in STAGES and settings.value("finetuning_type") in FINETUNING_TYPES


def _is_training(root: YamlMapping) -> bool:
    """A v0 training file; not inference, evaluation, export or preparing a data set."""
    values = {name: entry.value.value(OMEGACONF) for name, entry in root.items() if isinstance(entry.value, Scalar)}
    if not trainer.is_on(values.get("do_train")) or any(name in values for name in _NOT_OURS):
        return False
    if values.get("stage") not in STAGES and values.get("finetuning_type") not in FINETUNING_TYPES:
        return False
    only_prepares = "tokenized_path" in values and not any(name in values for name in _TRAINING_KEYS)
    return not only_prepares


def refuse_what_the_loader_refuses(file: SourceFile, release: Release, title: str) -> None:
    """OmegaConf.load reads one document and, from 2.1 on, no duplicate keys; yaml.safe_load took the last.

    Raises:
        SourceError: names the second document, or the second of two keys.
    """
    documents = file.yaml.documents
    if len(documents) > 1:
        problem = f"{title} reads one YAML document, and a second one begins here"
        raise SourceError(documents[1].span, problem, "keep one run in a file")
    root = documents[0].root
    if isinstance(root, YamlMapping) and root.duplicates and not release.before(_OMEGACONF_SINCE):
        first, again = root.duplicates[0]
        twice = f"the key `{again.name}` stands twice (first at line {first.key.span.line})"
        raise SourceError(again.key.span, f"{twice}, and {title} {release.text} refuses the file", "remove one of them")


class _Reader:
    """One v0 configuration, read as ``get_train_args`` reads it."""

    def __init__(self, settings: Settings, release: Release) -> None:
        self.settings = settings
        self.release = release
        self.stage = settings.setting("stage")
        self.method = settings.setting("finetuning_type")
        self.output_dir = settings.setting("output_dir")
        self.resume = settings.setting("resume_from_checkpoint")
        self.overwrite = settings.setting("overwrite_output_dir")
        self.overwrites = trainer.is_on(self.overwrite.value)
        self.keys = tuple(keys(release))
        self.obstacles = tuple(self._obstacles())

    def run(self) -> Run:
        length, length_setting = trainer.length(self.settings)
        directory = Location(self._output_path(), self.output_dir)
        entry = self.settings.where
        return Run(
            framework=LlamaFactory.name,
            title=TITLE,
            release=self.release,
            where=entry,
            length=length,
            length_setting=length_setting,
            writes=(Write(directory, self._interval(), trainer.retention(self.settings), tuple(self._missing())),),
            reads=(self._read(),),
            warm_starts=tuple(self._warm_starts()),
            switches=tuple(self._switches()),
            obstacles=self.obstacles,
            misfits=tuple(self._misfits()),
            refusals=tuple(self._refusals()),
            strange_keys=tuple(self._strange_keys()),
            model=shown(self.settings.value("model_name_or_path") or ""),
            settings={name: self.settings.setting(name) for name in (*(key.name for key in self.keys), *self._megatron_keys())},
        )

    def _megatron_keys(self) -> Iterator[str]:
        """Written keys that only a run with USE_MCA=1 or USE_MEGATRON_BRIDGE=1 takes: its checkpoints have another layout."""
        return (name for name in ("tensor_model_parallel_size", "pipeline_model_parallel_size") if name in self.settings)

    # -------------------------------------------------------------------------------- where and how often

    def _output_path(self) -> PathExpr | Unknown:
        if self.output_dir.path is not None:
            return self.output_dir.path
        if not isinstance(self.output_dir.value, str):
            return Unknown(f"`{self.output_dir}` is not a path")
        return PathExpr.of_text(self.output_dir.value, expanded=False)

    def _interval(self) -> Interval:
        beneath = Release(transformers_of(self.release.text).assumed)
        return trainer.interval(self.settings, saves_at_end=not beneath.before(trainer.SAVES_LAST_STEP_SINCE))

    def _missing(self) -> Iterator[Missing]:
        yield from trainer.missing_state(self.settings)
        badam = self.settings.setting("use_badam")
        if trainer.is_on(badam.value):
            yield Missing(State.OPTIMIZER, badam)
        for use, layerwise in _UNSAVED_OPTIMIZERS:
            setting = self.settings.setting(layerwise)
            if trainer.is_on(self.settings.value(use)) and trainer.is_on(setting.value):
                yield Missing(State.OPTIMIZER, setting)

    # -------------------------------------------------------------------------------- what a start takes up

    def _read(self) -> Read:
        value = self.resume.value
        if self.obstacles:
            return Read(Choice.NOTHING, self.resume, why=self.obstacles[0].why)
        if value is None and self.overwrites:
            return Read(Choice.NOTHING, self.overwrite)
        if value is None:
            return Read(Choice.NEWEST, self.resume)
        if value is False:
            return Read(Choice.NOTHING, self.resume)
        if value is True:
            guards = (self.overwrite,) if self.overwrites else ()
            return Read(Choice.NEWEST, self.resume, raises_when_missing=True, needs_off=guards)
        if isinstance(value, Unknown) and self.resume.path is None:
            return Read(Choice.UNKNOWN, self.resume, why=value.why)
        if self.resume.path is not None:
            return Read(Choice.FIXED, self.resume, self.resume.path, raises_when_missing=True)
        path = PathExpr.of_text(str(value), expanded=False)
        if any(path.of(Variable)) or self._misfit(str(value)) is not None:
            return Read(Choice.UNKNOWN, self.resume, path, why=f"`{self.resume}` names no checkpoint")
        return Read(Choice.FIXED, self.resume, path, raises_when_missing=True)

    def _switches(self) -> Iterator[Switch]:
        if self.resume.value is None and self.overwrites and not self.obstacles:
            yield Switch(
                self.overwrite,
                f"`{self.overwrite}` {self._shown_resume()} begins every restart at step 0 and writes over the checkpoints in "
                f"`{self.output_dir.value}`",
                off=False,
                safe=True,
                advice="set it to false, and every start takes up the newest checkpoint there is",
            )
        if self.resume.value is False and not self.obstacles:
            yield Switch(
                self.resume,
                f"`{self.resume}` is not null: {TITLE} then does not look for checkpoints, and every restart begins at step 0",
                also=((self.overwrite, False),) if self.overwrites else (),
                safe=True,
                advice=f"remove the key{self._and_the_switch()}, and every start takes up the newest checkpoint there is",
            )
        skip = self.settings.setting("ignore_data_skip")
        if trainer.is_on(skip.value):
            yield Switch(
                skip,
                f"with `{skip}` a restart reads the data of the current epoch from its beginning, so some samples are seen "
                "twice and others never",
                loses=frozenset({State.DATA}),
                off=False,
                advice="set it to false to go on where the data stood",
            )

    def _shown_resume(self) -> str:
        return f"with `{self.resume}`" if self.resume.written else "without `resume_from_checkpoint`"

    def _and_the_switch(self) -> str:
        return " and set `overwrite_output_dir` to false" if self.overwrites else ""

    def _obstacles(self) -> Iterator[Obstacle]:
        """What get_train_args and the stages' own trainers do: reset the key, raise, or fail to read back what they wrote."""
        stage, method = self.stage.value, self.method.value
        if stage not in ("rm", "ppo"):
            return
        if method in ("full", "freeze"):
            yield Obstacle(
                self.stage,
                f"{TITLE} resets `resume_from_checkpoint` to null for stage {stage} with finetuning_type {method}",
                "keep the run short enough to repeat, or start again from the last weights (model_name_or_path)",
            )
        elif stage == "ppo":
            yield Obstacle(
                self.stage,
                "a PPO checkpoint holds weights only, and a start that finds one stops with a ValueError (not supported yet)",
                "name its weights in adapter_name_or_path and use a new output_dir for each attempt",
            )
        elif not self.settings.value("deepspeed"):
            yield Obstacle(
                self.stage,
                self._of_reward_model(),
                "name its weights in adapter_name_or_path and use a new output_dir for each attempt",
            )

    def _of_reward_model(self) -> str:
        """Where the search for checkpoints is switched off, a start finds none to stop at."""
        if self.overwrites and self.resume.value in (None, False):
            return (
                f"with `{self.overwrite}` every restart begins at step 0, and without it a start stops with `Can't find a "
                "checkpoint index`, because the weights are renamed after saving"
            )
        return (
            "a start that finds a reward-model checkpoint stops with `Can't find a checkpoint index`, because its weights are "
            "renamed after saving"
        )

    def _misfits(self) -> Iterator[Misfit]:
        if isinstance(self.resume.value, (str, int, float)) and not isinstance(self.resume.value, bool):
            misfit = self._misfit(str(self.resume.value))
            if misfit is not None:
                yield misfit

    def _misfit(self, value: str) -> Misfit | None:
        """Values for which the Trainer stops: Can't find a valid checkpoint at …"""
        root = str(self.output_dir.value).rstrip("/")
        instead = f"name one checkpoint ({root}/checkpoint-N), or leave the key out: the newest is found by itself"
        path = PathExpr.of_text(value, expanded=False)
        if any(path.of(Variable)):
            return None
        if value in _WORDS:
            return Misfit(self.resume, f"{TITLE} takes the word for a folder's name", instead)
        if re.fullmatch(r"\d+", value):
            return Misfit(self.resume, f"a step number is no path: {TITLE} looks for a folder called `{value}`", instead)
        if same_directory(value, root):
            return Misfit(self.resume, "this is the output directory, not one of the checkpoints in it", instead)
        name = value.rstrip("/").rpartition("/")[2]
        if name.startswith("tmp-checkpoint-"):
            return Misfit(self.resume, "this is an interrupted save, not a checkpoint", instead)
        return None

    def _warm_starts(self) -> Iterator[WarmStart]:
        """Weights of this run's own checkpoints under a key that loads nothing else (model/adapter.py, model/loader.py)."""
        if self.obstacles or isinstance(self.resume.value, str) or not isinstance(self.output_dir.value, str):
            return
        adapter, model = self.settings.setting("adapter_name_or_path"), self.settings.setting("model_name_or_path")
        guards = ((self.overwrite, False),) if self.overwrites else ()
        for setting, verb, repair in ((adapter, "remove it", ((adapter, None), *guards)), (model, "name the base model", ())):
            for value in str(setting.value or "").split(","):
                if self._is_own(value.strip()):
                    instead = f"{verb}{self._and_the_switch()}, and every start takes up the newest checkpoint"
                    yield WarmStart(setting, PathExpr.of_text(value.strip(), expanded=False), instead, repair)

    def _is_own(self, path: str) -> bool:
        """Whether a path is the output directory or a checkpoint in it. Other things below it may be base models."""
        parent, _, name = path.rstrip("/").rpartition("/")
        root = str(self.output_dir.value)
        return same_directory(path, root) or (bool(trainer.CHECKPOINT_NAME.fullmatch(name)) and same_directory(parent, root))

    # -------------------------------------------------------------------------------- what the parser refuses

    def _refusals(self) -> Iterator[Refusal]:
        yield from trainer.refusals(self.settings, (key for key in self.keys if key.name not in _READ_APART), TITLE)
        best = self.settings.setting("load_best_model_at_end")
        if trainer.is_on(best.value) and self.stage.value in ("rm", "ppo"):
            yield Refusal(
                best, f"stage {self.stage.value} does not support it, and {TITLE} stops with a ValueError", "remove it"
            )
        for setting in (self.resume, self.output_dir):
            if isinstance(setting.value, str) and re.search(r"\$\{[^}]*$", setting.value):
                yield Refusal(
                    setting, f"`${{` is not closed, and {TITLE} stops with a GrammarParseError", "write the path itself"
                )

    def _strange_keys(self) -> Iterator[StrangeKey]:
        known = frozenset(V0_KEYS) | frozenset(TRAINER_KEYS)
        here = v0_keys(self.release.text) if self.release.pinned else known
        effect = f"{TITLE} stops (`Some keys are not used`), or ignores it where ALLOW_EXTRA_ARGS=1 is set"
        yield from strange_keys(self.settings, known, CHECKPOINT_KEYS, effect)
        yield from keys_of_another_release(self.settings, known - here, _CHECKPOINT_BEARING, self.release, effect)


def keys(release: Release) -> Iterator[Key]:
    """The settings that bear on checkpoints, as this release has them."""
    for name in _CHECKPOINT_BEARING:
        key = v0_key(name, release.text)
        if key is not None:
            yield key


def defaults(release: Release) -> dict[str, object]:
    """What this release takes for a setting that is not written."""
    found = {key.name: None if isinstance(key.default, NoDefault) else key.default for key in keys(release)}
    found["output_dir"] = found.get("output_dir") or trainer.DEFAULT_OUTPUT_DIR
    return found


# Every setting in the tables, once.
_CHECKPOINT_BEARING = tuple(dict.fromkeys(key.name for key in (*TRAINER_CHECKPOINT_KEYS, *V0_CHECKPOINT_KEYS)))

# Read by this module itself, because their values mean more than a kind.
_READ_APART = ("resume_from_checkpoint", "do_train", "stage", "finetuning_type")

# Keys whose misspelling costs progress; near misses of others are left to the parser.
CHECKPOINT_KEYS = (
    "output_dir",
    "overwrite_output_dir",
    "resume_from_checkpoint",
    "save_strategy",
    "save_steps",
    "save_total_limit",
    "save_only_model",
    "save_on_each_node",
    "ignore_data_skip",
    "load_best_model_at_end",
    "num_train_epochs",
    "max_steps",
)
