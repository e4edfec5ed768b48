"""One module a framework. ``all_frameworks`` is the registry; a module is imported for the first file that may be its own."""

from __future__ import annotations

import importlib
from functools import cached_property, lru_cache
from typing import NamedTuple, cast

from ckptlint.frameworks.framework import Framework

_YAML = (".yaml", ".yml")
_JSON = (".json",)
_SHELL = (".sh", ".bash", ".slurm", ".sbatch", ".zsh")


class Entry(NamedTuple):
    """Where a framework lives, its title, which files it reads, and what they hold: one of ``marks``, each text of it."""

    module: str
    class_name: str
    title: str
    suffixes: tuple[str, ...]
    marks: tuple[tuple[bytes, ...], ...]


# In the order in which they are asked whether a file is theirs.
REGISTRY = (
    Entry("llamafactory", "LlamaFactory", "LLaMA-Factory", _YAML, ((b"do_train",),)),
    Entry("llamafactory_v1", "LlamaFactoryV1", "LLaMA-Factory v1", _YAML, ((b"train_dataset", b"model"),)),
    Entry("verl", "Verl", "verl", _YAML, ((b"trainer:",),)),
    Entry("mindspeed_fsdp2", "MindSpeedFsdp2", "MindSpeed-LLM (FSDP2)", _YAML, ((b"training:", b"parallel:", b"fsdp"),)),
    Entry("mindspeed_mm", "MindSpeedMM", "MindSpeed-MM", _YAML, ((b"gpt_args:",), (b"training:", b"fsdp_plan:"))),
    Entry("mindspeed_rl", "MindSpeedRL", "MindSpeed-RL", _YAML, ((b"megatron_training:",),)),
    Entry("axolotl", "Axolotl", "axolotl", _YAML, ((b"base_model",),)),
    Entry("ms_swift", "MsSwift", "ms-swift", _YAML + _JSON, ((b"dataset", b"model"),)),
    Entry("ms_swift", "MegatronSwift", "Megatron-SWIFT", _YAML + _JSON, ((b"dataset", b"model"),)),
    Entry("torchtune", "Torchtune", "torchtune", _YAML, ((b"checkpointer:", b"torchtune.", b"epochs:"),)),
    Entry("runwhere", "RunWhere", "RunWhere", _YAML, ((b"kind:", b"command:"),)),
    Entry("kubernetes", "Kubernetes", "Kubernetes", _YAML, ((b"apiVersion:", b"Job", b"containers:", b"--"),)),
    Entry("launch_scripts", "LaunchScripts", "launch script", _SHELL, ((b"",),)),
    Entry("deepspeed", "DeepSpeed", "DeepSpeed", _YAML + _JSON, ((b"checkpoint",),)),
)


class _Registered:
    """A framework that is imported when a file holds its marks, or when somebody asks for more than stands in the registry."""

    def __init__(self, entry: Entry) -> None:
        self.entry = entry
        self.title = entry.title
        self.suffixes = entry.suffixes

    @cached_property
    def framework(self) -> Framework:
        module = importlib.import_module(f"{__name__}.{self.entry.module}")
        return cast(Framework, getattr(module, self.entry.class_name)())

    def mentions(self, data: bytes) -> bool:
        return any(all(mark in data for mark in marks) for marks in self.entry.marks) and self.framework.mentions(data)

    def __getattr__(self, name: str) -> object:
        return getattr(self.framework, name)


@lru_cache(maxsize=1)
def all_frameworks() -> tuple[Framework, ...]:
    """One instance of every framework, in the order in which they are asked whether a file is theirs."""
    return tuple(cast(Framework, _Registered(entry)) for entry in REGISTRY)


def framework_named(name: str) -> Framework:
    """The framework that a run names.

    Raises:
        KeyError: there is none of this name.
    """
    return {framework.name: framework for framework in all_frameworks()}[name]
