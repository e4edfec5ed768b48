"""How an axolotl run is pointed at a checkpoint.

Sources: axolotl 0.18.0 ``utils/train.py`` (``determine_last_checkpoint``): an explicit path wins; with
``auto_resume_from_checkpoints`` the highest number behind the last dash of ``checkpoint-*`` is taken, whatever is in it.
"""

from __future__ import annotations

from ckptlint.checkpoints.checkpoint import Checkpoint, Notice
from ckptlint.frameworks.framework import Pin, PinRequest
from ckptlint.frameworks.trainer_pin import goes_on_with_weights, loads, misfit, named, value_for, world_size
from ckptlint.frameworks.trainer_start import about
from ckptlint.run import Run
from ckptlint.source.text import Edit


def pin(run: Run, request: PinRequest) -> Pin:
    """Name the chosen checkpoint, unless it is found by itself; where there is none, leave what the launch works with."""
    return _unpinned(run, request) if request.chosen is None else _pinned(run, request, request.chosen)


def _pinned(run: Run, request: PinRequest, chosen: Checkpoint) -> Pin:
    resume, auto = run.settings["resume_from_checkpoint"], run.settings["auto_resume_from_checkpoints"]
    notices = tuple(about(run, chosen, world_size(request.environment)))
    by_itself = auto.value is True and resume.value is None and chosen in request.save.found
    if by_itself and _newest(request) == chosen.path:
        return Pin((), notices)
    value = value_for(request, resume, chosen)
    edits = () if value == resume.value else resume.set(value)
    return Pin(edits, notices, (f"--resume-from-checkpoint={value}",) if edits else ())


def _newest(request: PinRequest) -> str | None:
    """The name that axolotl takes for the newest: files count, too."""
    numbers = {
        name: int(name.rpartition("-")[2])
        for name in request.save.folders | request.save.files
        if name.startswith("checkpoint-") and name.rpartition("-")[2].isdecimal()
    }
    return max(numbers, key=lambda name: numbers[name], default=None)


def _unpinned(run: Run, request: PinRequest) -> Pin:
    resume, auto = run.settings["resume_from_checkpoint"], run.settings["auto_resume_from_checkpoints"]
    refused = misfit(run, request)
    if refused is not None:
        return Pin((), (refused,))
    pinned = named(request, resume.value)
    if pinned is not None and loads(pinned):
        return Pin((), (goes_on_with_weights(run, str(resume.value), pinned),))
    edits: tuple[Edit, ...] = () if resume.value is None else resume.set(None)
    newest = _newest(request) if auto.value is True else None
    if newest is None:
        return Pin(edits, ())
    there = next((found for found in request.save.found if found.path == newest), None)
    path = request.save.root.checkpoint(newest)
    if there is not None and loads(there):
        return Pin(edits, (goes_on_with_weights(run, path, there),))
    lacks = "; ".join(there.reasons) if there is not None else "it is no checkpoint"
    message = (
        f"`{path}` would stop the launch ({lacks}), so `{auto.name}` is turned off: the run begins at step 0 and overwrites "
        "what is there; move it away first if you need it"
    )
    return Pin((*edits, *auto.set(False)), (Notice("nothing-resumable", message),))
