"""verl: PPO, GRPO and their kin (``verl.trainer.main_ppo``), and supervised fine-tuning.

Sources: the wheels named in ``verl_keys.py``: ``trainer/ppo/ray_trainer.py``, ``trainer/ppo/v1/trainer_base.py``,
``trainer/fsdp_sft_trainer.py``, ``trainer/sft_trainer.py``, ``utils/checkpoint/``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from collections.abc import Mapping as MappingOf
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ckptlint.checkpoints.checkpoint import Checkpoint, Layout
from ckptlint.frameworks.flags import CommandEditor, Program, known_text, program
from ckptlint.frameworks.framework import Framework, Pin, PinRequest, SaveRoot, release_of
from ckptlint.frameworks.hydra import HydraCommand, HydraSettings, Written, read_command
from ckptlint.frameworks.nested_settings import NestedSettings
from ckptlint.frameworks.settings import Settings
from ckptlint.frameworks.trainer_keys import Key
from ckptlint.frameworks.verl_keys import ASSUMED, CONFIG_NAMES, CONTENTS, KEYS, RESUME_MODES, Trainer, defaults
from ckptlint.run import (
    NEVER,
    Amount,
    Choice,
    Dropped,
    Fact,
    Interval,
    Location,
    Misfit,
    Missing,
    Obstacle,
    PathExpr,
    Read,
    Refusal,
    Release,
    Retention,
    Run,
    Setting,
    State,
    Switch,
    Unit,
    Unknown,
    UnusedSetting,
    Variable,
    Write,
    shown,
)
from ckptlint.source.file import SourceFile
from ckptlint.source.text import SourceError, Span, decode
from ckptlint.source.yaml import OMEGACONF, Mapping, Scalar, YamlSource, parse
from ckptlint.source.yaml import Sequence as YamlSequence

if TYPE_CHECKING:
    from ckptlint.source.shell.values import Argument

NAME = "verl"
TITLE = "verl"

# Steps between two checkpoints where the author has chosen none: what most of verl's own examples that save take.
USUAL_INTERVAL = 20
USUAL_SFT_INTERVAL = 100

# Keys by which a `trainer` section is one of verl's programs rather than of generation or evaluation.
_TELLING = frozenset(
    ["save_freq", "default_local_dir", "resume_mode", "total_epochs", "total_training_steps", "project_name", "experiment_name"]
)
_OWN_CONFIGS = re.compile(r"(?:^|/)verl/trainer/config/[^/]+$")
_INSERT_AFTER = (
    "trainer.save_freq",
    "trainer.default_local_dir",
    "trainer.resume_mode",
    "trainer.resume_from_path",
    "trainer.experiment_name",
    "trainer.total_epochs",
)


class Verl(Framework):
    """The trainer YAML: ``trainer`` beside ``actor_rollout_ref``, or beside the sections of supervised fine-tuning."""

    name = NAME
    title = TITLE
    suffixes = (".yaml", ".yml")

    def mentions(self, data: bytes) -> bool:
        return b"trainer:" in data and (b"data:" in data or b"actor_rollout_ref" in data or b"defaults:" in data)

    def read(self, file: SourceFile) -> tuple[Run, ...]:
        documents = file.yaml.documents
        if len(documents) != 1 or not isinstance(documents[0].root, Mapping) or _OWN_CONFIGS.search(file.path):
            return ()
        root = documents[0].root
        trainer = trainer_of(root)
        if trainer is None:
            return ()
        release = release_of(file, ("verl",), ASSUMED)
        settings = compose(file.path, file.yaml, root, trainer, release)
        if settings.value("trainer.val_only") is True:
            return ()
        return (read_run(settings, release, trainer),)

    def layout(self, run: Run) -> Layout:
        from ckptlint.checkpoints.verl import VerlLayout

        return VerlLayout()

    def roots(self, run: Run, environment: MappingOf[str, str], save_dir: str | None) -> tuple[SaveRoot, ...]:
        from ckptlint.frameworks.verl_pin import roots

        return roots(run, environment, save_dir)

    def unfit(self, run: Run, checkpoint: Checkpoint, environment: MappingOf[str, str]) -> str:
        from ckptlint.frameworks.verl_pin import unfit

        return unfit(run, checkpoint, environment)

    def pin(self, run: Run, request: PinRequest) -> Pin:
        from ckptlint.frameworks.verl_pin import pin

        return pin(run, request)


def trainer_of(root: Mapping) -> Trainer | None:
    """Which program a YAML file describes a run of; None where it describes none, or leaves all of it to the command line."""
    section = root.get("trainer")
    if section is None or not isinstance(section.value, Mapping):
        return None
    if not any(name in _TELLING for name, _ in section.value.items()):
        return None
    names = {name for name, _ in root.items()}
    if "actor_rollout_ref" in names:
        return Trainer.PPO
    for name in _configs(root):
        if name in CONFIG_NAMES:
            return CONFIG_NAMES[name]
    model = root.get("model")
    if model is not None and isinstance(model.value, Mapping) and model.value.get("partial_pretrain") is not None:
        return Trainer.SFT
    if "data" in names and {"engine", "optim"} & names and {"checkpoint", "engine"} & names and _is_verl(section.value):
        return Trainer.ENGINE_SFT
    return Trainer.SFT if "data" in names and _is_verl(section.value) else None


def _is_verl(trainer: Mapping) -> bool:
    """Lightning's `trainer` section and others have none of these."""
    return trainer.get("default_local_dir") is not None and any(trainer.get(name) for name in ("total_epochs", "save_freq"))


# ------------------------------------------------------------------------------------------------ composition


def _configs(root: Mapping) -> list[str]:
    """The configurations a file's ``defaults`` name, in order; ``_self_`` is the file itself, last where it is not said."""
    entry = root.get("defaults")
    if entry is None or not isinstance(entry.value, YamlSequence):
        return []
    names = [item.text for item in entry.value.items if isinstance(item, Scalar)]
    return names if "_self_" in names else [*names, "_self_"]


def _groups(root: Mapping) -> Iterator[str]:
    """The choices of config groups: ``megatron_actor`` in ``actor@actor_rollout_ref.actor: megatron_actor``."""
    entry = root.get("defaults")
    if entry is None or not isinstance(entry.value, YamlSequence):
        return
    for item in entry.value.items:
        if isinstance(item, Mapping):
            yield from (chosen.value.text for _, chosen in item.items() if isinstance(chosen.value, Scalar))


def compose(
    path: str, yaml: YamlSource, root: Mapping, trainer: Trainer, release: Release, overrides: Sequence[Written] = ()
) -> HydraSettings:
    """The overrides, over one YAML file with those beside it that its ``defaults`` name, over verl's own defaults."""
    files, missing, megatron = [], "", any("megatron" in choice for choice in _groups(root))
    for name in reversed(_configs(root) or ["_self_"]):
        if name == "_self_":
            files.append(_nested(yaml, root))
            continue
        megatron = megatron or "megatron" in name
        beside = _beside(path, name)
        if beside is not None:
            files.append(beside)
        elif name not in CONFIG_NAMES:
            missing = missing or f"`defaults` names `{name}`, which does not lie beside the file"
    source = f"default of {TITLE} {release.text}"
    own = defaults(trainer, release.text, megatron=megatron)
    return HydraSettings(tuple(files), own, source, overrides, missing, _nested(yaml, root).where)


def _nested(yaml: YamlSource, root: Mapping) -> NestedSettings:
    return NestedSettings(yaml, root, OMEGACONF, insert_after=_INSERT_AFTER)


def _beside(path: str, name: str) -> NestedSettings | None:
    """A configuration file in the same directory; None where there is none that can be read."""
    for suffix in (".yaml", ".yml"):
        beside = Path(path).parent / f"{name}{suffix}"
        try:
            yaml = parse(decode(str(beside), beside.read_bytes()))
        except (OSError, ValueError, SourceError):
            continue
        root = yaml.documents[0].root if yaml.documents else None
        if isinstance(root, Mapping):
            return _nested(yaml, root)
    return None


# ------------------------------------------------------------------------------------------------ command lines

_PROGRAMS = {
    "verl.trainer.main_ppo": Trainer.PPO,
    "verl.trainer.main_ppo_v0": Trainer.PPO,
    "verl.trainer.fsdp_sft_trainer": Trainer.SFT,
    "verl.trainer.sft_trainer": Trainer.ENGINE_SFT,
    "verl.trainer.sft_trainer_ray": Trainer.ENGINE_SFT,
}
_OTHER_PPO = re.compile(r"verl\.experimental\.[\w.]+\.(?:main_\w+|fully_async_main)|recipe\.[\w.]+\.main_\w+|main_ppo\w*\.py")
_NO_TRAINING = re.compile(r"generation|eval|merge|convert|server|infer", re.I)
_CONFIG_OF = {Trainer.PPO: "ppo_trainer", Trainer.SFT: "sft_trainer", Trainer.ENGINE_SFT: "sft_trainer_engine"}


def launched(program: Program, command: HydraCommand) -> Trainer | None:
    """Which of verl's trainers a program is; None where it trains nothing or is not verl's."""
    if program.name in _PROGRAMS:
        return _PROGRAMS[program.name]
    if _NO_TRAINING.search(program.script.rpartition(".")[2] if program.is_module else program.script):
        return None
    keys = {written.override.key for written in command.overrides}
    if sum(key.startswith("actor_rollout_ref.") for key in keys) >= 2 and any(key.startswith("trainer.") for key in keys):
        return Trainer.PPO
    return Trainer.PPO if _OTHER_PPO.fullmatch(program.script) and any(key.startswith("trainer.") for key in keys) else None


def read_launch(
    argv: Sequence[Argument],
    place: Span,
    release: Release,
    editor: CommandEditor | None = None,
    directories: Sequence[str] = (),
) -> Run | None:
    """The run that a command launches; None where it launches none of verl's.

    ``place`` is the command as a whole; ``directories`` are where a relative ``--config-path`` may start.
    """
    launch = program(argv)
    if launch is None:
        return None
    command = read_command(launch.arguments, editor)
    trainer = launched(launch, command)
    if trainer is None:
        return None
    settings = _composed(command, trainer, release, place, editor, directories)
    if settings.value("trainer.val_only") is True:
        return None
    return read_run(settings, release, trainer)


def _composed(
    command: HydraCommand,
    trainer: Trainer,
    release: Release,
    place: Span,
    editor: CommandEditor | None,
    directories: Sequence[str],
) -> HydraSettings:
    name = _CONFIG_OF[trainer] if command.config_name is None else known_text(command.config_name)
    name = name.removesuffix(".yaml") if name is not None else None
    megatron = "megatron" in (name or "") or any("megatron" in choice for choice in _chosen_groups(command))
    base = HydraSettings((), defaults(trainer, release.text, megatron=megatron), f"default of {TITLE} {release.text}")
    if name not in CONFIG_NAMES:
        found = _config(command, name, directories)
        if found is None:
            base = replace(base, missing=f"the configuration `{name or 'that the command names'}` was not found")
        else:
            path, yaml, root = found
            base = compose(path, yaml, root, trainer, release)
    return replace(base, overrides=command.overrides, place=place, editor=editor)


def _chosen_groups(command: HydraCommand) -> Iterator[str]:
    return (str(written.override.value) for written in command.overrides if written.override.is_group)


def _known_folder(argument: Argument) -> str:
    """A folder; of one that begins with what only the launch knows (``$PWD/config``), the rest, which may be found below."""
    text = known_text(argument)
    if text is not None:
        return text
    from ckptlint.source.shell.values import Known

    last = argument.pieces[-1]
    return last.text.lstrip("/") if isinstance(last, Known) else ""


def _config(command: HydraCommand, name: str | None, directories: Sequence[str]) -> tuple[str, YamlSource, Mapping] | None:
    if name is None:
        return None
    for directory in directories:
        path = Path(directory, "" if command.config_path is None else _known_folder(command.config_path), f"{name}.yaml")
        try:
            yaml = parse(decode(str(path), path.read_bytes()))
        except (OSError, ValueError, SourceError):
            continue
        root = yaml.documents[0].root if yaml.documents else None
        if isinstance(root, Mapping):
            return str(path), yaml, root
    return None


# ------------------------------------------------------------------------------------------------ one run


def read_run(settings: Settings, release: Release, trainer: Trainer) -> Run:
    """The run that these settings describe, wherever they are written."""
    return _Reader(settings, release, trainer).run()


@dataclass(frozen=True)
class _Role:
    """A model with checkpoints of its own: the section its ``checkpoint`` keys are in, and its retention key."""

    name: str
    section: str
    keep: str


_ACTOR = _Role("actor", "actor_rollout_ref.actor.checkpoint", "trainer.max_actor_ckpt_to_keep")
_CRITIC = _Role("critic", "critic.checkpoint", "trainer.max_critic_ckpt_to_keep")
_SFT = _Role("model", "trainer.checkpoint", "trainer.max_ckpt_to_keep")
_ENGINE = _Role("model", "checkpoint", "trainer.max_ckpt_to_keep")


class _Reader:
    def __init__(self, settings: Settings, release: Release, trainer: Trainer) -> None:
        self.settings = settings
        self.release = release
        self.trainer = trainer
        self.ppo = trainer is Trainer.PPO
        self.save_freq = settings.setting("trainer.save_freq")
        self.directory = settings.setting("trainer.default_local_dir")
        self.mode = settings.setting("trainer.resume_mode")
        self.path = settings.setting("trainer.resume_from_path")
        self.roles = tuple(self._roles())
        self.obstacles = tuple(self._obstacles())
        self.interval = self._interval()

    def run(self) -> Run:
        length, length_setting = self._length()
        write = Write(Location(self._directory(), self.directory), self.interval, self._retention(), tuple(self._missing()))
        return Run(
            framework=NAME,
            title=TITLE,
            release=self.release,
            where=self.settings.where,
            length=length,
            length_setting=length_setting,
            writes=(write,),
            reads=(self._read(),),
            switches=tuple(self._switches()),
            obstacles=self.obstacles,
            misfits=tuple(self._misfits()),
            refusals=tuple(self._refusals()),
            unused_settings=tuple(self._unused()),
            model=self._model(),
            settings={key.name: self.settings.setting(key.name) for key in self._keys()},
        )

    def _keys(self) -> Iterator[Key]:
        return (key for key in KEYS[self.trainer] if key.lifetime.holds(self.release.text))

    def _model(self) -> str:
        names = ("actor_rollout_ref.model.path",) if self.ppo else ("model.partial_pretrain", "model.path")
        found = (self.settings.value(name) for name in names)
        return next((value for value in found if isinstance(value, str)), "")

    def _roles(self) -> Iterator[_Role]:
        if not self.ppo:
            yield _ENGINE if self.trainer is Trainer.ENGINE_SFT else _SFT
            return
        yield _ACTOR
        if self._needs_critic() is True:
            yield _CRITIC

    def _needs_critic(self) -> bool | None:
        """``need_critic`` of trainer/ppo/utils.py; None where it is not known."""
        enabled = self.settings.value("critic.enable")
        if isinstance(enabled, bool):
            return enabled
        estimator = self.settings.value("algorithm.adv_estimator")
        if isinstance(enabled, Unknown) or isinstance(estimator, Unknown):
            return None
        return estimator == "gae"

    # -------------------------------------------------------------------------------- where and how often

    def _length(self) -> tuple[Fact[Amount], Setting]:
        steps = self.settings.setting("trainer.total_training_steps")
        if isinstance(steps.value, Unknown):
            return steps.value, steps
        count = _count(steps.value)
        if count is not None:
            return Amount(count, Unit.STEP), steps
        epochs = self.settings.setting("trainer.total_epochs")
        count = _count(epochs.value)
        return (Amount(count, Unit.EPOCH), epochs) if count is not None else (_not_known(epochs), epochs)

    def _interval(self) -> Interval:
        value = self.save_freq.value
        repair = ((self.save_freq, self._usual()),)
        if self.trainer is Trainer.SFT and self.release.before("0.4.0"):
            return Interval(Amount(1, Unit.EPOCH), True, self.save_freq)
        if value == "after_each_epoch" and self.trainer is Trainer.ENGINE_SFT:
            return Interval(Amount(1, Unit.EPOCH), True, self.save_freq, repair=repair)
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            return Interval(_not_known(self.save_freq), not self.ppo, self.save_freq)
        if value <= 0:
            return Interval(NEVER, not self.ppo, self.save_freq, disabled=True, repair=repair)
        return Interval(Amount(value, Unit.STEP), True, self.save_freq)

    def _usual(self) -> int:
        usual = USUAL_INTERVAL if self.ppo else USUAL_SFT_INTERVAL
        length, _ = self._length()
        if isinstance(length, Amount) and length.unit is Unit.STEP:
            return max(1, min(usual, int(length.value) // 10))
        return usual

    def _directory(self) -> Fact[PathExpr]:
        return path_of(self.directory)

    def _retention(self) -> Retention:
        """The role that keeps the fewest decides: a step without its actor or its critic cannot be resumed."""
        # 0.7.1: ensure_checkpoint_capacity / register_checkpoint delete after writing
        after = not self.release.before("0.7.1")
        alias = self.settings.setting("trainer.remove_previous_ckpt_in_save")
        if alias.value is True:
            return Retention(1, alias, writes_before_deleting=after)
        found = [self.settings.setting(role.keep) for role in self.roles]
        for setting in found:
            if isinstance(setting.value, Unknown):
                return Retention(setting.value, setting, writes_before_deleting=after)
        limited = [setting for setting in found if _count(setting.value) is not None]
        if not limited:
            return Retention(None, found[0], writes_before_deleting=after)
        fewest = min(limited, key=lambda setting: _count(setting.value) or 0)
        return Retention(int(_count(fewest.value) or 0), fewest, writes_before_deleting=after)

    # -------------------------------------------------------------------------------- what is in a checkpoint

    def _missing(self) -> Iterator[Missing]:
        if self.trainer is Trainer.SFT and self.release.before("0.5.0"):
            return
        for role in self.roles:
            contents = self.settings.setting(f"{role.section}.save_contents")
            if isinstance(contents.value, list) and all(isinstance(part, str) for part in contents.value):
                yield from self._left_out(contents, [str(part) for part in contents.value])

    def _left_out(self, setting: Setting, contents: list[str]) -> Iterator[Missing]:
        whole = [*CONTENTS, *(part for part in contents if part not in CONTENTS)]
        effect = ""
        if "model" not in contents and not self._megatron():
            effect = "a restart goes on at the step it had reached, with neither the weights nor the optimizer of that step"
        if "optimizer" not in contents:
            yield Missing(State.OPTIMIZER, setting, whole, effect)
        if "model" not in contents and not self._megatron():
            yield Missing(State.MODEL, setting, whole, effect)
        if "extra" not in contents:
            yield Missing(State.SCHEDULER, setting, whole)
            yield Missing(State.RNG, setting, whole)

    def _megatron(self) -> bool:
        return self.settings.value("actor_rollout_ref.actor.strategy") == "megatron"

    # -------------------------------------------------------------------------------- what a start takes up

    def _read(self) -> Read:
        mode, path = self.mode.value, self._pinned()
        if self.obstacles:
            return Read(Choice.NOTHING, self.mode, why=self.obstacles[0].why)
        if isinstance(mode, Unknown):
            return Read(Choice.UNKNOWN, self.mode, why=mode.why)
        if mode == "disable":
            return Read(Choice.NOTHING, self.mode)
        pinned = mode == "resume_path" or (mode == "auto" and not self.ppo and path is not None)
        if mode not in ("auto", "resume_path") or (pinned and (path is None or self._misfit(path))):
            return Read(Choice.UNKNOWN, self.mode, why=f"`{self.mode}` names no checkpoint")
        if pinned:
            return Read(Choice.FIXED, self.path, path, raises_when_missing=True)
        return Read(Choice.NEWEST, self.mode, drops=tuple(self._drops()))

    def _pinned(self) -> PathExpr | None:
        """The path in ``resume_from_path``; None where there is none."""
        value = path_of(self.path)
        return value if isinstance(value, PathExpr) and value.written else None

    def _drops(self) -> Iterator[Dropped]:
        """Megatron saves the schedule and loads it only where that is asked for (checkpoint/megatron_checkpoint_manager.py)."""
        flag = self.settings.setting("actor_rollout_ref.actor.optim.use_checkpoint_opt_param_scheduler")
        if not self.ppo or not self._megatron() or flag.value is not False:
            return
        warmup = _count(self.settings.value("actor_rollout_ref.actor.optim.lr_warmup_steps"))
        style = self.settings.value("actor_rollout_ref.actor.optim.lr_decay_style")
        if warmup is None and style in ("constant", None):
            return
        what = f"warms up for {warmup:g} steps again" if warmup else f"goes through its {style} decay from the beginning"
        yield Dropped(State.SCHEDULER, flag, f"the learning rate {what}", True, safe=True)

    def _switches(self) -> Iterator[Switch]:
        if self.mode.value != "disable" or self.obstacles or self.interval.every is NEVER:
            return
        effect = f"`{self.mode}` begins every restart at step 0 and writes over the checkpoints of the run before"
        advice = f"write `{self.mode.spelled('auto')}`, and every start takes up the newest checkpoint there is"
        yield Switch(self.mode, effect, off="auto", safe=True, advice=advice)

    def _obstacles(self) -> Iterator[Obstacle]:
        if not self.ppo and self.release.before("0.5.0"):
            at = self.settings.setting("trainer.resume_path")
            yield Obstacle(
                at if at.written else self.directory,
                f"the SFT trainer of verl {self.release.text} saves weights only and never loads anything back",
                "use verl 0.5.0 or later",
            )
        for role in self.roles:
            setting = self.settings.setting(f"{role.section}.async_save")
            why = self._broken_async() if setting.value is True else ""
            if why:
                yield Obstacle(setting, why, f"write `{setting.spelled(False)}`")

    def _broken_async(self) -> str:
        """Why asynchronous saving leaves nothing to resume from in this release; "" where it works or is not known to fail."""
        strategy = self.settings.value("actor_rollout_ref.actor.strategy") if self.ppo else None
        if not self.ppo or self.release.before("0.4.1") or not isinstance(strategy, str):
            return ""
        if strategy != "megatron":
            why = f"with {strategy} and asynchronous saving nobody writes the tracker file"
            return "" if self.release.before("0.7.0") else why
        if self.release.before("0.7.0"):
            return "the asynchronous request is never scheduled, so the tracker names a checkpoint that was never written"
        if self.release.before("0.8.0"):
            return ""
        return "asynchronous saves are never finalised, so no tracker file is written"

    def _misfits(self) -> Iterator[Misfit]:
        path = self._pinned()
        if path is not None and self.mode.value == "resume_path":
            why = self._misfit(path)
            if why:
                yield Misfit(self.path, why, "name one checkpoint: `…/global_step_N`, without a slash behind it")

    def _misfit(self, path: PathExpr) -> str:
        """Why verl stops at a path: asserts and ``int(path.split("global_step_")[-1])`` of _load_checkpoint."""
        if any(path.of(Variable)) or path.literal is None:
            return ""
        if "global_step_" not in path.literal:
            return "verl asserts that `global_step_` is in the path, and stops"
        if self.ppo and not path.literal.split("global_step_")[-1].isdigit():
            return "verl takes all behind `global_step_` for the step number, and stops with a ValueError"
        return ""

    # -------------------------------------------------------------------------------- what verl refuses, what nothing reads

    def _refusals(self) -> Iterator[Refusal]:
        yield from self._interval_refusals()
        mode, path = self.mode, self.path
        if mode.written and not isinstance(mode.value, Unknown) and mode.value not in RESUME_MODES:
            yield Refusal(mode, f"{TITLE} knows no such mode and stops", f"write one of {', '.join(RESUME_MODES)}")
        if mode.value == "resume_path" and path.value in (None, False, "") and not isinstance(path.value, Unknown):
            yield Refusal(mode, "`resume_from_path` is not set, and the start stops with an AssertionError", "write auto")
        hdfs = self.settings.setting("trainer.default_hdfs_dir")
        first = self.release.before("0.9.0") or self.settings.value("trainer.use_v1") is False
        if self.ppo and first and isinstance(hdfs.value, str) and mode.value != "disable":
            yield Refusal(
                hdfs,
                "loading from HDFS is not implemented, and even the first start stops with a NotImplementedError",
                "remove it, and copy the checkpoints by other means",
            )
        if isinstance(self.directory.value, str) and self.directory.written and self.directory.value.startswith("~"):
            effect = f"{TITLE} does not expand `~`: a folder of that name is made"
            yield Refusal(self.directory, effect, "write the path itself", stops=False)

    def _interval_refusals(self) -> Iterator[Refusal]:
        value = self.save_freq.value
        if not self.save_freq.written or isinstance(value, Unknown):
            return
        effect, instead = "", "write a number of steps"
        if value is None or (isinstance(value, str) and (self.ppo or value != "after_each_epoch")):
            effect = "it is no number, and step 1 stops with a TypeError"
        if value == 0 and not isinstance(value, bool) and not self.ppo and not self.release.before("0.4.0"):
            effect, instead = "the first step stops with a ZeroDivisionError", "write a number of steps, or -1 for never"
        if effect:
            meant = int(value) if isinstance(value, str) and re.fullmatch(r"\s*\d+\s*", value) else None
            yield Refusal(self.save_freq, effect, instead, meant)

    def _unused(self) -> Iterator[UnusedSetting]:
        if self.ppo and self.mode.value == "auto" and self._pinned() is not None:
            mode = self.mode.spelled("resume_path")
            why = f"verl reads it with `{mode}` only, and takes the newest of its own directory instead"
            yield UnusedSetting(self.path, "resume", why, "remove it, or set the mode", ((self.path, None),), safe=True)
        if self.release.before("0.4.1"):
            return
        for role in self.roles:
            old = self.settings.setting(f"{role.section}.contents")
            if old.written:
                new = f"{role.section}.save_contents"
                yield UnusedSetting(old, "save", f"since 0.4.1 verl reads `{new}` instead", f"call it `{new}`")


# ------------------------------------------------------------------------------------------------ values


def _count(value: object) -> float | None:
    """A positive number; None for everything else, which verl takes for "no limit"."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value <= 0:
        return None
    return float(value)


def _not_known(setting: Setting) -> Unknown:
    return setting.value if isinstance(setting.value, Unknown) else Unknown(f"`{setting}` is not a number")


def path_of(setting: Setting) -> Fact[PathExpr]:
    """The path in a setting. OmegaConf puts ``${oc.env:X}`` and ``${now:…}`` in; ``$X`` it leaves as it is."""
    if setting.path is not None:
        return setting.path
    if isinstance(setting.value, Unknown):
        return setting.value
    if not isinstance(setting.value, str):
        return Unknown(f"`{setting.name}` is {shown(setting.value)}, which is no path")
    found = PathExpr.of_text(setting.value, expanded=True)
    parts = tuple(
        Variable(part.text, part.name, part.default, part.text.startswith("${oc.env")) if isinstance(part, Variable) else part
        for part in found.parts
    )
    return PathExpr(parts, found.written)
