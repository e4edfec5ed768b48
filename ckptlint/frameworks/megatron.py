"""What Megatron-LM makes of its arguments, wherever they are written: shared by all that is built on it.

Sources: NVIDIA/Megatron-LM at core_v0.12.1 and at d98e8a64 (0.20.0): ``megatron/training/checkpointing.py``
(``load_checkpoint``, ``read_metadata``, ``save_checkpoint``), ``training.py`` (``checkpoint_and_decide_exit``, ``pretrain``),
``arguments.py`` (``validate_args``); Ascend/MindSpeed-LLM at c77308a1.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from ckptlint.checkpoints.checkpoint import Checkpoint, Layout
from ckptlint.frameworks.flags import CommandEditor, FlagSettings, Program, known_head, known_text, program
from ckptlint.frameworks.framework import Framework, Pin, PinRequest, SaveRoot
from ckptlint.frameworks.megatron_keys import (
    ASSUMED,
    ASSUMED_BY_MINDSPEED,
    CHECKPOINT_FLAGS,
    LOOK_ALIKES,
    MINDSPEED_LLM_FLAGS,
    Flag,
)
from ckptlint.frameworks.settings import Settings
from ckptlint.run import (
    NEVER,
    Amount,
    Changing,
    Choice,
    Dropped,
    Fact,
    Interval,
    Literal,
    Location,
    LostReference,
    Missing,
    Opaque,
    PathExpr,
    Placeholder,
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
    UnusedSetting,
    Variable,
    Write,
    same_directory,
    shown,
)
from ckptlint.source.file import SourceFile
from ckptlint.source.text import Span

if TYPE_CHECKING:
    from ckptlint.source.shell.values import Argument

NAME = "megatron"
TITLE = "Megatron-LM"

# Steps between two checkpoints where the author has chosen none, for a run too long to take a tenth of it.
USUAL_INTERVAL = 500

# Stages of MindSpeed-LLM that hold the policy against a reference model loaded from --load where --ref-model is not given.
REFERENCE_STAGES = ("dpo",)

# Options with which a start from the run's own directory begins anew, or leaves something in the checkpoint or out of the next.
_LOSING = ("finetune", "no_load_optim", "no_load_rng", "no_save_optim", "no_save_rng")


# What is changed, or decides, where a run is pointed at a checkpoint.
PINNED = (
    *("save", "load", "finetune", "no_load_optim", "no_load_rng", "no_save_optim", "no_save_rng", "ckpt_step"),
    *("pretrained_checkpoint", "moe_use_upcycling", "enable_hf2mg_convert", "enable_mg2hf_convert", "hf_cfg_dir"),
    *("ref_model", "stage", "lora_ckpt_filter"),
)


@dataclass(frozen=True)
class Family:
    """Which member of the family is read: its name, and where it differs."""

    name: str = NAME
    title: str = TITLE
    saves_at_end: bool = True
    pretrained: bool = True  # whether --pretrained-checkpoint exists


MEGATRON = Family()


@dataclass(frozen=True)
class Role:
    """One model with its own arguments: the whole run, or actor and critic of one."""

    settings: Settings
    release: Release
    family: Family = MEGATRON
    name: str = ""
    _cache: dict[str, Setting] = field(default_factory=dict, repr=False, compare=False)

    def setting(self, name: str) -> Setting:
        if name not in self._cache:
            self._cache[name] = self.settings.setting(name)
        return self._cache[name]

    def on(self, name: str) -> bool:
        return self.setting(name).value is True

    def open(self, name: str) -> bool:
        return isinstance(self.setting(name).value, Unknown)

    # -------------------------------------------------------------------------------- saving

    def length(self) -> tuple[Fact[Amount], Setting]:
        for name, unit in (("train_iters", Unit.STEP), ("train_samples", Unit.SAMPLE)):
            setting = self.setting(name)
            count = number(setting.value)
            if count is not None:
                return Amount(count, unit), setting
            if isinstance(setting.value, Unknown):
                return setting.value, setting
        setting = self.setting("train_iters")
        return Unknown(f"`{setting.name}` is not given"), setting

    def write(self) -> Write:
        save = self.setting("save")
        retain = self.setting("save_retain_interval")
        keep: Fact[int | None] = None if retain.value is None else Unknown(f"`{retain}` keeps its multiples and the newest")
        path = path_of(save) or Unknown(f"`{save.name}` is not given")
        return Write(Location(path, save), self.interval(), Retention(keep, retain), tuple(self.missing()), self.name)

    def interval(self) -> Interval:
        save, every = self.setting("save"), self.setting("save_interval")
        if isinstance(save.value, Unknown) and save.path is None:
            return Interval(save.value, self.family.saves_at_end, every)
        if save.value in (None, "") and save.path is None:
            return Interval(NEVER, False, save)
        count = number(every.value)
        repair = ((every, self.usual_interval()),)
        if isinstance(every.value, Unknown):
            return Interval(every.value, self.family.saves_at_end, every)
        if count is None:
            return Interval(Unknown(f"`{every}` is not a number of iterations"), self.family.saves_at_end, every)
        if count <= 0:
            return Interval(NEVER, False, every, disabled=True, repair=repair)
        return Interval(Amount(count, Unit.STEP), self.family.saves_at_end, every)

    def usual_interval(self) -> int:
        length, _ = self.length()
        if isinstance(length, Amount) and length.unit is Unit.STEP:
            return max(1, min(USUAL_INTERVAL, int(length.value) // 10))
        return USUAL_INTERVAL

    def missing(self) -> Iterator[Missing]:
        """generate_state_dict: the schedule is written in the same branch as the optimizer."""
        optimizer, rng = self.setting("no_save_optim"), self.setting("no_save_rng")
        if optimizer.value is True:
            effect = (
                ""
                if self.on("no_load_optim") or self.on("finetune")
                else "a restart that wants to load the optimizer stops with a KeyError"
            )
            yield Missing(State.OPTIMIZER, optimizer, False, effect, "take it out")
            yield Missing(State.SCHEDULER, optimizer, False)
        if rng.value is True:
            yield Missing(State.RNG, rng, False)

    # -------------------------------------------------------------------------------- resuming

    def loads_what_it_saves(self) -> bool | None:
        """Whether --load and --save are one directory; None where that is not known."""
        return same(path_of(self.setting("load")), path_of(self.setting("save")))

    def read(self) -> Read:
        load, save = self.setting("load"), self.setting("save")
        if isinstance(load.value, Unknown) and load.path is None:
            return Read(Choice.UNKNOWN, load, why=load.value.why, role=self.name)
        if load.value in (None, "", "None") and load.path is None:
            return self._loads_nothing(load, save)
        same = self.loads_what_it_saves()
        if same is None:
            why = f"it is not known whether `{load.name}` is the directory of `{save.name}`"
            return Read(Choice.UNKNOWN, load, path_of(load), why=why, role=self.name)
        if not same:
            return self._loads_another(load, save)
        step = self.setting("ckpt_step")
        count = number(step.value)
        if count and not self._step_ignored():
            path = PathExpr.of_text(f"{shown(save.value)}/iter_{int(count):07d}", expanded=True)
            return Read(Choice.FIXED, step, path, raises_when_missing=True, role=self.name)
        if self._restarting() is not None:
            return Read(Choice.NOTHING, self._restarting() or load, role=self.name)
        return Read(Choice.NEWEST, load, path_of(load), role=self.name, drops=tuple(self.drops()))

    def _loads_nothing(self, load: Setting, save: Setting) -> Read:
        repair: tuple[tuple[Setting, object], ...] = ()
        if isinstance(save.value, str) and _is_real(save) and not self.on("exit_on_missing_checkpoint"):
            repair = ((load, save.value), *self._off(*_LOSING))
        give = f"give `{load.name}` the directory of `{save.name}`{self._and_without()}"
        advice = f"{give}: where it holds no checkpoint, the run begins anew"
        return Read(Choice.NOTHING, load, advice=advice, repair=repair, role=self.name)

    def _loads_another(self, load: Setting, save: Setting) -> Read:
        why = f"`{load}` is not the directory of `{save}`"
        pretrained = self.setting("pretrained_checkpoint")
        advice = "before each launch let `ckptlint resume` point it there"
        if self.on("enable_hf2mg_convert"):
            convert = self.setting("enable_hf2mg_convert").name
            advice = f"{advice} (and take `{convert}` out, which converts the Hugging Face weights again at every start)"
        repair: tuple[tuple[Setting, object], ...] = ()
        if self.family.pretrained and not self.on("enable_hf2mg_convert") and pretrained.value is None:
            base = pretrained.spelled(shown(load.value))
            advice = f"write `{base}` and give `{load.name}` the directory of `{save.name}`{self._and_without()}"
            if isinstance(load.value, str) and isinstance(save.value, str) and _is_real(load) and _is_real(save):
                repair = ((load, save.value), (pretrained, load.value), *self._keep_reference(load), *self._off(*_LOSING))
        return Read(Choice.NOTHING, load, path_of(load), why=why, role=self.name, advice=advice, repair=repair)

    def _keep_reference(self, load: Setting) -> Iterator[tuple[Setting, object]]:
        if self.setting("stage").value in REFERENCE_STAGES and self.setting("ref_model").value is None:
            yield self.setting("ref_model"), load.value

    def _and_without(self) -> str:
        """Which options would still make such a start begin anew, or leave something behind."""
        names = [f"`{setting.name}`" for setting, _ in self._off(*_LOSING)]
        return f", and take {', '.join(names)} out" if names else ""

    def _off(self, *names: str) -> Iterator[tuple[Setting, object]]:
        return ((self.setting(name), False) for name in names if self.on(name))

    def _step_ignored(self) -> bool:
        return not self.release.before("0.9") and self.release.before("0.12")

    def _restarting(self) -> Setting | None:
        """The switch that makes a start from the run's own directory begin anew."""
        return next((self.setting(name) for name in ("enable_hf2mg_convert", "finetune") if self.on(name)), None)

    def drops(self) -> Iterator[Dropped]:
        """What a start from the run's own directory leaves in the checkpoint."""
        setting = self.setting("no_load_optim")
        if setting.value is True and not self.on("no_save_optim"):
            effect = "the optimizer's moments begin at zero and the learning-rate schedule at its first step"
            # Base weights in that very directory may have no optimizer; with --pretrained-checkpoint they lie elsewhere.
            safe = self.setting("pretrained_checkpoint").value is not None
            yield Dropped(State.OPTIMIZER, setting, effect, False, safe)

    def switches(self) -> Iterator[Switch]:
        if self.loads_what_it_saves() is not True:
            return
        restarting = self._restarting()
        if restarting is not None:
            yield self._restart(restarting)
        rng = self.setting("no_load_rng")
        if rng.value is True and restarting is None and not self.on("no_save_rng"):
            effect = f"`{rng}` draws other random numbers after a restart than the run would have"
            yield Switch(rng, effect, frozenset({State.RNG}), off=False, advice="take it out")

    def _restart(self, switch: Setting) -> Switch:
        load = self.setting("load")
        if switch.name == self.setting("finetune").name:
            effect = (
                f"`{switch}` takes the weights of the newest checkpoint in `{load.value}` and begins at iteration 0 of the data"
            )
            advice = "take it out once there is a checkpoint"
            base = self.setting("pretrained_checkpoint")
            if self.family.pretrained and base.value is None:
                advice = f"take it out, and name the base weights in `{base.name}`: they are used while there is no checkpoint"
        else:
            effect = f"`{switch}` converts the Hugging Face weights in `{load.value}` and begins with them at every start"
            advice = "take it out once there is a checkpoint"
        safe = switch.name == self.setting("finetune").name and self.setting("pretrained_checkpoint").value is not None
        also = tuple(self._off("no_load_optim", "no_load_rng", "no_save_optim", "no_save_rng"))
        return Switch(switch, effect, off=False, also=also, safe=safe, advice=advice)

    # -------------------------------------------------------------------------------- reference model, refusals, no effect

    def lost_references(self) -> Iterator[LostReference]:
        """dpo_trainer.py _init_reference_model: --ref-model, else --load."""
        reference = self.setting("ref_model")
        if self.setting("stage").value not in REFERENCE_STAGES or reference.value is not None:
            return
        if self.loads_what_it_saves() is True:
            load = self.setting("load")
            why = f"without `{reference.name}` the reference model is loaded from `{load}`, where the trained policy lies"
            base = self.setting("pretrained_checkpoint").value
            repair = ((reference, base),) if isinstance(base, str) else ()
            yield LostReference(load, why, f"name the original weights in `{reference.name}`", repair)

    def refusals(self) -> Iterator[Refusal]:
        save, every = self.setting("save"), self.setting("save_interval")
        saves = save.value not in (None, "") or save.path is not None
        if saves and every.value is None and not isinstance(every.value, Unknown):
            yield Refusal(save, f"`{every.name}` is not given, and the start stops with an AssertionError", "give it")
        asynchronous, layout = self.setting("async_save"), self.setting("ckpt_format").value
        if saves and asynchronous.value is True and layout not in ("torch_dist", None) and not isinstance(layout, Unknown):
            effect = f"checkpoints of the format {layout} cannot be saved asynchronously: the first save stops"
            yield Refusal(asynchronous, effect, f"take it out, or use `{self.setting('ckpt_format').spelled('torch_dist')}`")

    def unused(self) -> Iterator[UnusedSetting]:
        step = self.setting("ckpt_step")
        if number(step.value) and self._step_ignored():
            why = f"Megatron core {self.release.text} parses it, and no code reads it"
            yield UnusedSetting(step, "resume", why, "point the tracker file at that step, or name another directory")
        save, every = self.setting("save"), self.setting("save_interval")
        if save.value is None and save.path is None and every.written:
            yield UnusedSetting(
                every, "save", f"without `{save.name}` nothing is written", f"name a directory in `{save.name}`"
            )


class MegatronCommand(Framework):
    """Runs that are read from a command line: Megatron-LM's own, MindSpeed-LLM's and MindSpeed-MM's."""

    name = NAME
    title = TITLE
    suffixes: ClassVar[tuple[str, ...]] = ()

    def mentions(self, data: bytes) -> bool:
        return False

    def read(self, file: SourceFile) -> tuple[Run, ...]:
        return ()

    def layout(self, run: Run) -> Layout | None:
        from ckptlint.checkpoints.megatron import MegatronLayout

        return MegatronLayout() if "save" in run.settings else None

    def roots(self, run: Run, environment: Mapping[str, str], save_dir: str | None) -> tuple[SaveRoot, ...]:
        from ckptlint.frameworks.megatron_pin import roots

        return roots(run, environment, save_dir)

    def unfit(self, run: Run, checkpoint: Checkpoint, environment: Mapping[str, str]) -> str:
        from ckptlint.frameworks.megatron_pin import unfit

        return unfit(run, checkpoint, environment)

    def pin(self, run: Run, request: PinRequest) -> Pin:
        from ckptlint.frameworks.megatron_pin import pin

        return pin(run, request)


def read_run(settings: Settings, release: Release, family: Family = MEGATRON) -> Run:
    """The run of one program with Megatron's arguments."""
    role = Role(settings, release, family)
    return run_of((role,), settings, release, family)


def run_of(roles: tuple[Role, ...], settings: Settings, release: Release, family: Family) -> Run:
    """One run of several models that are saved and loaded apart."""
    length, length_setting = roles[0].length()
    return Run(
        framework=family.name,
        title=family.title,
        release=release,
        where=settings.where,
        length=length,
        length_setting=length_setting,
        writes=tuple(role.write() for role in roles),
        reads=tuple(role.read() for role in roles),
        switches=tuple(switch for role in roles for switch in role.switches()),
        refusals=tuple(refusal for role in roles for refusal in role.refusals()),
        unused_settings=tuple(unused for role in roles for unused in role.unused()),
        lost_references=tuple(lost for role in roles for lost in role.lost_references()),
        model=_model(roles[0]),
        settings={name: roles[0].setting(name) for name in PINNED} if len(roles) == 1 else {},
    )


def _model(role: Role) -> str:
    for name in ("tokenizer_name_or_path", "load", "tokenizer_model"):
        value = role.setting(name).value
        if isinstance(value, str):
            return value
    return ""


# ------------------------------------------------------------------------------------------------ command lines

MINDSPEED_LLM = Family("mindspeed-llm", "MindSpeed-LLM")
MINDSPEED_MM = Family("mindspeed-mm", "MindSpeed-MM")

_SCRIPT = re.compile(r"(?:pretrain|posttrain|finetune|train)_?\w*\.py")
_OF_MEGATRON = frozenset(
    {
        "--tensor-model-parallel-size",
        "--pipeline-model-parallel-size",
        "--micro-batch-size",
        "--global-batch-size",
        "--train-iters",
        "--train-samples",
        "--num-attention-heads",
        "--max-position-embeddings",
        "--lr-decay-style",
        "--tokenizer-type",
    }
)
# Other programs count batches and steps by these names, too: MindSpeed-MM's finetune_ocr2.py has a parser of its own.
_OF_OTHERS = frozenset({"--micro-batch-size", "--global-batch-size", "--train-iters", "--train-samples"})
_OF_MINDSPEED_LLM = frozenset(
    {"--stage", "--prompt-type", "--ai-framework", "--tokenizer-name-or-path", "--enable-hf2mg-convert"}
)


def family_of(launch: Program) -> Family | None:
    """Which member of the family a program is, by its script and its options; None where it is none, or trains nothing."""
    options = {known_head(argument).partition("=")[0] for argument in launch.arguments}
    name = f"{launch.script.rpartition('.')[2]}.py" if launch.is_module else launch.script
    enough = len(options & _OF_MEGATRON) >= 2 or "--mm-model" in options
    if enough and not name.startswith(("pretrain", "posttrain")):
        enough = bool((options & _OF_MEGATRON) - _OF_OTHERS) or "--mm-model" in options
    if not enough or _SCRIPT.fullmatch(name) is None:
        return None
    if "--skip-train" in options:
        return None
    if {"--mm-model", "--mm-data"} & options:
        return MINDSPEED_MM
    texts = " ".join(known_text(argument) or "" for argument in launch.arguments)
    if options & _OF_MINDSPEED_LLM or "mindspeed_llm" in texts or "PretrainedFromHF" in texts:
        return MINDSPEED_LLM
    return MEGATRON


def read_launch(
    argv: Sequence[Argument], place: Span, release: Release | None, editor: CommandEditor | None = None
) -> Run | None:
    """The run that a command launches; None where it launches none of the family.

    ``place`` is the command as a whole, ``release`` what the project pins of Megatron core, None where it pins none.
    """
    launch = program(argv)
    family = None if launch is None else family_of(launch)
    if launch is None or family is None:
        return None
    release = release or Release(ASSUMED if family is MEGATRON else ASSUMED_BY_MINDSPEED)
    own = () if family is MEGATRON else MINDSPEED_LLM_FLAGS
    flags = tuple(flag for flag in (*CHECKPOINT_FLAGS, *own) if flag.lifetime.holds(release.text))
    settings = FlagSettings(launch.arguments, flags, f"default of Megatron core {release.text}", place, editor)
    run = read_run(settings, release, family)
    return run._replace(strange_keys=tuple(_misspelt(settings, flags)))


def _misspelt(settings: FlagSettings, flags: tuple[Flag, ...]) -> Iterator[StrangeKey]:
    from difflib import get_close_matches

    options = [option for flag in flags for option in flag.options]
    for name in settings.names():
        near = [] if not name.startswith("--") or name in LOOK_ALIKES else get_close_matches(name, options, 1, 0.88)
        if near:
            place = settings.setting(name).span
            to = next(flag.name for flag in flags if near[0] in flag.options)
            if place is not None:
                effect = "the start stops with an argparse error"
                yield StrangeKey(name, place, near[0], effect, settings.rename(name, to))


# ------------------------------------------------------------------------------------------------ values


def number(value: object) -> float | None:
    """A value that is a number; None for all else."""
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _is_real(setting: Setting) -> bool:
    """Whether a directory is named, and not a template's words for one."""
    path = path_of(setting)
    return path is not None and next(path.of(Placeholder), None) is None


def path_of(setting: Setting) -> PathExpr | None:
    """The directory that a setting names; None where it names none."""
    if setting.path is not None:
        return setting.path
    if not isinstance(setting.value, str) or not setting.value:
        return None
    return PathExpr.of_text(setting.value, expanded=False)


def same(one: PathExpr | None, other: PathExpr | None) -> bool | None:
    """Whether two paths are one directory; None where a part that only the launch knows decides."""
    if one is None or other is None:
        return None
    if one.written == other.written:
        return None if any(one.of(Changing)) else True
    parts = (*one.parts, *other.parts)
    if any(isinstance(part, (Variable, Opaque, Changing)) for part in parts):
        return None
    assert all(isinstance(part, (Literal, Placeholder)) for part in parts)
    return same_directory(one.written, other.written)
