"""How an ms-swift run is pointed at a checkpoint: by its path; without one there is no value, so the key goes.

Source: ms-swift 4.6.0.dev0 ``arguments/sft_args.py`` (``__post_init__``), ``cli/main.py`` (``parse_yaml_args``: null
becomes a path ``None``).
"""

from __future__ import annotations

from ckptlint.checkpoints.checkpoint import Checkpoint, Notice
from ckptlint.frameworks.framework import Pin, PinRequest
from ckptlint.frameworks.trainer_pin import goes_on_with_weights, loads, misfit, named, value_for, world_size
from ckptlint.frameworks.trainer_start import about
from ckptlint.run import Run


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
