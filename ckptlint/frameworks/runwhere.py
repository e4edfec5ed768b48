"""RunWhere's job YAML: the command of a training job, and the directory that the platform keeps.

Source: RunWhere, "Checkpoint best practices": ``storage.checkpoint.path`` is mounted into the container, with ``fast`` for
frequent saves within one run and ``durable`` for what outlives it; a failed training is retried where the path is declared.
"""

from __future__ import annotations

from collections.abc import Iterator

from ckptlint.frameworks.framework import NotPinned
from ckptlint.frameworks.nested_settings import NestedSettings
from ckptlint.frameworks.project import Project
from ckptlint.run import PathExpr, Platform, Run
from ckptlint.source.embedded import embedded
from ckptlint.source.file import SourceFile
from ckptlint.source.yaml import SAFE_LOAD, Mapping, Scalar

TITLE = "RunWhere"
PATH = "storage.checkpoint.path"
COMMAND = "environment.command"
_AFTER = ("storage.checkpoint.path", "storage.checkpoint", "storage")


class RunWhere(NotPinned):
    """A job with ``kind: Training``. Its runs bear the names of the frameworks that its command launches."""

    name = "runwhere"
    title = TITLE
    suffixes = (".yaml", ".yml")

    def mentions(self, data: bytes) -> bool:
        return b"kind:" in data and b"command:" in data and b"Training" in data

    def read(self, file: SourceFile) -> tuple[Run, ...]:
        documents = file.yaml.documents
        if len(documents) != 1 or not isinstance(documents[0].root, Mapping):
            return ()
        settings = NestedSettings(file.yaml, documents[0].root, SAFE_LOAD, insert_after=_AFTER)
        if settings.value("kind") != "Training":
            return ()
        command = settings.entry(COMMAND)
        if command is None or not isinstance(command.value, Scalar):
            return ()
        return tuple(_runs(file, command.value, settings))


def _runs(file: SourceFile, command: Scalar, settings: NestedSettings) -> Iterator[Run]:
    from ckptlint.frameworks.launch_scripts import runs_of
    from ckptlint.source.shell import read

    project = Project(file.path)
    platform = _platform(settings)
    for run in runs_of(read(embedded(command), project.neighbour), file, project):
        yield run._replace(platform=platform, ways=tuple(way._replace(platform=platform) for way in run.ways))


def _platform(settings: NestedSettings) -> Platform:
    setting = settings.setting(PATH)
    if not isinstance(setting.value, str) or not setting.value:
        return Platform(TITLE, None, setting if setting.written else settings.setting("kind")._replace(name=PATH, value=None))
    mount = setting.value.rstrip("/")
    return Platform(TITLE, PathExpr.of_text(mount, expanded=False), setting, f"{mount}/durable", f"{mount}/fast")
