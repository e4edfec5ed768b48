"""axolotl: its values as pydantic reads them, what is its own and what is not, and what a pin writes."""

from __future__ import annotations

from pathlib import Path

import pytest
from checkpoint_files import write_checkpoint
from hypothesis import given
from hypothesis import strategies as st

from ckptlint.frameworks.axolotl import Axolotl, read_run
from ckptlint.frameworks.axolotl_keys import AXOLOTL_KEYS, coerced
from ckptlint.frameworks.trainer_keys import Key
from ckptlint.outcome import Kind, outcome
from ckptlint.resume import Plan, carry_out, plan
from ckptlint.run import NEVER, Amount, Choice, Interval, Release, Run, Unit, Unknown
from ckptlint.source.file import SourceFile

CONFIGS = Path(__file__).parents[2] / "fixtures" / "configs"
BASE = """\
base_model: Qwen/Qwen3-8B
datasets:
  - path: data/alpaca
    type: alpaca
sequence_len: 2048
micro_batch_size: 2
learning_rate: 2e-4
"""


def runs(text: str, path: str = "train.yml") -> tuple[Run, ...]:
    file = SourceFile(path, text.encode())
    return Axolotl().read(file) if Axolotl().mentions(file.data) else ()


def run_of(lines: str) -> Run:
    (run,) = runs(BASE + lines)
    return run


def interval(lines: str) -> Interval:
    return run_of(lines).writes[0].interval


# ------------------------------------------------------------------------------------------------ whose it is


def test_a_training_file_is_one_run() -> None:
    (run,) = runs(BASE)
    assert (run.framework, str(run.release)) == ("axolotl", "0.19.0 (assumed)")


@pytest.mark.parametrize("path", sorted(CONFIGS.glob("*/*.yaml")), ids=lambda path: f"{path.parent.name}/{path.name}")
def test_a_file_of_another_tool_is_not_axolotl_s(path: Path) -> None:
    found = runs(path.read_text(encoding="utf-8", errors="replace"), str(path))
    assert bool(found) == (path.name == "axolotl.yaml")


@pytest.mark.parametrize(
    "text",
    [
        # mergekit
        "base_model: mistralai/Mistral-7B-v0.1\nmerge_method: slerp\nslices: []\ndtype: bfloat16\nmicro_batch_size: 1\n",
        # a sweep over axolotl's keys
        "learning_rate: [0.1, 0.2]\nmicro_batch_size: [1, 2]\nsample_packing: [true]\nbase_model: [a, b]\n",
        "base_model: {name: x}\nmicro_batch_size: 1\nlearning_rate: 1\nsequence_len: 1\nval_set_size: 0\nnum_epochs: 1\n",
        "# base_model micro_batch_size learning_rate\n",
        "base_model: x\nmicro_batch_size: 1\n",
    ],
)
def test_what_only_looks_like_it_is_nobody_s(text: str) -> None:
    assert runs(text) == ()


# ------------------------------------------------------------------------------------------------ values

pydantic = pytest.importorskip("pydantic")
TYPES = {
    "output_dir": str,
    "resume_from_checkpoint": str | None,
    "auto_resume_from_checkpoints": bool | None,
    "save_steps": int | float | None,
    "saves_per_epoch": int | None,
    "save_total_limit": int | None,
    "save_only_model": bool | None,
    "num_epochs": float,
    "max_steps": int | None,
}
WORDS = [
    "yes",
    "No",
    "ON",
    "off",
    "t",
    "F",
    "",
    " true",
    "1",
    "0",
    "5",
    " 5 ",
    "5.0",
    "5.5",
    "1e-4",
    "1e3",
    "+5",
    "-2",
    ".5",
    "0x10",
]
VALUES = (
    st.sampled_from([*WORDS, None, True, False, 0, 1, 2, -1, 0.5, 1.0, 3.0, [1], "nan?"]) | st.integers(-99, 10**6) | st.text()
)


@given(st.sampled_from(sorted(TYPES)), VALUES)
def test_a_value_is_what_pydantic_makes_of_it_or_refused_like_it(name: str, value: object) -> None:
    key = _key(name)
    try:
        expected = pydantic.TypeAdapter(TYPES[name]).validate_python(value)
    except pydantic.ValidationError:
        assert not key.accepts(coerced(key, value))
    else:
        made = coerced(key, value)
        assert made == expected
        assert key.accepts(made)
        assert isinstance(made, bool) == isinstance(expected, bool)


def _key(name: str) -> Key:
    return [key for key in AXOLOTL_KEYS if key.name == name][-1]


# ------------------------------------------------------------------------------------------------ saving


@pytest.mark.parametrize(
    ("lines", "every"),
    [
        ("num_epochs: 3\n", Amount(1, Unit.EPOCH)),
        ("num_epochs: 4\nsaves_per_epoch: 2\n", Amount(0.5, Unit.EPOCH)),
        ("num_epochs: 4\nsaves_per_epoch: 2\nmax_steps: 900\n", Amount(0.125, Unit.FRACTION)),
        ("num_epochs: 1\nsaves_per_epoch: 1\n", Amount(1, Unit.EPOCH)),
        ("num_epochs: 0.5\nsaves_per_epoch: 1\n", Amount(0.5, Unit.EPOCH)),
        ('num_epochs: "2"\nsave_steps: "100"\n', Amount(100, Unit.STEP)),
        ("save_steps: 0.1\n", Amount(0.1, Unit.FRACTION)),
        ("save_steps: 0\nsave_strategy: epoch\n", Amount(1, Unit.EPOCH)),
        ("save_strategy: steps\n", Amount(500, Unit.STEP)),
        ('save_strategy: "no"\nsaves_per_epoch: 4\n', Amount(0.25, Unit.EPOCH)),
        ('save_strategy: "no"\n', NEVER),
        ("save_steps: -5\n", NEVER),
    ],
)
def test_the_interval_is_what_normalize_config_and_the_builder_make_of_the_keys(lines: str, every: object) -> None:
    assert interval(lines).every == every


def test_what_cannot_be_known_is_unknown() -> None:
    assert isinstance(interval("save_strategy: best\nmetric_for_best_model: loss\n").every, Unknown)
    assert isinstance(interval("save_steps: often\n").every, Unknown)


@pytest.mark.parametrize(
    ("line", "keep"), [("", 4), ("save_total_limit:", 4), ("save_total_limit: 0", 4), ("save_total_limit: -1", None)]
)
def test_four_checkpoints_stay_where_nothing_else_is_said(line: str, keep: int | None) -> None:
    assert run_of(line + "\n").writes[0].retention.keep == keep


def test_the_default_directory_is_model_out() -> None:
    assert str(run_of("").writes[0].directory.path) == "./model-out"


def test_a_release_before_0_7_counts_whole_epochs() -> None:
    (run,) = runs("# axolotl==0.6.0\n" + BASE + "num_epochs: 1.5\n")
    assert [refusal.setting.name for refusal in run.refusals] == ["num_epochs"]
    assert run_of("num_epochs: 1.5\n").refusals == ()


# ------------------------------------------------------------------------------------------------ resuming


@pytest.mark.parametrize(
    ("lines", "choice", "kind"),
    [
        ("", Choice.NOTHING, Kind.RESTARTS),
        ("resume_from_checkpoint:\n", Choice.NOTHING, Kind.RESTARTS),
        ("auto_resume_from_checkpoints: false\n", Choice.NOTHING, Kind.RESTARTS),
        ("auto_resume_from_checkpoints: true\n", Choice.NEWEST, Kind.EXACT),
        ("auto_resume_from_checkpoints: 1\nresume_from_checkpoint: null\n", Choice.NEWEST, Kind.EXACT),
        ("auto_resume_from_checkpoints: true\nresume_from_checkpoint: out/checkpoint-5\n", Choice.FIXED, Kind.LOSING),
        ("resume_from_checkpoint: latest\n", Choice.UNKNOWN, Kind.CANNOT),
        ("resume_from_checkpoint: ''\n", Choice.UNKNOWN, Kind.CANNOT),
        ("resume_from_checkpoint: 500\n", Choice.UNKNOWN, Kind.CANNOT),
    ],
)
def test_only_the_switch_finds_checkpoints_and_only_without_a_path(lines: str, choice: Choice, kind: Kind) -> None:
    run = run_of("num_epochs: 3\noutput_dir: out\n" + lines)
    assert run.reads[0].choice is choice
    assert outcome(run).kind is kind


def test_a_run_is_read_from_any_settings() -> None:
    from ckptlint.frameworks.yaml_settings import YamlSettings
    from ckptlint.source.yaml import SAFE_LOAD, Mapping

    file = SourceFile("x.yml", b"auto_resume_from_checkpoints: 'yes'\n")
    root = file.yaml.documents[0].root
    assert isinstance(root, Mapping)
    settings = YamlSettings(file.yaml, root, SAFE_LOAD, {"output_dir": "/data/run"}, "a command line")
    assert read_run(settings, Release("0.18.0")).reads[0].choice is Choice.NEWEST


# ------------------------------------------------------------------------------------------------ pinning

AUTO = BASE + "output_dir: out\nnum_epochs: 3\nauto_resume_from_checkpoints: true\n"


def pinned(project: Path, text: str) -> tuple[Plan, str]:
    (project / "train.yml").write_text(text)
    decided = plan("train.yml", {})
    carry_out(decided, lambda: plan("train.yml", {}))
    assert plan("train.yml", {}).changes == ()
    return decided, (project / "train.yml").read_text()


def test_what_finds_the_newest_by_itself_is_left_as_it_is(project: Path) -> None:
    for step in (500, 900):
        write_checkpoint("out", step)
    decided, text = pinned(project, AUTO)
    assert (decided.chosen_path, text) == ("out/checkpoint-900", AUTO)


def test_the_newest_whole_checkpoint_is_pinned_where_the_newest_is_damaged(project: Path) -> None:
    write_checkpoint("out", 500)
    (project / "out" / "checkpoint-900").mkdir()
    _, text = pinned(project, AUTO)
    assert "resume_from_checkpoint: out/checkpoint-500\n" in text


def test_a_run_without_the_switch_is_pinned_and_moves_on(project: Path) -> None:
    write_checkpoint("out", 500)
    _, first = pinned(project, AUTO.replace("auto_resume_from_checkpoints: true", "resume_from_checkpoint:"))
    assert "resume_from_checkpoint: out/checkpoint-500\n" in first
    write_checkpoint("out", 900)
    _, second = pinned(project, first)
    assert second == first.replace("500", "900")


def test_a_first_launch_changes_nothing(project: Path) -> None:
    decided, text = pinned(project, AUTO)
    assert text == AUTO
    assert [notice.name for notice in decided.notices] == ["first-launch"]


def test_the_switch_goes_off_where_it_would_stumble_over_what_is_damaged(project: Path) -> None:
    (project / "out" / "checkpoint-900").mkdir(parents=True)
    decided, text = pinned(project, AUTO)
    assert text == AUTO.replace("checkpoints: true", "checkpoints: false")
    assert "nothing-resumable" in [notice.name for notice in decided.notices]


def test_a_path_that_is_gone_is_taken_out(project: Path) -> None:
    _, text = pinned(project, BASE + "output_dir: out\nnum_epochs: 3\nresume_from_checkpoint: out/checkpoint-500  # mine\n")
    assert "resume_from_checkpoint: null  # mine\n" in text
