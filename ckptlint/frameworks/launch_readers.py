"""Which framework a launch belongs to, and the run that it describes: one reader a framework, the first that claims it wins."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ckptlint.frameworks import flags
from ckptlint.frameworks.flags import known_text
from ckptlint.frameworks.framework import release_of
from ckptlint.frameworks.hydra import HydraSettings, read_command
from ckptlint.frameworks.launch_settings import Overrides, field_flags, flags_of
from ckptlint.frameworks.launches import Launch, file_name, named_file, option
from ckptlint.frameworks.megatron_keys import Flag
from ckptlint.frameworks.nested_settings import NestedSettings
from ckptlint.frameworks.project import Project
from ckptlint.frameworks.script_editor import ScriptEditor
from ckptlint.frameworks.settings import Layered, Settings
from ckptlint.run import Release, Run
from ckptlint.source.file import SourceFile
from ckptlint.source.shell import Argument
from ckptlint.source.text import SourceError
from ckptlint.source.yaml import OMEGACONF, SAFE_LOAD, Mapping

YAML = (".yaml", ".yml")


@dataclass(frozen=True)
class Asked:
    """A launch, the script it stands in, what lies beside that, and who edits its arguments."""

    launch: Launch
    file: SourceFile
    project: Project
    editor: ScriptEditor

    def release(self, distributions: tuple[str, ...], assumed: str) -> Release:
        return release_of(self.file, distributions, assumed)

    @property
    def argv(self) -> Sequence[Argument]:
        return self.launch.argv


Reader = Callable[[Asked], "Run | None"]


def read(asked: Asked) -> Run | None:
    """The run that a launch describes; None where it trains nothing that is known."""
    for reader in READERS:
        run = reader(asked)
        if run is not None:
            return run
    return None


# ------------------------------------------------------------------------------------------------ files


def _mapping(file: SourceFile | None) -> Mapping | None:
    """The one mapping in a YAML file; None for all else."""
    if file is None:
        return None
    try:
        documents = file.yaml.documents
    except SourceError:
        return None
    root = documents[0].root if len(documents) == 1 else None
    return root if isinstance(root, Mapping) else None


def _named_yaml(asked: Asked, argument: Argument | None) -> SourceFile | None:
    """The YAML that an argument names, if it is there and holds a mapping."""
    if argument is None:
        return None
    file = asked.project.open(file_name(argument))
    return file if _mapping(file) is not None else None


def _open_arguments(launch: Launch) -> bool:
    """Whether any arguments at all may hide in a variable that only the launch knows; the value of an option is one value."""
    before = ""
    for argument in launch.arguments:
        head = flags.known_head(argument)
        unknown = argument.may_split and argument.default is None and not argument.is_rest and not argument.vanishes
        if unknown and not head and not (before.startswith("--") and "=" not in before):
            return True
        before = head
    return False


# ------------------------------------------------------------------------------------------------ verl


def _verl(asked: Asked) -> Run | None:
    if asked.launch.tool is not None:
        return None
    from ckptlint.frameworks import verl, verl_keys

    release = asked.release(("verl",), verl_keys.ASSUMED)
    return verl.read_launch(asked.argv, asked.launch.place, release, asked.editor, asked.project.directories)


# ------------------------------------------------------------------------------------------------ the Megatron family


def _megatron(asked: Asked) -> Run | None:
    if asked.launch.tool is not None:
        return None
    from ckptlint.frameworks import megatron
    from ckptlint.frameworks.releases import pinned_release

    pinned = pinned_release(asked.file.path, ("megatron-core",), asked.file.text)
    release = None if pinned is None else Release(*pinned)
    return megatron.read_launch(asked.argv, asked.launch.place, release, asked.editor)


def _mindspeed_fsdp2(asked: Asked) -> Run | None:
    from ckptlint.frameworks import mindspeed_fsdp2

    return mindspeed_fsdp2.read_launch(asked.argv, asked.launch.place, asked.editor, asked.project.directories)


def _mindspeed_mm(asked: Asked) -> Run | None:
    """The scripts that take a YAML.

    ``pretrain_transformers.py x.yaml`` and its kin take nothing else from the command line (read_yaml_config.py rebuilds
    sys.argv), ``mindspeed_mm/fsdp/train/trainer.py x.yaml a.b=value`` does (config_manager.py).
    """
    launch = asked.launch
    name = named_file(launch, YAML)
    if launch.tool is not None or name is None or launch.is_module:
        return None
    from ckptlint.frameworks.mindspeed_mm import ARGS, FSDP_DEFAULTS, MindSpeedMM, read_fsdp

    file = _named_yaml(asked, name)
    if file is None:
        return None
    root = _mapping(file)
    if root is not None and root.get("gpt_args") is not None:
        return next(iter(MindSpeedMM().read(file)), None)
    if root is None or not launch.program.endswith("fsdp/train/trainer.py") or root.get("training") is None:
        return None
    after = ("training.save", "training.save_interval", "training.load")
    under = NestedSettings(file.yaml, root, SAFE_LOAD, FSDP_DEFAULTS, f"default of {ARGS.title}", after)
    over = Overrides(read_command(launch.arguments[1:], asked.editor).overrides, launch.place)
    return read_fsdp(Layered(over, under))


_RL_DEFAULTS = {  # the config_name of hydra.main in cli/train_*.py at 05a90d77
    "train_grpo.py": "grpo_qwen25_7b_A3",
    "train_dapo.py": "dapo_qwen25_32b_A3",
    "train_ppo.py": "ppo_qwen25_32b_A3",
    "train_dpo.py": "dpo_qwen3_30b_a3b_A3",
}


def _mindspeed_rl(asked: Asked) -> Run | None:
    launch = asked.launch
    if launch.tool is not None or launch.script not in _RL_DEFAULTS or "cli/" not in launch.program:
        return None
    from ckptlint.frameworks.megatron_keys import ASSUMED_BY_MINDSPEED
    from ckptlint.frameworks.mindspeed_rl import SHARED, read_run

    command = read_command(launch.arguments, asked.editor)
    name = _RL_DEFAULTS[launch.script] if command.config_name is None else known_text(command.config_name)
    folder = "configs" if command.config_path is None else file_name(command.config_path)
    file = None if name is None else asked.project.open(f"{folder}/{name.removesuffix('.yaml')}.yaml")
    root = _mapping(file)
    if file is None or root is None or root.get(SHARED) is None:
        return None
    own = NestedSettings(file.yaml, root, OMEGACONF, hyphens=True)
    return read_run(HydraSettings((own,), {}, "", command.overrides, place=launch.place), Release(ASSUMED_BY_MINDSPEED))


# ------------------------------------------------------------------------------------------------ LLaMA-Factory


def _llamafactory(asked: Asked) -> Run | None:
    launch = asked.launch
    if not _is_llamafactory(launch) or _open_arguments(launch):
        return None
    name = named_file(launch, (*YAML, ".json"))
    from ckptlint.frameworks import llamafactory, llamafactory_keys

    if name is None:
        release = asked.release(("llamafactory",), llamafactory_keys.ASSUMED)
        return llamafactory.read_arguments(_llamafactory_flags(asked, release), release)
    file = _named_yaml(asked, name)
    if file is None:
        return None
    if launch.is_set("USE_V1"):
        from ckptlint.frameworks.llamafactory_v1 import LlamaFactoryV1

        return next(iter(LlamaFactoryV1().read(file)), None) if len(launch.arguments) == 1 else None
    overrides = read_command(launch.arguments[1:], asked.editor).overrides
    over = Overrides(overrides, launch.place)
    return llamafactory.read_over(file, over)


def _llamafactory_flags(asked: Asked, release: Release) -> Settings:
    from ckptlint.frameworks import llamafactory

    table = flags_of(llamafactory.keys(release), texts=False)
    source = f"default of {llamafactory.TITLE} {release.text}"
    return field_flags(asked.launch.arguments, table, source, asked.launch.place, asked.editor, llamafactory.defaults(release))


def _is_llamafactory(launch: Launch) -> bool:
    """``llamafactory-cli train``, or its ``src/train.py`` (``src/train_bash.py`` up to 0.6) with arguments of its own."""
    if launch.tool is not None:
        return launch.tool.name == "llamafactory-cli"
    if launch.is_module or launch.script not in ("train.py", "train_bash.py"):
        return False
    if named_file(launch, YAML) is not None:
        return launch.program.endswith("src/train.py")
    given = {flags.known_head(argument).partition("=")[0] for argument in launch.arguments}
    return "--stage" in given and bool({"--finetuning_type", "--template", "--dataset"} & given)


# ------------------------------------------------------------------------------------------------ ms-swift


def _ms_swift(asked: Asked) -> Run | None:
    launch = asked.launch
    if launch.tool is None or launch.tool.name not in ("swift", "megatron") or _open_arguments(launch):
        return None
    from ckptlint.frameworks import ms_swift, ms_swift_keys

    megatron = launch.tool.name == "megatron"
    release = asked.release((ms_swift.TITLE,), ms_swift_keys.ASSUMED)
    title = ms_swift.MEGATRON_TITLE if megatron else ms_swift.TITLE
    keys = ms_swift_keys.MEGATRON_KEYS if megatron else ms_swift_keys.TRAINER_KEYS
    own = [key for key in keys if key.lifetime.holds(release.text)]
    table = (*flags_of(own, texts=True), *_SWIFT_NAMES)
    settings: Settings = field_flags(launch.arguments, table, f"default of {title} {release.text}", launch.place, asked.editor)
    name = named_file(launch, (*YAML, ".json")) or option(launch, "--config")
    if name is not None:
        file = _named_yaml(asked, name)
        root = _mapping(file)
        if file is None or root is None:
            return None
        settings = Layered(settings, ms_swift.settings_of(file, root, release, title))
    return (ms_swift.read_megatron_run if megatron else ms_swift.read_run)(settings, release)


_SWIFT_NAMES = tuple(
    Flag(name, (f"--{name}", f"--{name.replace('_', '-')}")) for name in ("model", "model_type", "model_id_or_path")
)


# ------------------------------------------------------------------------------------------------ axolotl


def _axolotl(asked: Asked) -> Run | None:
    launch = asked.launch
    if launch.tool is None or launch.tool.name != "axolotl" or _open_arguments(launch):
        return None
    name = named_file(launch, YAML)
    file = _named_yaml(asked, name)
    if file is None:
        return None
    from ckptlint.frameworks import axolotl, axolotl_keys

    runs = axolotl.Axolotl().read(file)
    if not runs or len(launch.arguments) == 1:
        return runs[0] if runs else None
    release = asked.release((axolotl.TITLE,), axolotl_keys.ASSUMED)
    table = flags_of(axolotl.keys(release), texts=True)
    over = field_flags(launch.arguments[1:], table, f"default of {axolotl.TITLE}", launch.place, asked.editor)
    root = _mapping(file)
    return None if root is None else axolotl.read_run(Layered(over, axolotl.settings_of(file, root, release)), release)


# ------------------------------------------------------------------------------------------------ the Trainer by itself


def _trl(asked: Asked) -> Run | None:
    launch = asked.launch
    if launch.tool is None or launch.tool.name != "trl" or _open_arguments(launch):
        return None
    from ckptlint.frameworks.transformers_cli import read_trl

    config = option(launch, "--config")
    file = _named_yaml(asked, config)
    return (
        None
        if config is not None and file is None
        else read_trl(launch, file, asked.release(("transformers",), ""), asked.editor)
    )


def _transformers(asked: Asked) -> Run | None:
    from ckptlint.frameworks.transformers_cli import read_launch

    return read_launch(asked.launch, asked.release(("transformers",), ""), asked.editor)


# In the order in which they are asked: the most telling first, the Trainer's own options, which many share, last.
READERS: tuple[Reader, ...] = (
    _mindspeed_fsdp2,
    _mindspeed_rl,
    _mindspeed_mm,
    _verl,
    _megatron,
    _llamafactory,
    _ms_swift,
    _axolotl,
    _trl,
    _transformers,
)

# What no training is called, whatever its arguments: conversion, evaluation, preprocessing, serving, inference.
NO_TRAINING = re.compile(
    r"(?:^|[_./-])(?:convert\w*|conversion|eval\w*|infer\w*|preprocess\w*|generat\w*|serve\w*|server|export\w*|merge\w*|predict\w*"
    r"|test_\w+|benchmark\w*|tokenize\w*|download\w*)(?:[_./-]|$)",
    re.I,
)
