"""MindSpeed-RL's YAML: Megatron's arguments for actor and critic, and those of the reinforcement learning around them.

Sources: Ascend/MindSpeed-RL at 05a90d77: ``mindspeed_rl/config_cls/`` (``BaseConfig.update``), ``mindspeed_rl/trainer/``,
``docs/zh/algorithms/grpo.md`` (how to resume), ``cli/train_*.py``.
"""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Mapping as MappingOf
from dataclasses import dataclass, replace

from ckptlint.frameworks.framework import NotPinned
from ckptlint.frameworks.hydra import HydraSettings
from ckptlint.frameworks.megatron import Family, Role, run_of
from ckptlint.frameworks.megatron_keys import ASSUMED_BY_MINDSPEED, CHECKPOINT_FLAGS, MINDSPEED_LLM_FLAGS, defaults
from ckptlint.frameworks.nested_settings import NestedSettings
from ckptlint.frameworks.settings import Settings
from ckptlint.run import LostReference, Release, Run, Setting
from ckptlint.source.file import SourceFile
from ckptlint.source.text import Span
from ckptlint.source.yaml import OMEGACONF, Mapping

# MegatronConfig has a key pretrained_checkpoint, and no worker of an actor or critic reads it.
FAMILY = Family("mindspeed-rl", "MindSpeed-RL", saves_at_end=True, pretrained=False)

SHARED = "megatron_training"
REFERENCE = "rl_config.integrated_mode_config.ref_model_load_path"
_ROLES = {"actor": "actor_config", "critic": "critic_config"}


class MindSpeedRL(NotPinned):
    """The YAML of ``cli/train_*.py``: ``megatron_training`` beside ``rl_config`` and ``actor_config``."""

    name = FAMILY.name
    title = FAMILY.title
    suffixes = (".yaml", ".yml")

    def mentions(self, data: bytes) -> bool:
        return b"megatron_training:" in data

    def read(self, file: SourceFile) -> tuple[Run, ...]:
        documents = file.yaml.documents
        if len(documents) != 1 or not isinstance(documents[0].root, Mapping):
            return ()
        root = documents[0].root
        shared = root.get(SHARED)
        if shared is None or not isinstance(shared.value, Mapping):
            return ()
        file_settings = NestedSettings(file.yaml, root, OMEGACONF, hyphens=True)
        settings = HydraSettings((file_settings,), {}, "")
        return (read_run(settings, Release(ASSUMED_BY_MINDSPEED)),)


def read_run(settings: Settings, release: Release) -> Run:
    """The run that a configuration describes; where no role has a section of its own, the shared one speaks (DPO)."""
    known = defaults((*CHECKPOINT_FLAGS, *MINDSPEED_LLM_FLAGS), release.text)
    sections = {role: section for role, section in _ROLES.items() if any(n.startswith(f"{section}.") for n in settings.names())}
    if not sections:
        only = Sections(settings, (SHARED,), known, release.text)
        return run_of((Role(only, release, FAMILY),), settings, release, FAMILY)
    # ppo_trainer_hybrid.py saves at multiples alone; grpo_ and dapo_trainer_hybrid.py at the last iteration, too
    family = replace(FAMILY, saves_at_end="critic" not in sections)
    roles = tuple(
        Role(Sections(settings, (section, SHARED), known, release.text), release, family, role)
        for role, section in sections.items()
    )
    run = run_of(roles, settings, release, family)
    return run._replace(lost_references=tuple(_lost_references(roles[0], settings)))


def _lost_references(actor: Role, settings: Settings) -> Iterator[LostReference]:
    """The reference worker loads the actor's weights where no path of its own is given (docs/zh/algorithms/grpo.md)."""
    reference, weight = settings.setting(REFERENCE), settings.setting("rl_config.init_kl_coef")
    if reference.value is not None or weight.value in (0, 0.0) or actor.loads_what_it_saves() is not True:
        return
    load = actor.setting("load")
    why = f"without `{reference.name}` the reference model is loaded from `{load}`, where the trained policy lies"
    yield LostReference(load, why, "name the original weights there")


@dataclass(frozen=True)
class Sections:
    """Megatron's arguments from the first of several sections that has them."""

    settings: Settings
    sections: tuple[str, ...]
    defaults: MappingOf[str, object]
    release: str

    @property
    def where(self) -> Span:
        return self.settings.where

    def names(self) -> Iterator[str]:
        return self.settings.names()

    def __contains__(self, name: str) -> bool:
        return any(f"{section}.{name}" in self.settings for section in self.sections)

    def value(self, name: str) -> object:
        return self.setting(name).value

    def setting(self, name: str) -> Setting:
        for section in self.sections:
            if f"{section}.{name}" in self.settings:
                return self.settings.setting(f"{section}.{name}")
        missing = self.settings.setting(f"{self.sections[0]}.{name}")
        return missing._replace(value=self.defaults.get(name), source=f"default of Megatron core {self.release}")
