"""Pointing Megatron's family at a checkpoint: load what is saved, drop what forbids, a view where the tracker is wrong."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path

import pytest
from layout_files import megatron_torch_dist, write

from ckptlint.decision import CannotPlan
from ckptlint.launch import Start, prepared
from ckptlint.resume import Plan, carry_out, plan

TRACKER = Path("ckpt/latest_checkpointed_iteration.txt")
SIZES = "--tensor-model-parallel-size 2 --micro-batch-size 1 --train-iters 1000 --ckpt-format torch_dist"
TUNE = (
    f"torchrun --nproc_per_node 8 pretrain_gpt.py {SIZES} --save-interval 20 --stage sft "
    "--load base --finetune --no-load-optim --no-load-rng --save ckpt"
)
RESUMED = f"torchrun --nproc_per_node 8 pretrain_gpt.py {SIZES} --save-interval 20 --stage sft --load ckpt --save ckpt"
SCRIPT = f"""#!/bin/bash
SAVE_DIR="ckpt"
LOAD_DIR="base"
GPT_ARGS="
    {SIZES} \\
    --save-interval 20 \\
    --stage sft \\
    --finetune \\
    --no-load-optim \\
    --no-load-rng \\
"
torchrun --nproc_per_node 8 pretrain_gpt.py \\
    $GPT_ARGS \\
    --load $LOAD_DIR \\
    --save $SAVE_DIR
"""


def on_disk(*steps: int, tracker: str | None = None, damaged: tuple[int, ...] = ()) -> None:
    for step in steps:
        files = megatron_torch_dist(step)
        if step in damaged:
            files.pop(next(name for name in files if name.endswith("metadata.json")))
        write(Path("ckpt"), files, dict.fromkeys(files, 1_750_000_000.0 + step))
    if tracker is not None:
        Path("ckpt").mkdir(exist_ok=True)
        TRACKER.write_text(tracker)
        os.utime(TRACKER, (1_750_000_050.0,) * 2)


def start(command: str) -> Start:
    return prepared(shlex.split(command), {})


def names(planned: Plan) -> list[str]:
    return [notice.name for notice in planned.notices]


# ------------------------------------------------------------------------------------------------ a command


def test_a_command_loads_what_it_saves_without_what_forbids_it(project: Path) -> None:
    on_disk(20, 40, tracker="40")
    assert shlex.join(start(TUNE).command) == RESUMED
    assert shlex.join(start(RESUMED).command) == RESUMED


def test_the_first_launch_stays_as_it_was_written(project: Path) -> None:
    planned = start(TUNE)
    assert shlex.join(planned.command) == TUNE
    assert names(planned.plans[0]) == ["first-launch"]


@pytest.mark.parametrize("tracker", ["", "60", "20", None])
def test_a_view_shows_the_newest_complete_step_where_the_tracker_is_wrong(project: Path, tracker: str | None) -> None:
    on_disk(20, 40, 60, tracker=tracker, damaged=(60,))
    planned = start(TUNE)
    view = Path("ckpt/.ckptlint-resume/iter_0000040")
    assert shlex.join(planned.command) == RESUMED.replace("--load ckpt", f"--load {view}")
    assert (view / "latest_checkpointed_iteration.txt").read_text() == "40"
    assert (view / "iter_0000040").resolve() == (project / "ckpt/iter_0000040").resolve()
    assert (TRACKER.read_text() if TRACKER.exists() else None) == tracker
    assert "tracker-repaired" in names(planned.plans[0])
    assert start(shlex.join(planned.command)).command == planned.command


def test_a_view_is_left_when_the_run_has_saved_again(project: Path) -> None:
    on_disk(20, 40, 60, tracker="60", damaged=(60,))
    command = shlex.join(start(TUNE).command)
    on_disk(60, 80, tracker="80")
    assert shlex.join(start(command).command) == RESUMED


def test_what_a_view_showed_and_is_gone_is_not_begun_anew(project: Path) -> None:
    on_disk(40, tracker="", damaged=(40,))
    assert start(TUNE.replace("--load base", "--load ckpt/.ckptlint-resume/iter_0000020")).refused


def test_a_conversion_at_every_start_goes_with_the_base_it_reads(project: Path) -> None:
    on_disk(40, tracker="40")
    command = start(f"{TUNE} --enable-hf2mg-convert --enable-mg2hf-convert").command
    assert shlex.join(command) == f"{RESUMED} --enable-mg2hf-convert --hf-cfg-dir base"


def test_the_reference_model_stays_what_it_was(project: Path) -> None:
    on_disk(40, tracker="40")
    planned = start(TUNE.replace("--stage sft", "--stage dpo"))
    assert shlex.join(planned.command) == f"{RESUMED.replace('--stage sft', '--stage dpo')} --ref-model base"
    assert "reference-model" in names(planned.plans[0])


def test_a_run_that_is_done_and_one_that_was_to_be_longer_are_said(project: Path) -> None:
    on_disk(1000, tracker="1000")
    assert "finished" in names(start(TUNE).plans[0])
    assert "schedule-changed" in names(start(TUNE.replace("--train-iters 1000", "--train-iters 3000")).plans[0])


def test_an_adapter_alone_is_not_loaded_as_if_it_were_all(project: Path) -> None:
    on_disk(40, tracker="40")
    assert start(f"{TUNE} --lora-ckpt-filter").refused


def test_a_tracker_at_which_a_start_would_end_is_moved_aside(project: Path) -> None:
    on_disk(40, tracker="", damaged=(40,))
    planned = start(RESUMED)
    assert shlex.join(planned.command) == RESUMED
    assert not TRACKER.exists()
    assert TRACKER.with_name(f"{TRACKER.name}.bak").read_text() == ""


# ------------------------------------------------------------------------------------------------ a script


def argv(script: str) -> list[str]:
    """What the script really gives to the program."""
    tools = Path("tools")
    tools.mkdir(exist_ok=True)
    (tools / "torchrun").write_text('#!/bin/sh\nprintf "%s\\n" torchrun "$@"\n')
    (tools / "torchrun").chmod(0o755)
    env = {**os.environ, "PATH": f"{tools.absolute()}:{os.environ['PATH']}"}
    return subprocess.run(["bash", script], env=env, capture_output=True, text=True, check=True).stdout.split()


def test_resume_edits_the_script_and_the_next_call_nothing(project: Path) -> None:
    on_disk(20, 40, tracker="40")
    Path("tune.sh").write_text(SCRIPT)
    carry_out(plan("tune.sh", {}), lambda: plan("tune.sh", {}))
    words = argv("tune.sh")
    assert words[words.index("--load") + 1] == words[words.index("--save") + 1] == "ckpt"
    assert not {"--finetune", "--no-load-optim", "--no-load-rng"} & set(words)
    again = plan("tune.sh", {})
    assert (again.changes, again.disk) == ((), ())


def test_launch_runs_a_copy_of_the_script(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "scratch"))
    on_disk(20, 40, tracker="40")
    Path("tune.sh").write_text(SCRIPT)
    command = start("bash tune.sh").command
    assert command[1] != "tune.sh"
    words = argv(command[1])
    assert words[words.index("--load") + 1] == "ckpt"
    assert Path("tune.sh").read_text() == SCRIPT


def test_a_script_that_looks_around_is_changed_where_it_is(project: Path) -> None:
    on_disk(40, tracker="40")
    Path("tune.sh").write_text(SCRIPT.replace('SAVE_DIR="ckpt"', 'cd "$(dirname "$0")"\nSAVE_DIR="ckpt"'))
    assert start("bash tune.sh").command == ("bash", "tune.sh")
    assert "--finetune" not in Path("tune.sh").read_text()


def test_the_first_launch_of_a_script_changes_nothing(project: Path) -> None:
    Path("tune.sh").write_text(SCRIPT)
    assert plan("tune.sh", {}).changes == ()


def test_what_cannot_be_known_is_an_error(project: Path) -> None:
    on_disk(40, tracker="40")
    Path("tune.sh").write_text(SCRIPT.replace("$GPT_ARGS", "$GPT_ARGS $(cat more)"))
    with pytest.raises(CannotPlan, match="more"):
        plan("tune.sh", {})


def test_several_trainings_are_left_to_launch(project: Path) -> None:
    Path("two.sh").write_text(SCRIPT + SCRIPT.replace("ckpt", "other").partition("\n")[2])
    with pytest.raises(CannotPlan, match=r"2 trainings are started.*ckptlint launch"):
        plan("two.sh", {})
