"""MindSpeed-MM's two kinds of YAML."""

from __future__ import annotations

import pytest

from ckptlint.frameworks.mindspeed_mm import MindSpeedMM
from ckptlint.run import NEVER, Amount, Choice, Run, State, Unit
from ckptlint.source.file import SourceFile
from ckptlint.source.text import apply

TOOL = "MM_TOOL_PATH: ./tools.json\n"
FSDP = "parallel:\n  fsdp_plan:\n    apply_modules: [a]\nmodel:\n  model_id: m\n"


def _read(text: str) -> tuple[Run, ...]:
    return MindSpeedMM().read(SourceFile("train.yaml", text.encode()))


def _section(name: str, *lines: str) -> str:
    return f"{name}:\n" + "".join(f"  {line}\n" for line in lines)


def _arguments(*lines: str) -> Run:
    (run,) = _read(TOOL + _section("gpt_args", *lines))
    return run


def _fsdp(*lines: str) -> Run:
    (run,) = _read(FSDP + _section("training", *lines))
    return run


@pytest.mark.parametrize(
    "text",
    [
        _section("gpt_args", "save: x"),
        "gpt_args: 5\n",
        FSDP,
        _section("training", "save: x") + "parallel:\n  fsdp_plan: {}\n",
        _section("training", "save: x") + "model:\n  x: 1\nparallel:\n  tp: 1\n",
        "- fsdp_plan: {}\n  training: {}\n",
    ],
)
def test_a_look_alike_is_left_alone(text: str) -> None:
    assert _read(text) == ()


# ------------------------------------------------------------------------------------------------ gpt_args


def test_gpt_args_are_megatrons() -> None:
    run = _arguments("train_iters: 10000", "save_interval: 10000", "save: &S /run", "load: *S")
    assert run.writes[0].interval.as_long_as(run.length)
    assert run.reads[0].choice is Choice.NEWEST


def test_a_flag_that_is_false_stops_the_start_and_its_fix_takes_it_out() -> None:
    run = _arguments("save: /run", "load: /run", "save_interval: 5", "no_load_optim: false", "train_iters: 50")
    (refusal,) = run.refusals
    (edit,) = refusal.setting.set(refusal.replacement)
    assert "no_load_optim" not in apply(edit.span.source, [edit])


def test_a_flag_is_turned_off_by_taking_its_key_out() -> None:
    missing = _arguments("save: /run", "load: /run", "save_interval: 5", "no_save_optim: true").writes[0].missing[0]
    (edit,) = missing.setting.set(missing.safe_value)
    text = apply(edit.span.source, [edit])
    assert "no_save_optim" not in text
    assert text.startswith(TOOL)


# ------------------------------------------------------------------------------------------------ the FSDP trainer


def test_the_fsdp_trainer_saves_at_every_step_by_default_and_at_the_end() -> None:
    interval = _fsdp("save: /run").writes[0].interval
    assert (interval.every, interval.at_end) == (Amount(1, Unit.STEP), True)


def test_without_save_nothing_is_written() -> None:
    assert _fsdp("train_iters: 100").writes[0].interval.every is NEVER


def test_an_interval_of_zero_leaves_the_last_save() -> None:
    interval = _fsdp("save: /run", "save_interval: 0").writes[0].interval
    assert (interval.every, interval.at_end, interval.disabled) == (NEVER, True, True)


@pytest.mark.parametrize(
    ("lines", "choice"),
    [
        (("save: /run",), Choice.NOTHING),
        (("save: /run", "load: /base"), Choice.NOTHING),
        (("save: /run", "load: /run"), Choice.NEWEST),
    ],
)
def test_what_a_start_of_the_fsdp_trainer_takes_up(lines: tuple[str, ...], choice: Choice) -> None:
    assert _fsdp(*lines).reads[0].choice is choice


def test_an_empty_directory_stops_the_fsdp_loader() -> None:
    assert _fsdp("save: /run", "load: /run").reads[0].raises_when_missing is True


def test_booleans_are_real_in_the_fsdp_yaml() -> None:
    run = _fsdp("save: /run", "load: /run", "no_save_optim: false", "no_load_optim: true")
    assert not run.writes[0].missing
    assert [drop.state for drop in run.reads[0].drops] == [State.OPTIMIZER]


def test_epochs_decide_the_length_where_they_are_given() -> None:
    assert _fsdp("save: /run", "train_epochs: 3").length == Amount(3, Unit.EPOCH)
    assert _fsdp("save: /run").length == Amount(10000, Unit.STEP)
