"""The checkpoints of MindSpeed-LLM's FSDP2 trainer (mindspeed_llm/fsdp2).

``<output_dir>/checkpoints/global_step_N/``: extra_state/extra_state_rank_R.pt of all ranks, then ``__R_K.distcp``, at last
``.metadata``. There is no tracker: a run resumes from the one folder that it is given.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ckptlint.checkpoints import distributed
from ckptlint.checkpoints.checkpoint import Checkpoint
from ckptlint.checkpoints.folder import Folder, Part, examined, resaved
from ckptlint.checkpoints.listing import Listing
from ckptlint.checkpoints.placed import Place, PlacedLayout, any_is, files, folders, numbered, places_of
from ckptlint.run import State

_CHECKPOINT = re.compile(r"global_step_(\d+)")
_FOLDER = "checkpoints"


class MindSpeedFSDP2Layout(PlacedLayout):
    """Folders ``global_step_N`` with extra_state/ and the files of a DCP folder."""

    name = "mindspeed-fsdp2"
    title = "MindSpeed-LLM FSDP2"

    def places(self, listing: Listing) -> Iterator[Place]:
        for below in ("", _FOLDER):
            found = numbered(listing, _CHECKPOINT, below)
            if any_is(found, lambda path: _is_mine(listing, path)):
                yield from places_of(found)
                return
        match = _CHECKPOINT.fullmatch(listing.name)
        if match and _is_mine(listing, ""):
            yield Place("", int(match[1]))

    def judge(self, folder: Folder, place: Place, now: float | None) -> Checkpoint:
        if not folder.tree:
            return examined(folder, place.step, [Part(broken=("the folder is empty",), unfinished=True)], now)
        held = frozenset({State.MODEL, State.OPTIMIZER})
        parts = [distributed.dcp(folder, "", held), distributed.extra_state(folder)]
        name = folder.younger(".metadata", distributed.shards(folder))
        older = [Folder(folder.listing, path) for path in place.older[:1]]
        likewise = not older or older[0].younger(".metadata", distributed.shards(older[0])) is not None
        parts.append(resaved(name, ".metadata", likewise))
        return examined(folder, place.step, parts, now, backend="MindSpeed FSDP", same_world_size=True)


def _is_mine(listing: Listing, path: str) -> bool:
    names, inside = files(listing, path), folders(listing, path)
    return "actor" not in inside and ("extra_state" in inside or distributed.is_dcp(names))
