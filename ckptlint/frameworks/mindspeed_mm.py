"""MindSpeed-MM's YAMLs: ``gpt_args`` (Megatron's arguments in a YAML) and the FSDP trainer's.

Sources: Ascend/MindSpeed-MM at 57069cd5: ``mindspeed_mm/configs/read_yaml_config.py``,
``mindspeed_mm/fsdp/params/training_args.py``, ``mindspeed_mm/fsdp/train/trainer.py`` (``get_checkpointers``),
``train_engine.py`` (``load``, ``save``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ckptlint.frameworks.megatron import Family, MegatronCommand, Role, number, path_of, run_of, same
from ckptlint.frameworks.megatron_keys import ASSUMED_BY_MINDSPEED, CHECKPOINT_FLAGS, MINDSPEED_LLM_FLAGS, Flag, defaults
from ckptlint.frameworks.mindspeed_rl import Sections
from ckptlint.frameworks.nested_settings import NestedSettings
from ckptlint.frameworks.settings import Settings
from ckptlint.run import (
    NEVER,
    Amount,
    Choice,
    Dropped,
    Editor,
    Fact,
    Interval,
    Location,
    Missing,
    Read,
    Refusal,
    Release,
    Retention,
    Run,
    Setting,
    State,
    Unit,
    Unknown,
    Write,
)
from ckptlint.source.file import SourceFile
from ckptlint.source.text import Edit
from ckptlint.source.yaml import SAFE_LOAD
from ckptlint.source.yaml import Mapping as YamlMapping

ARGS = Family("mindspeed-mm", "MindSpeed-MM")
READ_AT = "2026.8"

# fsdp/params/training_args.py TrainingArguments
FSDP_DEFAULTS: Mapping[str, object] = {
    "training.load": None,
    "training.save": None,
    "training.save_interval": 1,
    "training.train_iters": 10000,
    "training.train_epochs": None,
    "training.load_format": "auto",
    "training.save_format": "auto",
    "training.load_strict": False,
    "training.save_async": False,
    "training.no_load_optim": False,
    "training.no_load_rng": False,
    "training.no_save_optim": False,
    "training.no_save_rng": False,
}
_FSDP_SECTIONS = frozenset({"parallel", "data", "model", "features", "training", "tools"})


class MindSpeedMM(MegatronCommand):
    """``gpt_args`` with ``MM_TOOL_PATH``, or the sections of ``mindspeed_mm/fsdp/train/trainer.py``."""

    name = ARGS.name
    title = ARGS.title
    suffixes = (".yaml", ".yml")

    def mentions(self, data: bytes) -> bool:
        return (b"gpt_args:" in data and b"MM_TOOL_PATH" in data) or (b"training:" in data and b"fsdp_plan:" in data)

    def read(self, file: SourceFile) -> tuple[Run, ...]:
        documents = file.yaml.documents
        if len(documents) != 1 or not isinstance(documents[0].root, YamlMapping):
            return ()
        root = documents[0].root
        names = {name for name, _ in root.items()}
        if {"gpt_args", "MM_TOOL_PATH"} <= names:
            nested = NestedSettings(file.yaml, root, SAFE_LOAD, insert_after=("gpt_args.save", "gpt_args.save_interval"))
            return (read_arguments(nested, Release(ASSUMED_BY_MINDSPEED)),)
        if not _is_fsdp(root):
            return ()
        after = ("training.save", "training.save_interval", "training.load")
        return (read_fsdp(NestedSettings(file.yaml, root, SAFE_LOAD, FSDP_DEFAULTS, f"default of {ARGS.title}", after)),)


def _is_fsdp(root: YamlMapping) -> bool:
    """The FSDP trainer's: inference with the same sections has no `training`."""
    sections = {name: entry.value for name, entry in root.items() if name in _FSDP_SECTIONS}
    parallel = sections.get("parallel")
    if not {"parallel", "training", "model"} <= sections.keys() or not isinstance(parallel, YamlMapping):
        return False
    return isinstance(sections["training"], YamlMapping) and parallel.get("fsdp_plan") is not None


# ------------------------------------------------------------------------------------------------ gpt_args


def read_arguments(settings: Settings, release: Release) -> Run:
    """The run of a YAML whose ``gpt_args`` become Megatron's command line."""
    flags = (*CHECKPOINT_FLAGS, *MINDSPEED_LLM_FLAGS)
    arguments = _Arguments(settings, ("gpt_args",), defaults(flags, release.text), release.text)
    run = run_of((Role(arguments, release, ARGS),), settings, release, ARGS)
    return run._replace(refusals=(*run.refusals, *_flags_with_value(arguments, flags)))


class _Arguments(Sections):
    """``gpt_args``: a flag that is off is not there, because ``false`` becomes ``--flag False``."""

    def setting(self, name: str) -> Setting:
        setting = super().setting(name)
        return setting if setting.editor is None else setting._replace(editor=_WithoutFalse(setting.editor))


@dataclass(frozen=True)
class _WithoutFalse:
    editor: Editor

    def set(self, value: object) -> tuple[Edit, ...]:
        return self.editor.remove() if value is False else self.editor.set(value)

    def remove(self) -> tuple[Edit, ...]:
        return self.editor.remove()


def _flags_with_value(arguments: Settings, flags: tuple[Flag, ...]) -> Iterator[Refusal]:
    for flag in flags:
        setting = arguments.setting(flag.name) if flag.kind == "on" else None
        if setting is not None and setting.written and setting.value is False:
            effect = f"it becomes `{flag.options[0]} False`, and the start stops with an argparse error"
            yield Refusal(setting, effect, "take the key out", False)


# ------------------------------------------------------------------------------------------------ the FSDP trainer


def read_fsdp(settings: Settings) -> Run:
    """The run of the FSDP trainer's YAML."""
    return _FsdpReader(settings).run()


class _FsdpReader:
    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.load = settings.setting("training.load")
        self.save = settings.setting("training.save")
        self.no_save_optim = settings.setting("training.no_save_optim")
        self.no_save_rng = settings.setting("training.no_save_rng")

    def run(self) -> Run:
        length, length_setting = self._length()
        keep = Retention(None, self.save)
        write = Write(Location(path_of(self.save) or Unknown("`save` is not given"), self.save), self._interval(), keep)
        write = write._replace(missing=tuple(self._missing()))
        model = self.settings.value("model.model_name_or_path")
        return Run(
            framework=ARGS.name,
            title=ARGS.title,
            release=Release(READ_AT),
            where=self.settings.where,
            length=length,
            length_setting=length_setting,
            writes=(write,),
            reads=(self._read(),),
            model=model if isinstance(model, str) else "",
        )

    def _length(self) -> tuple[Fact[Amount], Setting]:
        epochs = self.settings.setting("training.train_epochs")
        if epochs.value is not None:
            count = number(epochs.value)
            return (Amount(count, Unit.EPOCH) if count else Unknown(f"`{epochs}` is not a number")), epochs
        iterations = self.settings.setting("training.train_iters")
        count = number(iterations.value)
        return (Amount(count, Unit.STEP) if count else Unknown(f"`{iterations}` is not a number")), iterations

    def _interval(self) -> Interval:
        every = self.settings.setting("training.save_interval")
        count = number(every.value)
        length, _ = self._length()
        tenth = int(length.value) // 10 if isinstance(length, Amount) and length.unit is Unit.STEP else 500
        repair = ((every, max(1, min(500, tenth))),)
        if path_of(self.save) is None:
            return Interval(NEVER, False, self.save)
        if count is None:
            return Interval(Unknown(f"`{every}` is not a number of iterations"), True, every)
        if count <= 0:
            return Interval(NEVER, True, every, disabled=True, repair=repair)
        return Interval(Amount(count, Unit.STEP), True, every)

    def _missing(self) -> Iterator[Missing]:
        """trainer.py get_checkpointers: HF weights alone where neither optimizer nor random state is saved and load is HF."""
        if self.no_save_optim.value is True:
            yield Missing(State.OPTIMIZER, self.no_save_optim, False)
        if self.no_save_rng.value is True:
            yield Missing(State.RNG, self.no_save_rng, False)

    def _read(self) -> Read:
        load, save = path_of(self.load), path_of(self.save)
        if isinstance(self.load.value, Unknown) and load is None:
            return Read(Choice.UNKNOWN, self.load, why=self.load.value.why)
        advice = "before each launch let `ckptlint resume` point it at what was saved (an empty directory stops this loader)"
        if load is None:
            return Read(Choice.NOTHING, self.load, advice=advice)
        if save is None:
            return Read(Choice.NOTHING, self.load, load, why="nothing is saved", advice=advice)
        equal = same(load, save)
        if equal is None:
            return Read(Choice.UNKNOWN, self.load, load, why="it is not known whether `load` is the directory of `save`")
        if not equal:
            return Read(
                Choice.NOTHING, self.load, load, why=f"`{self.load}` is not the directory of `{self.save}`", advice=advice
            )
        return Read(Choice.NEWEST, self.load, load, raises_when_missing=True, drops=tuple(self._drops()))

    def _drops(self) -> Iterator[Dropped]:
        setting = self.settings.setting("training.no_load_optim")
        if setting.value is True and self.no_save_optim.value is not True:
            yield Dropped(State.OPTIMIZER, setting, "the optimizer's moments begin at zero", False)
