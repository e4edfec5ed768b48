"""ms-swift (``swift sft run.yaml``, ``megatron sft run.yaml``; sft, pt and rlhf alike).

Sources: ms-swift at 3602360a (4.6.0.dev0) and the wheels that ``ms_swift_keys.py`` names: ``cli/main.py`` (``parse_yaml_args``
makes a command line of the file), ``arguments/sft_args.py`` (``__post_init__``, ``_add_version``), ``utils/utils.py``
(``add_version_to_work_dir``), ``pipelines/train/sft.py`` (``_get_resume_checkpoint``), ``trainers/mixin.py``;
``megatron/arguments``, ``megatron/callbacks/default_flow.py``, ``megatron/utils/megatron_lm_utils.py``
(``load_mcore_checkpoint``), ``ray/megatron/driver_utils.py`` (``parse_ray_yaml``). What the Trainer underneath does is in
``trainer.py``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ckptlint.checkpoints.checkpoint import Checkpoint, Layout
from ckptlint.frameworks import trainer
from ckptlint.frameworks.converted_settings import ConvertedSettings
from ckptlint.frameworks.framework import Framework, NotPinned, Pin, PinRequest, SaveRoot, release_of
from ckptlint.frameworks.ms_swift_keys import (
    ASSUMED,
    FLAG,
    MEGATRON_KEYS,
    NUMBER,
    POSITIONAL_FILE_SINCE,
    TRAINER_KEYS,
    WHOLE,
    keys_of,
    parsed,
)
from ckptlint.frameworks.settings import Settings
from ckptlint.frameworks.spelling import strange_keys
from ckptlint.frameworks.trainer_keys import Key
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
    StrangeKey,
    Switch,
    Unit,
    Unknown,
    Variable,
    WarmStart,
    Write,
    inside,
    same_directory,
    shown,
)
from ckptlint.source.file import SourceFile
from ckptlint.source.text import Edit, SourceError, Span
from ckptlint.source.yaml import OMEGACONF, SAFE_LOAD, Scalar, Schema
from ckptlint.source.yaml import Mapping as YamlMapping

TITLE = "ms-swift"
MEGATRON_TITLE = "Megatron-SWIFT"

# A file with a model, a data set, one of these (or two of _OWN_KEYS) and one of _TRAINING is a configuration of ms-swift that
# trains.
_STRONG_KEYS = frozenset({"mcore_adapter", "mcore_model", "rlhf_type", "train_type", "tuner_type"})
_OWN_KEYS = frozenset(
    {
        "ENV",
        "add_version",
        "attn_impl",
        "custom_register_path",
        "dataset_num_proc",
        "external_plugins",
        "load_from_cache_file",
        "loss_scale",
        "mcore_adapter",
        "mcore_model",
        "model_author",
        "padding_free",
        "rlhf_type",
        "split_dataset_ratio",
        "target_modules",
        "torch_dtype",
        "train_type",
        "tuner_type",
        "use_hf",
        "val_dataset",
    }
)
_TRAINING = frozenset(
    {
        "global_batch_size",
        "learning_rate",
        "lr",
        "max_steps",
        "num_train_epochs",
        "per_device_train_batch_size",
        "save_steps",
        "train_iters",
    }
)
_MEGATRON = frozenset(
    {
        "expert_model_parallel_size",
        "finetune",
        "global_batch_size",
        "lr",
        "lr_warmup_fraction",
        "mcore_adapter",
        "mcore_model",
        "micro_batch_size",
        "no_save_optim",
        "pipeline_model_parallel_size",
        "recompute_granularity",
        "tensor_model_parallel_size",
        "train_iters",
    }
)
# What other tools' files and ms-swift's other commands have.
_FOREIGN = frozenset(
    {
        "base_model",
        "dataset_name",
        "eval_backend",
        "finetuning_type",
        "infer_backend",
        "model_name_or_path",
        "quant_method",
        "sampler_engine",
        "sampler_type",
        "stage",
        "swift_version",  # args.json, which a run writes into its directory
    }
)

_WORDS = ("auto", "latest", "last", "newest", "True", "true", "False", "false", "None", "none", "null")
_VERSION = re.compile(r"v\d+-\d{8}-\d{6}")
_VERSION_PART = "v<N>-<time>"

_TARGETS = (
    "output_dir",
    "add_version",
    "resume_from_checkpoint",
    "resume_only_model",
    "ignore_data_skip",
    "save_strategy",
    "save_steps",
    "save_total_limit",
    "save_only_model",
)
_MEGATRON_TARGETS = (
    "output_dir",
    "add_version",
    "save_steps",
    "save_total_limit",
    "mcore_model",
    "mcore_adapter",
    "no_save_optim",
)
# Settings that lie near one of those without being meant for it (arguments/, megatron/arguments/ of 4.6.0).
_KNOWN = frozenset({"save_safetensors", "eval_steps", "no_save_rng", "no_load_optim", "mcore_ref_model", "mcore_ref_adapter"})


class MsSwift(Framework):
    """One flat YAML or JSON of the arguments of ``swift sft``, ``pt`` or ``rlhf``."""

    name = "ms-swift"
    title = TITLE
    suffixes = (".yaml", ".yml", ".json")

    def mentions(self, data: bytes) -> bool:
        return _mentions(data)

    def read(self, file: SourceFile) -> tuple[Run, ...]:
        root = _root(file)
        if root is None or not _is_training(root) or _is_megatron(root):
            return ()
        release = release_of(file, (TITLE,), ASSUMED)
        return (read_run(settings_of(file, root, release, TITLE), release),)

    def layout(self, run: Run) -> Layout:
        from ckptlint.checkpoints.ms_swift import MsSwiftLayout

        return MsSwiftLayout(run.model)

    def roots(self, run: Run, environment: Mapping[str, str], save_dir: str | None) -> tuple[SaveRoot, ...]:
        from ckptlint.frameworks.trainer_pin import roots

        return roots(run, environment, save_dir)

    def unfit(self, run: Run, checkpoint: Checkpoint, environment: Mapping[str, str]) -> str:
        from ckptlint.frameworks.trainer_pin import unfit

        return unfit(run, checkpoint, environment)

    def pin(self, run: Run, request: PinRequest) -> Pin:
        from ckptlint.frameworks.ms_swift_pin import pin

        return pin(run, request)


class MegatronSwift(NotPinned):
    """One flat YAML or JSON of the arguments of ``megatron sft``, ``pt`` or ``rlhf``, or its grouped YAML for Ray."""

    name = "megatron-swift"
    title = MEGATRON_TITLE
    suffixes = (".yaml", ".yml", ".json")

    def mentions(self, data: bytes) -> bool:
        return _mentions(data)

    def read(self, file: SourceFile) -> tuple[Run, ...]:
        root = _root(file)
        if root is None or not _is_training(root) or not _is_megatron(root):
            return ()
        release = release_of(file, (TITLE,), ASSUMED)
        return (read_megatron_run(settings_of(file, root, release, MEGATRON_TITLE), release),)


# ------------------------------------------------------------------------------------------------ recognising


def _mentions(data: bytes) -> bool:
    if b"dataset" not in data or b"model" not in data:
        return False
    return any(key.encode() in data for key in _STRONG_KEYS) or sum(key.encode() in data for key in _OWN_KEYS) >= 2


def _root(file: SourceFile) -> YamlMapping | None:
    if file.suffix == ".json":
        root = _json(file)
        return root if isinstance(root, YamlMapping) else None
    documents = documents_of(file, _MARKS)
    if not documents or not isinstance(documents[0].root, YamlMapping):
        return None
    if len(documents) > 1 and _is_training(documents[0].root):
        problem = f"{TITLE} reads one YAML document, and a second one begins here"
        raise SourceError(documents[1].span, problem, "keep one run in a file")
    return documents[0].root


_MARKS = (
    re.compile(rb"^dataset:", re.M),
    re.compile(rb"^model:", re.M),
    re.compile(rb"^(?:tuner_type|train_type|rlhf_type):", re.M),
)


def _json(file: SourceFile) -> object:
    """The value in a JSON file; None where it is none, because too many of them are other tools' for a claim."""
    try:
        return file.json.root
    except SourceError:
        return None


def _is_training(root: YamlMapping) -> bool:
    names = {name for name, _ in root.items()}
    inner = root.get("train")
    if inner is not None and isinstance(inner.value, YamlMapping):
        names |= {name for name, _ in inner.value.items()}
    model = root.get("model")
    if model is None or not isinstance(model.value, Scalar) or names & _FOREIGN:
        return False
    data = "dataset" in names or "cached_dataset" in names
    own = bool(names & _STRONG_KEYS) or len(names & _OWN_KEYS) >= 2
    return data and own and bool(names & _TRAINING)


def _is_megatron(root: YamlMapping) -> bool:
    names = {name for name, _ in root.items()}
    return len(names & _MEGATRON) >= 2 and not names & {
        "per_device_train_batch_size",
        "learning_rate",
        "gradient_accumulation_steps",
    }


def settings_of(file: SourceFile, root: YamlMapping, release: Release, title: str) -> Settings:
    """The settings in a file's mapping."""
    after = ("resume_from_checkpoint", "mcore_model", "finetune", "output_dir", "save_steps")

    def keys(mapping: YamlMapping) -> YamlSettings:
        source = f"default of {title} {release.text}"
        if file.suffix == ".json":
            from ckptlint.source.json import JSON, write

            return YamlSettings(file.json, mapping, JSON, {}, source, after, write)
        return YamlSettings(file.yaml, mapping, _schema(release), {}, source, after)

    group = root.get("train")
    if group is None or not isinstance(group.value, YamlMapping) or not group.value.entries:
        return keys(root)
    return _Grouped(keys(root), keys(group.value))


def _schema(release: Release) -> Schema:
    return OMEGACONF if release.before(POSITIONAL_FILE_SINCE) else SAFE_LOAD


@dataclass(frozen=True, eq=False)
class _Grouped:
    """The arguments of the trainer in a YAML for Ray: those shared by all roles, and over them the group ``train``.

    A null is as if it were not written (_dict_to_argv).
    """

    shared: YamlSettings
    group: YamlSettings

    @property
    def where(self) -> Span:
        return self.shared.where

    def __contains__(self, name: str) -> bool:
        return self.group.value(name) is not None or self.shared.value(name) is not None

    def names(self) -> Iterator[str]:
        return (name for name in dict.fromkeys((*self.shared.names(), *self.group.names())) if name in self)

    def setting(self, name: str) -> Setting:
        shared = self.group.value(name) is None and self.shared.value(name) is not None
        setting = (self.shared if shared else self.group).setting(name)
        return (
            setting._replace(span=None, key_span=None, source=self.group.default_source) if setting.value is None else setting
        )

    def value(self, name: str) -> object:
        return self.setting(name).value

    def rename(self, name: str, to: str) -> tuple[Edit, ...]:
        return (self.group if name in self.group else self.shared).rename(name, to)


# ------------------------------------------------------------------------------------------------ reading


def read_run(settings: Settings, release: Release) -> Run:
    """The run that these arguments of ``swift sft``, ``pt`` or ``rlhf`` describe, wherever they are written."""
    return _Reader(settings, release).run()


def read_megatron_run(settings: Settings, release: Release) -> Run:
    """The run that these arguments of ``megatron sft``, ``pt`` or ``rlhf`` describe, wherever they are written."""
    return _MegatronReader(settings, release).run()


class _Arguments:
    """What both commands have in common: arguments by release, an output directory with a version, refusals."""

    title = TITLE
    table = TRAINER_KEYS
    targets: tuple[str, ...] = _TARGETS
    output_name = "output_dir"
    output_root = "output"

    def __init__(self, settings: Settings, release: Release) -> None:
        self.keys = keys_of(self.table, release.text)
        self.release = release
        self.settings = _WithDefaults(ConvertedSettings(settings, self._convert), self._defaults(settings), self._source)
        self.output = self.settings.setting(self.output_name)

    def _convert(self, name: str, value: object) -> object:
        return parsed(self.keys[name], value) if name in self.keys else value

    @property
    def _source(self) -> str:
        return f"default of {self.title} {self.release.text}"

    def _defaults(self, settings: Settings) -> dict[str, object]:
        found: dict[str, object] = {key.name: key.default for key in self.keys.values()}
        model = settings.value("model") or settings.value("model_id_or_path") or settings.value("model_type")
        suffix = model.rstrip("/").rpartition("/")[2] if isinstance(model, str) else ""
        if self.output_name in found:
            found[self.output_name] = f"{self.output_root}/{suffix}" if suffix else self.output_root
        return found

    def directory(self, version: Setting, behind: str = "") -> Location:
        """The output directory, and the version in it that is new at every start."""
        path = self.output.path
        if path is None and not isinstance(self.output.value, str):
            return Location(Unknown(f"`{self.output}` is not a path"), self.output)
        path = path or PathExpr.of_text(str(self.output.value), expanded=False)
        if isinstance(version.value, Unknown):
            return Location(Unknown(version.value.why), self.output)
        if version.value is not True:
            return Location(path, self.output)
        changing = Changing(_VERSION_PART, "a version number and the time", f"`{version}`")
        parts = (*path.parts, Literal(f"/{behind}"), changing)
        return Location(PathExpr(parts, f"{path.written}/{behind}{_VERSION_PART}"), self.output)

    def refusals(self) -> Iterator[Refusal]:
        """Values that argparse, or the argument class behind it, does not take."""
        for key in self.keys.values():
            setting = self.settings.setting(key.name)
            if setting.written and not isinstance(setting.value, Unknown) and not key.accepts(setting.value):
                yield self._refused(setting, key)

    def _refused(self, setting: Setting, key: Key) -> Refusal:
        value = setting.value
        if value is None or value == "None":
            effect = f"null becomes the text `None`, and {self.title} stops with an error of its arguments"
            return Refusal(setting, effect, "take it out", removes=True)
        stops = f"and {self.title} stops"
        if key.choices:
            options = ", ".join(key.choices)
            if value is False and "no" in key.choices:
                return Refusal(setting, f"the bare word is the YAML boolean false, {stops}", 'write "no" in quotes', "no")
            return Refusal(setting, f"it is none of {options}, {stops} with a ValueError", f"write one of {options}")
        wanted = {FLAG: "truth value", WHOLE: "whole number", NUMBER: "number"}.get(key.kinds, "text")
        return Refusal(setting, f"{shown(value)} is no {wanted}, {stops} with an error of its arguments", f"write a {wanted}")

    def strange_keys(self) -> Iterator[StrangeKey]:
        """Near misses; what is the beginning of one argument's name, argparse takes for that argument."""
        effect = f"{self.title} stops (`remaining_argv`)"
        known = _KNOWN | self.keys.keys()
        for strange in strange_keys(self.settings, known, self.targets, effect):
            if not any(name.startswith(strange.name) for name in known):
                yield strange


@dataclass(frozen=True, eq=False)
class _WithDefaults:
    """Settings with defaults that depend on others."""

    inner: ConvertedSettings
    defaults: Mapping[str, object]
    source: str

    @property
    def where(self) -> Span:
        return self.inner.where

    def __contains__(self, name: str) -> bool:
        return name in self.inner

    def names(self) -> Iterator[str]:
        return self.inner.names()

    def setting(self, name: str) -> Setting:
        setting = self.inner.setting(name)
        return setting if setting.written else setting._replace(value=self.defaults.get(name), source=self.source)

    def value(self, name: str) -> object:
        return self.setting(name).value

    def rename(self, name: str, to: str) -> tuple[Edit, ...]:
        return self.inner.rename(name, to)


# ------------------------------------------------------------------------------------------------ swift sft, pt, rlhf


class _Reader(_Arguments):
    """The commands on the Hugging Face Trainer."""

    def __init__(self, settings: Settings, release: Release) -> None:
        super().__init__(settings, release)
        self.resume = self.settings.setting("resume_from_checkpoint")
        self.only_model = self.settings.setting("resume_only_model")
        self.version = self.settings.setting("add_version" if "add_version" in self.keys else "add_output_dir_suffix")

    def _defaults(self, settings: Settings) -> dict[str, object]:
        found = super()._defaults(settings)
        if self.release.before("3.0"):
            found |= _old_defaults(settings, self.release)
        return found

    def run(self) -> Run:
        length, length_setting = trainer.length(self.settings)
        flash = self.settings.value("use_flash_ckpt") is True and self.version.value is True
        directory = self.directory(self.version, f"{self._model_type()}/" if self.release.before("3.0") else "")
        if flash:  # the next start looks into the version before its own
            directory = directory._replace(path=PathExpr.of_text(str(self.output.value), expanded=False))
        interval = trainer.interval(self.settings, saves_at_end=True)
        missing = tuple(trainer.missing_state(self.settings))
        warm_starts = tuple(self._warm_starts())
        return Run(
            framework=MsSwift.name,
            title=self.title,
            release=self.release,
            where=self.settings.where,
            length=length,
            length_setting=length_setting,
            writes=(Write(directory, interval, trainer.retention(self.settings), missing),),
            reads=tuple(self._reads(flash=flash)),
            warm_starts=warm_starts,
            switches=tuple(self._switches()),
            misfits=tuple(self._misfits()),
            refusals=tuple(self._refusals()),
            strange_keys=tuple(self.strange_keys()),
            model=str(self.settings.value("model") or self.settings.value("model_type") or ""),
            settings={name: self.settings.setting(name) for name in self.keys},
        )

    def _model_type(self) -> str:
        model = self.settings.value("model_type")
        return model if isinstance(model, str) else "<model type>"

    def _reads(self, *, flash: bool) -> Iterator[Read]:
        yield self._read(flash=flash)
        if self.only_model.value is True and self._names_a_checkpoint():
            yield Read(Choice.NOTHING, self.only_model, why=f"`{self.only_model}` takes nothing but weights up")

    def _read(self, *, flash: bool) -> Read:
        value = self.resume.value
        if not self.resume.written or value in ("", None, "None"):
            if flash:
                return Read(Choice.NEWEST, self.settings.setting("use_flash_ckpt"))
            advice = "run `ckptlint resume` before each launch to write the newest complete checkpoint there"
            return Read(Choice.NOTHING, self.resume, advice=advice)
        path = self.resume.path or (PathExpr.of_text(value, expanded=False) if isinstance(value, str) else None)
        if path is None or not self._names_a_checkpoint():
            return Read(Choice.UNKNOWN, self.resume, path, why=f"`{self.resume}` names no checkpoint")
        return Read(Choice.FIXED, self.resume, path, raises_when_missing=True)

    def _names_a_checkpoint(self) -> bool:
        value = self.resume.value
        if self.resume.path is not None:
            return True
        if not isinstance(value, str) or value in ("", "None", "False") or self._misfit() is not None:
            return False
        return not any(not part.expanded for part in PathExpr.of_text(value, expanded=False).of(Variable))

    def _warm_starts(self) -> Iterator[WarmStart]:
        """``resume_only_model`` with a checkpoint of this run's own directory. Weights of another are an ordinary start."""
        value, root = self.resume.value, self.output.value
        if self.only_model.value is True and isinstance(value, str) and isinstance(root, str) and value and inside(value, root):
            instead = f"write `{self.only_model.spelled(False)}`, and optimizer, schedule and step are taken up, too"
            yield WarmStart(self.only_model, PathExpr.of_text(value, expanded=False), instead, ((self.only_model, False),))

    def _switches(self) -> Iterator[Switch]:
        skip = self.settings.setting("ignore_data_skip")
        if skip.value is True and self.only_model.value is not True:
            yield Switch(
                skip,
                "a restart reads the data of the current epoch from its beginning, so samples are seen twice and others never",
                loses=frozenset({State.DATA}),
                off=False,
                advice="set it to false to go on where the data stood",
            )

    def _misfits(self) -> Iterator[Misfit]:
        misfit = self._misfit()
        if misfit is not None:
            yield misfit

    def _misfit(self) -> Misfit | None:
        """Texts that are no checkpoint: a FileNotFoundError, or the Trainer's Can't find a valid checkpoint at …"""
        value = self.resume.value
        root = str(self.output.value).rstrip("/")
        if not isinstance(value, str) or self.resume.path is not None or value in ("", "None", "False"):
            return None
        instead = f"name one checkpoint ({root}/{_VERSION_PART}/checkpoint-N), or leave the key out"
        if value in _WORDS:
            return Misfit(self.resume, f"{TITLE} takes the word for a path, and there is none", instead)
        if value.isdecimal():
            return Misfit(self.resume, f"a step number is no path: {TITLE} looks for a folder called `{value}`", instead)
        if same_directory(value, root) or _VERSION.fullmatch(value.rstrip("/").rpartition("/")[2]):
            return Misfit(self.resume, "this is an output directory, not one of the checkpoints in it", instead)
        return None

    def _refusals(self) -> Iterator[Refusal]:
        yield from self.refusals()
        value = self.resume.value
        if self.resume.written and value in ("None", "False"):
            text = "null becomes the text `None`" if value == "None" else "false becomes the text `False`"
            yield Refusal(
                self.resume,
                f"{text}, and {TITLE} stops with a FileNotFoundError for a path of that name",
                "take the key out",
                removes=True,
            )
        if self.output.written and self.output.value == "None":
            effect = "null becomes the text `None`, and the checkpoints go to a directory of that name"
            yield Refusal(self.output, effect, "write a path, or take the key out", stops=False, removes=True)


def _old_defaults(settings: Settings, release: Release) -> dict[str, object]:
    """1.x and 2.x, swift/llm/utils/argument.py ``__post_init__``: what None becomes there."""
    full = settings.value("sft_type") == "full"
    found: dict[str, object] = {"output_dir": "output"}
    every = trainer.number(settings.value("eval_steps")) or (200 if full and not release.before("2.0") else 50)
    found["eval_steps"] = found["save_steps"] = every
    if release.before("2.3"):
        # 2.0.5 asks for DeepSpeed with a transformers before 4.37, of which nothing is known here.
        deepspeed = bool(settings.value("deepspeed") or settings.value("deepspeed_config_path"))
        found["save_only_model"] = full or (deepspeed and release.before("2.0.1"))
    return found


# ------------------------------------------------------------------------------------------------ megatron sft, pt, rlhf


class _MegatronReader(_Arguments):
    """The commands on Megatron core."""

    title = MEGATRON_TITLE
    table = MEGATRON_KEYS
    targets = _MEGATRON_TARGETS
    output_root = "megatron_output"

    def __init__(self, settings: Settings, release: Release) -> None:
        old = release.before("4.0")
        self.output_name = "save" if old else "output_dir"
        super().__init__(settings, release)
        self.steps = self.settings.setting("save_interval" if old else "save_steps")
        self.epochs = self.settings.setting("max_epochs" if old else "num_train_epochs")
        self.finetune = self.settings.setting("finetune")
        loads = ("load",) if old else ("mcore_adapter", "mcore_model")
        given = [name for name in loads if self.settings.value(name)]
        usual = "mcore_adapter" if "lora" in str(self.settings.value("tuner_type")) and not old else loads[-1]
        self.load = self.settings.setting(given[0] if given else usual)

    def run(self) -> Run:
        length, length_setting = self._length()
        directory = self.directory(self.settings.setting("add_version"))
        write = Write(directory, self._interval(length), self._retention(), tuple(self._missing()))
        return Run(
            framework=MegatronSwift.name,
            title=self.title,
            release=self.release,
            where=self.settings.where,
            length=length,
            length_setting=length_setting,
            writes=(write,),
            reads=tuple(self._reads()),
            switches=tuple(self._switches()),
            refusals=tuple(self._refusals()),
            strange_keys=tuple(self.strange_keys()),
            model=str(self.settings.value("model") or ""),
            settings={name: self.settings.setting(name) for name in self.keys},
        )

    def _length(self) -> tuple[Fact[Amount], Setting]:
        """megatron_args.py: the epochs, where both are given."""
        iterations = self.settings.setting("train_iters")
        for setting, unit in ((self.epochs, Unit.EPOCH), (iterations, Unit.STEP)):
            count = trainer.number(setting.value)
            if count is not None:
                return Amount(count, unit), setting
        return Unknown("neither epochs nor iterations are given"), iterations

    def _interval(self, length: Fact[Amount]) -> Interval:
        strategy = self.settings.setting("save_strategy")
        if strategy.value == "epoch":
            repair = ((strategy, "steps"), *trainer.by_usual_interval(self.steps, length))
            return Interval(Amount(1, Unit.EPOCH), True, strategy, repair=repair)
        every = trainer.number(self.steps.value)
        if every is None or every < 0:
            return Interval(Unknown(f"`{self.steps}` is not a number of steps"), True, self.steps)
        if every == 0:
            return Interval(NEVER, True, self.steps, disabled=True, repair=trainer.by_usual_interval(self.steps, length))
        return Interval(Amount(every, Unit.STEP), True, self.steps)

    def _retention(self) -> Retention:
        limit = self.settings.setting("save_total_limit")
        count = trainer.number(limit.value)
        if limit.value is not None and count is None:
            return Retention(Unknown(f"`{limit}` is not a number"), limit)
        return Retention(None if count is None else int(count), limit)

    def _missing(self) -> Iterator[Missing]:
        for name, state in (("no_save_optim", State.OPTIMIZER), ("no_save_rng", State.RNG)):
            setting = self.settings.setting(name)
            if setting.value is True:
                # megatron_args.py: a tuner_type of lora_llm wants no_save_optim
                yield Missing(state, setting, safe_value=None if self.settings.value("tuner_type") == "lora_llm" else False)

    def _reads(self) -> Iterator[Read]:
        yield self._read()
        if self.load.value and self.finetune.value is True and self._is_own():  # where it goes back to, all the same
            path = self.load.path or PathExpr.of_text(str(self.load.value), expanded=False)
            yield Read(Choice.FIXED, self.load, path, raises_when_missing=True)

    def _read(self) -> Read:
        own = f"{self.output.value}/{_VERSION_PART}/checkpoint-N"
        advice = f"start again with `{self.load.spelled(own)}` and `{self.finetune.spelled(False)}`"
        if not self.load.value:
            return Read(Choice.NOTHING, self.load, advice=advice)
        path = self.load.path or (
            PathExpr.of_text(self.load.value, expanded=False) if isinstance(self.load.value, str) else None
        )
        if path is None or isinstance(self.finetune.value, Unknown):
            return Read(Choice.UNKNOWN, self.load, path, why=f"`{self.load}` and `{self.finetune}` are not known together")
        if self.finetune.value is True and self._is_own():
            return Read(Choice.NOTHING, self.finetune, why=f"`{self.finetune}` begins at iteration 0")
        if self.finetune.value is True:
            return Read(Choice.NOTHING, self.load, why=f"`{self.load}` is a model to begin with", advice=advice)
        return Read(Choice.FIXED, self.load, path, raises_when_missing=True)

    def _is_own(self) -> bool:
        """Whether what is loaded lies in this run's own output directory."""
        load = self.load.path.written if self.load.path is not None else self.load.value
        root = self.output.path.written if self.output.path is not None else self.output.value
        return isinstance(load, str) and isinstance(root, str) and inside(load, root)

    def _switches(self) -> Iterator[Switch]:
        if self.load.value and self.finetune.value is True and self._is_own():
            yield Switch(
                self.finetune,
                f"`{self.finetune}` takes the checkpoint in `{self.load}` for a model to begin with: iteration, optimizer and "
                "learning-rate schedule start again",
                off=False,
                advice=f"write `{self.finetune.spelled(False)}`",
            )

    def _refusals(self) -> Iterator[Refusal]:
        yield from self.refusals()
        limit, asynchronous = self.settings.setting("save_total_limit"), self.settings.setting("async_save")
        count = trainer.number(limit.value)
        if count is None:
            return
        if asynchronous.value is True:
            yield Refusal(limit, f"with `{asynchronous}` {self.title} stops with a ValueError", "remove one of the two")
        elif count < 2:
            yield Refusal(limit, f"it must be at least 2, and {self.title} stops with a ValueError", "write 2", 2)
