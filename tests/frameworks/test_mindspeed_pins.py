"""Pointing the MindSpeed family's YAMLs at a checkpoint, and saying so where that cannot be done."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from layout_files import megatron_torch_dist, mindspeed_fsdp2, write

from ckptlint.decision import CannotPlan
from ckptlint.launch import Start, prepared
from ckptlint.resume import Plan, carry_out, plan

FSDP2 = """model: {model_name_or_path: /models/Qwen3}
data: {dataset: toy}
parallel: {fsdp_size: 2, fsdp_modules: [x]}
training:
  stage: sft
  max_steps: 1000
  save_steps: 20
  output_dir: out  # durable
"""
MM = """MM_TOOL_PATH: x.json
gpt_args:
  tensor_model_parallel_size: 2
  train_iters: 1000
  save_interval: 20
  load: base  # what it begins with
  no_load_optim: true
  no_load_rng: true
  save: ckpt
"""


def resumed(text: str) -> Plan:
    Path("run.yaml").write_text(text)
    return carry_out(plan("run.yaml", {}), lambda: plan("run.yaml", {}))


def start(command: str, **environment: str) -> Start:
    return prepared(shlex.split(command), environment)


def fsdp2_on_disk(*steps: int) -> None:
    for step in steps:
        write(Path("out"), mindspeed_fsdp2(step))


# ------------------------------------------------------------------------------------------------ FSDP2


def test_fsdp2_is_given_the_very_folder(project: Path) -> None:
    fsdp2_on_disk(20, 40)
    planned = resumed(FSDP2)
    assert planned.chosen_path == "out/checkpoints/global_step_40"
    assert "  resume_from_checkpoint: out/checkpoints/global_step_40\n" in Path("run.yaml").read_text()
    assert "output_dir: out  # durable\n" in Path("run.yaml").read_text()
    assert plan("run.yaml", {}).changes == ()


def test_fsdp2_takes_it_as_an_argument(project: Path) -> None:
    fsdp2_on_disk(20, 40)
    Path("run.yaml").write_text(FSDP2)
    command = "torchrun --nproc_per_node 2 train_fsdp2.py run.yaml"
    wanted = f"{command} --training.resume_from_checkpoint out/checkpoints/global_step_40"
    assert shlex.join(start(command).command) == wanted
    assert shlex.join(start(f"{command} --training.resume_from_checkpoint out/checkpoints/global_step_20").command) == wanted
    assert Path("run.yaml").read_text() == FSDP2


def test_fsdp2_s_stale_path_is_taken_out_and_another_run_s_is_not(project: Path) -> None:
    stale = FSDP2 + "  resume_from_checkpoint: out/checkpoints/global_step_20\n"
    resumed(stale)
    assert Path("run.yaml").read_text() == FSDP2
    other = FSDP2 + "  resume_from_checkpoint: /runs/pretraining/checkpoints/global_step_20\n"
    resumed(other)
    assert Path("run.yaml").read_text() == other


def test_fsdp2_ranks_of_another_number_are_refused(project: Path) -> None:
    fsdp2_on_disk(40)
    Path("run.yaml").write_text(FSDP2)
    assert start("torchrun --nproc_per_node 8 train_fsdp2.py run.yaml").refused


# ------------------------------------------------------------------------------------------------ MM, RL


def test_mm_s_keys_are_taken_out_never_set_to_false(project: Path) -> None:
    write(Path("ckpt"), megatron_torch_dist(40))
    Path("ckpt/latest_checkpointed_iteration.txt").write_text("40")
    resumed(MM)
    assert Path("run.yaml").read_text() == MM.replace("load: base", "load: ckpt").replace(
        "  no_load_optim: true\n  no_load_rng: true\n", ""
    )
    assert plan("run.yaml", {}).changes == ()


def test_mm_s_first_launch_stays_as_it_was_written(project: Path) -> None:
    resumed(MM)
    assert Path("run.yaml").read_text() == MM


@pytest.mark.parametrize(
    "text",
    [
        "megatron_training: {train_iters: 10}\nrl_config: {x: 1}\nactor_config: {save: a, load: b, save_interval: 1}\n"
        "critic_config: {save: c, load: d, save_interval: 1}\n",
        "parallel: {fsdp_plan: {x: 1}}\nmodel: {x: 1}\ntraining: {save: a, save_interval: 1, load: b, train_iters: 10}\n",
    ],
)
def test_what_cannot_be_pinned_yet_says_so_and_stays(project: Path, text: str) -> None:
    Path("run.yaml").write_text(text)
    with pytest.raises(CannotPlan, match="cannot be pinned yet"):
        plan("run.yaml", {})
    assert Path("run.yaml").read_text() == text
