"""Folders that the real torch.distributed.checkpoint wrote, alone and as an FSDP checkpoint of the Trainer."""

import os
import shutil

import pytest
from checkpoint_files import cut, write_checkpoint

from ckptlint.checkpoints import integrity
from ckptlint.checkpoints.huggingface import HuggingFaceLayout
from ckptlint.checkpoints.listing import LocalListing

pytestmark = [pytest.mark.drill, pytest.mark.filterwarnings("ignore:torch.distributed is disabled")]

torch = pytest.importorskip("torch")
dcp = pytest.importorskip("torch.distributed.checkpoint")


def save(folder):
    state = {f"layer.{number}.weight": torch.ones(number + 1) for number in range(5)}
    dcp.save({**state, "step": 5}, checkpoint_id=folder, no_dist=True)
    return folder


def fault(folder):
    return integrity.dcp_fault(LocalListing(folder.parent), folder.name, folder.name)


def test_its_files_and_their_sizes_are_known_to_the_byte(tmp_path):
    folder = save(tmp_path / "model")
    assert fault(folder) is None
    written = {path.name: path.stat().st_size for path in folder.glob("*.distcp")}
    assert integrity.dcp_files(LocalListing(folder), ".metadata") == written


def test_a_shard_cut_anywhere_is_noticed(tmp_path):
    folder = save(tmp_path / "model")
    for shard in folder.glob("*.distcp"):
        whole = shard.read_bytes()
        for length in [*range(0, len(whole), 97), *range(len(whole) - 9, len(whole))]:
            os.truncate(shard, length)
            assert fault(folder), length
            shard.write_bytes(whole)


def test_an_fsdp_checkpoint_is_verified_by_its_metadata(tmp_path):
    folder = write_checkpoint(tmp_path, 5, optimizer=False)
    (folder / "model.safetensors").unlink()
    for part in ("pytorch_model_fsdp_0", "optimizer_0"):
        save(folder / part)
    (checkpoint,) = HuggingFaceLayout().scan(LocalListing(tmp_path), now=0.0)
    assert checkpoint.complete and checkpoint.backend == "FSDP sharded" and checkpoint.world_size == 1
    copy = shutil.copytree(tmp_path, tmp_path.parent / f"{tmp_path.name}-copy")
    cut(copy / "checkpoint-5" / "optimizer_0" / "__0_0.distcp", -1)
    (checkpoint,) = HuggingFaceLayout().scan(LocalListing(copy), now=0.0)
    assert "optimizer_0/__0_0.distcp is cut short" in checkpoint.reasons[0]
