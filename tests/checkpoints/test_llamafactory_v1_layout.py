"""Verdicts on checkpoints of LLaMA-Factory's v1 trainer."""

import json
import os

import pytest
from checkpoint_files import LONG_AGO, OPTIMIZER, cut, safetensors_bytes, torch_bytes, write_checkpoint

from ckptlint.checkpoints.checkpoint import Verdict
from ckptlint.checkpoints.huggingface import HuggingFaceLayout
from ckptlint.checkpoints.listing import LocalListing
from ckptlint.checkpoints.llamafactory_v1 import LlamaFactoryV1Layout
from ckptlint.checkpoints.manifest import ManifestListing
from ckptlint.run import State

LAYOUT = LlamaFactoryV1Layout()


def write(directory, step, *, world_size=2, marker=True, shards=1):
    folder = directory / f"checkpoint-{step}"
    files = {
        "metadata.json": json.dumps({"global_step": step, "epoch": 1, "num_training_steps": 100}).encode(),
        "model/config.json": b"{}",
        "optimizer/state_dict.pt": torch_bytes(OPTIMIZER),
        "scheduler.pt": torch_bytes({"last_epoch": step}),
    }
    names = [f"model-{number:05}-of-{shards:05}" for number in range(1, shards + 1)] if shards > 1 else ["model"]
    files |= {f"model/{name}.safetensors": safetensors_bytes({name: [1.0]}) for name in names}
    for rank in range(world_size):
        files[f"dataloader/rank_{rank}.pt"] = files[f"rng_state/rank_{rank}.pt"] = torch_bytes({"rank": rank})
    if marker:
        files["CHECKPOINT_COMPLETE"] = b""
    for name, data in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
        os.utime(folder / name, (LONG_AGO, LONG_AGO))
    return folder


def only(where, **options):
    (checkpoint,) = LAYOUT.scan(LocalListing(where), **options)
    return checkpoint


def test_a_finished_save_is_complete(tmp_path):
    write(tmp_path, 10)
    checkpoint = only(tmp_path, deep=True)
    assert (checkpoint.verdict, checkpoint.reasons, checkpoint.step, checkpoint.world_size) == (Verdict.COMPLETE, (), 10, 2)
    assert checkpoint.progress.total_steps == 100 and checkpoint.progress.epoch == 1.0
    assert {State.MODEL, State.OPTIMIZER, State.SCHEDULER, State.PROGRESS, State.RNG, State.DATA} <= checkpoint.state


def test_without_the_marker_the_save_did_not_finish(tmp_path):
    write(tmp_path, 10, marker=False)
    assert only(tmp_path).reasons == ("CHECKPOINT_COMPLETE is missing: the save did not finish",)
    assert only(tmp_path).verdict is Verdict.DAMAGED
    assert only(tmp_path, now=LONG_AGO + 10).verdict is Verdict.IN_PROGRESS


def test_every_needed_file_is_missed_although_the_marker_is_there(tmp_path):
    folder = write(tmp_path, 10, shards=2)
    for name in sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()):
        if name in ("CHECKPOINT_COMPLETE", "model/config.json"):
            continue
        data = (folder / name).read_bytes()
        cut(folder / name, len(data) // 2)
        assert only(tmp_path, now=0.0).verdict is Verdict.DAMAGED, name
        (folder / name).unlink()
        checkpoint = only(tmp_path, now=0.0)
        assert checkpoint.reasons, name
        assert not checkpoint.complete or name.startswith(("dataloader/", "rng_state/")), name
        (folder / name).write_bytes(data)
    assert only(tmp_path).complete


@pytest.mark.parametrize("name", ["optimizer/state_dict.pt", "scheduler.pt"])
def test_what_the_trainer_would_silently_go_on_without_makes_it_weights_only(name, tmp_path):
    folder = write(tmp_path, 10)
    (folder / name).unlink()
    checkpoint = only(tmp_path)
    assert checkpoint.verdict is Verdict.WEIGHTS_ONLY and "without a word" in checkpoint.reasons[0]


def test_a_renamed_folder_is_noticed(tmp_path):
    write(tmp_path, 10).rename(tmp_path / "checkpoint-20")
    assert "metadata.json is of step 10, not 20" in only(tmp_path).reasons[0]


def test_the_root_can_be_the_checkpoint_itself(tmp_path):
    folder = write(tmp_path, 10)
    assert (only(folder).path, only(folder).step, only(folder).complete) == ("", 10, True)


def test_fsdp_folders_need_their_metadata():
    text = """\
20 - checkpoint-5/metadata.json ("global_step": 5, "epoch": 0)
0 - checkpoint-5/CHECKPOINT_COMPLETE
9 - checkpoint-5/scheduler.pt
9 - checkpoint-5/model/.metadata
9 - checkpoint-5/model/__0_0.distcp
9 - checkpoint-5/optimizer/__0_0.distcp
9 - checkpoint-5/dataloader/rank_0.pt
9 - checkpoint-5/rng_state/rank_0.pt
"""
    (checkpoint,) = LAYOUT.scan(ManifestListing(text))
    assert checkpoint.reasons == ("optimizer/.metadata is missing: the save did not finish",)
    (checkpoint,) = LAYOUT.scan(ManifestListing(text + "9 - checkpoint-5/optimizer/.metadata\n"))
    assert checkpoint.complete and checkpoint.backend == "FSDP sharded"


def test_deepspeed_keeps_everything_under_its_own_tag():
    text = """\
20 - checkpoint-5/metadata.json ("global_step": 5, "epoch": 0)
0 - checkpoint-5/CHECKPOINT_COMPLETE
13 - checkpoint-5/latest (content: pytorch_model)
9 - checkpoint-5/pytorch_model/mp_rank_00_model_states.pt
9 - checkpoint-5/pytorch_model/bf16_zero_pp_rank_0_mp_rank_00_optim_states.pt
9 - checkpoint-5/pytorch_model/bf16_zero_pp_rank_1_mp_rank_00_optim_states.pt
9 - checkpoint-5/dataloader/rank_0.pt
9 - checkpoint-5/dataloader/rank_1.pt
"""
    (checkpoint,) = LAYOUT.scan(ManifestListing(text))
    assert (checkpoint.complete, checkpoint.world_size, checkpoint.same_world_size) == (True, 2, True)
    gap = text.replace("bf16_zero_pp_rank_0", "moved")
    (checkpoint,) = LAYOUT.scan(ManifestListing(gap))
    assert "zero_pp_rank_0_mp_rank_00_optim_states.pt is missing" in checkpoint.reasons[0]


def test_each_layout_takes_its_own_folders_of_a_shared_directory(tmp_path):
    write(tmp_path, 10)
    write_checkpoint(tmp_path, 20)
    listing = LocalListing(tmp_path)
    assert [checkpoint.step for checkpoint in LAYOUT.scan(listing)] == [10]
    assert [checkpoint.step for checkpoint in HuggingFaceLayout().scan(listing)] == [20]


def test_other_directories_are_not_recognised(tmp_path):
    write_checkpoint(tmp_path, 20)
    assert not LAYOUT.recognises(LocalListing(tmp_path))
    assert not LAYOUT.recognises(ManifestListing("9 - metadata.json\n9 - src/x.py\n"))
    assert not LAYOUT.recognises(ManifestListing(""))
