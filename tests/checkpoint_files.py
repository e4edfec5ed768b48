"""Whole and damaged checkpoint files, written with the standard library alone: byte for byte of the shapes that torch.save,
safetensors and transformers write, but tiny.
"""

from __future__ import annotations

import json
import os
import pickle
import struct
import zipfile
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path


def torch_bytes(value: object = None, *, archive: str = "archive", storages: Mapping[str, bytes] | None = None) -> bytes:
    """A file as torch.save writes it: an uncompressed ZIP64 archive of data.pkl, byteorder, the storages and version."""
    members = [("data.pkl", pickle.dumps({} if value is None else value, protocol=2)), ("byteorder", b"little")]
    members += [(f"data/{name}", data) for name, data in (storages or {"0": bytes(range(64))}).items()]
    members += [("version", b"3\n"), (".data/serialization_id", b"0123456789" * 4)]
    body, directory = b"", b""
    for name, data in members:
        offset, raw, crc = len(body), f"{archive}/{name}".encode(), zlib.crc32(data)
        padding = -(offset + 30 + len(raw) + 4) % 64
        extra = b"FB" + struct.pack("<H", padding) + b"Z" * padding
        body += struct.pack("<4sHHHHHIIIHH", b"PK\x03\x04", 0, 0, 0, 0, 0, crc, len(data), len(data), len(raw), len(extra))
        body += raw + extra + data
        fields = (b"PK\x01\x02", 0, 0, 0, 0, 0, 0, crc, len(data), len(data), len(raw), 0, 0, 0, 0, 0, offset)
        directory += struct.pack("<4sHHHHHHIIIHHHHHII", *fields) + raw
    start, count = len(body), len(members)
    wide = struct.pack("<4sQHHIIQQQQ", b"PK\x06\x06", 44, 45, 45, 0, 0, count, count, len(directory), start)
    wide += struct.pack("<4sIQI", b"PK\x06\x07", 0, start + len(directory), 1)
    end = struct.pack("<4sHHHHIIH", b"PK\x05\x06", 0, 0, count, count, len(directory), 0xFFFFFFFF, 0)
    return body + directory + wide + end


def safetensors_bytes(tensors: Mapping[str, Iterable[float]] | None = None) -> bytes:
    """A safetensors file of one-dimensional float32 tensors."""
    header: dict[str, object] = {"__metadata__": {"format": "pt"}}
    body = b""
    for name, numbers in (tensors or {"weight": [1.0, 2.0, 3.0, 4.0]}).items():
        data = b"".join(struct.pack("<f", number) for number in numbers)
        header[name] = {"dtype": "F32", "shape": [len(data) // 4], "data_offsets": [len(body), len(body) + len(data)]}
        body += data
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + body


LONG_AGO = 1_750_000_000.0  # June 2025
OPTIMIZER = {"state": {0: {"step": 3.0}, 1: {"step": 3.0}}, "param_groups": [{"lr": 0.001, "params": [0, 1]}]}


def trainer_state(step: int, *, total: int | None = None, epoch: float = 1.0, **more: object) -> bytes:
    """trainer_state.json of a run that saved at ``step``."""
    state: dict[str, object] = {
        "best_metric": None,
        "best_model_checkpoint": None,
        "epoch": epoch,
        "global_step": step,
        "log_history": [{"epoch": epoch, "loss": 2.0, "step": step}],
        "max_steps": total if total is not None else step * 2,
        "num_train_epochs": 3,
        "save_steps": 500,
        "stateful_callbacks": {"TrainerControl": {"args": {}, "attributes": {}}},
        "train_batch_size": 4,
    }
    return json.dumps({**state, **more}, indent=2, sort_keys=True).encode() + b"\n"


def write_checkpoint(
    directory: str | Path,
    step: int,
    *,
    lora: bool = False,
    shards: int = 0,
    optimizer: bool = True,
    scheduler: bool = True,
    state: bool = True,
    world_size: int = 1,
    scaler: bool = False,
    deepspeed: int = 0,
    value_head: bool = False,
    total: int | None = None,
    epoch: float = 1.0,
    modified: float | None = None,
    name: str | None = None,
    **more: object,
) -> Path:
    """Write ``directory/checkpoint-<step>`` as the Hugging Face Trainer would, in its order; returns the folder.

    ``shards``: weights in that many files with an index. ``deepspeed``: the ZeRO stage (2 or 3), one optimizer shard a rank.
    ``total``: max_steps. ``modified``: the time of every file, in seconds; without it a time in 2025 that grows with the step,
    so that no folder looks as if it were being written right now. ``more``: fields of trainer_state.json.
    """
    written = LONG_AGO + step * 60 if modified is None else modified
    folder = Path(directory) / (name or f"checkpoint-{step}")
    folder.mkdir(parents=True, exist_ok=True)
    files = _weight_files(lora, shards)
    files["training_args.bin"] = torch_bytes({"output_dir": "out"})
    if optimizer and deepspeed:
        files |= _deepspeed_files(step, deepspeed, world_size)
    elif optimizer:
        files["optimizer.pt"] = torch_bytes(OPTIMIZER)
    if scheduler:
        files["scheduler.pt"] = torch_bytes({"last_epoch": step, "_step_count": step + 1})
    if scaler:
        files["scaler.pt"] = torch_bytes({"scale": 65536.0})
    if optimizer:
        ranks = [f"rng_state_{rank}.pth" for rank in range(world_size)] if world_size > 1 else ["rng_state.pth"]
        files |= dict.fromkeys(ranks, torch_bytes({"python": [1, 2, 3]}))
    if state:
        files["trainer_state.json"] = trainer_state(step, total=total, epoch=epoch, **more)
    if value_head:
        files["value_head.safetensors"] = safetensors_bytes({"v_head.summary.weight": [1.0]})
    for path, data in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(data)
        os.utime(folder / path, (written, written))
    return folder


def _weight_files(lora: bool, shards: int) -> dict[str, bytes]:
    if lora:
        return {
            "README.md": b"# adapter\n",
            "adapter_model.safetensors": safetensors_bytes({"lora_A.weight": [1.0, 2.0]}),
            "adapter_config.json": b'{"peft_type": "LORA", "r": 8}\n',
        }
    files = {"config.json": b'{"model_type": "llama"}\n', "generation_config.json": b'{"eos_token_id": 2}\n'}
    if not shards:
        return files | {"model.safetensors": safetensors_bytes()}
    places = {}
    for number in range(1, shards + 1):
        shard, tensor = f"model-{number:05}-of-{shards:05}.safetensors", f"layer.{number}.weight"
        files[shard] = safetensors_bytes({tensor: [float(number)] * 4})
        places[tensor] = shard
    index = {"metadata": {"total_size": 16 * shards}, "weight_map": places}
    return files | {"model.safetensors.index.json": json.dumps(index, indent=2).encode() + b"\n"}


def _deepspeed_files(step: int, stage: int, world_size: int) -> dict[str, bytes]:
    tag = f"global_step{step}"
    told = {"module": {}, "optimizer": None, "lr_scheduler": None, "global_steps": step}
    told |= {"dp_world_size": world_size, "mp_world_size": 1}
    files = {}
    for rank in range(world_size if stage == 3 else 1):
        name = f"zero_pp_rank_{rank}_mp_rank_00_model_states.pt" if stage == 3 else "mp_rank_00_model_states.pt"
        files[f"{tag}/{name}"] = torch_bytes(told)
    for rank in range(world_size):
        files[f"{tag}/bf16_zero_pp_rank_{rank}_mp_rank_00_optim_states.pt"] = torch_bytes(OPTIMIZER)
    return files | {"zero_to_fp32.py": b"#!/usr/bin/env python\n", "latest": tag.encode()}


def cut(path: str | Path, length: int) -> None:
    """Leave a file's first ``length`` bytes (from the end where negative), its time as it was."""
    path = Path(path)
    data, state = path.read_bytes(), path.stat()
    path.write_bytes(data[:length])
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))


def zero_tail(path: str | Path, length: int) -> None:
    """Turn a file's last bytes into zeros, as after a crash of the machine."""
    path = Path(path)
    data, state = path.read_bytes(), path.stat()
    path.write_bytes(data[: max(0, len(data) - length)] + bytes(min(length, len(data))))
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))


def is_zip(data: bytes) -> bool:
    """Whether the standard library's reader takes the bytes for a whole archive."""
    import io

    try:
        return zipfile.ZipFile(io.BytesIO(data)).testzip() is None
    except (zipfile.BadZipFile, ValueError, struct.error):
        return False
