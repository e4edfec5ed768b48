"""Writes small stand-ins for the checkpoints of a LoRA run of the Hugging Face Trainer, with the standard library alone.

The files have the Trainer's names and formats (safetensors, torch's ZIP files, JSON): a tour needs no torch and no download.
"""

from __future__ import annotations

import io
import json
import os
import pickle
import struct
import time
import zipfile
from pathlib import Path

ADAPTER = {"base_model_name_or_path": "meta-llama/Meta-Llama-3-8B-Instruct", "peft_type": "LORA", "r": 8, "lora_alpha": 16}


def write_run(output_dir: Path) -> None:
    """What a job left behind that was killed while it wrote checkpoint-1500."""
    for step in (500, 1000):
        _write_checkpoint(output_dir / f"checkpoint-{step}", step)
    _write_torn_checkpoint(output_dir / "checkpoint-1500")
    for hours, step in ((3, 1500), (4, 1000), (5, 500)):
        _age(output_dir / f"checkpoint-{step}", hours)


def _write_checkpoint(folder: Path, step: int) -> None:
    _write_weights(folder)
    (folder / "optimizer.pt").write_bytes(_torch_file("optimizer", _optimizer(step)))
    (folder / "scheduler.pt").write_bytes(_torch_file("scheduler", {"last_epoch": step, "_last_lr": [9.5e-05]}))
    (folder / "rng_state.pth").write_bytes(_torch_file("rng_state", {"python": (3, (step,) * 8, None)}))
    (folder / "trainer_state.json").write_text(json.dumps(_trainer_state(step), indent=2) + "\n")


def _write_torn_checkpoint(folder: Path) -> None:
    """The kill came in the middle of optimizer.pt: the Trainer writes in place, trainer_state.json last."""
    _write_weights(folder)
    whole = _torch_file("optimizer", _optimizer(1500))
    (folder / "optimizer.pt").write_bytes(whole[: len(whole) // 2])


def _write_weights(folder: Path) -> None:
    folder.mkdir(parents=True)
    header = {"base_model.model.layers.0.q_proj.lora_A.weight": {"dtype": "F32", "shape": [8, 16], "data_offsets": [0, 512]}}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    (folder / "adapter_model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + bytes(512))
    (folder / "adapter_config.json").write_text(json.dumps(ADAPTER, indent=2) + "\n")
    (folder / "training_args.bin").write_bytes(_torch_file("training_args", {"max_steps": 6000, "save_steps": 500}))


def _optimizer(step: int) -> object:
    moments = {"step": float(step), "exp_avg": 0.0, "exp_avg_sq": 0.0}
    return {"state": {0: moments}, "param_groups": [{"lr": 9.5e-05, "betas": (0.9, 0.999), "params": [0]}]}


def _trainer_state(step: int) -> object:
    return {
        "best_metric": None,
        "best_model_checkpoint": None,
        "epoch": step / 2000,
        "global_step": step,
        "is_local_process_zero": True,
        "is_world_process_zero": True,
        "log_history": [],
        "logging_steps": 10,
        "max_steps": 6000,
        "num_train_epochs": 3,
        "save_steps": 500,
        "train_batch_size": 1,
    }


def _torch_file(name: str, value: object) -> bytes:
    """torch.save's container: an uncompressed ZIP archive whose entries lie in one folder."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for entry, data in (("data.pkl", pickle.dumps(value, protocol=2)), ("byteorder", b"little"), ("version", b"3\n")):
            archive.writestr(zipfile.ZipInfo(f"{name}/{entry}"), data)
    return buffer.getvalue()


def _age(folder: Path, hours: int) -> None:
    """Old enough that nobody takes a torn checkpoint for one that is being written."""
    then = time.time() - hours * 3600 - 600
    for path in (*folder.iterdir(), folder):
        os.utime(path, (then, then))
