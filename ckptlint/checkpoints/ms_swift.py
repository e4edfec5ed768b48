"""The checkpoints of ms-swift: a new ``vN-<date>-<time>`` in output_dir at every start, and in it those of the Trainer.

Source: ms-swift 4.6.0.dev0 ``utils/utils.py`` (``add_version_to_work_dir``), ``arguments/base_args/base_args.py``
(``save_args``: args.json).
"""

from __future__ import annotations

import heapq
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from ckptlint.checkpoints.checkpoint import Checkpoint, Layout
from ckptlint.checkpoints.huggingface import HuggingFaceLayout
from ckptlint.checkpoints.listing import FileInfo, Listing, Unreachable

VERSION = re.compile(r"v(\d+)-\d{8}-\d{6}")


class MsSwiftLayout(Layout):
    """All versions below one output directory, and what lies in it itself (``add_version false``), in the order of their steps.

    ``model``: versions whose args.json names another model are left out; "" for all.
    """

    name = "ms-swift"
    title = "ms-swift"

    def __init__(self, model: str = "") -> None:
        self._model = _last(model)
        self._trainer = HuggingFaceLayout()

    def recognises(self, listing: Listing) -> bool:
        return any(self._trainer.recognises(Below(listing, name)) for name in _versions(listing))

    def scan(self, listing: Listing, *, deep: bool = False, now: float | None = None) -> tuple[Checkpoint, ...]:
        return tuple(self.walk(listing, deep=deep, now=now))

    def walk(self, listing: Listing, *, deep: bool = False, now: float | None = None) -> Iterator[Checkpoint]:
        versions = [name for name in _versions(listing) if self._mine(listing, name)]
        places = [self._of(listing, name, deep, now) for name in versions]
        places.insert(0, self._trainer.walk(listing, deep=deep, now=now))
        return heapq.merge(*places, key=lambda checkpoint: -(-1 if checkpoint.step is None else checkpoint.step))

    def same_run(self, listing: Listing, one: Checkpoint, other: Checkpoint) -> bool | None:
        return self._trainer.same_run(listing, one, other)

    def _of(self, listing: Listing, version: str, deep: bool, now: float | None) -> Iterator[Checkpoint]:
        for checkpoint in self._trainer.walk(Below(listing, version), deep=deep, now=now):
            if checkpoint.path:
                yield replace(checkpoint, path=f"{version}/{checkpoint.path}")

    def _mine(self, listing: Listing, version: str) -> bool:
        if not self._model or "args.json" not in listing.files(version):
            return True
        try:
            arguments = json.loads(listing.read(f"{version}/args.json"))
        except (OSError, ValueError, RecursionError):
            return True
        model = arguments.get("model") if isinstance(arguments, dict) else None
        return not isinstance(model, str) or _last(model) == self._model


def _versions(listing: Listing) -> list[str]:
    """The version directories, the newest first."""
    found = [(int(match[1]), name) for name in listing.directories() if (match := VERSION.fullmatch(name))]
    return [name for _, name in sorted(found, reverse=True)]


def _last(model: str) -> str:
    return model.rstrip("/").rpartition("/")[2]


class Below(Listing):
    """One directory of another listing as the root."""

    def __init__(self, listing: Listing, path: str) -> None:
        self.root = f"{listing.root.rstrip('/')}/{path}"
        self._listing = listing
        self._path = path

    def directories(self, path: str = "") -> tuple[str, ...]:
        try:
            return self._listing.directories(self._inner(path))
        except Unreachable:
            if path:
                raise
            return ()  # one version that cannot be listed does not hide the others

    def files(self, path: str = "") -> Mapping[str, FileInfo]:
        try:
            return self._listing.files(self._inner(path))
        except Unreachable:
            if path:
                raise
            return {}

    def read(self, path: str, start: int = 0, length: int | None = None) -> bytes:
        return self._listing.read(self._inner(path), start, length)

    def _inner(self, path: str) -> str:
        return f"{self._path}/{path}" if path else self._path
