"""MindSpeed-LLM's FSDP2 YAML, and the command that adds to it."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_lines import last_command

from ckptlint.frameworks.mindspeed_fsdp2 import MindSpeedFsdp2, read_launch
from ckptlint.run import NEVER, Amount, Choice, Run, State, Unit, Unknown
from ckptlint.source.file import SourceFile

HEAD = "model:\n  trust_remote_code: false\nparallel:\n  fsdp_modules:\n    - model.layers.{*}\n"


def _runs(training: str, head: str = HEAD) -> tuple[Run, ...]:
    lines = "".join(f"  {line}\n" for line in training.split("\n"))
    return MindSpeedFsdp2().read(SourceFile("train.yaml", f"{head}training:\n{lines}".encode()))


def _run(training: str) -> Run:
    (run,) = _runs(training)
    return run


@pytest.mark.parametrize(
    ("head", "training"),
    [
        ("features:\n  x: 1\nparallel:\n  fsdp_modules: [a]\n", "save_steps: 5"),
        ("parallel:\n  tp: 1\n", "save_steps: 5"),
        (HEAD, "lr: 1"),
        (HEAD, "stage: ray_grpo\nsave_steps: 5"),
    ],
)
def test_a_look_alike_is_left_alone(head: str, training: str) -> None:
    assert _runs(training, head) == ()


def test_it_saves_by_steps_and_at_the_end_of_each_epoch() -> None:
    run = _run("output_dir: /d\nmax_steps: 2000\nsave_steps: 100")
    assert run.writes[0].interval.every == Amount(100, Unit.STEP)
    assert run.length == Amount(2000, Unit.STEP)


def test_steps_of_zero_leave_the_epochs() -> None:
    assert _run("output_dir: /d\nmax_steps: -1\nsave_steps: 0").writes[0].interval.every == Amount(1, Unit.EPOCH)
    never = _run("output_dir: /d\nmax_steps: 2000\nsave_steps: 0").writes[0].interval
    assert (never.every, never.disabled) == (NEVER, True)


def test_it_keeps_three_by_default() -> None:
    assert _run("output_dir: /d\nsave_steps: 5").writes[0].retention.keep == 3
    assert _run("output_dir: /d\nsave_steps: 5\nsave_total_limit: 1").writes[0].retention.keep == 1


def test_nothing_is_looked_for_unless_a_checkpoint_is_named() -> None:
    assert _run("output_dir: /d\nsave_steps: 5").reads[0].choice is Choice.NOTHING
    named = "output_dir: /d\nsave_steps: 5\nresume_from_checkpoint: /d/checkpoints/global_step_5"
    assert _run(named).reads[0].choice is Choice.FIXED


def test_a_yaml_without_output_dir_is_completed_by_the_command() -> None:
    run = _run("save_steps: 5")
    assert run.reads[0].choice is Choice.UNKNOWN
    assert isinstance(run.writes[0].directory.path, Unknown)


@pytest.mark.parametrize("value", ["auto", "500", "/d", "/d/checkpoints"])
def test_a_value_that_names_no_checkpoint_is_a_misfit(value: str) -> None:
    assert _run(f"output_dir: /d\nsave_steps: 5\nresume_from_checkpoint: {value}").misfits


def test_only_the_model_means_that_a_restart_begins_at_step_0() -> None:
    missing = _run("output_dir: /d\nsave_steps: 5\nsave_only_model: true").writes[0].missing
    assert {part.state for part in missing} >= {State.OPTIMIZER, State.PROGRESS}


def test_the_command_wins_over_the_yaml(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(f"{HEAD}training:\n  save_steps: 5\n  max_steps: 100\n")
    command = last_command("torchrun train_fsdp2.py a.yaml --training.output_dir ./out --training.save_steps 50")
    run = read_launch(command.argv, command.span, None, [str(tmp_path)])
    assert run is not None
    assert run.writes[0].interval.every == Amount(50, Unit.STEP)
    assert str(run.writes[0].directory.setting) == "--training.output_dir ./out"
    assert run.length == Amount(100, Unit.STEP)
    assert run.reads[0].choice is Choice.NOTHING


def test_a_yaml_that_is_not_found_may_name_a_checkpoint() -> None:
    command = last_command("torchrun train_fsdp2.py a.yaml --training.output_dir ./out")
    run = read_launch(command.argv, command.span)
    assert run is not None
    assert run.reads[0].choice is Choice.UNKNOWN


def test_another_program_is_no_run() -> None:
    command = last_command("torchrun train_other.py a.yaml")
    assert read_launch(command.argv, command.span) is None
