"""What a v0 YAML of LLaMA-Factory comes to; the tables follow ``hparams/parser.py`` get_train_args, as 0.9.5 runs it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ckptlint.frameworks.llamafactory import LlamaFactory
from ckptlint.outcome import Kind, outcome
from ckptlint.run import NEVER, Amount, Choice, Run, State, Unit, Unknown
from ckptlint.source.file import SourceFile
from ckptlint.source.text import SourceError, apply

Read = Callable[..., Run]

BASE = "stage: sft\ndo_train: true\nfinetuning_type: lora\noutput_dir: out\n"


@pytest.fixture
def read(project: Path) -> Read:
    """Reads a run from some lines behind the usual ones; ``pin`` is a line of requirements.txt."""

    def run(lines: str = "", *, base: str = BASE, pin: str = "") -> Run:
        if pin:
            (project / "requirements.txt").write_text(pin + "\n")
        (found,) = LlamaFactory().read(SourceFile("run.yaml", (base + lines).encode()))
        return found

    return run


def _after(run: Run, edits: object) -> str:
    return apply(run.where.source, edits)  # type: ignore[arg-type]


# ------------------------------------------------------------------------------------------------ what a start takes up

# (lines, how the checkpoint is chosen, the setting that decides, fails where nothing is there, switches, misfits)
STARTS = [
    ("", Choice.NEWEST, "resume_from_checkpoint", False, [], 0),
    ("resume_from_checkpoint: null", Choice.NEWEST, "resume_from_checkpoint", False, [], 0),
    ("resume_from_checkpoint: ~", Choice.NEWEST, "resume_from_checkpoint", False, [], 0),
    ("resume_from_checkpoint:", Choice.NEWEST, "resume_from_checkpoint", False, [], 0),
    ("overwrite_output_dir: false", Choice.NEWEST, "resume_from_checkpoint", False, [], 0),
    ("overwrite_output_dir: no", Choice.NEWEST, "resume_from_checkpoint", False, [], 0),
    ("overwrite_output_dir: true", Choice.NOTHING, "overwrite_output_dir", False, ["overwrite_output_dir"], 0),
    ("overwrite_output_dir: on", Choice.NOTHING, "overwrite_output_dir", False, ["overwrite_output_dir"], 0),
    ('overwrite_output_dir: "false"', Choice.NOTHING, "overwrite_output_dir", False, ["overwrite_output_dir"], 0),
    (
        "overwrite_output_dir: true\nresume_from_checkpoint: null",
        Choice.NOTHING,
        "overwrite_output_dir",
        False,
        ["overwrite_output_dir"],
        0,
    ),
    ("resume_from_checkpoint: false", Choice.NOTHING, "resume_from_checkpoint", False, ["resume_from_checkpoint"], 0),
    (
        "resume_from_checkpoint: false\noverwrite_output_dir: true",
        Choice.NOTHING,
        "resume_from_checkpoint",
        False,
        ["resume_from_checkpoint"],
        0,
    ),
    ("resume_from_checkpoint: true", Choice.NEWEST, "resume_from_checkpoint", True, [], 0),
    ("resume_from_checkpoint: true\noverwrite_output_dir: true", Choice.NEWEST, "resume_from_checkpoint", True, [], 0),
    ("resume_from_checkpoint: out/checkpoint-5", Choice.FIXED, "resume_from_checkpoint", True, [], 0),
    (
        "resume_from_checkpoint: out/checkpoint-5/\noverwrite_output_dir: true",
        Choice.FIXED,
        "resume_from_checkpoint",
        True,
        [],
        0,
    ),
    ("resume_from_checkpoint: /elsewhere/checkpoint-5", Choice.FIXED, "resume_from_checkpoint", True, [], 0),
    ("resume_from_checkpoint: out", Choice.UNKNOWN, "resume_from_checkpoint", False, [], 1),
    ("resume_from_checkpoint: ./out/", Choice.UNKNOWN, "resume_from_checkpoint", False, [], 1),
    ("resume_from_checkpoint: auto", Choice.UNKNOWN, "resume_from_checkpoint", False, [], 1),
    ("resume_from_checkpoint: latest", Choice.UNKNOWN, "resume_from_checkpoint", False, [], 1),
    ('resume_from_checkpoint: "True"', Choice.UNKNOWN, "resume_from_checkpoint", False, [], 1),
    ("resume_from_checkpoint: none", Choice.UNKNOWN, "resume_from_checkpoint", False, [], 1),  # text in YAML, unlike null
    ('resume_from_checkpoint: ""', Choice.UNKNOWN, "resume_from_checkpoint", False, [], 1),
    ("resume_from_checkpoint: 1000", Choice.UNKNOWN, "resume_from_checkpoint", False, [], 1),
    ('resume_from_checkpoint: "1000"', Choice.UNKNOWN, "resume_from_checkpoint", False, [], 1),
    ("resume_from_checkpoint: out/tmp-checkpoint-99", Choice.UNKNOWN, "resume_from_checkpoint", False, [], 1),
    ("resume_from_checkpoint: ${train_output}", Choice.UNKNOWN, "resume_from_checkpoint", False, [], 0),
]


@pytest.mark.parametrize(("lines", "choice", "setting", "raises", "switches", "misfits"), STARTS)
def test_a_start_takes_up_what_the_parser_would(
    read: Read, lines: str, choice: Choice, setting: str, raises: bool, switches: list[str], misfits: int
) -> None:
    run = read(lines)
    (start,) = run.reads
    assert (start.choice, start.setting.name, start.raises_when_missing) == (choice, setting, raises)
    assert [switch.setting.name for switch in run.switches] == switches
    assert len(run.misfits) == misfits
    assert not run.obstacles


@pytest.mark.parametrize(
    ("lines", "kind", "text"),
    [
        ("", Kind.EXACT, "resumes exactly, repeating at most 500 steps"),
        ("save_steps: 0.1", Kind.EXACT, "resumes exactly, repeating at most 10 % of the run"),
        ("save_strategy: epoch", Kind.EXACT, "resumes exactly, repeating at most 1 epoch"),
        ("overwrite_output_dir: true", Kind.RESTARTS, "restarts at step 0: `overwrite_output_dir: true`"),
        ("resume_from_checkpoint: false", Kind.RESTARTS, "restarts at step 0: `resume_from_checkpoint: false`"),
        ('save_strategy: "no"', Kind.RESTARTS, "restarts at step 0: no checkpoint is ever written"),
        ("save_steps: 0", Kind.RESTARTS, "restarts at step 0: the only checkpoint is written when training ends"),
        ("max_steps: 400", Kind.RESTARTS, "the first checkpoint comes after 500 steps, and the run ends after 400 steps"),
        ("resume_from_checkpoint: true", Kind.CANNOT, "does not start the first time: `resume_from_checkpoint: true`"),
        ("resume_from_checkpoint: latest", Kind.CANNOT, "does not start: `resume_from_checkpoint: latest` names no checkpoint"),
        ("resume_from_checkpoint: out/checkpoint-5", Kind.LOSING, "resumes, but always from `out/checkpoint-5`"),
        ("resume_from_checkpoint: ${x}", Kind.UNKNOWN, "unknown because"),
        ("save_only_model: true", Kind.LOSING, "resumes, losing optimizer state, learning-rate schedule, random-number state"),
        ("ignore_data_skip: true", Kind.LOSING, "resumes, losing data position and at most 500 steps"),
        ("save_steps: many", Kind.CANNOT, "does not start: `save_steps: many` is refused"),
        ("save_strategy: best\neval_strategy: steps", Kind.UNKNOWN, "unknown because a checkpoint is written only when"),
    ],
)
def test_the_outcome_says_what_a_restart_comes_to(read: Read, lines: str, kind: Kind, text: str) -> None:
    found = outcome(read(lines))
    assert found.kind is kind
    assert text in found.text


# ------------------------------------------------------------------------------------------------ stages

ORDINARY = ("pt", "sft", "dpo", "kto")


@pytest.mark.parametrize("method", ["lora", "oft", "freeze", "full"])
@pytest.mark.parametrize("stage", ORDINARY)
def test_an_ordinary_stage_resumes_with_every_kind_of_tuning(read: Read, stage: str, method: str) -> None:
    run = read(base=f"stage: {stage}\ndo_train: true\nfinetuning_type: {method}\noutput_dir: out\n")
    assert not run.obstacles
    assert outcome(run).kind is Kind.EXACT


@pytest.mark.parametrize(
    ("stage", "method", "why"),
    [
        ("rm", "full", "resets `resume_from_checkpoint` to null"),
        ("rm", "freeze", "resets `resume_from_checkpoint` to null"),
        ("ppo", "full", "resets `resume_from_checkpoint` to null"),
        ("ppo", "freeze", "resets `resume_from_checkpoint` to null"),
        ("rm", "lora", "Can't find a checkpoint index"),
        ("rm", "oft", "Can't find a checkpoint index"),
        ("ppo", "lora", "weights only"),
        ("ppo", "oft", "weights only"),
    ],
)
@pytest.mark.parametrize("lines", ["", "overwrite_output_dir: true\n", "resume_from_checkpoint: out/checkpoint-5\n"])
def test_reward_models_and_ppo_cannot_resume_whatever_the_settings_say(
    read: Read, stage: str, method: str, why: str, lines: str
) -> None:
    run = read(lines, base=f"stage: {stage}\ndo_train: true\nfinetuning_type: {method}\noutput_dir: out\n")
    (obstacle,) = run.obstacles
    assert obstacle.setting.name == "stage"
    assert why in obstacle.why
    assert obstacle.instead
    assert not run.switches
    assert outcome(run).kind is Kind.CANNOT


def test_a_reward_model_under_deepspeed_resumes(read: Read) -> None:
    """Its engine loads the weights, so the missing file is not asked for."""
    run = read("deepspeed: ds_z3_config.json", base=BASE.replace("sft", "rm"))
    assert not run.obstacles


def test_the_stage_and_the_tuning_have_the_parsers_defaults(read: Read) -> None:
    run = read(base="do_train: true\nfinetuning_type: full\noutput_dir: out\n")
    assert (run.settings["stage"].value, run.settings["stage"].written) == ("sft", False)
    assert run.settings["finetuning_type"].value == "full"


# ------------------------------------------------------------------------------------------------ where, how often, how long


@pytest.mark.parametrize(
    ("lines", "every"),
    [
        ("", Amount(500, Unit.STEP)),
        ("save_steps: 250", Amount(250, Unit.STEP)),
        ("save_steps: 1e3", Amount(1000, Unit.STEP)),  # a float to OmegaConf
        ("save_steps: 1_000", Amount(1000, Unit.STEP)),
        ("save_steps: 0123", Amount(83, Unit.STEP)),  # octal in YAML 1.1
        ("save_steps: 1:30", Amount(90, Unit.STEP)),  # base 60
        ("save_steps: 1.0", Amount(1, Unit.STEP)),
        ("save_steps: 0.25", Amount(0.25, Unit.FRACTION)),
        ("save_steps: 0", NEVER),
        ("save_steps: -1", NEVER),
        ("save_strategy: epoch", Amount(1, Unit.EPOCH)),
        ("save_strategy: epoch\nsave_steps: 10", Amount(1, Unit.EPOCH)),
        ('save_strategy: "no"', NEVER),
        ("save_strategy: no", NEVER),
        ("save_strategy: best", NEVER),
    ],
)
def test_the_interval_is_what_the_loader_and_the_trainer_make_of_it(read: Read, lines: str, every: object) -> None:
    assert read(lines).writes[0].interval.every == every


@pytest.mark.parametrize(
    "lines",
    ["save_steps: '500'", "save_steps: 12.5", "save_steps: [1]", "save_steps: .inf", "save_strategy: always", "save_steps:"],
)
def test_an_interval_that_cannot_be_understood_is_unknown(read: Read, lines: str) -> None:
    assert isinstance(read(lines).writes[0].interval.every, Unknown)


@pytest.mark.parametrize(
    ("lines", "length"),
    [
        ("", Amount(3, Unit.EPOCH)),
        ("num_train_epochs: 2.5", Amount(2.5, Unit.EPOCH)),
        ("num_train_epochs: 2\nmax_steps: 100", Amount(100, Unit.STEP)),
        ("num_train_epochs: 2\nmax_steps: -1", Amount(2, Unit.EPOCH)),
        ("max_steps: 0", Amount(3, Unit.EPOCH)),
    ],
)
def test_the_run_is_as_long_as_the_trainer_makes_it(read: Read, lines: str, length: Amount) -> None:
    assert read(lines).length == length


@pytest.mark.parametrize("lines", ["max_steps: many", "max_steps: .inf", "max_steps: .nan", "num_train_epochs: '3'"])
def test_a_length_that_is_no_number_is_unknown(read: Read, lines: str) -> None:
    assert isinstance(read(lines).length, Unknown)


@pytest.mark.parametrize(
    ("lines", "keep"),
    [("", None), ("save_total_limit: 3", 3), ("save_total_limit: 0", None), ("save_total_limit: -1", None)],
)
def test_no_limit_zero_and_a_negative_one_keep_all(read: Read, lines: str, keep: int | None) -> None:
    assert read(lines).writes[0].retention.keep == keep


def test_the_best_checkpoint_stays_besides_the_newest(read: Read) -> None:
    assert read("save_total_limit: 1\nload_best_model_at_end: true").writes[0].retention.keeps_best


@pytest.mark.parametrize(
    ("lines", "missing"),
    [
        ("", set()),
        ("save_only_model: true", {State.OPTIMIZER, State.SCHEDULER, State.RNG}),
        ("save_only_model: false", set()),
        ("use_badam: true", {State.OPTIMIZER}),
        ("use_galore: true\ngalore_layerwise: true", {State.OPTIMIZER}),
        ("use_apollo: true\napollo_layerwise: true", {State.OPTIMIZER}),
        ("galore_layerwise: true", set()),
        ("use_galore: true", set()),
    ],
)
def test_a_checkpoint_lacks_what_the_settings_leave_out(read: Read, lines: str, missing: set[State]) -> None:
    assert {entry.state for entry in read(lines).writes[0].missing} == missing


@pytest.mark.parametrize(
    ("value", "absolute", "literal"),
    [("saves/run", False, "saves/run"), ("/data/run", True, "/data/run"), ("~/run", True, "~/run"), ("${x}/run", None, None)],
)
def test_a_path_keeps_its_parts(read: Read, value: str, absolute: bool | None, literal: str | None) -> None:
    path = read(base=BASE.replace("out\n", value + "\n")).writes[0].directory.path
    assert (path.absolute, path.literal) == (absolute, literal)


@pytest.mark.parametrize("value", ["[a, b]", "{a: b}", "7", "true"])
def test_a_directory_that_is_no_text_is_unknown(read: Read, value: str) -> None:
    assert isinstance(read(base=BASE.replace("out\n", value + "\n")).writes[0].directory.path, Unknown)


def test_without_output_dir_the_run_saves_into_the_trainers_own_folder(read: Read) -> None:
    directory = read(base="stage: sft\ndo_train: true\n").writes[0].directory
    assert (directory.path.literal, directory.setting.written) == ("trainer_output", False)


# ------------------------------------------------------------------------------------------------ releases


def test_a_duplicate_key_stops_the_current_reader_and_names_both_lines(read: Read) -> None:
    with pytest.raises(SourceError, match=r"`save_steps` stands twice \(first at line 5\)") as caught:
        read("save_steps: 1\nsave_steps: 2\n")
    assert caught.value.span.start_position == (6, 1)
    assert caught.value.remedy


@pytest.mark.parametrize("pin", ["llamafactory==0.9.3", "llamafactory[metrics]==0.9.1", "llamafactory == 0.8.3"])
def test_the_last_of_two_keys_wins_in_releases_that_used_the_plain_loader(read: Read, pin: str) -> None:
    run = read("save_steps: 1\nsave_steps: 2\n", pin=pin)
    assert run.writes[0].interval.every == Amount(2, Unit.STEP)
    assert _after(run, run.settings["save_steps"].set(7)).endswith("save_steps: 1\nsave_steps: 7\n")


def test_two_documents_are_refused_where_the_second_begins(read: Read) -> None:
    with pytest.raises(SourceError, match="one YAML document") as caught:
        read("---\nstage: sft\n")
    assert caught.value.span.line in (5, 6)


def test_the_plain_loader_of_older_releases_reads_a_bare_exponent_as_text(read: Read) -> None:
    run = read("save_steps: 1e3\n", pin="llamafactory==0.9.3")
    assert isinstance(run.writes[0].interval.every, Unknown)
    assert [refusal.setting.name for refusal in run.refusals] == ["save_steps"]


@pytest.mark.parametrize(
    ("pin", "release", "pinned"),
    [("", "0.9.5", False), ("llamafactory==0.9.1", "0.9.1", True), ("llamafactory>=0.9", "0.9.5", False)],
)
def test_the_release_is_the_pinned_one_or_is_said_to_be_assumed(read: Read, pin: str, release: str, pinned: bool) -> None:
    found = read(pin=pin).release
    assert (found.text, found.pinned is not None) == (release, pinned)
    assert ("(assumed)" in str(found)) is not pinned


def test_the_last_step_is_saved_besides(read: Read) -> None:
    assert read().writes[0].interval.at_end is True


def test_a_default_says_whose_it_is(read: Read) -> None:
    assert str(read(pin="llamafactory==0.9.3").settings["save_steps"]) == ("save_steps (500, default of LLaMA-Factory 0.9.3)")


# ------------------------------------------------------------------------------------------------ keys and values


@pytest.mark.parametrize(
    ("key", "nearest"),
    [
        ("save_step", "save_steps"),
        ("overwrite_ouput_dir", "overwrite_output_dir"),
        ("resume_from_checkpoints", "resume_from_checkpoint"),
        ("save-steps", "save_steps"),
        ("Save_Steps", "save_steps"),
        ("--resume_from_checkpoint", "resume_from_checkpoint"),
        ("save_total_limits", "save_total_limit"),
    ],
)
def test_a_near_miss_of_a_checkpoint_key_is_named_with_what_was_meant(read: Read, key: str, nearest: str) -> None:
    (strange,) = read(f"{key}: 1\n").strange_keys
    assert (strange.name, strange.nearest, strange.span.text) == (key, nearest, key)
    assert strange.rename


@pytest.mark.parametrize(
    "key",
    [
        "eval_steps",
        "logging_steps",
        "save_on_each_node",
        "save_safetensors",
        "my_key",
        "lora_rnak",
        "output",
        "steps",
        "max_samples",
    ],
)
def test_other_keys_are_left_alone(read: Read, key: str) -> None:
    assert not read(f"{key}: 1\n").strange_keys


def test_a_key_of_another_release_is_no_fault_where_the_release_is_assumed(read: Read) -> None:
    assert not read("enable_jit_checkpoint: true\n").strange_keys


def test_a_key_that_the_pinned_release_does_not_have_is_strange(read: Read) -> None:
    (strange,) = read("enable_jit_checkpoint: true\n", pin="llamafactory==0.9.1").strange_keys
    assert (strange.name, strange.nearest) == ("enable_jit_checkpoint", "")


@pytest.mark.parametrize(
    ("line", "replacement"),
    [
        ("save_strategy: no", "no"),
        ('save_steps: "500"', 500),
        ("save_strategy: always", None),
        ("save_steps: 12.5", None),
        ("save_steps: many", None),
        ("save_steps: null", None),
        ("max_steps: '1000'", 1000),
        ("save_total_limit: '2'", 2),
        ('num_train_epochs: "3.5"', 3.5),
        ('overwrite_output_dir: "false"', False),
        ('save_only_model: "true"', True),
    ],
)
def test_a_value_that_is_refused_or_misread_is_named_with_what_was_surely_meant(
    read: Read, line: str, replacement: object
) -> None:
    name = line.split(":")[0]
    (refusal,) = [refusal for refusal in read(line).refusals if refusal.setting.name == name]
    assert refusal.replacement == replacement
    assert refusal.effect
    assert refusal.instead


@pytest.mark.parametrize(
    "lines",
    [
        "save_steps: 500",
        "save_steps: 0.5",
        "learning_rate: 1e-4",
        "save_strategy: 'no'",
        "save_total_limit: null",
        "max_steps: -1",
        "num_train_epochs: 3",
        "resume_from_checkpoint: ~",
        "overwrite_output_dir: False",
        "load_best_model_at_end: true\neval_strategy: steps\neval_steps: 250",
        "load_best_model_at_end: true\nevaluation_strategy: steps\neval_steps: 500",
        "load_best_model_at_end: true\neval_strategy: epoch\nsave_strategy: epoch",
    ],
)
def test_a_value_that_is_fine_is_not_refused(read: Read, lines: str) -> None:
    assert not read(lines).refusals


@pytest.mark.parametrize(
    ("lines", "name"),
    [
        ("load_best_model_at_end: true", "load_best_model_at_end"),
        ("load_best_model_at_end: true\neval_strategy: epoch", "load_best_model_at_end"),
        ("load_best_model_at_end: true\neval_strategy: steps\neval_steps: 200", "save_steps"),
        ("load_best_model_at_end: true\neval_strategy: steps\nlogging_steps: 300", "save_steps"),
    ],
)
def test_saving_and_evaluating_must_go_together_where_the_best_model_is_wanted(read: Read, lines: str, name: str) -> None:
    assert [refusal.setting.name for refusal in read(lines).refusals] == [name]


@pytest.mark.parametrize("stage", ["rm", "ppo"])
def test_reward_models_and_ppo_do_not_take_the_best_model(read: Read, stage: str) -> None:
    lines = "load_best_model_at_end: true\neval_strategy: steps\neval_steps: 500"
    assert [refusal.setting.name for refusal in read(lines, base=BASE.replace("sft", stage)).refusals] == [
        "load_best_model_at_end"
    ]


def test_a_brace_that_is_not_closed_is_refused(read: Read) -> None:
    assert [refusal.setting.name for refusal in read("resume_from_checkpoint: ${x\n").refusals] == ["resume_from_checkpoint"]


# ------------------------------------------------------------------------------------------------ weights of the run itself


@pytest.mark.parametrize(
    ("output_dir", "line"),
    [
        ("saves/a", "adapter_name_or_path: saves/a/checkpoint-9"),
        ("saves/a", "adapter_name_or_path: saves/a/checkpoint-9/"),
        ("saves/a/", "adapter_name_or_path: saves/a"),
        ("./saves/a", "adapter_name_or_path: other,saves/a/checkpoint-9"),
        ("saves/a", "adapter_name_or_path: /work/LLaMA-Factory/saves/a/checkpoint-9"),
        ("/data/a", "model_name_or_path: /data/a/checkpoint-9"),
    ],
)
def test_the_weights_of_the_runs_own_checkpoint_are_a_warm_start(read: Read, output_dir: str, line: str) -> None:
    (start,) = read(line, base=BASE.replace("out\n", output_dir + "\n")).warm_starts
    assert start.setting.name == line.split(":")[0]
    assert start.instead


@pytest.mark.parametrize(
    ("output_dir", "line"),
    [
        ("saves/b", "adapter_name_or_path: saves/a/checkpoint-9"),
        ("saves/a", "adapter_name_or_path: saves/ab/checkpoint-9"),
        ("models", "model_name_or_path: models/Qwen3-4B"),
        ("a", "adapter_name_or_path: /data/a/checkpoint-9"),  # one short name proves nothing
        ("saves/a", "adapter_name_or_path: saves/a/checkpoint-9\nresume_from_checkpoint: saves/a/checkpoint-9"),
        ("saves/a", "adapter_name_or_path: null"),
        ("saves/a", "reward_model: saves/a/checkpoint-9"),
    ],
)
def test_other_weights_are_an_ordinary_start(read: Read, output_dir: str, line: str) -> None:
    assert not read(line, base=BASE.replace("out\n", output_dir + "\n")).warm_starts


# ------------------------------------------------------------------------------------------------ edits


def test_a_setting_that_is_not_written_is_added_behind_its_neighbours(read: Read) -> None:
    run = read("save_steps: 10\n")
    assert _after(run, run.settings["resume_from_checkpoint"].set("out/checkpoint-5")) == (
        BASE + "resume_from_checkpoint: out/checkpoint-5\nsave_steps: 10\n"
    )


def test_a_setting_is_changed_where_it_is_written_and_nothing_else(read: Read) -> None:
    run = read("# resume_from_checkpoint: a\nresume_from_checkpoint:   b   # c\nlast: 1")
    assert _after(run, run.settings["resume_from_checkpoint"].set("d")) == (
        BASE + "# resume_from_checkpoint: a\nresume_from_checkpoint:   d   # c\nlast: 1"
    )


def test_a_merged_value_is_overridden_and_not_changed_at_its_origin(read: Read) -> None:
    run = read(base="x: &x\n  overwrite_output_dir: true\n<<: *x\nstage: sft\ndo_train: true\noutput_dir: out\n")
    assert run.settings["overwrite_output_dir"].value is True
    after = _after(run, run.settings["overwrite_output_dir"].set(False))
    assert after.endswith("output_dir: out\noverwrite_output_dir: false\n")
    assert after.startswith("x: &x\n  overwrite_output_dir: true\n<<: *x\n")


def test_the_model_is_named_as_the_author_names_it(read: Read) -> None:
    assert read("model_name_or_path: Qwen/Qwen3-4B\n").model == "Qwen/Qwen3-4B"
    assert read().model == ""
