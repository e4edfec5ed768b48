"""The directories of a DeepSpeed engine: one folder a tag, and ``latest``, which names the newest.

deepspeed/runtime/engine.py ``save_checkpoint`` (0.16): rank 0 writes ``latest`` after its own files and before the last
barrier, so it can name a tag that is not whole. ``load_checkpoint`` without it warns and returns None: training begins at step
0.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from ckptlint.checkpoints import deepspeed, huggingface, tracker
from ckptlint.checkpoints.checkpoint import Checkpoint, Notice, Progress
from ckptlint.checkpoints.folder import Folder, Part, examined, resaved, whole_number
from ckptlint.checkpoints.listing import Listing
from ckptlint.checkpoints.placed import Place, PlacedLayout, files, folders, number_of
from ckptlint.run import State

_LATEST = "latest"
_STEP = re.compile(r"global_?step_?(\d+)")
_NUMBER = re.compile(r"(\d+)(?!.*\d)")
_FEW = 32

# What lies beside `latest` where another layout has its own marks and rules for the whole folder.
_FOREIGN = re.compile(r"trainer_state\.json|random_states_\d+\.pkl|scheduler\.bin|CHECKPOINT_COMPLETE|metadata\.json")


class DeepSpeedLayout(PlacedLayout):
    """Folders of any name that hold ``*_states.pt``."""

    name = "deepspeed"
    title = "DeepSpeed"

    def places(self, listing: Listing) -> Iterator[Place]:
        if any(map(_FOREIGN.fullmatch, listing.files())):
            return
        if huggingface.CHECKPOINT.fullmatch(listing.name) or huggingface.UNFINISHED.fullmatch(listing.name):
            return
        numbered = sorted(((_number(name), name) for name in listing.directories()), key=_newest_first)
        forms = {_form(name) for _, name in numbered[:_FEW] if _is_tag(listing, name)}
        named = tracker.read(listing, _LATEST).text
        found = [(step, name) for step, name in numbered if _form(name) in forms or (forms and name == named)]
        for at, (step, name) in enumerate(found):
            yield Place(name, step, tuple(older for _, older in found[at + 1 : at + 3]))
        if not found and any(map(deepspeed.is_states, listing.files())):
            yield Place("", _number(listing.name))

    def judge(self, folder: Folder, place: Place, now: float | None) -> Checkpoint:
        if "zero" in folder.folders:
            return _universal(folder, place, now)
        if not folder.tree:
            return examined(folder, place.step, [Part(broken=("the folder is empty",), unfinished=True)], now)
        before = tuple(files(folder.listing, place.older[0])) if place.older else ()
        told = deepspeed.told(folder, "")
        schedule = {State.SCHEDULER} if told.get("lr_scheduler", None) is not None else set()
        step = whole_number(told.get("global_steps"))
        parts = [deepspeed.states(folder, "", before), _progress(place.step, step), _resaved(folder, place)]
        parts.append(Part(state=frozenset({State.PROGRESS, *schedule})))
        backend = deepspeed.stage_of(folder.names)
        mp = whole_number(told.get("mp_world_size"))
        parallel = {"tensor": mp} if mp else {}
        checkpoint = examined(
            folder, _shown_step(place, step), parts, now, backend=backend, same_world_size=True, parallel=parallel
        )
        return tracker.superseded(checkpoint, _tracker(folder.listing)) if folder.path else checkpoint

    def notices(self, listing: Listing, checkpoints: tuple[Checkpoint, ...]) -> Iterator[Notice]:
        if all(checkpoint.path for checkpoint in checkpoints):
            found = _tracker(listing)
            plain = tuple(one for one in checkpoints if one.backend != _UNIVERSAL)
            if found.fault or found.step is not None:
                yield from tracker.notices(found, plain, "`load_checkpoint` loads nothing and training begins at step 0")
            elif found.text and found.text not in {checkpoint.path for checkpoint in plain}:
                yield from tracker.notices(found, plain, "")


def _tracker(listing: Listing) -> tracker.Tracker:
    """``latest``, with the number of the tag that it names."""
    found = tracker.read(listing, _LATEST)
    number = _number(found.text) if found.text and "/" not in found.text else None
    return replace(found, text=str(number)) if number is not None else found


def _number(name: str) -> int | None:
    """What orders tags: the number behind global_step, else the last one of the name."""
    match = _STEP.search(name) or _NUMBER.search(name)
    return number_of(match[1]) if match else None


def _newest_first(one: tuple[int | None, str]) -> tuple[int, bool, str]:
    step, name = one
    return -(step if step is not None else -1), name.endswith("_universal"), name


def _form(name: str) -> str:
    return re.sub(r"\d+", "#", name)


def _is_tag(listing: Listing, name: str) -> bool:
    if any(map(deepspeed.is_states, files(listing, name))):
        return True
    return name.endswith("_universal") and "zero" in folders(listing, name)


def _shown_step(place: Place, inside: int | None) -> int | None:
    """The number of a tag is its step, unless it counts something else (``epoch3``) or there is none."""
    return place.step if place.step is not None and "epoch" not in place.path else inside or place.step


def _progress(step: int | None, inside: int | None) -> Part:
    return Part(progress=Progress(inside if inside is not None else step))


def _resaved(folder: Folder, place: Place) -> Part:
    """Files whose times lie further apart than a save takes: those of two saves into one tag.

    Nothing is written last here, so the measure is the tag before: there is none, or it lies apart as well, and it is a remark.
    """
    spread, late = _spread(folder)
    if spread < _APART_SECONDS or not late:
        return Part()
    older = Folder(folder.listing, place.older[0]) if place.older else None
    return resaved(late, "others of the tag", older is None or _spread(older)[0] * 5 > spread)


_APART_SECONDS = 600.0


def _spread(folder: Folder) -> tuple[float, str]:
    times = sorted((info.modified, name) for name, info in folder.tree.items() if info.modified is not None)
    return (times[-1][0] - times[0][0], times[-1][1]) if times else (0.0, "")


# ------------------------------------------------------------------------------------------------ universal

_UNIVERSAL = "DeepSpeed universal"


def _universal(folder: Folder, place: Place, now: float | None) -> Checkpoint:
    """What ds_to_universal.py made of a tag: zero/<parameter>/{fp32,exp_avg,exp_avg_sq}.pt, for any number of ranks."""
    inside = {name: set(folder.inside(f"zero/{name}")) for name in folders(folder.listing, folder.at("zero"))}
    kinds = set().union(*inside.values()) & {"fp32.pt", "exp_avg.pt", "exp_avg_sq.pt"}
    lost = [f"zero/{name}/{kind} is missing" for name, have in inside.items() for kind in sorted({"fp32.pt", *kinds} - have)]
    broken = [*lost, *folder.faults(name for name in folder.tree if name.endswith(".pt"))]
    if not inside:
        broken.append("zero/ holds no parameter")
    absent = () if "exp_avg.pt" in kinds or broken else ("it holds no optimizer state",)
    remark = "universal: only a run with checkpoint.load_universal takes it"
    state = frozenset({State.MODEL, State.OPTIMIZER, State.PROGRESS})
    part = Part(tuple(broken), absent, (remark,), state if not broken else frozenset(), unfinished=bool(broken))
    return examined(folder, place.step, [part], now, backend=_UNIVERSAL)
