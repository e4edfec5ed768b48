"""MindSpeed-LLM's FSDP2 backend (``train_fsdp2.py run.yaml --section.key value``).

Sources: Ascend/MindSpeed-LLM at c77308a1: ``mindspeed_llm/fsdp2/utils/arguments.py`` (``fsdp2_parse_args``,
``TrainingArguments``), ``fsdp2/train/trainer.py``, ``fsdp2/checkpoint/checkpoint_manager.py``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ckptlint.checkpoints.checkpoint import Checkpoint, Layout
from ckptlint.frameworks.flags import CommandEditor, FlagSettings, OverFile, known_text, program
from ckptlint.frameworks.framework import Framework, Pin, PinRequest, SaveRoot
from ckptlint.frameworks.megatron_keys import Flag
from ckptlint.frameworks.nested_settings import NestedSettings
from ckptlint.frameworks.settings import Settings
from ckptlint.run import (
    NEVER,
    Amount,
    Choice,
    Fact,
    Interval,
    Location,
    Misfit,
    Missing,
    PathExpr,
    Read,
    Refusal,
    Release,
    Retention,
    Run,
    Setting,
    State,
    Unit,
    Unknown,
    Variable,
    Write,
    same_directory,
)
from ckptlint.source.file import SourceFile
from ckptlint.source.text import SourceError, Span, decode
from ckptlint.source.yaml import SAFE_LOAD, Scalar, parse
from ckptlint.source.yaml import Mapping as YamlMapping

if TYPE_CHECKING:
    from ckptlint.source.shell.values import Argument

NAME = "mindspeed-fsdp2"
TITLE = "MindSpeed-LLM (FSDP2)"
READ_AT = "2026.8"

USUAL_INTERVAL = 500

# utils/arguments.py TrainingArguments; output_dir has no default.
DEFAULTS: Mapping[str, object] = {
    "training.save_steps": 500,
    "training.save_epochs": 1,
    "training.save_total_limit": 3,
    "training.save_only_model": False,
    "training.save_async": False,
    "training.max_steps": -1,
    "training.num_train_epochs": 3.0,
    "training.resume_from_checkpoint": None,
}
_AFTER = ("training.output_dir", "training.save_steps", "training.max_steps")
_SECTIONS = frozenset({"model", "data", "parallel", "training", "optimization"})
_TELLING = ("fsdp_modules", "fsdp_size", "ep_fsdp_size", "ep_modules")


class MindSpeedFsdp2(Framework):
    """The YAML of ``train_fsdp2.py``: sections model, data, parallel and training."""

    name = NAME
    title = TITLE
    suffixes = (".yaml", ".yml")

    def mentions(self, data: bytes) -> bool:
        return b"training:" in data and b"parallel:" in data and b"fsdp" in data

    def read(self, file: SourceFile) -> tuple[Run, ...]:
        documents = file.yaml.documents
        if len(documents) != 1 or not isinstance(documents[0].root, YamlMapping) or not _is_fsdp2(documents[0].root):
            return ()
        source = f"default of {TITLE}"
        settings = NestedSettings(file.yaml, documents[0].root, SAFE_LOAD, DEFAULTS, source, _AFTER)
        return (read_run(settings),)

    def layout(self, run: Run) -> Layout:
        from ckptlint.checkpoints.mindspeed_fsdp2 import MindSpeedFSDP2Layout

        return MindSpeedFSDP2Layout()

    def roots(self, run: Run, environment: Mapping[str, str], save_dir: str | None) -> tuple[SaveRoot, ...]:
        from ckptlint.frameworks.mindspeed_fsdp2_pin import roots

        return roots(run, environment, save_dir)

    def unfit(self, run: Run, checkpoint: Checkpoint, environment: Mapping[str, str]) -> str:
        from ckptlint.frameworks.mindspeed_fsdp2_pin import unfit

        return unfit(checkpoint, environment)

    def pin(self, run: Run, request: PinRequest) -> Pin:
        from ckptlint.frameworks.mindspeed_fsdp2_pin import pin

        return pin(run, request)


def _is_fsdp2(root: YamlMapping) -> bool:
    names = {name for name, _ in root.items()}
    training, parallel = root.get("training"), root.get("parallel")
    if not names <= _SECTIONS or training is None or parallel is None:
        return False
    if not isinstance(training.value, YamlMapping) or not isinstance(parallel.value, YamlMapping):
        return False
    stage = training.value.get("stage")
    named = any(training.value.get(name) for name in ("save_steps", "max_steps", "num_train_epochs", "output_dir"))
    of_fsdp2 = any(parallel.value.get(name) for name in _TELLING)
    return named and of_fsdp2 and (stage is None or (isinstance(stage.value, Scalar) and stage.value.text in ("pt", "sft")))


# What may be given behind the YAML, as far as checkpoints go.
FLAGS = (
    *(Flag(f"training.{name}", (f"--training.{name}",), "int") for name in ("save_steps", "save_epochs", "save_total_limit")),
    Flag("training.max_steps", ("--training.max_steps",), "int"),
    Flag("training.num_train_epochs", ("--training.num_train_epochs",), "float"),
    *(Flag(f"training.{name}", (f"--training.{name}",), "bool") for name in ("save_only_model", "save_async")),
    *(Flag(f"training.{name}", (f"--training.{name}",)) for name in ("output_dir", "resume_from_checkpoint", "stage")),
    Flag("model.model_name_or_path", ("--model.model_name_or_path",)),
)


def read_launch(
    argv: Sequence[Argument], place: Span, editor: CommandEditor | None = None, directories: Sequence[str] = ()
) -> Run | None:
    """The run that a command launches with ``train_fsdp2.py``, its arguments over the YAML it names; None for any other.

    ``place`` is the command as a whole; a relative YAML is looked for in ``directories``.
    """
    launch = program(argv)
    if launch is None or launch.script != "train_fsdp2.py":
        return None
    given = FlagSettings(launch.arguments, FLAGS, f"default of {TITLE}", place, editor)
    name = next((text for argument in launch.arguments[:1] if (text := known_text(argument))), "")
    file = _file(name, directories)
    settings: Settings = OverFile(given, file) if file is not None else given
    return _Reader(settings, complete=file is not None or not name.endswith((".yaml", ".yml"))).run()


def _file(name: str, directories: Sequence[str]) -> NestedSettings | None:
    for directory in directories if name.endswith((".yaml", ".yml")) else ():
        path = Path(directory, name)
        try:
            yaml = parse(decode(str(path), path.read_bytes()))
        except (OSError, ValueError, SourceError):
            continue
        root = yaml.documents[0].root if yaml.documents else None
        if isinstance(root, YamlMapping):
            return NestedSettings(yaml, root, SAFE_LOAD, DEFAULTS, f"default of {TITLE}", _AFTER)
    return None


def read_run(settings: Settings) -> Run:
    """The run that a YAML describes. Where it names no ``output_dir``, which has no default, the command line completes it."""
    return _Reader(settings, complete="training.output_dir" in settings).run()


class _Reader:
    def __init__(self, settings: Settings, *, complete: bool) -> None:
        self.settings = settings
        self.directory = settings.setting("training.output_dir")
        self.resume = settings.setting("training.resume_from_checkpoint")
        self.complete = complete

    def run(self) -> Run:
        length, length_setting = self._length()
        limit = self.settings.setting("training.save_total_limit")
        keep: int | None = int(limit.value) if isinstance(limit.value, int) and limit.value > 0 else None
        write = Write(Location(self._path(), self.directory), self._interval(), Retention(keep, limit), tuple(self._missing()))
        model = self.settings.value("model.model_name_or_path")
        return Run(
            framework=NAME,
            title=TITLE,
            release=Release(READ_AT),
            where=self.settings.where,
            length=length,
            length_setting=length_setting,
            writes=(write,),
            reads=(self._read(),),
            misfits=tuple(self._misfits()),
            refusals=tuple(self._refusals()),
            model=model if isinstance(model, str) else "",
            settings={"training.resume_from_checkpoint": self.resume},
        )

    def _length(self) -> tuple[Fact[Amount], Setting]:
        steps = self.settings.setting("training.max_steps")
        if _number(steps.value) is None:
            return Unknown(f"`{steps}` is not a number"), steps
        count = _number(steps.value) or 0
        if count > 0:
            return Amount(count, Unit.STEP), steps
        epochs = self.settings.setting("training.num_train_epochs")
        count = _number(epochs.value) or 0
        return (Amount(count, Unit.EPOCH) if count else Unknown(f"`{epochs}` is not a number")), epochs

    def _path(self) -> Fact[PathExpr]:
        if self.directory.path is not None:
            return self.directory.path
        value = self.directory.value
        if isinstance(value, str):
            return PathExpr.of_text(value, expanded=False)
        return Unknown("the YAML names no `training.output_dir`, so the command line does", "name it in the YAML")

    def _interval(self) -> Interval:
        """trainer.py: at multiples of save_steps, and at the end of every save_epochs-th epoch."""
        steps, epochs = self.settings.setting("training.save_steps"), self.settings.setting("training.save_epochs")
        every, whole = _number(steps.value), _number(epochs.value)
        if every is None:
            return Interval(Unknown(f"`{steps}` is not a number of steps"), bool(whole), steps)
        if every > 0:
            return Interval(Amount(every, Unit.STEP), bool(whole), steps)
        repair = ((steps, self._usual()),)
        length, _ = self._length()
        if not whole or isinstance(length, Unknown):
            never = whole == 0
            return Interval(NEVER if never else Unknown("it saves by epochs"), False, steps, disabled=never, repair=repair)
        if length.unit is Unit.STEP:  # how many steps an epoch has is not known; the last one is cut off by max_steps
            return Interval(NEVER, True, steps, disabled=True, repair=repair)
        return Interval(Amount(whole, Unit.EPOCH), True, epochs, repair=repair)

    def _usual(self) -> int:
        length, _ = self._length()
        steps = int(length.value) // 10 if isinstance(length, Amount) and length.unit is Unit.STEP else USUAL_INTERVAL
        return max(1, min(USUAL_INTERVAL, steps))

    def _missing(self) -> Iterator[Missing]:
        only_model = self.settings.setting("training.save_only_model")
        if only_model.value is True:
            for state in (State.OPTIMIZER, State.SCHEDULER, State.RNG, State.PROGRESS):
                yield Missing(state, only_model, False, "a restart from one begins at step 0")

    def _read(self) -> Read:
        value = self.resume.value
        if isinstance(value, Unknown) and self.resume.path is None:
            return Read(Choice.UNKNOWN, self.resume, why=value.why)
        if not value and self.resume.path is None:
            if not self.complete:
                return Read(Choice.UNKNOWN, self.resume, why="the command line may name a checkpoint to resume")
            advice = "this trainer looks for none by itself, so let `ckptlint resume` name the newest before each launch"
            return Read(Choice.NOTHING, self.resume, advice=advice)
        path = self.resume.path or PathExpr.of_text(str(value), expanded=False)
        if any(True for _ in self._misfits()):
            return Read(Choice.UNKNOWN, self.resume, path, why=f"`{self.resume}` names no checkpoint")
        return Read(Choice.FIXED, self.resume, path, raises_when_missing=True)

    def _misfits(self) -> Iterator[Misfit]:
        value, root = self.resume.value, self.directory.value
        if isinstance(value, int) and not isinstance(value, bool):
            value = str(value)  # the YAML becomes arguments, which are text
        if not isinstance(value, str) or any(PathExpr.of_text(value, expanded=True).of(Variable)):
            return
        instead = "name one checkpoint, `…/checkpoints/global_step_N`"
        if value in ("auto", "latest", "True", "true", "last"):
            yield Misfit(self.resume, f"{TITLE} takes the word for a folder's name", instead)
        elif re.fullmatch(r"\d+", value):
            yield Misfit(self.resume, "a step number is no path", instead)
        elif isinstance(root, str) and (
            same_directory(value, root) or same_directory(value, f"{root.rstrip('/')}/checkpoints")
        ):
            yield Misfit(self.resume, "this is the directory of all checkpoints, not one of them", instead)

    def _refusals(self) -> Iterator[Refusal]:
        steps = self.settings.setting("training.save_steps")
        value = steps.value
        if steps.written and not isinstance(value, Unknown) and (isinstance(value, bool) or not isinstance(value, int)):
            meant = int(value) if isinstance(value, str) and value.strip().isdigit() else None
            if meant is None:  # the YAML becomes arguments, so a number in quotes is a number
                yield Refusal(steps, "argparse takes a whole number only, and the start stops", "write a whole number")


def _number(value: object) -> float | None:
    if isinstance(value, str) and re.fullmatch(r"-?\d+(\.\d+)?", value.strip()):
        return float(value)
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None
