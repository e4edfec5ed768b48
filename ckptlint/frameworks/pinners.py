"""Who pins a run, wherever it was read: the framework that its files are of, or one that only command lines have."""

from __future__ import annotations

import importlib
from functools import cache
from typing import cast

from ckptlint.frameworks import framework_named
from ckptlint.frameworks.framework import Framework
from ckptlint.run import Run

# Frameworks without files of their own, whose runs are read from command lines.
_COMMANDS = {
    "transformers": ("transformers_pin", "TransformersScript"),
    "megatron": ("megatron", "MegatronCommand"),
    "mindspeed-llm": ("megatron", "MegatronCommand"),
    "mindspeed-mm": ("megatron", "MegatronCommand"),
}


def pinner(run: Run) -> Framework | None:
    """The framework that knows a run's checkpoints and how to point it at one; None where nobody does."""
    try:
        return _command_framework(run.framework) or framework_named(run.framework)
    except KeyError:
        return None


@cache
def _command_framework(name: str) -> Framework | None:
    if name not in _COMMANDS:
        return None
    module, class_name = _COMMANDS[name]
    return cast(Framework, getattr(importlib.import_module(f"ckptlint.frameworks.{module}"), class_name)())
