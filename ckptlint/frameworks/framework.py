"""What a framework module provides: recognise its files, read a run, know its checkpoints, pin a run."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from ckptlint.checkpoints.checkpoint import Checkpoint, Layout
from ckptlint.checkpoints.checkpoint import Notice as Notice
from ckptlint.run import Release, Run
from ckptlint.source.file import SourceFile
from ckptlint.source.text import Edit


@dataclass(frozen=True)
class TrackerChange:
    """A tracker file that is to hold another text; None: it is to be moved aside. What it held is kept beside it.

    ``why`` says so to whoever starts the run.
    """

    path: str
    after: str | None
    why: str = ""


@dataclass(frozen=True)
class ResumeView:
    """A directory that shows one checkpoint only: a link ``name`` to ``target``, and a ``tracker`` that holds ``text``."""

    path: str
    name: str
    target: str
    tracker: str
    text: str
    why: str = ""


DiskChange: TypeAlias = TrackerChange | ResumeView


@dataclass(frozen=True)
class Pin:
    """The edits that make the next start take one checkpoint (or none), and what to know about it.

    ``arguments`` do the same on the command line of the launch, instead of the edits and of ``disk``; () where there is nothing
    to change, or no way to say it there. ``disk`` is what has to change beside the checkpoints.
    """

    edits: tuple[Edit, ...] = ()
    notices: tuple[Notice, ...] = ()
    arguments: tuple[str, ...] = ()
    disk: tuple[DiskChange, ...] = ()


@dataclass(frozen=True)
class SaveRoot:
    """A directory to look for a run's checkpoints in.

    ``path`` is how the file names it (in the author's style, for what a pin writes), ``directory`` the same with ``~`` and
    variables replaced; a relative one is relative to the launch's working directory. ``edits`` is what the file needs so that
    the framework uses that very directory. ``only``: of this directory nothing but that checkpoint is meant.
    """

    path: str
    directory: str
    edits: tuple[Edit, ...] = ()
    only: str | None = None

    def checkpoint(self, name: str) -> str:
        """How the file names a checkpoint below this directory; "" is the directory itself."""
        return f"{self.path.rstrip('/') or '/'}/{name}".replace("//", "/") if name else self.path


@dataclass(frozen=True)
class Searched:
    """A directory that was looked through: its checkpoints, newest first and down to the chosen one, and what else is in it."""

    root: SaveRoot
    found: tuple[Checkpoint, ...]
    files: frozenset[str]
    folders: frozenset[str]


@dataclass(frozen=True)
class PinRequest:
    """What a plan has decided, and what lies on disk.

    ``searched`` begins with the directory the run saves into; ``chosen`` lies in the last one. None: nothing that this start
    could take is complete.
    """

    searched: tuple[Searched, ...]
    chosen: Checkpoint | None
    environment: Mapping[str, str]

    @property
    def save(self) -> Searched:
        """The directory the run saves into."""
        return self.searched[0]

    @property
    def chosen_path(self) -> str | None:
        """How the file names the chosen checkpoint."""
        return None if self.chosen is None else self.searched[-1].root.checkpoint(self.chosen.path)


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
    def layout(self, run: Run) -> Layout | None:
        """How this run's checkpoints lie on disk; None where that is not known, so that nothing can be pinned."""

    @abstractmethod
    def roots(self, run: Run, environment: Mapping[str, str], save_dir: str | None) -> tuple[SaveRoot, ...]:
        """Where to look for this run's checkpoints, first the directory it saves into; ``save_dir`` overrides the file.

        Raises:
            UnsetVariable: a path names a variable that is not set.
            ValueError: a path has no value before the run starts.
        """

    def unfit(self, run: Run, checkpoint: Checkpoint, environment: Mapping[str, str]) -> str:
        """Why this run, started in this environment, cannot take up a whole checkpoint; "" where nothing says so."""
        return ""

    @abstractmethod
    def pin(self, run: Run, request: PinRequest) -> Pin:
        """The edits that make the next start do what was decided, besides those of the save root, and what to know about it."""


class NotPinned(Framework):
    """A framework whose runs are checked, and whose checkpoints on disk are not read."""

    def layout(self, run: Run) -> Layout | None:
        return None

    def roots(self, run: Run, environment: Mapping[str, str], save_dir: str | None) -> tuple[SaveRoot, ...]:
        return ()

    def pin(self, run: Run, request: PinRequest) -> Pin:
        return Pin()


def release_of(file: SourceFile, distributions: tuple[str, ...], newest_read: str) -> Release:
    """The release that the project pins for one of these distributions; else the newest whose source was read, as assumed."""
    from ckptlint.frameworks.releases import pinned_release

    pinned = pinned_release(file.path, distributions, file.text)
    return Release(newest_read) if pinned is None else Release(*pinned)
