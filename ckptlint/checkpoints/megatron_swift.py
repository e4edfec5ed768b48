"""The checkpoints of Megatron-SWIFT (``megatron sft``): ``[v<n>-<time>/]checkpoint-M``, each a Megatron directory of its own.

ms-swift 4.6 ``save_mcore_checkpoint``: ``checkpoint-M`` holds latest_checkpointed_iteration.txt and ``iter_000000M``. With
``async_save`` the tracker is written before the shards are finished, so it tells nothing; the shards do.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from ckptlint.checkpoints import megatron
from ckptlint.checkpoints.checkpoint import Checkpoint
from ckptlint.checkpoints.folder import Folder, Part, examined
from ckptlint.checkpoints.huggingface import CHECKPOINT
from ckptlint.checkpoints.listing import Listing
from ckptlint.checkpoints.ms_swift import VERSION
from ckptlint.checkpoints.placed import Place, PlacedLayout, files, folders, number_of, numbered

_ITERATION = re.compile(r"iter_(\d{7,})")


class MegatronSwiftLayout(PlacedLayout):
    """Folders ``checkpoint-M`` with ``iter_000000M`` inside, in the directory or in the versions below it."""

    name = "megatron-swift"
    title = "Megatron-SWIFT"

    def places(self, listing: Listing) -> Iterator[Place]:
        versions = [match for name in listing.directories() if (match := VERSION.fullmatch(name))]
        versions.sort(key=lambda match: number_of(match[1]) or 0)
        below = ["", *(match[0] for match in versions)]
        found = [(step, age, path) for age, where in enumerate(below) for step, path in numbered(listing, CHECKPOINT, where)]
        found.sort(reverse=True)
        if any(_iterations(listing, path) for _, _, path in found[:32]):
            for step, _, path in found:
                if "trainer_state.json" not in files(listing, path):
                    yield Place(path, step)

    def judge(self, folder: Folder, place: Place, now: float | None) -> Checkpoint:
        names = _iterations(folder.listing, folder.path)
        if not names:
            why = "it holds no iter_… folder: the save was interrupted, or it is an export"
            return examined(folder, place.step, [Part(broken=(why,), unfinished=True)], now)
        inner = f"{folder.path}/{names[-1]}"
        step = number_of(names[-1].removeprefix("iter_"))
        checkpoint = megatron.judged(Folder(folder.listing, inner, folder.deep), Place(inner, step), now)
        return replace(checkpoint, path=folder.path, step=place.step)


def _iterations(listing: Listing, path: str) -> list[str]:
    return sorted(name for name in folders(listing, path) if _ITERATION.fullmatch(name))
