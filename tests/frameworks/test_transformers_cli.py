"""The Trainer's own options on a command line: what is certain without the script."""

from __future__ import annotations

import pytest

from ckptlint.frameworks.launch_scripts import LaunchScripts
from ckptlint.run import NEVER, Amount, Choice, PathExpr, Run, Unit
from ckptlint.source.file import SourceFile

OPTIONS = "--do_train --output_dir /data/run --save_strategy steps --learning_rate 1e-4 --bf16 --report_to none"


def run(more: str = "", script: str = "run_clm.py") -> Run:
    (found,) = LaunchScripts().read(SourceFile("run.sh", f"torchrun --nproc_per_node 8 {script} {OPTIONS} {more}\n".encode()))
    return found


def test_defaults_are_the_trainers() -> None:
    found = run()
    assert found.writes[0].interval.every == Amount(500, Unit.STEP)
    assert found.length == Amount(3, Unit.EPOCH)
    assert found.writes[0].retention.keep is None
    assert isinstance(found.writes[0].directory.path, PathExpr)


def test_whether_the_script_resumes_is_not_known() -> None:
    assert run().reads[0].choice is Choice.UNKNOWN


@pytest.mark.parametrize(
    ("more", "every"),
    [
        ("--save_steps 50", Amount(50, Unit.STEP)),
        ("--save_steps=0.1", Amount(0.1, Unit.FRACTION)),
        ("--save_strategy no", NEVER),
        ("--save-strategy epoch", Amount(1, Unit.EPOCH)),
        ("--save_steps 50 --save_steps 60", Amount(60, Unit.STEP)),
    ],
)
def test_the_last_option_decides(more: str, every: object) -> None:
    assert run(more).writes[0].interval.every == every


def test_a_named_checkpoint_is_a_pin() -> None:
    read = run("--resume_from_checkpoint /data/run/checkpoint-500").reads[0]
    assert (read.choice, str(read.path)) == (Choice.FIXED, "/data/run/checkpoint-500")


@pytest.mark.parametrize("value", ["1000", "/data/run", "/data/run/", "True", "latest"])
def test_transformers_own_scripts_stop_at_what_is_no_checkpoint(value: str) -> None:
    assert run(f"--resume_from_checkpoint {value}").misfits
    assert not run(f"--resume_from_checkpoint {value}", script="train.py").misfits


def test_a_path_of_the_environment_is_left_alone() -> None:
    found = run("--resume_from_checkpoint $CKPT")
    assert not found.misfits
    assert found.reads[0].choice is Choice.UNKNOWN
