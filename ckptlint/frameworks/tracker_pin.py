"""Runs that find their newest checkpoint by a tracker file: what it says, and how it is put right.

verl and Megatron write a tracker of one name (verl 0.9.1 ``checkpoint_handler.py``, Megatron core 0.12.1 ``checkpointing.py``).
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from pathlib import Path

from ckptlint.checkpoints.listing import LocalListing
from ckptlint.checkpoints.tracker import MEGATRON, Tracker, read
from ckptlint.frameworks.framework import PinRequest, SaveRoot, TrackerChange
from ckptlint.run import Literal, PathExpr, Placeholder, Setting, Variable


def save_root(setting: Setting, path: PathExpr | None, environment: Mapping[str, str], save_dir: str | None) -> SaveRoot:
    """The directory a run saves into; what only looks like a placeholder, or is not expanded, is a folder's name.

    Raises:
        UnsetVariable: the path names a variable that is not set.
        ValueError: the directory cannot be known.
    """
    if save_dir is not None:
        same = setting.value == save_dir and setting.path is None
        return SaveRoot(save_dir, save_dir, () if same else setting.set(save_dir))
    if path is None or not path.written:
        raise ValueError(f"`{setting}` names no directory that is known; name it with --save-dir")
    parts = tuple(Literal(part.text) if _is_text(part) else part for part in path.parts)
    try:
        directory = PathExpr(parts, path.written).expand(environment)
    except ValueError as error:
        raise ValueError(f"{error}; name the directory with --save-dir") from None
    return SaveRoot(directory, directory)


def _is_text(part: object) -> bool:
    return isinstance(part, Placeholder) or (isinstance(part, Variable) and not part.expanded)


def tracker_of(request: PinRequest) -> Tracker:
    """What the tracker beside the run's checkpoints says."""
    return read(LocalListing(Path(request.save.root.directory).absolute()), MEGATRON)


def tracker_path(request: PinRequest) -> str:
    """Where it lies, or would."""
    return posixpath.join(request.save.root.directory, MEGATRON)


def said(tracker: Tracker) -> str:
    """What is wrong with a tracker, in words."""
    return tracker.fault or f"says {(tracker.text or '')[:40]!r}"


def repaired(request: PinRequest, tracker: Tracker) -> TrackerChange:
    """The tracker that names the chosen checkpoint."""
    assert request.chosen is not None
    kept = "" if tracker.text is None else " (what it said is kept beside it)"
    why = f"{MEGATRON} {said(tracker)}, and is set to {request.chosen.step}{kept}"
    return TrackerChange(tracker_path(request), str(request.chosen.step), why)


def aside(request: PinRequest, tracker: Tracker, otherwise: str) -> TrackerChange | None:
    """A tracker at which the start would stop, moved away; None where there is none, or it leads to something."""
    if tracker.text is None:
        return None
    named = [found for found in request.save.found if found.step == tracker.step]
    if tracker.text == "release" or (tracker.step is not None and not named):
        return None  # base weights; or a checkpoint that is gone, which is no reason to stop
    why = f"{MEGATRON} {said(tracker)}, at which {otherwise}: it is moved aside (and kept), so that the run begins anew"
    return TrackerChange(tracker_path(request), None, why)


def aside_where_nothing_loads(request: PinRequest, otherwise: str) -> tuple[TrackerChange, ...]:
    """``aside`` as a tuple, for pins."""
    change = aside(request, tracker_of(request), otherwise)
    return () if change is None else (change,)
