"""How an ms-swift run is pointed at a checkpoint: by its path; without one there is no value, so the key goes.

Source: ms-swift 4.6.0.dev0 ``arguments/sft_args.py`` (``__post_init__``), ``cli/main.py`` (``parse_yaml_args``: null
becomes a path ``None``).
"""

from __future__ import annotations

import heapq
import json
from collections.abc import Iterator

from ckptlint.checkpoints.checkpoint import Checkpoint, Layout, Notice
from ckptlint.checkpoints.huggingface import HuggingFaceLayout
from ckptlint.checkpoints.listing import Listing
from ckptlint.checkpoints.ms_swift import MsSwiftLayout
from ckptlint.frameworks.framework import Pin, PinRequest
from ckptlint.frameworks.trainer_pin import goes_on_with_weights, loads, misfit, named, value_for, world_size
from ckptlint.frameworks.trainer_start import about
from ckptlint.run import Run


class RunLayout(Layout):
    """What one run may take up: the checkpoints in all versions, and those in the output directory itself (add_version false).

    Many runs share an output directory, so versions whose args.json names another model are left out.
    """

    name = MsSwiftLayout.name
    title = MsSwiftLayout.title

    def __init__(self, model: str) -> None:
        self._model = _last(model)
        self._versions = MsSwiftLayout()
        self._trainer = HuggingFaceLayout()

    def recognises(self, listing: Listing) -> bool:
        return self._versions.recognises(listing) or self._trainer.recognises(listing)

    def scan(self, listing: Listing, *, deep: bool = False, now: float | None = None) -> tuple[Checkpoint, ...]:
        return tuple(self.walk(listing, deep=deep, now=now))

    def walk(self, listing: Listing, *, deep: bool = False, now: float | None = None) -> Iterator[Checkpoint]:
        layouts = (self._trainer, self._versions)
        walks = [layout.walk(listing, deep=deep, now=now) for layout in layouts if layout.recognises(listing)]
        seen = set()
        for checkpoint in heapq.merge(*walks, key=lambda one: -(-1 if one.step is None else one.step)):
            if checkpoint.path not in seen and self._is_mine(listing, checkpoint.path.rpartition("/")[0]):
                seen.add(checkpoint.path)
                yield checkpoint

    def same_run(self, listing: Listing, one: Checkpoint, other: Checkpoint) -> bool | None:
        return self._trainer.same_run(listing, one, other)

    def _is_mine(self, listing: Listing, version: str) -> bool:
        if not version or not self._model or "args.json" not in listing.files(version):
            return True
        try:
            arguments = json.loads(listing.read(f"{version}/args.json"))
        except (OSError, ValueError, RecursionError):
            return True
        model = arguments.get("model") if isinstance(arguments, dict) else None
        return not isinstance(model, str) or _last(model) == self._model


def _last(model: str) -> str:
    return model.rstrip("/").rpartition("/")[2]


def pin(run: Run, request: PinRequest) -> Pin:
    """Name the chosen checkpoint; where there is none, take the key out, unless it names weights to go on with."""
    if run.settings["resume_only_model"].value is True and request.chosen is not None:
        return _with_weights(run, request, request.chosen)
    return _unpinned(run, request) if request.chosen is None else _pinned(run, request, request.chosen)


def _pinned(run: Run, request: PinRequest, chosen: Checkpoint) -> Pin:
    resume = run.settings["resume_from_checkpoint"]
    value = value_for(request, resume, chosen)
    edits = () if value == resume.value else resume.set(value)
    notices = tuple(about(run, chosen, world_size(request.environment)))
    return Pin(edits, notices, ("--resume_from_checkpoint", value) if edits else ())


def _with_weights(run: Run, request: PinRequest, chosen: Checkpoint) -> Pin:
    """The author takes weights only: the newest, too."""
    pinned = _pinned(run, request, chosen)
    setting = run.settings["resume_only_model"]
    message = f"`{setting}` takes nothing but weights up; write `{setting.spelled(False)}` to resume"
    return Pin(pinned.edits, (*pinned.notices, Notice("weights-only-skipped", message)), pinned.arguments)


def _unpinned(run: Run, request: PinRequest) -> Pin:
    resume = run.settings["resume_from_checkpoint"]
    refused = misfit(run, request)
    if refused is not None:
        return Pin((), (refused,))
    there = named(request, resume.value)
    if there is not None and loads(there):
        return Pin((), (goes_on_with_weights(run, str(resume.value), there),))
    return Pin(resume.remove() if resume.written and resume.value != "" else ())
