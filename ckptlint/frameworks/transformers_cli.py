"""Command lines of scripts on the Hugging Face Trainer: the options that HfArgumentParser makes of ``TrainingArguments``.

What the script does with them stands in its own text, which is not read here: whether it hands ``--resume_from_checkpoint`` on,
or looks for a checkpoint by itself, stays unknown.

TRL's command line tool is one whose script is known.

Sources: transformers 4.57.1 and 5.23.0 ``hf_argparser.py``, ``training_args.py``, ``examples/pytorch/*/run_*.py``; TRL 0.29.0
and 1.10.0.dev0 ``trl/scripts/*.py``, ``trl/scripts/utils.py`` (``TrlParser``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ckptlint.frameworks import flags, trainer
from ckptlint.frameworks.flags import CommandEditor
from ckptlint.frameworks.launch_settings import field_flags, flags_of
from ckptlint.frameworks.launches import Launch
from ckptlint.frameworks.settings import Layered, Settings
from ckptlint.frameworks.trainer_keys import NEWEST_READ, TRAINER_CHECKPOINT_KEYS, NoDefault
from ckptlint.frameworks.yaml_settings import YamlSettings
from ckptlint.run import (
    Choice,
    Location,
    Misfit,
    PathExpr,
    Read,
    Release,
    Run,
    Unknown,
    UnusedSetting,
    Write,
    same_directory,
)
from ckptlint.source.file import SourceFile
from ckptlint.source.shell import Argument
from ckptlint.source.yaml import SAFE_LOAD
from ckptlint.source.yaml import Mapping as YamlMapping

NAME = "transformers"
TITLE = "transformers"
TRL = "trl"

# Options by which one knows TrainingArguments. Many scripts have an --output_dir, and some a few of the others.
_TELLING = frozenset(
    """
    do_train save_strategy save_total_limit save_steps eval_strategy evaluation_strategy logging_steps logging_strategy
    overwrite_output_dir per_device_train_batch_size per_device_eval_batch_size warmup_ratio weight_decay lr_scheduler_type
    report_to num_train_epochs gradient_accumulation_steps bf16 fp16 tf32 ddp_timeout learning_rate max_steps
    gradient_checkpointing dataloader_num_workers save_only_model load_best_model_at_end remove_unused_columns
    """.split()  # noqa: SIM905
)
_SURE = frozenset({"save_strategy", "save_total_limit", "evaluation_strategy", "eval_strategy", "save_only_model"})
_ENOUGH = 5

# Options of training loops that are not the Trainer's: diffusers' and Accelerate's examples (*_no_trainer.py).
_OTHER_LOOPS = frozenset({"checkpointing_steps", "checkpoints_total_limit", "train_batch_size", "with_tracking"})

# examples/pytorch/*/run_*.py, which hand --resume_from_checkpoint on as it is.
_EXAMPLE = re.compile(
    r"run_(?:clm|mlm|plm|fim|glue|xnli|classification|qa|qa_beam_search|seq2seq_qa|summarization|translation|ner|swag|mae|mim"
    r"|image_classification|audio_classification|speech_recognition_ctc|speech_recognition_ctc_adapter"
    r"|speech_recognition_seq2seq|semantic_segmentation|object_detection|instance_segmentation)\.py"
)


def read_launch(launch: Launch, release: Release, editor: CommandEditor) -> Run | None:
    """The run of a script with the Trainer's options; None where it is none, or does not train."""
    from ckptlint.frameworks.launch_readers import NO_TRAINING

    if launch.tool is not None or NO_TRAINING.search(launch.script):
        return None
    given = {flags.known_head(argument).partition("=")[0].lstrip("-").replace("-", "_") for argument in _options(launch)}
    if "output_dir" not in given or given & _OTHER_LOOPS or "no_trainer" in launch.script:
        return None
    example = _EXAMPLE.fullmatch(launch.script) is not None
    if not example and (len(given & _TELLING) < _ENOUGH or not given & _SURE):
        return None
    release = release if release.pinned else Release(NEWEST_READ)
    keys = [key for key in TRAINER_CHECKPOINT_KEYS if key.lifetime.holds(release.text)]
    old = [key for key in TRAINER_CHECKPOINT_KEYS if key.name in ("evaluation_strategy", "overwrite_output_dir")]
    table = flags_of(dict.fromkeys((*keys, *old)), texts=False)
    settings = field_flags(launch.arguments, table, f"default of {TITLE} {release.text}", launch.place, editor)
    if not trainer.is_on(settings.value("do_train")) and {"do_eval", "do_predict"} & given:
        return None
    return _Reader(settings, release, launch).run()


def _options(launch: Launch) -> Iterator[Argument]:
    return (argument for argument in launch.arguments if flags.known_head(argument).startswith("--"))


def read_trl(launch: Launch, file: SourceFile | None, release: Release, editor: CommandEditor) -> Run | None:
    """The run of ``trl sft`` and its kin: the options over the YAML that ``--config`` names, where there is one."""
    release = release if release.pinned else Release(NEWEST_READ)
    keys = [key for key in TRAINER_CHECKPOINT_KEYS if key.lifetime.holds(release.text)]
    source = f"default of {TITLE} {release.text}"
    settings: Settings = field_flags(launch.arguments, flags_of(keys, texts=False), source, launch.place, editor)
    if file is not None:
        root = file.yaml.documents[0].root
        if not isinstance(root, YamlMapping):
            return None
        defaults = {key.name: None if isinstance(key.default, NoDefault) else key.default for key in keys}
        settings = Layered(settings, YamlSettings(file.yaml, root, SAFE_LOAD, defaults, source, ("output_dir", "save_steps")))
    return _TrlReader(settings, release, launch).run()


class _Reader:
    name = NAME
    title = TITLE

    def __init__(self, settings: Settings, release: Release, launch: Launch) -> None:
        self.settings = settings
        self.release = release
        self.launch = launch
        self.output_dir = settings.setting("output_dir")
        self.resume = settings.setting("resume_from_checkpoint")

    def run(self) -> Run:
        length, length_setting = trainer.length(self.settings)
        ends = not self.release.before(trainer.SAVES_LAST_STEP_SINCE)
        interval = trainer.interval(self.settings, saves_at_end=ends)
        write = Write(
            Location(self._directory(), self.output_dir),
            interval,
            trainer.retention(self.settings),
            tuple(trainer.missing_state(self.settings)),
        )
        return Run(
            framework=self.name,
            title=self.title,
            release=self.release,
            where=self.settings.where,
            length=length,
            length_setting=length_setting,
            writes=(write,),
            reads=(self._read(),),
            misfits=tuple(self._misfits()),
            unused_settings=tuple(self.unused()),
        )

    def unused(self) -> Iterator[UnusedSetting]:
        """Settings that nothing reads; what the script does is not known."""
        return iter(())

    def _directory(self) -> PathExpr | Unknown:
        if self.output_dir.path is not None:
            return self.output_dir.path
        if isinstance(self.output_dir.value, str):
            return PathExpr.of_text(self.output_dir.value, expanded=False)
        return (
            self.output_dir.value if isinstance(self.output_dir.value, Unknown) else Unknown(f"`{self.output_dir}` is no path")
        )

    def _read(self) -> Read:
        value, path = self.resume.value, self.resume.path
        unread = "what the script does to resume is not known"
        if path is None and isinstance(value, str) and trainer.CHECKPOINT_NAME.fullmatch(value.rstrip("/").rpartition("/")[2]):
            path = PathExpr.of_text(value, expanded=False)
        if path is None or not self.resume.written or self.resume.path is not None or any(self._misfits()):
            return Read(Choice.UNKNOWN, self.resume, path, why=unread)
        return Read(Choice.FIXED, self.resume, path)

    def _misfits(self) -> Iterator[Misfit]:
        """The examples of transformers hand the value on as it is: ``Can't find a valid checkpoint at …``."""
        value, root = self.resume.value, self.output_dir.value
        if not isinstance(value, str) or not self.resume.written or _EXAMPLE.fullmatch(self.launch.script) is None:
            return
        instead = f"name one checkpoint ({root}/checkpoint-N)" if isinstance(root, str) else "name one checkpoint"
        if re.fullmatch(r"\d+", value):
            yield Misfit(self.resume, f"a step number is no path: the Trainer looks for a folder called `{value}`", instead)
        elif isinstance(root, str) and same_directory(value, root):
            yield Misfit(self.resume, "this is the output directory, not one of the checkpoints in it", instead)
        elif value in ("True", "true", "last", "latest"):
            yield Misfit(self.resume, "the Trainer takes the word for a folder's name", instead)


class _TrlReader(_Reader):
    """The scripts of TRL call ``trainer.train()`` without a checkpoint, whatever was asked for."""

    name = TRL
    title = "TRL"

    def _read(self) -> Read:
        why = f"`{self.title.lower()} {self.launch.tool.subcommand}` never looks for a checkpoint" if self.launch.tool else ""
        return Read(Choice.NOTHING, self.output_dir, why=why, advice=_OWN_SCRIPT)

    def _misfits(self) -> Iterator[Misfit]:
        return iter(())

    def unused(self) -> Iterator[UnusedSetting]:
        if self.resume.written:
            why = "TRL's script parses it and calls `trainer.train()` without it"
            yield UnusedSetting(self.resume, "resume", why, _OWN_SCRIPT)


_OWN_SCRIPT = "use a script of your own that calls `trainer.train(resume_from_checkpoint=get_last_checkpoint(output_dir))`"
