"""What a v1 YAML of LLaMA-Factory comes to: ``v1/core/base_trainer.py`` and ``v1/core/utils/checkpoint.py``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ckptlint.frameworks.llamafactory_v1 import LlamaFactoryV1
from ckptlint.outcome import Kind, outcome
from ckptlint.run import NEVER, Amount, Changing, Choice, PathExpr, Run, Unit, Unknown
from ckptlint.source.file import SourceFile
from ckptlint.source.text import SourceError, apply

Read = Callable[..., Run]

BASE = "model: Qwen/Qwen3-4B\nmodel_class: llm\ntrain_dataset: data.yaml\n"
SAVED = "output_dir: out\nsave_steps: 100\n"


@pytest.fixture
def read(project: Path) -> Read:
    """Reads a run from some lines behind the usual ones."""

    def run(lines: str = "") -> Run:
        (found,) = LlamaFactoryV1().read(SourceFile("run.yaml", (BASE + lines).encode()))
        return found

    return run


@pytest.mark.parametrize(
    ("lines", "choice", "raises"),
    [
        ("", Choice.NOTHING, False),
        ("resume_from_checkpoint: null", Choice.NOTHING, False),
        ("resume_from_checkpoint: false", Choice.NOTHING, False),
        ('resume_from_checkpoint: ""', Choice.NOTHING, False),
        ("resume_from_checkpoint: auto", Choice.NEWEST, False),
        ('resume_from_checkpoint: "auto"', Choice.NEWEST, False),
        ("resume_from_checkpoint: out/checkpoint-5", Choice.FIXED, True),
        ("resume_from_checkpoint: ${x}/checkpoint-5", Choice.UNKNOWN, False),
        ("resume_from_checkpoint: true", Choice.UNKNOWN, False),
        ("resume_from_checkpoint: 5", Choice.UNKNOWN, False),
    ],
)
def test_a_start_takes_up_what_the_value_names(read: Read, lines: str, choice: Choice, raises: bool) -> None:
    (start,) = read(lines).reads
    assert (start.choice, start.raises_when_missing) == (choice, raises)


def test_what_finds_the_newest_is_offered_where_nothing_is_taken_up(read: Read) -> None:
    (start,) = read().reads
    assert start.auto == "auto"


@pytest.mark.parametrize(
    ("lines", "every", "setting"),
    [
        ("", NEVER, "save_steps"),
        ("save_steps: null", NEVER, "save_steps"),
        ("save_steps: 0", NEVER, "save_steps"),
        ("save_steps: 100", Amount(100, Unit.STEP), "save_steps"),
        ("save_steps: -100", Amount(100, Unit.STEP), "save_steps"),  # 300 % -100 == 0
        ("save_epochs: 0.5", Amount(0.5, Unit.EPOCH), "save_epochs"),
        ("save_epochs: 1\nsave_steps: 100", Amount(1, Unit.EPOCH), "save_epochs"),
        ("save_epochs: 0", Amount(1, Unit.STEP), "save_epochs"),  # max(1, int(steps_per_epoch * 0))
    ],
)
def test_the_interval_is_what_the_trainer_makes_of_it(read: Read, lines: str, every: object, setting: str) -> None:
    interval = read(lines).writes[0].interval
    assert (interval.every, interval.setting.name) == (every, setting)
    assert interval.at_end is False


def test_zero_says_never_and_a_missing_key_says_nothing(read: Read) -> None:
    assert read("save_steps: 0").writes[0].interval.disabled
    assert not read().writes[0].interval.disabled


@pytest.mark.parametrize("lines", ["save_steps: '100'", "save_epochs: [1]", "save_steps: .inf"])
def test_an_interval_that_cannot_be_understood_is_unknown(read: Read, lines: str) -> None:
    assert isinstance(read(lines).writes[0].interval.every, Unknown)


@pytest.mark.parametrize(
    ("lines", "length"),
    [
        ("", Amount(3, Unit.EPOCH)),
        ("num_train_epochs: 2", Amount(2, Unit.EPOCH)),
        ("max_steps: 100\nnum_train_epochs: 2", Amount(100, Unit.STEP)),
        ("max_steps: -1\nnum_train_epochs: 2", Amount(2, Unit.EPOCH)),
        ("max_steps: null", Amount(3, Unit.EPOCH)),
    ],
)
def test_the_run_is_as_long_as_the_trainer_makes_it(read: Read, lines: str, length: Amount) -> None:
    assert read(lines).length == length


def test_without_output_dir_every_start_has_a_directory_of_its_own(read: Read) -> None:
    directory = read().writes[0].directory
    assert isinstance(directory.path, PathExpr)
    assert list(directory.path.of(Changing))
    assert not directory.setting.written


def test_with_output_dir_the_directory_stays(read: Read) -> None:
    path = read("output_dir: out\n").writes[0].directory.path
    assert isinstance(path, PathExpr)
    assert path.literal == "out"


@pytest.mark.parametrize(("lines", "keep"), [("", None), ("save_total_limit: 3", 3), ("save_total_limit: 0", 0)])
def test_the_limit_is_taken_literally(read: Read, lines: str, keep: int | None) -> None:
    assert read(lines).writes[0].retention.keep == keep


@pytest.mark.parametrize(
    ("lines", "name", "replacement"),
    [
        ("resume_from_checkpoint: true", "resume_from_checkpoint", "auto"),
        ("save_total_limit: 0", "save_total_limit", 2),
        ("save_total_limit: -1", "save_total_limit", 2),
        ("save_epochs: 1\nbatching_strategy: dynamic_batching", "save_epochs", None),
    ],
)
def test_a_value_that_does_harm_is_named(read: Read, lines: str, name: str, replacement: object) -> None:
    (refusal,) = read(lines).refusals
    assert (refusal.setting.name, refusal.replacement) == (name, replacement)


@pytest.mark.parametrize(
    "lines", ["save_total_limit: 1", "save_epochs: 1", "save_steps: 5\nbatching_strategy: dynamic_batching"]
)
def test_a_value_that_is_fine_is_not_refused(read: Read, lines: str) -> None:
    assert not read(lines).refusals


@pytest.mark.parametrize(
    ("lines", "kind", "text"),
    [
        ("", Kind.RESTARTS, "no checkpoint is ever written"),
        (SAVED, Kind.RESTARTS, "restarts at step 0"),
        (SAVED + "resume_from_checkpoint: auto", Kind.EXACT, "repeating at most 100 steps"),
        ("save_steps: 100\nresume_from_checkpoint: auto", Kind.RESTARTS, "every start saves into a new directory"),
        (SAVED + "resume_from_checkpoint: out/checkpoint-5", Kind.LOSING, "always from `out/checkpoint-5`"),
        (SAVED + "resume_from_checkpoint: true", Kind.CANNOT, "does not start"),
        (SAVED + "resume_from_checkpoint: auto\nsave_total_limit: 0", Kind.RESTARTS, "no checkpoint is kept"),
    ],
)
def test_the_outcome_says_what_a_restart_comes_to(read: Read, lines: str, kind: Kind, text: str) -> None:
    found = outcome(read(lines))
    assert found.kind is kind
    assert text in found.text


@pytest.mark.parametrize(
    ("key", "nearest"),
    [("save_step", "save_steps"), ("save_epoch", "save_epochs"), ("resume_from_checkpont", "resume_from_checkpoint")],
)
def test_a_near_miss_of_a_checkpoint_key_is_named_with_what_was_meant(read: Read, key: str, nearest: str) -> None:
    (strange,) = read(f"{key}: 1\n").strange_keys
    assert (strange.name, strange.nearest) == (key, nearest)


@pytest.mark.parametrize("key", ["save_ckpt_as_hf", "logging_steps", "seed", "cutoff_len", "anything"])
def test_other_keys_are_left_alone(read: Read, key: str) -> None:
    assert not read(f"{key}: 1\n").strange_keys


def test_a_setting_that_is_not_written_is_added_behind_its_neighbours(read: Read) -> None:
    run = read("output_dir: out\nseed: 1\n")
    after = apply(run.where.source, run.settings["resume_from_checkpoint"].set("auto"))
    assert after == BASE + "output_dir: out\nresume_from_checkpoint: auto\nseed: 1\n"


@pytest.mark.parametrize("lines", ["save_steps: 1\nsave_steps: 2\n", "---\nmodel: other\n"])
def test_what_the_reader_refuses_is_refused(read: Read, lines: str) -> None:
    with pytest.raises(SourceError):
        read(lines)
