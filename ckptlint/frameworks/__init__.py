"""One module a framework. ``all_frameworks`` is the registry."""

from __future__ import annotations

from functools import lru_cache

from ckptlint.frameworks.framework import Framework


@lru_cache(maxsize=1)
def all_frameworks() -> tuple[Framework, ...]:
    """One instance of every framework, in the order in which they are asked whether a file is theirs."""
    from ckptlint.frameworks.axolotl import Axolotl
    from ckptlint.frameworks.deepspeed import DeepSpeed
    from ckptlint.frameworks.llamafactory import LlamaFactory
    from ckptlint.frameworks.llamafactory_v1 import LlamaFactoryV1
    from ckptlint.frameworks.mindspeed_fsdp2 import MindSpeedFsdp2
    from ckptlint.frameworks.mindspeed_mm import MindSpeedMM
    from ckptlint.frameworks.mindspeed_rl import MindSpeedRL
    from ckptlint.frameworks.ms_swift import MegatronSwift, MsSwift
    from ckptlint.frameworks.verl import Verl

    return (
        LlamaFactory(),
        LlamaFactoryV1(),
        Verl(),
        MindSpeedFsdp2(),
        MindSpeedMM(),
        MindSpeedRL(),
        Axolotl(),
        MsSwift(),
        MegatronSwift(),
        DeepSpeed(),
    )


def framework_named(name: str) -> Framework:
    """The framework that a run names.

    Raises:
        KeyError: there is none of this name.
    """
    return {framework.name: framework for framework in all_frameworks()}[name]
