"""What a script does to its launch; the rules' pages hold the plain cases."""

from __future__ import annotations

from pathlib import Path

import pytest

from ckptlint.frameworks.launch_scripts import LaunchScripts
from ckptlint.run import Run
from ckptlint.source.file import SourceFile

VERL = "python3 -m verl.trainer.main_ppo trainer.save_freq=20 trainer.default_local_dir=/data/run"


def one(script: str) -> Run:
    (run,) = LaunchScripts().read(SourceFile("run.sh", script.encode()))
    return run


@pytest.mark.parametrize(
    "script",
    [
        f"{VERL}\n",
        f"set -e\n{VERL}\necho done\n",
        f"set -euo pipefail\n{VERL} | tee x\necho done\n",
        f"{VERL} || exit 1\necho done\n",
        f"{VERL} && echo done\n",
        f"if ! {VERL}; then\n  exit 1\nfi\n",
        f"{VERL} &\nPID=$!\nwait $PID\n",
        f"exec {VERL}\n",
        f"{VERL} | tee x\nexit ${{PIPESTATUS[0]}}\n",
        f"{VERL}\nSTATUS=$?\nrm -f lock\nexit $STATUS\n",
        f"until {VERL}; do sleep 5; done\n",
        f"trap 'echo bye' EXIT\n{VERL}\n",
    ],
)
def test_a_status_that_arrives_or_is_dealt_with_is_not_masked(script: str) -> None:
    assert one(script).exit_masks == ()


@pytest.mark.parametrize(
    ("script", "place", "words"),
    [
        (f"{VERL} 2>&1 | tee x\n", "tee", "`| tee x`"),
        (f"{VERL} |& grep -v warn\n", "grep", "`| grep -v warn`"),
        (f"{VERL} || echo failed\n", "python3", "`||`"),
        (f"{VERL} &\n", "python3", "background"),
        (f"{VERL}\necho done\n", "python3", "last command"),
    ],
)
def test_a_masked_status_is_reported_where_it_is_masked(script: str, place: str, words: str) -> None:
    (mask,) = one(script).exit_masks
    assert mask.span.text == place
    assert words in mask.why


def test_pipefail_is_offered_only_where_it_alone_is_enough_and_bash_reads_the_script() -> None:
    assert one(f"{VERL} | tee x\n").exit_masks[0].repair
    assert not one(f"{VERL} | tee x\necho done\n").exit_masks[0].repair
    assert not one(f"#!/bin/sh\n{VERL} | tee x\n").exit_masks[0].repair
    assert one(f"#!/usr/bin/env bash\n{VERL} | tee x\n").exit_masks[0].repair


def test_what_an_argument_loses_is_not_called_a_command_behind_the_launch() -> None:
    run = one(f"{VERL}\n  trainer.resume_mode=auto\n")
    assert [loss.lost for loss in run.lost_arguments] == ["trainer.resume_mode=auto"]
    assert run.exit_masks == ()


def test_a_loss_belongs_to_the_launch_in_front_of_it_alone() -> None:
    first, second = LaunchScripts().read(SourceFile("run.sh", f"set -e\n{VERL}\n{VERL}\n  trainer.resume_mode=auto\n".encode()))
    assert not first.lost_arguments
    assert second.lost_arguments


def test_a_default_of_the_same_value_is_no_loss() -> None:
    assert not one(f"N=20\nN=${{N:-20}}\n{VERL} trainer.total_epochs=$N\n").lost_arguments
    assert one(f"N=20\nN=${{N:-30}}\n{VERL} trainer.total_epochs=$N\n").lost_arguments
    assert not one(f"N=20\nN=${{N:-30}}\n{VERL}\n").lost_arguments


@pytest.mark.parametrize(
    "script",
    [
        f"CKPT_SAVE_DIR=/a\n{VERL} x=$CKPT_SAVE_DIR\n",
        f"CKPT_SAVE_DIR=/a\nmkdir -p $CKPT_SAVE_DIR\n{VERL}\n",
        f"export CKPT_SAVE_DIR=/a\n{VERL}\n",
        f"CKPT_SAVE_DIR=/a\nexport CKPT_SAVE_DIR\n{VERL}\n",
        f"set -a\nCKPT_SAVE_DIR=/a\n{VERL}\n",
        f"CKPT_SAVE_DIR=/a {VERL}\n",
        f"SAVE_N=5\nfor ((i=0; i<SAVE_N; i++)); do {VERL}; done\n",
        f"CKPT_SAVE_DIR=/a\nsource ./more.sh\n{VERL}\n",
        f"LOG_DIR=/a\n{VERL}\n",
    ],
)
def test_a_variable_that_is_used_or_may_be_used_is_not_reported(script: str) -> None:
    assert not one(script).unused_settings


def test_a_variable_in_a_comment_alone_is_not_used() -> None:
    (unused,) = one(f"SAVE_PATH=/a\n# --save $SAVE_PATH\n{VERL}\n").unused_settings
    assert unused.setting.name == "SAVE_PATH"
    assert unused.setting.span is not None
    assert unused.setting.span.text == "/a"


@pytest.mark.parametrize(
    "command",
    [
        "rm -rf /data/run",
        "rm -r /data/run/",
        "rm -fr /data/run/*",
        "rm -Rf -- /data",
        "rm --recursive /data/run",
        "sudo rm -rf /data/run",
    ],
)
def test_every_way_to_delete_the_directory_is_seen(command: str) -> None:
    assert one(f"{command}\n{VERL}\n").wipes


@pytest.mark.parametrize(
    "command",
    [
        'rm -rf "/data/run/*"',
        "rm -rf /data/running",
        "rm -rf /data/run/tmp",
        "rm /data/run",
        "rm -rf $X",
        "rm -rf /data2",
        "rm -rf ./",
    ],
)
def test_what_deletes_something_else_is_not_called_a_wipe(command: str) -> None:
    assert not one(f"{command}\n{VERL}\n").wipes


def test_nothing_is_deleted_by_looking(project: Path) -> None:
    (project / "run").mkdir()
    one("rm -rf run\npython3 -m verl.trainer.main_ppo trainer.save_freq=20 trainer.default_local_dir=run\n")
    assert (project / "run").is_dir()
