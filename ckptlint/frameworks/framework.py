"""What a framework module provides: recognise its files, read a run, know its checkpoints, pin a run."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from ckptlint.checkpoints.checkpoint import Checkpoint, Layout
from ckptlint.run import Run
from ckptlint.source.file import SourceFile
from ckptlint.source.text import Edit


@dataclass(frozen=True)
class Notice:
    """A fact of one start, not a fault of the file. Names are fixed in the rule catalogue ("Notices of a resume plan")."""

    name: str
    message: str


@dataclass(frozen=True)
class Pin:
    """The edits that make the next start take one checkpoint (or none), and what to know about it."""

    edits: tuple[Edit, ...] = ()
    notices: tuple[Notice, ...] = ()


@dataclass(frozen=True)
class SaveRoot:
    """Where to look for a run's checkpoints.

    ``path`` is how the file names it, ``directory`` the same with ``~`` and variables replaced (relative to the launch's working
    directory), ``edits`` what the file needs so that the framework uses that very directory.
    """

    path: str
    directory: str
    edits: tuple[Edit, ...] = ()


class Framework(ABC):
    """One training framework. Instances are stateless."""

    name: ClassVar[str]
    title: ClassVar[str]
    suffixes: ClassVar[tuple[str, ...]]

    @abstractmethod
    def mentions(self, data: bytes) -> bool:
        """Cheap test over the bytes: False means that ``read`` would find nothing."""

    @abstractmethod
    def read(self, file: SourceFile) -> tuple[Run, ...]:
        """The runs that the file describes; () where it is not one of this framework's.

        Raises:
            SourceError: the file is this framework's but cannot be read as what it is.
        """

    @abstractmethod
    def layout(self, run: Run) -> Layout:
        """How this run's checkpoints lie on disk."""

    @abstractmethod
    def save_root(self, run: Run, environment: Mapping[str, str], save_dir: str | None) -> SaveRoot:
        """Where this run's checkpoints are; ``save_dir`` overrides the file.

        Raises:
            UnsetVariable: the path names a variable that is not set.
            ValueError: the path has no value before the run starts.
        """

    @abstractmethod
    def pin(self, run: Run, root: SaveRoot, chosen: Checkpoint | None, found: tuple[Checkpoint, ...]) -> Pin:
        """How to point the run at a checkpoint; ``chosen`` None: nothing complete exists."""
