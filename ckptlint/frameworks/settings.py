"""What a framework's reader asks of the text a run's settings are written in: a YAML mapping, a command line, both together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from ckptlint.run import Setting
from ckptlint.source.text import Edit, Span


class Settings(Protocol):
    """Settings by the framework's own names, read as its own loader reads them.

    A name that is not written has the framework's default. Where several places write one, the one that the framework obeys
    decides (the last flag, the command line over the file), and that is what ``setting(name).span`` and its editor stand for.
    """

    @property
    def where(self) -> Span:
        """Where the run is described as a whole: the first key, the launching command."""

    def setting(self, name: str) -> Setting: ...

    def value(self, name: str) -> object: ...

    def names(self) -> Iterator[str]:
        """Every name that is written."""

    def __contains__(self, name: str) -> bool:
        """Whether a name is written."""


@runtime_checkable
class Renames(Protocol):
    """Settings whose names can be changed where they are written."""

    def rename(self, name: str, to: str) -> tuple[Edit, ...]:
        """Edits that call a written name by another; () where that cannot be done, or the other is there already."""


@dataclass(frozen=True, eq=False)
class Layered:
    """A command line over a file: what the command line gives wins, all else is as the file says."""

    over: Settings
    under: Settings

    @property
    def where(self) -> Span:
        return self.over.where

    def names(self) -> Iterator[str]:
        return iter(dict.fromkeys((*self.over.names(), *self.under.names())))

    def __contains__(self, name: str) -> bool:
        return name in self.over or name in self.under

    def value(self, name: str) -> object:
        return self.setting(name).value

    def setting(self, name: str) -> Setting:
        return self.over.setting(name) if name in self.over else self.under.setting(name)

    def rename(self, name: str, to: str) -> tuple[Edit, ...]:
        owner = self.over if name in self.over else self.under
        return owner.rename(name, to) if to not in self and isinstance(owner, Renames) else ()
