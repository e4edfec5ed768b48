"""A command in, the same command pointed at the newest complete checkpoint out."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from checkpoint_files import cut, write_checkpoint

from ckptlint.decision import CannotPlan, Wishes
from ckptlint.launch import Start, prepare, prepared

HEAD = "model_name_or_path: Qwen/Qwen3-4B\nstage: sft\ndo_train: true\nfinetuning_type: full\ndataset: toy\ntemplate: qwen\n"
TEXT = f"{HEAD}output_dir: out\nmax_steps: 5000\nresume_from_checkpoint: null\n"
TRAINER = "python train.py --output_dir out --save_strategy steps --save_steps 500 --max_steps 5000 --learning_rate 1e-4 --bf16"


def start(command: str, wishes: Wishes | None = None, **environment: str) -> Start:
    return prepare(shlex.split(command), environment, wishes)


def command(text: str, **environment: str) -> str:
    return shlex.join(start(text, **environment).command)


@pytest.fixture
def config(project: Path) -> Path:
    (project / "run.yaml").write_text(TEXT)
    write_checkpoint("out", 500, total=5000)
    write_checkpoint("out", 900, total=5000)
    cut("out/checkpoint-900/optimizer.pt", 50)
    return project / "run.yaml"


# ------------------------------------------------------------------------------------------------ LLaMA-Factory


def test_llamafactory_gets_an_argument_behind_its_yaml(config: Path) -> None:
    given = "llamafactory-cli train run.yaml"
    assert command(given) == f"{given} resume_from_checkpoint=out/checkpoint-500"
    assert config.read_text() == TEXT


def test_an_argument_that_is_there_is_changed(config: Path) -> None:
    given = "llamafactory-cli train run.yaml resume_from_checkpoint=out/checkpoint-900 learning_rate=1e-5"
    assert command(given) == given.replace("900", "500")


def test_planning_for_the_planned_command_changes_nothing(config: Path) -> None:
    once = start("llamafactory-cli train run.yaml")
    assert prepare(once.command, {}) == Start(once.command, prepare(once.command, {}).plans)


def test_the_first_launch_is_the_author_s(config: Path) -> None:
    given = "llamafactory-cli train run.yaml output_dir=new"
    planned = start(given)
    assert shlex.join(planned.command) == given
    assert [notice.name for notice in planned.plans[0].notices] == ["first-launch"]


def test_the_command_line_stands_over_the_file(config: Path) -> None:
    write_checkpoint("other", 1200, total=5000)
    planned = start("llamafactory-cli train run.yaml output_dir=other")
    assert planned.plans[0].chosen_path == "other/checkpoint-1200"


def test_a_path_with_a_blank_goes_into_a_copy_of_the_file(config: Path) -> None:
    """launcher.py joins its arguments and splits them again."""
    config.write_text(TEXT.replace("output_dir: out", "output_dir: my out"))
    write_checkpoint("my out", 700, total=5000)
    planned = start("llamafactory-cli train run.yaml")
    assert planned.command[:2] == ("llamafactory-cli", "train")
    assert planned.command[2] == planned.copies[0].path != "run.yaml"
    assert b"resume_from_checkpoint: my out/checkpoint-700\n" in planned.copies[0].after


def test_a_path_that_would_be_torn_apart_is_not_written_behind_the_file(config: Path) -> None:
    config.write_text(TEXT.replace("output_dir: out", "output_dir: my out"))
    write_checkpoint("my out", 700, total=5000)
    with pytest.raises(CannotPlan, match=r"tears it apart: take `resume_from_checkpoint=null` out"):
        start("llamafactory-cli train run.yaml resume_from_checkpoint=null")


def test_a_release_that_takes_no_arguments_reads_a_copy(config: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    Path("requirements.txt").write_text("llamafactory==0.9.1\n")
    planned = prepared(shlex.split("llamafactory-cli train run.yaml"), {})
    copy = Path(planned.command[2])
    assert copy.name == "run.yaml"
    assert copy.read_text() == TEXT.replace("null", "out/checkpoint-500")
    assert config.read_text() == TEXT
    assert copy.stat().st_mode & 0o077 == 0 or copy.parent.stat().st_mode & 0o077 == 0


def test_a_copy_keeps_the_place_of_other_nodes_files(config: Path) -> None:
    """What srun starts elsewhere does not see this machine's temporary directory."""
    Path("requirements.txt").write_text("llamafactory==0.9.1\n")
    planned = prepared(shlex.split("srun -N 4 llamafactory-cli train run.yaml"), {})
    assert planned.command[-1] == "run.yaml"
    assert config.read_text() == TEXT.replace("null", "out/checkpoint-500")


@pytest.mark.parametrize(
    "given",
    [
        "bash -c 'cd . && llamafactory-cli train run.yaml 2>&1 | tee log'",
        "env A=b FORCE_TORCHRUN=1 llamafactory-cli train run.yaml",
        "nohup torchrun --nproc_per_node 1 src/train.py run.yaml",
    ],
)
def test_the_argument_goes_to_the_program_behind_others(config: Path, given: str) -> None:
    wanted = given.replace("run.yaml", "run.yaml resume_from_checkpoint=out/checkpoint-500")
    assert command(given) == shlex.join(shlex.split(wanted))


def test_a_start_script_is_given_a_copy_of_the_file_it_passes_on(config: Path) -> None:
    Path("start.sh").write_text('#!/bin/bash\nset -e\nllamafactory-cli train "$1"\n')
    planned = start("bash start.sh run.yaml")
    assert planned.command == ("bash", "start.sh", planned.copies[0].path)
    assert b"out/checkpoint-500" in planned.copies[0].after


def test_a_directory_the_script_goes_to_is_where_relative_paths_count_from(config: Path, tmp_path: Path) -> None:
    there = tmp_path / "there"
    there.mkdir()
    write_checkpoint(str(there / "out"), 300, total=5000)
    (there / "run.yaml").write_text(TEXT)
    planned = start(f"bash -c 'cd {there} && llamafactory-cli train run.yaml'")
    assert planned.plans[0].chosen is not None
    assert planned.plans[0].chosen.step == 300


# ------------------------------------------------------------------------------------------------ the Trainer's family


def test_a_script_on_the_trainer_gets_the_option(config: Path) -> None:
    assert command(TRAINER) == f"{TRAINER} --resume_from_checkpoint out/checkpoint-500"


def test_an_option_that_names_a_lost_checkpoint_is_moved_or_taken_out(config: Path) -> None:
    moved = command(f"{TRAINER} --resume_from_checkpoint out/checkpoint-300")
    assert moved == f"{TRAINER} --resume_from_checkpoint out/checkpoint-500"
    fresh = TRAINER.replace("--output_dir out", "--output_dir new")
    assert command(f"{fresh} --resume_from_checkpoint new/checkpoint-300") == fresh
    assert command(f"{fresh} --resume_from_checkpoint latest") == f"{fresh} --resume_from_checkpoint latest"


def test_axolotl_and_ms_swift_get_their_own_spelling(project: Path) -> None:
    write_checkpoint("out", 500, total=5000)
    own = "base_model: Qwen/Qwen3-4B\ndatasets:\n  - path: toy\n    type: alpaca\noutput_dir: out\nmax_steps: 5000\n"
    Path("a.yaml").write_text(f"{own}auto_resume_from_checkpoints: false\n")
    assert command("axolotl train a.yaml") == "axolotl train a.yaml --resume-from-checkpoint=out/checkpoint-500"
    swift = "swift sft --model Qwen/Qwen3-4B --dataset toy --output_dir out --add_version false --save_steps 100"
    assert command(swift) == f"{swift} --resume_from_checkpoint out/checkpoint-500"


# ------------------------------------------------------------------------------------------------ what it does not touch


@pytest.mark.parametrize(
    "given",
    ["true", "nvidia-smi -L", "python -c 'print(1)'", "if then", "a=b c", "llamafactory-cli export run.yaml", "bash gone.sh"],
)
def test_what_is_no_training_stays_as_it_is(project: Path, given: str) -> None:
    assert start(given) == Start(tuple(shlex.split(given)))


@pytest.mark.parametrize("word", ["", " ", "it's", "$HOME", "`x`", "a\nb", "\\", "*", "~", '"', "ä €", "{a,b}", "#", "!"])
def test_every_word_arrives_as_it_was_given(config: Path, word: str) -> None:
    planned = prepare(["llamafactory-cli", "train", "run.yaml", f"run_name={word}", "resume_from_checkpoint=null"], {})
    assert planned.command[3] == f"run_name={word}"
    assert prepare(["echo", word], {}).command == ("echo", word)


# ------------------------------------------------------------------------------------------------ wishes, errors


def test_a_step_is_taken_where_it_is_complete(config: Path) -> None:
    write_checkpoint("out", 700, total=5000)
    planned = start("llamafactory-cli train run.yaml", Wishes(step=500))
    assert planned.command[-1] == "resume_from_checkpoint=out/checkpoint-500"
    with pytest.raises(CannotPlan, match=r"step 900 cannot be resumed.*optimizer.pt is cut short.*complete are: 700, 500"):
        start("llamafactory-cli train run.yaml", Wishes(step=900))
    with pytest.raises(CannotPlan, match="there is no checkpoint of step 800; complete are: 700, 500"):
        start("llamafactory-cli train run.yaml", Wishes(step=800))
    with pytest.raises(CannotPlan, match="no training of a known framework"):
        start("true", Wishes(step=800))


def test_a_variable_that_is_not_set_is_an_error(config: Path) -> None:
    config.write_text(TEXT.replace("output_dir: out", "output_dir: ${train_output}"))
    with pytest.raises(CannotPlan, match="export train_output"):
        start("llamafactory-cli train run.yaml")
    planned = start("llamafactory-cli train run.yaml", train_output="out")
    assert planned.command[3:] == ("output_dir=out", "resume_from_checkpoint=out/checkpoint-500")


def test_what_cannot_be_started_is_refused(config: Path) -> None:
    config.write_text(TEXT.replace("finetuning_type: full", "finetuning_type: lora"))
    assert start("llamafactory-cli train run.yaml").refused
