"""Training jobs for Kubernetes: whether anything that outlives the container is mounted where its checkpoints go.

Source: the Kubernetes documentation on volumes: a container's own files go with it, and an ``emptyDir`` is
deleted with its pod; Kubeflow's training operator for the kinds. Such a job says nothing of when a run saves,
so it is read as a partial run.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from typing import NamedTuple

from ckptlint.frameworks.framework import NotPinned
from ckptlint.frameworks.yaml_settings import documents_of
from ckptlint.run import Interval, Location, PathExpr, Release, Retention, Run, Setting, Unknown, Write, inside
from ckptlint.source.file import SourceFile
from ckptlint.source.yaml import SAFE_LOAD, Mapping, Node, Scalar, Sequence

NAME = "kubernetes"
TITLE = "Kubernetes"

# Kinds that do nothing but train, and those that may do anything.
TRAINING = frozenset({"PyTorchJob", "TFJob", "MPIJob", "PaddleJob", "JAXJob"})
ANY_WORK = frozenset({"Job"})
_TRAINS = re.compile(r"torchrun|deepspeed|accelerate launch|\btrain|fine[-_]?tune|pretrain|\bsft\b")

# Flags that name the place of checkpoints in whatever program; "_" and "-" are one.
FLAGS = frozenset(
    {"--save", "--save-dir", "--save-path", "--output-dir", "--checkpoint-dir", "--checkpoint-file", "--ckpt-dir"}
)
_MARKS = (re.compile(rb"^apiVersion:", re.M), re.compile(rb"^kind:[ ]*(PyTorchJob|TFJob|MPIJob|PaddleJob|JAXJob)\b", re.M))


class Kubernetes(NotPinned):
    """A job whose containers name a checkpoint path that nothing lasting is mounted at."""

    name = NAME
    title = TITLE
    suffixes = (".yaml", ".yml")

    def mentions(self, data: bytes) -> bool:
        return b"apiVersion:" in data and b"Job" in data and b"containers:" in data and b"--" in data

    def read(self, file: SourceFile) -> tuple[Run, ...]:
        jobs = [document.root for document in documents_of(file, _MARKS) if isinstance(document.root, Mapping)]
        return tuple(run for job in jobs for run in _runs(job))


class _Mount(NamedTuple):
    path: str
    volume: str
    empty: bool


class _Container(NamedTuple):
    mounts: tuple[_Mount, ...]
    words: tuple[tuple[str, Scalar], ...]

    def covering(self, path: str) -> _Mount | None:
        """The mount that a path lies on."""
        over = [mount for mount in self.mounts if inside(path, mount.path)]
        return max(over, key=lambda mount: len(mount.path), default=None)


def _runs(job: Mapping) -> Iterator[Run]:
    kind = _text(job, "kind")
    if kind not in TRAINING | ANY_WORK or not _text(job, "apiVersion"):
        return
    containers = _containers(job)
    if containers is None:
        return
    for container in containers:
        if kind in ANY_WORK and not _TRAINS.search(" ".join(word for word, _ in container.words)):
            continue
        for setting in _paths(container):
            dies = _dies(str(setting.value), container, containers)
            if dies and setting.span is not None:
                yield _run(setting, dies)


def _run(setting: Setting, dies: str) -> Run:
    unknown = Unknown(f"{TITLE} jobs do not say it")
    location = Location(PathExpr.of_text(str(setting.value), expanded=False), setting, dies)
    write = Write(location, Interval(unknown, unknown, setting), Retention(unknown, setting))
    where = setting.span
    assert where is not None
    return Run(NAME, TITLE, Release(""), where, unknown, setting, (write,), (), partial=True)


def _dies(path: str, own: _Container, containers: list[_Container]) -> str:
    """Why a path does not outlive its container; "" where it does, or may.

    A launcher's command runs in the workers, and a helper beside the training may carry away what lies in a shared
    ``emptyDir``: a mount in any other container, too, is taken for one that keeps the files.
    """
    mount = own.covering(path)
    others = [other.covering(path) for other in containers if other is not own]
    if (mount is not None and not mount.empty) or any(other is not None and not other.empty for other in others):
        return ""
    if mount is None:
        return "" if any(others) else "no volume is mounted there"
    shared = sum(any(each.volume == mount.volume for each in container.mounts) for container in containers)
    return "" if shared > 1 else f"the volume `{mount.volume}` at `{mount.path}` is an emptyDir"


# ------------------------------------------------------------------------------------------------ what a job says


def _containers(job: Mapping) -> list[_Container] | None:
    """Every container of every pod; None where the mounts of one are not plainly written."""
    found = []
    for pod in _pods(job):
        volumes = _volumes(pod)
        for name in ("containers", "initContainers"):
            for item in _items(pod, name) or ():
                mounts = _mounts(item, volumes)
                if mounts is None:
                    return None
                found.append(_Container(mounts, tuple(_words(item))))
    return found


def _pods(node: Node) -> Iterator[Mapping]:
    """Mappings with a list of ``containers``, wherever the kind keeps its pod templates."""
    if not isinstance(node, Mapping):
        return
    if _items(node, "containers"):
        yield node
        return
    for entry in node.effective.values():
        yield from _pods(entry.value)


def _volumes(pod: Mapping) -> dict[str, bool]:
    """The volumes of a pod, and whether each is an ``emptyDir``."""
    return {_text(volume, "name"): volume.get("emptyDir") is not None for volume in _items(pod, "volumes") or ()}


def _mounts(container: Mapping, volumes: dict[str, bool]) -> tuple[_Mount, ...] | None:
    if container.get("volumeMounts") is None:
        return ()
    items = _items(container, "volumeMounts")
    if items is None:
        return None
    mounts = [_Mount(_text(item, "mountPath"), _text(item, "name"), volumes.get(_text(item, "name"), False)) for item in items]
    known = all(mount.path.startswith("/") and "$" not in mount.path and "{" not in mount.path for mount in mounts)
    return tuple(mounts) if known else None


def _words(container: Mapping) -> Iterator[tuple[str, Scalar]]:
    """The words of a container's command, those inside of a shell's text too, each with where it is written."""
    for name in ("command", "args"):
        entry = container.get(name)
        nodes = entry.value.items if entry is not None and isinstance(entry.value, Sequence) else ()
        for node in nodes:
            if isinstance(node, Scalar):
                yield from ((word, node) for word in _split(node.text))


def _split(text: str) -> list[str]:
    if not re.search(r"\s", text):
        return [text]
    try:
        return shlex.split(text, comments=True)
    except ValueError:  # an open quote
        return []


def _paths(container: _Container) -> Iterator[Setting]:
    for place, (word, node) in enumerate(container.words):
        flag, equals, value = word.partition("=")
        if flag.replace("_", "-") not in FLAGS:
            continue
        if not equals and place + 1 < len(container.words):
            value, node = container.words[place + 1]
        path = PathExpr.of_text(value, expanded=False)
        if path.literal is not None and value.startswith("/") and not re.search(r"[$;|&{}]", value):
            yield Setting(flag, value, node.body, joint=equals or " ", text=value)


def _text(mapping: Mapping, name: str) -> str:
    entry = mapping.get(name)
    value = entry.value.value(SAFE_LOAD) if entry is not None and isinstance(entry.value, Scalar) else None
    return value if isinstance(value, str) else ""


def _items(mapping: Mapping, name: str) -> list[Mapping] | None:
    """The mappings in a list; None where there is no such list."""
    entry = mapping.get(name)
    if entry is None or not isinstance(entry.value, Sequence):
        return None
    items = [item for item in entry.value.items if isinstance(item, Mapping)]
    return items if len(items) == len(entry.value.items) else None
