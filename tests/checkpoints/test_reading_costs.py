"""A checkpoint of 512 ranks is judged by less than a megabyte, wherever in a thousand it lies."""

from __future__ import annotations

import json

import pytest
from checkpoint_files import LONG_AGO, OPTIMIZER, safetensors_bytes, torch_bytes
from layout_files import MemoryListing, arguments, dcp, under

from ckptlint.checkpoints.scan import layouts

RANKS = 512
WEIGHTS = torch_bytes({"weight": 1}, storages={str(number): bytes(512) for number in range(8)})
MOMENTS = torch_bytes(OPTIMIZER, storages={str(number): bytes(512) for number in range(16)})
TOLD = {"module": {}, "optimizer": None, "lr_scheduler": {"a": 1}, "dp_world_size": RANKS, "mp_world_size": 1}


def each(pattern, data):
    return {pattern.format(rank): data for rank in range(RANKS)}


def verl(step):
    files = {"fsdp_config.json": json.dumps({"FSDP_version": 1, "world_size": RANKS}).encode()}
    for kind, data in (("model", WEIGHTS), ("optim", MOMENTS), ("extra_state", WEIGHTS)):
        files |= each(f"{kind}_world_size_{RANKS}_rank_{{}}.pt", data)
    return {**under(f"global_step_{step}/actor", files), f"global_step_{step}/data.pt": WEIGHTS}


def megatron_legacy(step):
    sizes = arguments(tensor_model_parallel_size=8, pipeline_model_parallel_size=64, world_size=RANKS)
    told = torch_bytes({"args": sizes, "iteration": step, "model": {}, "opt_param_scheduler": {"a": 1}, "rng_state": [1]})
    ranks = [f"mp_rank_{tensor:02}_{pipeline:03}" for tensor in range(8) for pipeline in range(64)]
    files = {f"{rank}/model_optim_rng.pt": told for rank in ranks} | {f"{rank}/distrib_optim.pt": MOMENTS for rank in ranks}
    return under(f"iter_{step:07}", files)


def megatron_dist(step):
    core = {
        "metadata.json": b'{"sharded_backend": "torch_dist"}',
        "common.pt": torch_bytes({"args": arguments(), "optimizer": {"a": 1}}),
    }
    return under(f"iter_{step:07}", {**dcp(RANKS), **core})


def mindspeed(step):
    return under(f"iter_{step:07}", {**dcp(RANKS), **each("extra_state/extra_state_rank_{}.pt", WEIGHTS)})


def deepspeed_2(step):
    files = each("bf16_zero_pp_rank_{}_mp_rank_00_optim_states.pt", MOMENTS)
    return under(f"global_step{step}", {**files, "mp_rank_00_model_states.pt": torch_bytes(TOLD)})


def deepspeed_3(step):
    files = each("zero_pp_rank_{}_mp_rank_00_optim_states.pt", MOMENTS)
    return under(f"global_step{step}", {**files, **each("zero_pp_rank_{}_mp_rank_00_model_states.pt", torch_bytes(TOLD))})


def accelerate(step):
    files = {"model.safetensors": safetensors_bytes(), "optimizer.bin": MOMENTS, **each("random_states_{}.pkl", WEIGHTS)}
    return under(f"checkpoint_{step}", files)


def torchtitan(step):
    return under(f"step-{step}", dcp(RANKS))


def rank_files(step):
    return under(f"step_{step}", {**each("model_rank_{}.pth", WEIGHTS), **each("optimizer_rank_{}.pth", MOMENTS)})


def mindformers(step):
    data = safetensors_bytes({"adam_m.weight": [1.0]})
    return {f"rank_{rank}/llm_rank_{rank}-{step}_1.safetensors": data for rank in range(RANKS)}


BUILDS = (
    verl,
    megatron_legacy,
    megatron_dist,
    mindspeed,
    deepspeed_2,
    deepspeed_3,
    accelerate,
    torchtitan,
    rank_files,
    mindformers,
)


@pytest.mark.parametrize("build", BUILDS, ids=lambda build: build.__name__)
def test_the_newest_of_512_shards_is_judged_by_less_than_a_megabyte(build):
    listing = MemoryListing({**build(100), **build(200)})
    (layout,) = [layout for layout in layouts() if layout.recognises(listing)]
    listing.read_bytes = 0
    checkpoint = next(layout.walk(listing, now=LONG_AGO + 1e6))
    assert checkpoint.complete, checkpoint
    assert listing.read_bytes < 1_000_000


@pytest.mark.parametrize("build", [torchtitan, accelerate, deepspeed_2, verl, megatron_dist], ids=lambda build: build.__name__)
def test_of_hundreds_of_folders_only_the_newest_are_looked_into(build):
    made = build(1)
    one = next(iter(made)).split("/")[0]
    files = {path: data for path, data in made.items() if path.startswith(one)}
    few = dict(list(files.items())[:6])
    everything = {path.replace("1", str(step), 1): data for step in range(1000, 1400) for path, data in few.items()}
    listing = MemoryListing({**everything, **build(2000)})
    looked = set()
    inside = listing.files
    listing.files = lambda path="": looked.add(path.split("/")[0]) or inside(path)
    (layout,) = [layout for layout in layouts() if layout.recognises(MemoryListing({**everything, **build(2000)}))]
    assert next(layout.walk(listing, now=LONG_AGO + 1e6)).complete
    assert len(looked) < 60
