"""axolotl (``axolotl train run.yml``).

Sources: axolotl at 067b021c (0.18.0), its tags from 0.4.0 on and the wheels 0.17.0, 0.18.0 and 0.19.0: ``cli/config.py``
(``yaml.safe_load``, then pydantic), ``utils/train.py`` (``determine_last_checkpoint`` is the whole resume logic),
``utils/config/__init__.py`` (``normalize_config``), ``core/builders/base.py`` (``_configure_save_and_eval_strategy``),
``utils/schemas/validation.py``. What the Trainer underneath does is in ``trainer.py``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from ckptlint.checkpoints.checkpoint import Checkpoint, Layout
from ckptlint.frameworks import trainer
from ckptlint.frameworks.axolotl_keys import (
    ASSUMED,
    AXOLOTL_KEYS,
    DEFAULT_LIMIT,
    STRATEGY_BESIDE_SAVES_PER_EPOCH_SINCE,
    coerced,
)
from ckptlint.frameworks.converted_settings import ConvertedSettings
from ckptlint.frameworks.framework import Framework, Pin, PinRequest, SaveRoot, release_of
from ckptlint.frameworks.settings import Settings
from ckptlint.frameworks.spelling import keys_of_another_release, strange_keys
from ckptlint.frameworks.trainer_keys import Key
from ckptlint.frameworks.yaml_settings import YamlSettings, documents_of
from ckptlint.run import (
    NEVER,
    Amount,
    Choice,
    Interval,
    Location,
    Misfit,
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
    Variable,
    WarmStart,
    Write,
    same_directory,
    shown,
)
from ckptlint.source.file import SourceFile
from ckptlint.source.text import SourceError
from ckptlint.source.yaml import SAFE_LOAD, Scalar, Sequence
from ckptlint.source.yaml import Mapping as YamlMapping

TITLE = "axolotl"

# A file with a base model, a micro_batch_size and some more of these is a configuration of axolotl.
_OWN_KEYS = frozenset(
    {
        "auto_resume_from_checkpoints",
        "dataset_prepared_path",
        "datasets",
        "eval_sample_packing",
        "evals_per_epoch",
        "learning_rate",
        "load_in_4bit",
        "load_in_8bit",
        "lora_model_dir",
        "lora_target_linear",
        "micro_batch_size",
        "num_epochs",
        "pad_to_sequence_len",
        "pretraining_dataset",
        "sample_packing",
        "saves_per_epoch",
        "sequence_len",
        "special_tokens",
        "test_datasets",
        "train_on_inputs",
        "val_set_size",
    }
)
_ENOUGH = 4
_MARKS = tuple(re.compile(rb"^%b:" % key, re.M) for key in (b"base_model", b"micro_batch_size", b"learning_rate"))

# Words that people write for "the newest one"; the Trainer takes each for a folder's name.
_WORDS = ("auto", "latest", "last", "True", "true", "None", "none", "newest", "")

# Keys whose misspelling costs progress.
_TARGETS = (
    "output_dir",
    "resume_from_checkpoint",
    "auto_resume_from_checkpoints",
    "save_strategy",
    "save_steps",
    "saves_per_epoch",
    "save_total_limit",
    "save_only_model",
    "save_first_step",
    "num_epochs",
    "max_steps",
    "load_best_model_at_end",
)
# Names of axolotl that lie near one of those without being meant for it.
_KNOWN = frozenset(key.name for key in AXOLOTL_KEYS)


class Axolotl(Framework):
    """One flat YAML: ``base_model``, ``datasets``, ``sequence_len``, ``micro_batch_size`` …"""

    name = "axolotl"
    title = TITLE
    suffixes = (".yaml", ".yml")

    def mentions(self, data: bytes) -> bool:
        return b"base_model" in data and (b"micro_batch_size" in data or b"auto_resume_from_checkpoints" in data)

    def read(self, file: SourceFile) -> tuple[Run, ...]:
        documents = documents_of(file, _MARKS)
        if not documents or not isinstance(documents[0].root, YamlMapping) or not _is_training(documents[0].root):
            return ()
        if len(documents) > 1:
            problem = f"{TITLE} reads one YAML document, and a second one begins here"
            raise SourceError(documents[1].span, problem, "keep one run in a file")
        release = release_of(file, (TITLE,), ASSUMED)
        return (read_run(settings_of(file, documents[0].root, release), release),)

    def layout(self, run: Run) -> Layout:
        from ckptlint.checkpoints.huggingface import HuggingFaceLayout

        return HuggingFaceLayout()

    def roots(self, run: Run, environment: Mapping[str, str], save_dir: str | None) -> tuple[SaveRoot, ...]:
        from ckptlint.frameworks.trainer_pin import roots

        return roots(run, environment, save_dir)

    def unfit(self, run: Run, checkpoint: Checkpoint, environment: Mapping[str, str]) -> str:
        from ckptlint.frameworks.trainer_pin import unfit

        return unfit(run, checkpoint, environment)

    def pin(self, run: Run, request: PinRequest) -> Pin:
        from ckptlint.frameworks.axolotl_pin import pin

        return pin(run, request)


def _is_training(root: YamlMapping) -> bool:
    """A configuration of axolotl; not a merge recipe, a sweep, or what other tools call a base model."""
    base = root.get("base_model")
    if base is None or not isinstance(base.value, Scalar) or not isinstance(base.value.value(SAFE_LOAD), str):
        return False
    if root.get("auto_resume_from_checkpoints") is not None:
        return True
    for name in ("learning_rate", "micro_batch_size"):
        entry = root.get(name)
        if entry is not None and not isinstance(entry.value, Scalar):
            return False
    if root.get("micro_batch_size") is None:
        return False
    data = root.get("datasets")
    if data is not None and not isinstance(data.value, Sequence):
        return False
    return sum(name in _OWN_KEYS for name, _ in root.items()) >= _ENOUGH


def settings_of(file: SourceFile, root: YamlMapping, release: Release) -> YamlSettings:
    """The settings in a configuration's mapping."""
    after = ("resume_from_checkpoint", "saves_per_epoch", "save_steps", "output_dir")
    return YamlSettings(file.yaml, root, SAFE_LOAD, defaults(release), f"default of {TITLE} {release.text}", after)


def defaults(release: Release) -> dict[str, object]:
    """What this release takes for a setting that is not written."""
    return {key.name: key.default for key in keys(release)}


def keys(release: Release) -> tuple[Key, ...]:
    """The settings that bear on checkpoints, as this release has them."""
    return tuple(key for key in AXOLOTL_KEYS if key.lifetime.holds(release.text))


def read_run(settings: Settings, release: Release) -> Run:
    """The run that these settings describe; where they are written does not matter."""
    by_name = {key.name: key for key in keys(release)}

    def convert(name: str, value: object) -> object:
        return coerced(by_name[name], value) if name in by_name else value

    return _Reader(ConvertedSettings(settings, convert), release, by_name).run()


class _Reader:
    """One run, read as load_cfg, normalize_config and the trainer builder read it."""

    def __init__(self, settings: ConvertedSettings, release: Release, by_name: Mapping[str, Key]) -> None:
        self.settings = settings
        self.release = release
        self.keys = by_name
        self.output_dir = settings.setting("output_dir")
        self.resume = settings.setting("resume_from_checkpoint")
        self.auto = settings.setting("auto_resume_from_checkpoints")
        self.steps = settings.setting("save_steps")
        self.per_epoch = settings.setting("saves_per_epoch")
        self.strategy = settings.setting("save_strategy")

    def run(self) -> Run:
        length, length_setting = self._length()
        directory = Location(self._output_path(), self.output_dir)
        return Run(
            framework=Axolotl.name,
            title=TITLE,
            release=self.release,
            where=self.settings.where,
            length=length,
            length_setting=length_setting,
            writes=(Write(directory, self._interval(), self._retention(), tuple(trainer.missing_state(self.settings))),),
            reads=(self._read(),),
            warm_starts=tuple(self._warm_starts()),
            misfits=tuple(self._misfits()),
            refusals=tuple(self._refusals()),
            strange_keys=tuple(self._strange_keys()),
            model=str(self.settings.value("base_model") or ""),
            settings={name: self.settings.setting(name) for name in self.keys},
        )

    # -------------------------------------------------------------------------------- how long, where and how often

    def _length(self) -> tuple[Amount | Unknown, Setting]:
        """core/builders/base.py: ``max_steps`` where it is given, else the epochs."""
        steps, epochs = self.settings.setting("max_steps"), self.settings.setting("num_epochs")
        if steps.written and steps.value is not None and trainer.number(steps.value) is None:
            return Unknown(f"`{steps}` is not a number"), steps
        count = trainer.number(steps.value)
        if count is not None and count > 0:
            return Amount(count, Unit.STEP), steps
        count = trainer.number(epochs.value)
        if count is None:
            return Unknown(f"`{epochs}` is not a number"), epochs
        return Amount(count, Unit.EPOCH), epochs

    def _output_path(self) -> PathExpr | Unknown:
        if self.output_dir.path is not None:
            return self.output_dir.path
        if not isinstance(self.output_dir.value, str):
            return Unknown(f"`{self.output_dir}` is not a path")
        return PathExpr.of_text(self.output_dir.value, expanded=False)

    def _interval(self) -> Interval:
        """``saves_per_epoch`` becomes ``save_steps`` where that is below the whole run; that beats ``save_strategy``."""
        for setting in (self.steps, self.per_epoch):
            if setting.written and setting.value is not None and trainer.number(setting.value) is None:
                return Interval(Unknown(f"`{setting}` is not a number"), True, setting)
        if self.steps.value:
            return self._by_steps(trainer.number(self.steps.value) or 0)
        if self.per_epoch.value:
            return self._by_epochs(trainer.number(self.per_epoch.value) or 0)
        return self._by_strategy(self.strategy)

    def _by_steps(self, every: float) -> Interval:
        if every > 1 and every != int(every):
            return Interval(Unknown(f"`{self.steps}` is not a number of steps"), True, self.steps)
        if every < 0:
            repair = trainer.by_usual_interval(self.steps, self._length()[0])
            return Interval(NEVER, True, self.steps, disabled=True, repair=repair)
        return Interval(Amount(every, Unit.FRACTION if every < 1 else Unit.STEP), True, self.steps)

    def _by_epochs(self, times: float) -> Interval:
        epochs = trainer.number(self.settings.value("num_epochs"))
        if epochs is None or epochs <= 0:
            why = f"`{self.per_epoch}` needs `num_epochs`, which is not a positive number"
            return Interval(Unknown(why), True, self.per_epoch)
        repair = ((self.per_epoch, _OFTEN),)
        if times < 0:
            return Interval(NEVER, True, self.per_epoch, disabled=True, repair=repair)
        if times * epochs > 1:
            length = self._length()[0]
            in_epochs = isinstance(length, Amount) and length.unit is Unit.EPOCH
            every = Amount(1 / times, Unit.EPOCH) if in_epochs else Amount(1 / (times * epochs), Unit.FRACTION)
            return Interval(every, True, self.per_epoch, repair=repair)
        if self.strategy.written and self.strategy.value:
            return self._by_strategy(self.strategy)
        # normalize_config: one save or less in the whole run is left to the strategy, which is one at the end of each epoch.
        return Interval(Amount(min(1.0, epochs), Unit.EPOCH), True, self.per_epoch, repair=repair)

    def _by_strategy(self, strategy: Setting) -> Interval:
        by_steps = ((strategy, "steps"), *trainer.by_usual_interval(self.steps, self._length()[0]))
        if strategy.value in ("no", False):
            return Interval(NEVER, False, strategy, repair=by_steps)
        if strategy.value in ("epoch", "", None):
            repair = by_steps if strategy.written else ((self.per_epoch, _OFTEN),)
            return Interval(Amount(1, Unit.EPOCH), True, strategy, repair=repair)
        if strategy.value == "steps":
            return Interval(Amount(trainer.USUAL_INTERVAL, Unit.STEP), True, self.steps_as_the_trainer_has_them())
        if strategy.value == "best":
            return Interval(Unknown("a checkpoint is written only when the metric improves"), False, strategy)
        return Interval(Unknown(f"`{strategy}` is no save strategy"), True, strategy)

    def steps_as_the_trainer_has_them(self) -> Setting:
        """``save_steps`` where axolotl leaves it to the Trainer."""
        return Setting("save_steps", trainer.USUAL_INTERVAL, source="default of the Trainer", editor=self.steps.editor)

    def _retention(self) -> Retention:
        limit = self.settings.setting("save_total_limit")
        best = self.settings.value("load_best_model_at_end") is True
        count = trainer.number(limit.value)
        if limit.value is not None and count is None:
            return Retention(Unknown(f"`{limit}` is not a number"), limit, best)
        kept = int(count or DEFAULT_LIMIT)
        return Retention(kept if kept > 0 else None, limit, best)

    # -------------------------------------------------------------------------------- what a start takes up

    def _read(self) -> Read:
        value = self.resume.value
        if value is None and self.auto.value is True:
            return Read(Choice.NEWEST, self.auto)
        if value is None and isinstance(self.auto.value, Unknown):
            return Read(Choice.UNKNOWN, self.auto, why=self.auto.value.why)
        if value is None:
            return Read(Choice.NOTHING, self.auto, auto=True)
        path = self.resume.path
        if path is None and isinstance(value, str):
            path = PathExpr.of_text(value, expanded=False)
        if path is None or self._misfit(value) is not None or any(not part.expanded for part in path.of(Variable)):
            return Read(Choice.UNKNOWN, self.resume, path, why=f"`{self.resume}` names no checkpoint")
        return Read(Choice.FIXED, self.resume, path, raises_when_missing=True)

    def _misfits(self) -> Iterator[Misfit]:
        misfit = self._misfit(self.resume.value)
        if misfit is not None:
            yield misfit

    def _misfit(self, value: object) -> Misfit | None:
        """Texts for which the Trainer stops: Can't find a valid checkpoint at …"""
        root = str(self.output_dir.value).rstrip("/")
        instead = (
            f"name one checkpoint ({root}/checkpoint-N), or leave it out and write `{self.auto.spelled(True)}`: "
            "the newest is then taken up at every start"
        )
        if not isinstance(value, str) or self.resume.path is not None:
            return None
        if value in _WORDS:
            return Misfit(self.resume, f"{TITLE} takes the word for a folder's name", instead)
        if value.isdecimal():
            return Misfit(self.resume, f"a step number is no path: the folder called `{value}` is looked for", instead)
        if same_directory(value, root):
            return Misfit(self.resume, "this is the output directory, not one of the checkpoints in it", instead)
        return None

    def _warm_starts(self) -> Iterator[WarmStart]:
        """Weights of this run's own checkpoints under a key that loads nothing else."""
        if self.resume.value is not None or self.auto.value is not None or not isinstance(self.output_dir.value, str):
            return
        adapter, model = self.settings.setting("lora_model_dir"), self.settings.setting("base_model")
        for setting, verb, repair in (
            (adapter, "remove it and", ((adapter, None), (self.auto, True))),
            (model, "name the base model and", ()),
        ):
            path = setting.value
            if isinstance(path, str) and path and self._is_own(path):
                instead = f"{verb} write `{self.auto.spelled(True)}`, and every start takes up the newest checkpoint"
                yield WarmStart(setting, PathExpr.of_text(path, expanded=False), instead, repair)

    def _is_own(self, path: str) -> bool:
        parent, _, name = path.rstrip("/").rpartition("/")
        root = str(self.output_dir.value)
        return same_directory(path, root) or (bool(trainer.CHECKPOINT_NAME.fullmatch(name)) and same_directory(parent, root))

    # -------------------------------------------------------------------------------- what pydantic and the validators refuse

    def _refusals(self) -> Iterator[Refusal]:
        for key in self.keys.values():
            setting = self.settings.setting(key.name)
            if setting.written and not isinstance(setting.value, Unknown) and not key.accepts(setting.value):
                yield self._refused(setting, key)
        count = trainer.number(self.steps.value)
        if count is not None and count > 1 and count != int(count):
            yield Refusal(
                self.steps, "above 1 it must be whole, and the Trainer stops with a ValueError", f"write {int(count)}"
            )
        stops = f"and {TITLE} stops with a ValueError"
        if self.steps.value and self.per_epoch.value:
            yield Refusal(self.per_epoch, f"it excludes `{self.steps}`, {stops}", "remove one of them")
        given = isinstance(self.strategy.value, str) and self.strategy.written and self.strategy.value not in ("", "steps")
        if given and self.steps.value:
            yield Refusal(self.strategy, f"it contradicts `{self.steps}`, {stops}", 'write "steps", or remove `save_steps`')
        early = self.release.before(STRATEGY_BESIDE_SAVES_PER_EPOCH_SINCE)
        if given and early and self.per_epoch.value and not self.steps.value:
            yield Refusal(self.strategy, f"beside `{self.per_epoch}` it must be `steps`, {stops}", "remove it")
        if self.strategy.value == "best" and "metric_for_best_model" not in self.settings:
            yield Refusal(self.strategy, f"it needs `metric_for_best_model`, {stops}", "write metric_for_best_model: eval_loss")

    def _refused(self, setting: Setting, key: Key) -> Refusal:
        value, stops = setting.value, f"and {TITLE} stops with a ValidationError"
        if setting.name == "resume_from_checkpoint":
            instead = f"name one checkpoint, or leave it out and write `{self.auto.spelled(True)}`"
            return Refusal(setting, f"{shown(value)} is no path, {stops}", instead)
        if key.choices and isinstance(value, str):
            return Refusal(
                setting, "the Trainer stops with a ValueError", f"write one of {', '.join(filter(None, key.choices))}"
            )
        if value is False and "no" in key.choices:
            return Refusal(setting, f"the bare word is the YAML boolean false, {stops}", 'write "no" in quotes', "no")
        if "bool" in key.kinds:
            return Refusal(setting, f"{shown(value)} is neither true nor false, {stops}", "write true or false")
        if key.kinds & {"int", "float"}:
            wanted = "number" if "float" in key.kinds else "whole number"
            return Refusal(setting, f"{shown(value)} is no {wanted}, {stops}", f"write a {wanted}")
        quoted = str(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None
        return Refusal(setting, f"{shown(value)} is no text, {stops}", "put it in quotes" if quoted else "write a text", quoted)

    def _strange_keys(self) -> Iterator[StrangeKey]:
        effect = f"{TITLE} drops keys that it does not know, without a word"
        yield from strange_keys(self.settings, _KNOWN, _TARGETS, effect)
        if self.release.pinned:
            others = _KNOWN - self.keys.keys()
            yield from keys_of_another_release(self.settings, others, _TARGETS, self.release, effect)


# Saves in an epoch for a run that has only one save: enough that a kill costs a quarter of an epoch.
_OFTEN = 4
