"""One file of a check: its bytes, and what they are when somebody asks."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import PurePath
from typing import TYPE_CHECKING

from ckptlint.source.text import SourceText, decode

if TYPE_CHECKING:
    from ckptlint.source.json import JsonSource
    from ckptlint.source.yaml import YamlSource


@dataclass(frozen=True, eq=False)
class SourceFile:
    """A file by the path the user knows it by. Everything beyond the bytes is read once, when first asked for."""

    path: str
    data: bytes = field(repr=False)

    @property
    def suffix(self) -> str:
        return PurePath(self.path).suffix.lower()

    @cached_property
    def text(self) -> SourceText:
        """Raises SourceError: not UTF-8."""
        return decode(self.path, self.data)

    @cached_property
    def yaml(self) -> YamlSource:
        """Raises SourceError: not UTF-8, or not YAML."""
        from ckptlint.source.yaml import parse

        return parse(self.text)

    @cached_property
    def json(self) -> JsonSource:
        """Raises SourceError: not UTF-8, or not JSON."""
        from ckptlint.source.json import parse

        return parse(self.text)
