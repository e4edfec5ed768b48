"""Megatron-LM's arguments on a command line, and MindSpeed's on top of them."""

from __future__ import annotations

import pytest
from command_lines import TextEditor, edited, last_command

from ckptlint.frameworks.megatron import read_launch
from ckptlint.frameworks.megatron_keys import CHECKPOINT_FLAGS, LOOK_ALIKES, MINDSPEED_LLM_FLAGS, RELEASES_READ
from ckptlint.run import NEVER, Amount, Choice, Release, Run, State, Unit, Unknown

MODEL = "--tensor-model-parallel-size 8 --micro-batch-size 1 --train-iters 2000"


def _run(arguments: str, script: str = "pretrain_gpt.py", before: str = "", release: str | None = None) -> Run:
    command = last_command(f"{before}\ntorchrun --nproc_per_node 8 {script} {MODEL} {arguments}")
    run = read_launch(command.argv, command.span, Release(release) if release else None, TextEditor(command))
    assert run is not None
    return run


# ------------------------------------------------------------------------------------------------ which commands


@pytest.mark.parametrize(
    ("script", "arguments", "framework"),
    [
        ("pretrain_gpt.py", "", "megatron"),
        ("$ROOT/pretrain_mamba.py", "", "megatron"),
        ("pretrain_gpt.py", "--tokenizer-type PretrainedFromHF", "mindspeed-llm"),
        ("posttrain_gpt.py", "--stage sft", "mindspeed-llm"),
        ("pretrain_vlm.py", "--mm-model model.json --mm-data data.json", "mindspeed-mm"),
    ],
)
def test_the_member_of_the_family_is_told_by_script_and_options(script: str, arguments: str, framework: str) -> None:
    assert _run(arguments, script).framework == framework


@pytest.mark.parametrize(
    "command",
    [
        f"torchrun inference.py {MODEL} --load x",
        f"python convert_ckpt.py {MODEL} --load-dir x --save-dir y",
        f"torchrun evaluation.py {MODEL}",
        f"torchrun pretrain_gpt.py {MODEL} --load x --skip-train",
        "python pretrain_gpt.py --help",
        "python train.py --train_iters 5 --save x --load y",
        f"addSeedAll pretrain_gpt.py {MODEL}",
        "sed -i s/x/y/ pretrain_gpt.py",
    ],
)
def test_a_command_that_trains_nothing_with_megatron_is_no_run(command: str) -> None:
    found = last_command(command)
    assert read_launch(found.argv, found.span, None) is None


def test_the_release_is_assumed_by_what_the_family_asks_for() -> None:
    assert _run("--save x").release.text == "0.20.0"
    assert _run("--stage sft").release.text == "0.12.1"


# ------------------------------------------------------------------------------------------------ saving


def test_without_save_nothing_is_written() -> None:
    run = _run("--load x")
    assert (run.writes[0].interval.every, run.writes[0].interval.setting.name) == (NEVER, "--save")


def test_an_interval_without_save_has_no_effect() -> None:
    (unused,) = _run("--load x --save-interval 5").unused_settings
    assert (unused.topic, unused.setting.name) == ("save", "--save-interval")


def test_an_interval_as_long_as_the_run_is_seen_through_variables() -> None:
    run = _run("--save x --save-interval ${ITERS}", before="ITERS=2000")
    assert run.writes[0].interval.every == Amount(2000, Unit.STEP)
    assert run.writes[0].interval.as_long_as(run.length)
    assert run.writes[0].interval.at_end is True


def test_save_without_an_interval_stops_the_start() -> None:
    (refusal,) = _run("--save x").refusals
    assert "AssertionError" in refusal.effect


def test_a_run_counted_in_samples_is_not_compared_with_iterations() -> None:
    command = last_command(
        "torchrun pretrain_gpt.py --micro-batch-size 1 --global-batch-size 8 --train-samples 9 --save x --save-interval 99"
    )
    run = read_launch(command.argv, command.span, None)
    assert run is not None
    assert run.length == Amount(9, Unit.SAMPLE)
    assert not run.writes[0].interval.as_long_as(run.length)


def test_no_save_optim_leaves_the_schedule_out_as_well() -> None:
    missing = _run("--save x --save-interval 5 --no-save-optim --no-save-rng").writes[0].missing
    assert [part.state for part in missing] == [State.OPTIMIZER, State.SCHEDULER, State.RNG]


def test_legacy_checkpoints_cannot_be_saved_asynchronously() -> None:
    (refusal,) = _run("--save x --save-interval 5 --async-save --ckpt-format torch").refusals
    assert refusal.setting.name == "--async-save"
    assert not _run("--save x --save-interval 5 --async-save").refusals


# ------------------------------------------------------------------------------------------------ resuming


@pytest.mark.parametrize(
    ("arguments", "choice"),
    [
        ("--load /d/run --save /d/run", Choice.NEWEST),
        ("--load /d/run --save /d/run/", Choice.NEWEST),
        ("--load $OUT --save $OUT", Choice.NEWEST),
        ("--load /d/run --save /d/run --pretrained-checkpoint /d/base", Choice.NEWEST),
        ("--load /d/base --save /d/run", Choice.NOTHING),
        ("--load /d/base --save /d/run --finetune --no-load-optim", Choice.NOTHING),
        ("--save /d/run", Choice.NOTHING),
        ("--load None --save /d/run", Choice.NOTHING),
        ("--load $IN --save $OUT", Choice.UNKNOWN),
        ("--load $IN --save /d/run", Choice.UNKNOWN),
        ("--load /d/run --save /d/run --ckpt-step 500", Choice.FIXED),
        ("--load /d/run --save /d/run --finetune", Choice.NOTHING),
        ("--load /d/$(date +%s) --save /d/$(date +%s)", Choice.UNKNOWN),
    ],
)
def test_what_a_start_takes_up(arguments: str, choice: Choice) -> None:
    assert _run(f"{arguments} --save-interval 5").reads[0].choice is choice


def test_placeholders_of_several_words_are_two_directories() -> None:
    before = 'L="your model ckpt path"\nS="your model save ckpt path"'
    run = _run("--load $L --save $S --save-interval 5", before=before)
    assert run.reads[0].choice is Choice.NOTHING
    assert "`--load your model ckpt path` is not the directory of `--save your model save ckpt path`" in run.reads[0].why


def test_the_repair_keeps_the_base_and_takes_the_switches_out() -> None:
    arguments = "--load /base --save /run --save-interval 5 --finetune --no-load-optim"
    command = last_command(f"torchrun pretrain_gpt.py {MODEL} {arguments}")
    run = read_launch(command.argv, command.span, None, TextEditor(command))
    assert run is not None
    edits = [edit for setting, value in run.reads[0].repair for edit in setting.set(value)]
    assert edited(command, edits).endswith("--load /run --save /run --save-interval 5 --pretrained-checkpoint /base")


def test_converting_at_every_start_has_no_repair_of_its_own() -> None:
    read = _run("--load /hf --save /run --save-interval 5 --enable-hf2mg-convert --stage sft").reads[0]
    assert read.repair == ()
    assert "--enable-hf2mg-convert" in read.advice


def test_finetune_in_the_runs_own_directory_is_a_switch() -> None:
    (switch,) = _run("--load /run --save /run --save-interval 5 --finetune --no-load-rng").switches
    assert (switch.setting.name, switch.safe) == ("--finetune", False)
    assert [setting.name for setting, _ in switch.also] == ["--no-load-rng"]
    (switch,) = _run("--load /run --save /run --save-interval 5 --finetune --pretrained-checkpoint /base").switches
    assert switch.safe


def test_no_load_optim_drops_the_optimizer_only_where_the_run_resumes() -> None:
    resumed = _run("--load /run --save /run --save-interval 5 --no-load-optim").reads[0]
    assert [drop.state for drop in resumed.drops] == [State.OPTIMIZER]
    assert not _run("--load /base --save /run --save-interval 5 --no-load-optim").reads[0].drops


def test_no_load_rng_loses_random_numbers_alone() -> None:
    (switch,) = _run("--load /run --save /run --save-interval 5 --no-load-rng").switches
    assert switch.loses == {State.RNG}


@pytest.mark.parametrize(("release", "ignored"), [("0.8", False), ("0.9.0", True), ("0.11.0", True), ("0.12.1", False)])
def test_ckpt_step_is_read_by_no_code_in_three_releases(release: str, ignored: bool) -> None:
    run = _run("--load /run --save /run --save-interval 5 --ckpt-step 100", release=release)
    assert bool(run.unused_settings) is ignored
    assert run.reads[0].choice is (Choice.NEWEST if ignored else Choice.FIXED)


def test_the_reference_of_dpo_is_lost_where_the_policy_resumes() -> None:
    dpo = "--stage dpo --load /run --save /run --save-interval 5"
    assert _run(dpo).lost_references
    assert not _run(f"{dpo} --ref-model /base").lost_references
    assert not _run(dpo.replace("--load /run", "--load /base")).lost_references


def test_the_repair_of_dpo_names_the_reference() -> None:
    repair = _run("--stage dpo --load /base --save /run --save-interval 5").reads[0].repair
    assert [(setting.name, value) for setting, value in repair if setting.name == "--ref-model"] == [("--ref-model", "/base")]


def test_a_duplicate_counts_as_argparse_counts_it() -> None:
    assert _run("--load /base --load /run --save /run --save-interval 5").reads[0].choice is Choice.NEWEST


def test_a_branch_on_the_environment_gives_both_runs() -> None:
    from ckptlint.source.shell import read
    from ckptlint.source.text import SourceText

    choice = 'if [ "$X" = 1 ]; then A="--finetune"; else A=""; fi'
    script = f"{choice}\ntorchrun pretrain_gpt.py {MODEL} --load r --save r --save-interval 5 $A\n"
    runs = [read_launch(command.argv, command.span, None) for command in read(SourceText("x.sh", script)).commands]
    choices = {run.reads[0].choice for run in runs if run is not None}
    assert choices == {Choice.NEWEST, Choice.NOTHING}


# ------------------------------------------------------------------------------------------------ spelling and tables


def test_a_near_miss_is_reported_and_another_option_is_not() -> None:
    (key,) = _run("--save x --save-intervall 5").strange_keys
    assert (key.name, key.nearest) == ("--save-intervall", "--save-interval")
    assert not _run("--save x --save-interval 5 --eval-interval 5 --no-rope-fusion").strange_keys


def test_options_that_look_like_others_are_in_no_table() -> None:
    options = {option for flag in (*CHECKPOINT_FLAGS, *MINDSPEED_LLM_FLAGS) for option in flag.options}
    assert not options & LOOK_ALIKES
    names = [flag.name for flag in (*CHECKPOINT_FLAGS, *MINDSPEED_LLM_FLAGS)]
    assert len(names) == len(set(names))


def test_arguments_come_with_the_releases() -> None:
    since = {flag.name: [flag.lifetime.holds(release) for release in RELEASES_READ].index(True) for flag in CHECKPOINT_FLAGS}
    assert RELEASES_READ[since["save"]] == "0.8"
    assert RELEASES_READ[since["ckpt_format"]] == "0.9"
    assert RELEASES_READ[since["save_retain_interval"]] == "0.14"


def test_what_the_environment_decides_is_unknown() -> None:
    run = _run("--save $OUT --load $OUT --save-interval $N")
    assert isinstance(run.writes[0].interval.every, Unknown)
