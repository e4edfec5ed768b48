"""Pointing verl at a checkpoint: the tracker in a file's case, overrides on a command line."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import pytest
from layout_files import verl_fsdp, verl_sft, write

from ckptlint.decision import CannotPlan
from ckptlint.launch import prepared
from ckptlint.resume import Plan, carry_out, plan

TRACKER = Path("ckpts/latest_checkpointed_iteration.txt")
PPO = """actor_rollout_ref:
  model: {path: Qwen/Qwen3-4B}
algorithm: {adv_estimator: grpo}
trainer:
  default_local_dir: ckpts
  save_freq: 20
  nnodes: 1
  n_gpus_per_node: 2
  total_training_steps: 1000
  resume_mode: auto
"""
COMMAND = (
    "python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo actor_rollout_ref.model.path=x actor_rollout_ref.actor.lr=1 "
    "trainer.nnodes=1 trainer.n_gpus_per_node=2 trainer.save_freq=20 trainer.default_local_dir=ckpts"
)


def on_disk(*steps: int, tracker: str | None = None, damaged: tuple[int, ...] = ()) -> None:
    """PPO's checkpoints of two ranks, the older ones older."""
    for step in steps:
        files = verl_fsdp(step)
        if step in damaged:
            files = {name: data[:50] if "optim" in name else data for name, data in files.items()}
        write(Path("ckpts"), files, dict.fromkeys(files, 1_750_000_000.0 + step))
    if tracker is not None:
        Path("ckpts").mkdir(exist_ok=True)
        track(tracker)


def track(text: str) -> None:
    """The tracker as the run wrote it; a much younger one would be a later run's."""
    TRACKER.write_text(text)
    os.utime(TRACKER, (1_750_000_050.0,) * 2)


def resumed(text: str = PPO) -> Plan:
    Path("run.yaml").write_text(text)
    return carry_out(plan("run.yaml", {}), lambda: plan("run.yaml", {}))


def names(planned: Plan) -> list[str]:
    return [notice.name for notice in planned.notices]


# ------------------------------------------------------------------------------------------------ a file


def test_a_tracker_that_is_right_leaves_nothing_to_do(project: Path) -> None:
    on_disk(20, 40, tracker="40")
    planned = resumed()
    assert (planned.changes, planned.disk, planned.chosen_path) == ((), (), "ckpts/global_step_40")
    assert Path("run.yaml").read_text() == PPO


@pytest.mark.parametrize("tracker", ["20", "", "60", "forty", None])
def test_a_tracker_that_is_wrong_is_set_to_the_newest_complete_step(project: Path, tracker: str | None) -> None:
    on_disk(20, 40, 60, tracker=tracker, damaged=(60,))
    planned = resumed()
    assert TRACKER.read_text() == "40"
    assert "tracker-repaired" in names(planned)
    assert "tracker-wrong" not in names(planned)
    kept = TRACKER.with_name(f"{TRACKER.name}.bak")
    assert (kept.read_text() if kept.exists() else None) == tracker
    assert Path("run.yaml").read_text() == PPO
    again = resumed()
    assert (again.disk, again.changes) == ((), ())


def test_every_text_that_a_tracker_held_is_kept(project: Path) -> None:
    on_disk(20, 40, tracker="10")
    resumed()
    track("11")
    resumed()
    assert sorted(path.read_text() for path in Path("ckpts").glob("*.bak*")) == ["10", "11"]


def test_a_path_is_never_left_in_a_file(project: Path) -> None:
    on_disk(20, 40, tracker="40")
    static = PPO.replace("resume_mode: auto", "resume_mode: resume_path\n  resume_from_path: ckpts/global_step_20")
    planned = resumed(static)
    assert planned.chosen_path == "ckpts/global_step_40"
    written = Path("run.yaml").read_text()
    assert "resume_mode: auto" in written
    assert "resume_from_path: ckpts" not in written


def test_a_run_that_is_told_not_to_resume_does(project: Path) -> None:
    on_disk(40, tracker="40")
    resumed(PPO.replace("auto", "disable"))
    assert Path("run.yaml").read_text() == PPO


def test_the_first_launch_stays_as_it_was_written(project: Path) -> None:
    for mode in ("auto", "disable", "resume_path\n  resume_from_path: /base/global_step_7"):
        text = PPO.replace("auto", mode)
        planned = resumed(text)
        assert Path("run.yaml").read_text() == text
        assert names(planned) == ["first-launch"]


@pytest.mark.parametrize("tracker", ["", "20", "x"])
def test_a_tracker_at_which_every_start_stops_is_moved_aside_and_said(project: Path, tracker: str) -> None:
    on_disk(20, tracker=tracker, damaged=(20,))
    planned = resumed()
    assert not TRACKER.exists()
    assert TRACKER.with_name(f"{TRACKER.name}.bak").read_text() == tracker
    assert {"nothing-resumable", "tracker-repaired"} <= set(names(planned))


def test_another_number_of_gpus_is_refused(project: Path) -> None:
    on_disk(40, tracker="40")
    planned = resumed(PPO.replace("n_gpus_per_node: 2", "n_gpus_per_node: 8"))
    assert planned.refused
    assert TRACKER.read_text() == "40"


def test_a_number_of_gpus_that_nobody_wrote_is_not_held_against_a_checkpoint(project: Path) -> None:
    on_disk(20, tracker=None)
    planned = resumed(PPO.replace("  n_gpus_per_node: 2\n", ""))
    assert planned.chosen is not None and planned.chosen.step == 20
    assert TRACKER.read_text() == "20"


def test_the_tracker_that_asynchronous_saving_never_writes_is_written(project: Path) -> None:
    """case-book C013: the shards are whole, only nobody names them."""
    on_disk(20, 40, tracker=None)
    saves = "actor_rollout_ref:\n  actor: {strategy: fsdp2, checkpoint: {async_save: true}}\n"
    resumed(PPO.replace("actor_rollout_ref:\n", saves))
    assert TRACKER.read_text() == "40"


def test_supervised_training_takes_no_path_beside_auto(project: Path) -> None:
    files = {**verl_sft(20), **verl_sft(40)}
    write(Path("ckpts"), files)
    TRACKER.write_text("40")
    text = (
        "data: {train_files: a}\nmodel: {partial_pretrain: x}\ntrainer:\n  default_local_dir: ckpts\n  save_freq: 20\n"
        "  total_epochs: 3\n  resume_mode: auto\n  resume_from_path: ckpts/global_step_20\n"
    )
    planned = resumed(text)
    assert planned.chosen_path == "ckpts/global_step_40"
    assert "global_step_20" not in Path("run.yaml").read_text()


# ------------------------------------------------------------------------------------------------ a command


def test_a_command_whose_tracker_is_right_is_run_as_it_is(project: Path) -> None:
    on_disk(20, 40, tracker="40")
    assert shlex.join(prepared(shlex.split(COMMAND), {}).command) == COMMAND


def test_a_command_names_the_checkpoint_and_leaves_the_tracker_alone(project: Path) -> None:
    on_disk(20, 40, 60, tracker="60", damaged=(60,))
    start = prepared(shlex.split(COMMAND), {})
    place = project / "ckpts/global_step_40"
    more = ("trainer.resume_mode=resume_path", f"trainer.resume_from_path={place}")
    assert start.command == (*shlex.split(COMMAND), *more)
    assert TRACKER.read_text() == "60"
    assert "tracker-wrong" in names(start.plans[0])


def test_a_later_attempt_s_lower_tracker_is_believed(project: Path) -> None:
    on_disk(20, 40)
    TRACKER.write_text("20")  # just now
    assert resumed().chosen_path == "ckpts/global_step_20"
    assert TRACKER.read_text() == "20"


def test_a_stale_path_on_the_command_line_becomes_auto(project: Path) -> None:
    on_disk(20, 40, tracker="40")
    stale = f"{COMMAND} trainer.resume_mode=resume_path trainer.resume_from_path=ckpts/global_step_20"
    start = prepared(shlex.split(stale), {})
    assert start.command[-2:] == ("trainer.resume_mode=auto", "trainer.resume_from_path=null")


def test_a_variable_of_the_environment_is_the_directory(project: Path) -> None:
    on_disk(20, tracker="")
    command = COMMAND.replace("=ckpts", "='${oc.env:OUT}'")
    with pytest.raises(CannotPlan, match="export OUT"):
        prepared(shlex.split(command), {})
    assert prepared(shlex.split(command), {"OUT": "ckpts"}).plans[0].chosen_path == "ckpts/global_step_20"
