"""Folders with one torch file a rank of each kind: ``model_rank_3.pth``, ``optimizer_rank_3.pth`` (cosmos-rl and scripts).

Some writers add a mark a rank (``.rank_3_complete``). A mark counts only where its writer is known to make it: where a folder
has some marks all ranks need one, and where it has none their absence tells nothing. How many ranks there are is what the
folder itself says, never the next launch.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial

from ckptlint.checkpoints.checkpoint import Checkpoint
from ckptlint.checkpoints.folder import Folder, Part, examined, missing_ranks
from ckptlint.checkpoints.listing import Listing
from ckptlint.checkpoints.placed import Place, PlacedLayout, any_is, files, number_of, numbered, places_of
from ckptlint.run import State

_CHECKPOINT = re.compile(r"(?:.*[^\d.])?(\d+)")
_RANK_FILE = re.compile(r"(.+?)[_-]rank[_-]?(\d+)\.(?:pth|pt|bin)")
_MARK = re.compile(r"\.?rank_(\d+)_complete")
_FOREIGN = re.compile(
    r"(?:model|optim|extra_state)_world_size_.*|.*_states\.pt|trainer_state\.json|extra_state_rank_\d+\.pt|pytorch_model_fsdp.*"
)


class RankFilesLayout(PlacedLayout):
    """Numbered folders of files ``<kind>_rank_R.pth``."""

    name = "rank-files"
    title = "one file a rank"

    def places(self, listing: Listing) -> Iterator[Place]:
        found = numbered(listing, _CHECKPOINT)
        if any_is(found, partial(_is_mine, listing)):
            forms = {re.sub(r"\d+", "#", path) for _, path in found[:32] if _is_mine(listing, path)}
            yield from places_of([one for one in found if re.sub(r"\d+", "#", one[1]) in forms])
        elif _is_mine(listing, "") and _CHECKPOINT.fullmatch(listing.name):
            match = _CHECKPOINT.fullmatch(listing.name)
            yield Place("", number_of(match[1]) if match else None)

    def judge(self, folder: Folder, place: Place, now: float | None) -> Checkpoint:
        kinds: dict[str, dict[int, str]] = {}
        for name in folder.names:
            match = _RANK_FILE.fullmatch(name)
            if match and len(match[2]) < 7:
                kinds.setdefault(match[1], {})[int(match[2])] = name
        marks = {int(match[1]) for name in folder.names if (match := _MARK.fullmatch(name)) and len(match[1]) < 7}
        world = max([-1, *marks, *(rank for ranks in kinds.values() for rank in ranks)]) + 1
        broken = list(missing_ranks(".rank_{}_complete", marks, world)) if marks else []
        for kind, ranks in sorted(kinds.items()):
            broken += missing_ranks(f"{kind}_rank_{{}}", ranks, world)
        broken += folder.faults(name for ranks in kinds.values() for name in ranks.values())
        before = _kinds(folder.listing, place.older[0]) if place.older else set()
        broken += [f"{kind}_rank_0 is missing, which {place.older[0]} holds" for kind in sorted(before - set(kinds))]
        if not kinds:
            broken.append("it holds no file of a rank")
        optimizer = any(re.search(r"optim|opt(?![a-z])", kind, re.IGNORECASE) for kind in kinds)
        absent = () if optimizer or broken else ("it holds no optimizer state of the ranks",)
        state = {State.MODEL, State.PROGRESS} | ({State.OPTIMIZER} if optimizer else set())
        part = Part(tuple(broken), absent, state=frozenset(state), world_size=world or None, unfinished=bool(broken))
        return examined(folder, place.step, [part], now, same_world_size=True)


def _kinds(listing: Listing, path: str) -> set[str]:
    return {match[1] for name in files(listing, path) if (match := _RANK_FILE.fullmatch(name))}


def _is_mine(listing: Listing, path: str) -> bool:
    names = files(listing, path)
    if any(map(_FOREIGN.fullmatch, names)):
        return False
    return any(map(_RANK_FILE.fullmatch, names)) or any(map(_MARK.fullmatch, names))
