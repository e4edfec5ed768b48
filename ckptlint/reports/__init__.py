"""What a check found, for people and for machines. One module a format, each with ``render(result) -> str``."""

from __future__ import annotations

import importlib
from typing import Protocol, cast

from ckptlint.linter import Result

MACHINE_FORMATS = ("concise", "json", "sarif", "github")
FORMATS = ("text", *MACHINE_FORMATS)


class Renderer(Protocol):
    """A format."""

    def __call__(self, result: Result) -> str:
        """The whole report, ending with a line break unless it is empty."""


def renderer(name: str) -> Renderer:
    """The format with this name, one of ``MACHINE_FORMATS``; text takes more than a result, see ``ckptlint.reports.text``."""
    return cast(Renderer, importlib.import_module(f"ckptlint.reports.{name}").render)
