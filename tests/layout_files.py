"""Checkpoints of every layout as files in memory: name to bytes, as the frameworks' own writers lay them out, but tiny."""

from __future__ import annotations

import argparse
import json
import os
import pickle
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from checkpoint_files import LONG_AGO, OPTIMIZER, safetensors_bytes, torch_bytes

from ckptlint.checkpoints.listing import FileInfo, Listing

Files = dict[str, bytes]


class MemoryListing(Listing):
    """A directory in memory. ``read_bytes`` counts what was read of it."""

    def __init__(self, files: Mapping[str, bytes], times: Mapping[str, float] | None = None, root: str = "run") -> None:
        self.root = root
        self.read_bytes = 0
        self._data = dict(files)
        self._files: dict[str, dict[str, FileInfo]] = {"": {}}
        self._folders: dict[str, set[str]] = {"": set()}
        for path, data in files.items():
            parent, _, name = path.rpartition("/")
            self._folder(parent)
            if name:
                self._files[parent][name] = FileInfo(len(data), (times or {}).get(path, LONG_AGO))

    def _folder(self, path: str) -> None:
        if path not in self._files:
            parent, _, name = path.rpartition("/")
            self._folder(parent)
            self._folders[parent].add(name)
            self._files[path], self._folders[path] = {}, set()

    def directories(self, path: str = "") -> tuple[str, ...]:
        return tuple(sorted(self._folders.get(path, ())))

    def files(self, path: str = "") -> Mapping[str, FileInfo]:
        return self._files.get(path, {})

    def read(self, path: str, start: int = 0, length: int | None = None) -> bytes:
        if path not in self._data:
            raise FileNotFoundError(2, "No such file or directory", path)
        data = self._data[path][start : None if length is None else start + length]
        self.read_bytes += len(data)
        return data


def write(directory: Path, files: Mapping[str, bytes], times: Mapping[str, float] | None = None) -> Path:
    """The same files on a disk."""
    for path, data in files.items():
        place = directory / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data)
        os.utime(place, ((times or {}).get(path, LONG_AGO),) * 2)
    return directory


def dcp(ranks: int = 2, keys: tuple[str, ...] = ("model.weight", "optimizer.state.exp_avg")) -> Files:
    """A DCP folder. The pickle has no torch classes in it, but every word and number in torch's own order."""
    shards = {f"__{rank}_0.distcp": torch_bytes({"shard": rank}) for rank in range(ranks)}
    storage = [
        {"relative_path": name, "offset": 0, "length": len(data), "transform_descriptors": None}
        for name, data in shards.items()
    ]
    return {**shards, ".metadata": pickle.dumps({"state_dict_metadata": list(keys), "storage_data": storage}, 4)}


def under(folder: str, files: Mapping[str, bytes]) -> Files:
    return {f"{folder}/{name}": data for name, data in files.items()}


def mindspore_bytes(parameters: Mapping[str, bytes]) -> bytes:
    """A MindSpore checkpoint: one field of name and tensor a parameter."""

    def number(value: int) -> bytes:
        out = b""
        while value > 127:
            out, value = out + bytes([value & 127 | 128]), value >> 7
        return out + bytes([value])

    def part(tag: int, data: bytes) -> bytes:
        return bytes([tag << 3 | 2]) + number(len(data)) + data

    out = b""
    for name, data in parameters.items():
        tensor = bytes([1 << 3]) + number(len(data) // 4) + part(2, b"Int32" if len(data) == 4 else b"Float32") + part(3, data)
        out += part(1, part(1, name.encode()) + part(2, tensor))
    return out


# ------------------------------------------------------------------------------------------------ the layouts


def _verl_fsdp(role: str, world: int = 2) -> Files:
    files = {f"{role}fsdp_config.json": json.dumps({"FSDP_version": 1, "world_size": world}).encode()}
    for rank in range(world):
        files[f"{role}model_world_size_{world}_rank_{rank}.pt"] = torch_bytes({"weight": rank})
        files[f"{role}optim_world_size_{world}_rank_{rank}.pt"] = torch_bytes(OPTIMIZER)
        files[f"{role}extra_state_world_size_{world}_rank_{rank}.pt"] = torch_bytes({"lr_scheduler": {}, "rng": {}})
    return files | {f"{role}huggingface/config.json": b"{}"}


def verl_fsdp(step: int) -> Files:
    files = {**_verl_fsdp("actor/"), **_verl_fsdp("critic/"), "data.pt": torch_bytes({"_snapshot": step})}
    return under(f"global_step_{step}", files)


def verl_sft(step: int) -> Files:
    return under(f"global_step_{step}", {**_verl_fsdp(""), "data.pt": torch_bytes({"_snapshot": step})})


_CORE = {"metadata.json": b'{"sharded_backend": "torch_dist", "sharded_backend_version": 1}'}


def _torch_dist(step: int, keys: tuple[str, ...] = ("model.weight", "optimizer.state.exp_avg")) -> Files:
    common = {"args": arguments(), "iteration": step, "checkpoint_version": 3.0, "optimizer": {"param_groups": [{"lr": 1.0}]}}
    return {**dcp(keys=keys), **_CORE, "common.pt": torch_bytes(common)}


def verl_megatron_v1(step: int) -> Files:
    actor = {**under("dist_ckpt", _torch_dist(step)), "transformer_config.json": b"{}"}
    actor["huggingface/model.safetensors"] = safetensors_bytes()
    return under(f"global_step_{step}", {**under("actor", actor), "data.pt": torch_bytes({"_snapshot": step})})


def verl_megatron_v2(step: int) -> Files:
    contents = {"model": "model/dist_ckpt", "optimizer": "optimizer/dist_ckpt", "extra": "extra/dist_ckpt"}
    marks = {"schema_version": 2, "global_step": step, "world_size": 2, "save_contents": list(contents), "contents": contents}
    actor = {"ckpt_contents.json": json.dumps(marks).encode(), "transformer_config.json": b"{}"}
    for place in contents.values():
        actor |= under(place, _torch_dist(step))
    return under(f"global_step_{step}", {**under("actor", actor), "data.pt": torch_bytes({"_snapshot": step})})


def arguments(**more: object) -> argparse.Namespace:
    sizes = {"tensor_model_parallel_size": 2, "pipeline_model_parallel_size": 2, "world_size": 8, "train_iters": 1000}
    return argparse.Namespace(**{**sizes, "expert_model_parallel_size": 1, "use_distributed_optimizer": True, **more})


def megatron_legacy(step: int) -> Files:
    told = {"args": arguments(), "checkpoint_version": 3.0, "iteration": step, "model": {}, "opt_param_scheduler": {"a": 1}}
    files = {}
    for tensor in range(2):
        for pipeline in range(2):
            rank = f"mp_rank_{tensor:02}_{pipeline:03}"
            files[f"{rank}/model_optim_rng.pt"] = torch_bytes({**told, "rng_state": [1]})
            files[f"{rank}/distrib_optim.pt"] = torch_bytes(OPTIMIZER)
    return under(f"iter_{step:07}", files)


def megatron_torch_dist(step: int) -> Files:
    return under(f"iter_{step:07}", _torch_dist(step))


def megatron_torch_dist_019(step: int) -> Files:
    keys = ("model.weight", "optimizer.state.exp_avg", "common_state/shard_0_1")
    return under(f"iter_{step:07}", {**dcp(keys=keys), **_CORE})


def megatron_torch_dcp(step: int) -> Files:
    return under(f"iter_{step:07}", dcp())


def _extra_state() -> Files:
    return {f"extra_state/extra_state_rank_{rank}.pt": torch_bytes({"global_step": 1, "lr_scheduler": {}}) for rank in range(2)}


def mindspeed_mm(step: int) -> Files:
    return under(f"iter_{step:07}", {**dcp(), **_extra_state()})


def mindspeed_fsdp2(step: int) -> Files:
    return under(f"checkpoints/global_step_{step}", {**dcp(), **_extra_state()})


def mindspeed_rl(step: int) -> Files:
    files = {**megatron_torch_dist(step), "latest_checkpointed_iteration.txt": str(step).encode()}
    return {**under("actor", files), **under("critic", files)}


def megatron_swift(step: int) -> Files:
    files = {**megatron_torch_dist(step), "latest_checkpointed_iteration.txt": str(step).encode(), "args.json": b"{}"}
    return under(f"v0-20260101-120000/checkpoint-{step}", files)


def ms_swift(step: int) -> Files:
    files = {
        "model.safetensors": safetensors_bytes(),
        "optimizer.pt": torch_bytes(OPTIMIZER),
        "scheduler.pt": torch_bytes({"last_epoch": step}),
        "trainer_state.json": json.dumps({"global_step": step, "epoch": 1.0, "max_steps": 1000}).encode(),
    }
    return under(f"v{step}-20260101-120000/checkpoint-{step}", files)


def _told(step: int, world: int = 2, **more: object) -> dict[str, object]:
    told = {"module": {}, "optimizer": None, "lr_scheduler": {"last_batch_iteration": step}, "global_steps": step}
    return {**told, "dp_world_size": world, "mp_world_size": 1, **more}


def deepspeed_stage_0(step: int) -> Files:
    return {f"global_step{step}/mp_rank_00_model_states.pt": torch_bytes(_told(step, optimizer=OPTIMIZER))}


def deepspeed_stage_2(step: int) -> Files:
    files = {f"bf16_zero_pp_rank_{rank}_mp_rank_00_optim_states.pt": torch_bytes(OPTIMIZER) for rank in range(2)}
    return under(f"global_step{step}", {**files, "mp_rank_00_model_states.pt": torch_bytes(_told(step))})


def deepspeed_stage_3(step: int) -> Files:
    files = {}
    for rank in range(2):
        files[f"zero_pp_rank_{rank}_mp_rank_00_model_states.pt"] = torch_bytes(_told(step))
        files[f"zero_pp_rank_{rank}_mp_rank_00_optim_states.pt"] = torch_bytes(OPTIMIZER)
    return under(f"global_step{step}", files)


def deepspeed_pipeline(step: int) -> Files:
    files = {f"layer_{layer:02}-model_states.pt": torch_bytes({"weight": 1}) for layer in (0, 1, 3)}
    files |= {f"zero_pp_rank_{rank}_mp_rank_00_optim_states.pt": torch_bytes(OPTIMIZER) for rank in range(2)}
    return under(f"global_step{step}", {**files, "mp_rank_00_model_states.pt": torch_bytes(_told(step, module=None))})


def deepspeed_moe(step: int) -> Files:
    files = {f"layer_0_expert_{expert}_mp_rank_00_model_states.pt": torch_bytes({"weight": 1}) for expert in range(3)}
    files |= {f"expp_rank_{rank}_mp_rank_00_optim_states.pt": torch_bytes(OPTIMIZER) for rank in range(2)}
    return under(f"global_step{step}", {**files, "mp_rank_00_model_states.pt": torch_bytes(_told(step))})


def accelerate(step: int) -> Files:
    files = {
        "model.safetensors": safetensors_bytes(),
        "optimizer.bin": torch_bytes(OPTIMIZER),
        "scheduler.bin": torch_bytes({"last_epoch": step}),
        "sampler.bin": torch_bytes({"seed": 1}),
        "random_states_0.pkl": torch_bytes({"random": [1]}),
        "random_states_1.pkl": torch_bytes({"random": [1]}),
        "custom_checkpoint_0.pkl": torch_bytes({"epoch": 1}),
    }
    return under(f"checkpoint_{step}", files)


def diffusers(step: int) -> Files:
    files = {
        "unet/diffusion_pytorch_model.safetensors": safetensors_bytes(),
        "unet/config.json": b"{}",
        "optimizer.bin": torch_bytes(OPTIMIZER),
        "scheduler.bin": torch_bytes({"last_epoch": step}),
        "random_states_0.pkl": torch_bytes({"random": [1]}),
    }
    return under(f"checkpoint-{step}", files)


def torchtitan(step: int) -> Files:
    return under(f"step-{step}", dcp())


def automodel(step: int) -> Files:
    files = {**under("model", dcp(keys=("model.weight",))), **under("optim", dcp(keys=("optim.state",)))}
    return under(f"epoch_0_step_{step}", files)


def nemo(step: int) -> Files:
    return under(f"m--val_loss=2.5-step={step}-consumed_samples={step * 8}.0", under("weights", _torch_dist(0)))


def lightning(step: int) -> Files:
    told = {"epoch": 1, "global_step": step, "pytorch-lightning_version": "2.6.2", "state_dict": {"weight": 1}}
    told |= {"loops": {"fit_loop": {}}, "callbacks": {}, "optimizer_states": [OPTIMIZER], "lr_schedulers": []}
    return {f"epoch=1-step={step}.ckpt": torch_bytes(told)}


def single_file(step: int) -> Files:
    return {f"step_{step}.pt": torch_bytes({"model": {"weight": 1}, "optimizer": OPTIMIZER, "step": step})}


def paired_files(step: int) -> Files:
    told = {"model": {"weight": 1}, "step": step}
    return {f"epoch.{step:03}.pt": torch_bytes(told), f"epoch.{step:03}.opt.pt": torch_bytes(OPTIMIZER)}


def mindspore(step: int) -> Files:
    parameters = {
        "conv.weight": bytes(400),
        "moments.conv.weight": bytes(400),
        "global_step": (step * 10).to_bytes(4, "little"),
    }
    return {f"resnet-{step}_10.ckpt": mindspore_bytes(parameters)}


def mindformers(step: int) -> Files:
    parameters = {"adam_m.weight": [1.0], "weight": [1.0]}
    return {f"rank_{rank}/llm_rank_{rank}-{step}_2.safetensors": safetensors_bytes(parameters) for rank in range(2)}


def rank_files(step: int) -> Files:
    files: Files = {}
    for rank in range(2):
        files[f"model_rank_{rank}.pth"], files[f"optimizer_rank_{rank}.pth"] = (
            torch_bytes({"weight": 1}),
            torch_bytes(OPTIMIZER),
        )
        files[f".rank_{rank}_complete"] = b"1"
    return under(f"step_{step}", files)


@dataclass(frozen=True)
class Family:
    """One layout: what it is called, how a checkpoint is built, and which of its files a resume does without.

    ``tracker``: the name and the text of the file that names the newest. ``mark``: what a save writes last (a part of its
    path), and ``payload`` what it writes before.
    """

    layout: str
    build: Callable[[int], Files]
    harmless: tuple[str, ...] = ()
    tracker: tuple[str, str] | None = None
    mark: str = ""
    payload: str = ""


_MEGATRON = ("latest_checkpointed_iteration.txt", "{}")
_LATEST = ("latest", "global_step{}")
FAMILIES = {
    "verl FSDP": Family("verl", verl_fsdp, ("huggingface/", "fsdp_config"), _MEGATRON, "/data.pt", ".pt"),
    "verl SFT": Family("verl", verl_sft, ("huggingface/", "fsdp_config"), _MEGATRON, "/data.pt", ".pt"),
    "verl Megatron v1": Family("verl", verl_megatron_v1, ("transformer_config",), _MEGATRON, "/data.pt", ".distcp"),
    "verl Megatron v2": Family("verl", verl_megatron_v2, ("transformer_config",), _MEGATRON, "/data.pt", ".distcp"),
    "Megatron legacy": Family("megatron", megatron_legacy, (), _MEGATRON, "latest_checkpointed", ".pt"),
    "Megatron torch_dist": Family("megatron", megatron_torch_dist, (), _MEGATRON, "/.metadata", ".distcp"),
    "Megatron torch_dist 0.19": Family("megatron", megatron_torch_dist_019, (), _MEGATRON, "/.metadata", ".distcp"),
    "Megatron torch_dcp": Family("megatron", megatron_torch_dcp, (), _MEGATRON, "/.metadata", ".distcp"),
    "MindSpeed-MM FSDP": Family("megatron", mindspeed_mm, (), _MEGATRON, "/.metadata", ".distcp"),
    "MindSpeed-LLM FSDP2": Family("mindspeed-fsdp2", mindspeed_fsdp2, (), None, "/.metadata", ".distcp"),
    "MindSpeed-RL": Family("mindspeed-rl", mindspeed_rl, ("latest_checkpointed",)),
    "Megatron-SWIFT": Family("megatron-swift", megatron_swift, ("args.json", "latest_checkpointed")),
    "ms-swift": Family("ms-swift", ms_swift),
    "DeepSpeed ZeRO-0": Family("deepspeed", deepspeed_stage_0, (), _LATEST),
    "DeepSpeed ZeRO-2": Family("deepspeed", deepspeed_stage_2, (), _LATEST, "mp_rank_00_model", "optim_states.pt"),
    "DeepSpeed ZeRO-3": Family("deepspeed", deepspeed_stage_3, (), _LATEST, "_0_mp_rank_00_model", "optim_states.pt"),
    "DeepSpeed pipeline": Family("deepspeed", deepspeed_pipeline, (), _LATEST, "layer_00", "optim_states.pt"),
    "DeepSpeed MoE": Family("deepspeed", deepspeed_moe, (), _LATEST, "mp_rank_00_model", "optim_states.pt"),
    "Accelerate": Family("accelerate", accelerate, ("random_states",)),
    "diffusers": Family("accelerate", diffusers, ("random_states", "config.json")),
    "torchtitan": Family("dcp", torchtitan, (), None, "/.metadata", ".distcp"),
    "NeMo AutoModel": Family("dcp", automodel, (), None, "model/.metadata", "model/__"),
    "NeMo": Family("dcp", nemo, (), None, "/.metadata", ".distcp"),
    "Lightning": Family("lightning", lightning),
    "single file": Family("single-file", single_file),
    "paired files": Family("single-file", paired_files),
    "MindSpore": Family("mindspore", mindspore),
    "MindFormers": Family("mindformers", mindformers),
    "rank files": Family("rank-files", rank_files),
}


def directory(family: Family, *steps: int) -> tuple[Files, dict[str, float]]:
    """The files of a run that saved at these steps, an hour apart, with a tracker that names the last; and their times."""
    files: Files = {}
    times: dict[str, float] = {}
    for number, step in enumerate(steps):
        made = family.build(step)
        files |= made
        times |= dict.fromkeys(made, LONG_AGO + 3600.0 * number)
    if family.tracker:
        name, text = family.tracker
        files[name] = text.format(steps[-1]).encode()
        times[name] = LONG_AGO + 3600.0 * (len(steps) - 1) + 1
    return files, times
