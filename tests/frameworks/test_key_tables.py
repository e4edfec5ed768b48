"""The tables of keys: consistent with themselves, and with the transformers that is installed."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import pytest

from ckptlint.frameworks.llamafactory_keys import (
    ASSUMED,
    EVAL_KEYS,
    RELEASES_READ,
    TRANSFORMERS,
    V0_CHECKPOINT_KEYS,
    V0_KEYS,
    V1_CHECKPOINT_KEYS,
    V1_KEYS,
    V1_LIFETIMES,
    transformers_of,
    v0_key,
    v0_keys,
    v1_key,
    v1_keys,
)
from ckptlint.frameworks.releases import Lifetime, number
from ckptlint.frameworks.trainer_keys import (
    NEWEST_READ,
    OLDEST_READ,
    RANDOM,
    REQUIRED,
    TRAINER_CHECKPOINT_KEYS,
    TRAINER_KEYS,
    Key,
    NoDefault,
    kind_of,
    trainer_key,
)

ALL_KEYS = (*TRAINER_CHECKPOINT_KEYS, *V0_CHECKPOINT_KEYS, *V1_CHECKPOINT_KEYS)
TABLES = {"trainer": TRAINER_KEYS, "v0": V0_KEYS, "v1": V1_LIFETIMES, "eval": EVAL_KEYS}


def named(key: Key) -> str:
    return f"{key.name}-{key.since}-{key.until}"


# ------------------------------------------------------------------------------------------------ consistent with themselves


@pytest.mark.parametrize("key", ALL_KEYS, ids=named)
def test_a_default_is_a_value_that_the_key_accepts(key: Key) -> None:
    assert isinstance(key.default, NoDefault) or key.accepts(key.default)


@pytest.mark.parametrize("key", ALL_KEYS, ids=named)
def test_a_key_says_where_its_facts_are_from(key: Key) -> None:
    assert key.note
    assert not key.choices or "str" in key.kinds


def test_what_comes_and_goes_comes_first() -> None:
    lifetimes = [key.lifetime for key in ALL_KEYS] + [lifetime for table in TABLES.values() for lifetime in table.values()]
    bounded = [lifetime for lifetime in lifetimes if lifetime.since and lifetime.until]
    assert [lifetime for lifetime in bounded if number(lifetime.since or "") >= number(lifetime.until or "")] == []


@pytest.mark.parametrize("keys", [TRAINER_CHECKPOINT_KEYS, V0_CHECKPOINT_KEYS, V1_CHECKPOINT_KEYS], ids=["trainer", "v0", "v1"])
def test_rows_of_one_name_follow_each_other_without_gap_or_overlap(keys: tuple[Key, ...]) -> None:
    rows: dict[str, list[Key]] = defaultdict(list)
    for key in keys:
        rows[key.name].append(key)
    for same in rows.values():
        assert [key.until for key in same[:-1]] == [key.since for key in same[1:]]


@pytest.mark.parametrize(
    ("keys", "table"),
    [(TRAINER_CHECKPOINT_KEYS, TRAINER_KEYS), (V0_CHECKPOINT_KEYS, V0_KEYS), (V1_CHECKPOINT_KEYS, V1_LIFETIMES)],
    ids=["trainer", "v0", "v1"],
)
def test_a_key_lives_as_long_as_the_table_of_all_keys_says(keys: tuple[Key, ...], table: dict[str, Lifetime]) -> None:
    spans: dict[str, Lifetime] = {}
    for key in keys:
        spans[key.name] = Lifetime(spans.get(key.name, key.lifetime).since, key.until)
    assert spans == {name: table[name] for name in spans}


@pytest.mark.parametrize(
    ("value", "kind"),
    [(True, "bool"), (1, "int"), (1.0, "float"), ("no", "str"), (None, "null"), ([], "list"), ({}, "map"), (b"", None)],
)
def test_a_value_has_the_kind_that_yaml_gives_it(value: object, kind: str | None) -> None:
    assert kind_of(value) == kind


def test_a_bare_no_is_not_a_save_strategy() -> None:
    strategy = trainer_key("save_strategy", NEWEST_READ)
    assert strategy is not None
    assert [strategy.accepts(value) for value in ("no", False, "steps", "best", "never")] == [True, False, True, True, False]


# ------------------------------------------------------------------------------------------------ by release


def test_the_trainer_names_its_evaluation_by_release() -> None:
    known = {
        release: {name for name in ("evaluation_strategy", "eval_strategy") if TRAINER_KEYS[name].holds(release)}
        for release in ("4.40.2", "4.46.3", "4.57.1")
    }
    assert known == {
        "4.40.2": {"evaluation_strategy"},
        "4.46.3": {"evaluation_strategy", "eval_strategy"},
        "4.57.1": {"eval_strategy"},
    }


def test_the_best_strategy_is_refused_before_its_release() -> None:
    old, new = trainer_key("save_strategy", "4.46.3"), trainer_key("save_strategy", "4.47.1")
    assert old is not None
    assert new is not None
    assert (old.accepts("best"), new.accepts("best")) == (False, True)


def test_an_output_directory_is_required_until_it_gets_a_default() -> None:
    old, new = v0_key("output_dir", "0.9.1"), v0_key("output_dir", "0.9.5")
    assert old is not None
    assert new is not None
    assert (old.default, new.default) == (REQUIRED, None)


@pytest.mark.parametrize("release", RELEASES_READ)
def test_every_release_has_a_switch_that_turns_its_own_resuming_off(release: str) -> None:
    key = v0_key("overwrite_output_dir", release)
    assert key is not None
    assert key.default is False


def test_oft_is_refused_before_its_release() -> None:
    old, new = v0_key("finetuning_type", "0.9.3"), v0_key("finetuning_type", "0.9.4")
    assert old is not None
    assert new is not None
    assert (old.accepts("oft"), new.accepts("oft")) == (False, True)


def test_keys_of_ray_are_gone_where_the_release_has_dropped_them() -> None:
    assert "ray_storage_path" in v0_keys("0.9.3")
    assert "ray_storage_path" not in v0_keys("0.9.5")
    assert v0_key("ray_storage_path", "0.9.5") is None


def test_a_key_of_the_trainer_counts_if_any_allowed_transformers_has_it() -> None:
    assert "save_safetensors" in v0_keys("0.9.5")
    assert "save_safetensors" in v0_keys("0.9.5", "4.57.1")
    assert "save_safetensors" not in v0_keys("0.9.5", "5.6.0")
    assert "enable_jit_checkpoint" not in v0_keys("0.9.4")


def test_keys_of_evaluation_are_no_training_keys() -> None:
    assert set(EVAL_KEYS) & v0_keys(ASSUMED) == {"seed"}


def test_the_new_trainer_saves_nothing_by_itself() -> None:
    steps, directory = v1_key("save_steps", ASSUMED), v1_key("output_dir", ASSUMED)
    assert steps is not None
    assert directory is not None
    assert (steps.default, directory.default) == (None, RANDOM)
    assert "overwrite_output_dir" not in V1_KEYS


def test_the_new_trainer_is_younger_than_the_old_one() -> None:
    assert not v1_keys("0.9.3")
    assert "save_steps" not in v1_keys("0.9.4")
    assert "save_steps" in v1_keys("0.9.5")


def test_every_release_read_says_which_transformers_it_allows() -> None:
    assert tuple(TRANSFORMERS) == RELEASES_READ
    for row in TRANSFORMERS.values():
        assert number(OLDEST_READ) <= number(row.oldest) <= number(row.assumed) <= number(NEWEST_READ)
        assert row.newest in (None, row.assumed)


@pytest.mark.parametrize(
    ("release", "like"),
    [("0.9.5", "0.9.5"), ("0.9.6.dev0", "0.9.6"), ("0.10.1", "0.9.6"), ("0.7.0", "0.8.3"), ("main", "0.8.3")],
)
def test_a_release_not_read_is_taken_for_the_nearest_before_it(release: str, like: str) -> None:
    assert transformers_of(release) == TRANSFORMERS[like]


# ------------------------------------------------------------------------------------------------ the installed transformers

SAMPLES: dict[str, Any] = {"int": 2, "float": 0.5, "bool": False, "str": "text", "null": None, "list": [], "map": {}}
ELSEWHERE = {"deepspeed", "fsdp", "fsdp_config"}  # need a package, processes or a file


@pytest.fixture(scope="module")
def installed() -> Any:
    transformers = pytest.importorskip("transformers")
    pytest.importorskip("accelerate")
    if number(transformers.__version__) < number(OLDEST_READ):
        pytest.skip(f"transformers {transformers.__version__} is older than any that was read")
    return transformers


@pytest.mark.drill
def test_the_table_has_every_field_of_the_installed_trainer(installed: Any) -> None:
    fields = {field.name for field in dataclasses.fields(installed.Seq2SeqTrainingArguments) if field.init}
    table = {name for name, lifetime in TRAINER_KEYS.items() if lifetime.holds(installed.__version__)}
    if number(installed.__version__) > number(NEWEST_READ):
        pytest.skip(f"transformers {installed.__version__} is newer than any that was read; new: {sorted(fields ^ table)}")
    assert fields - table == set()
    assert table - fields <= {"average_tokens_across_devices"}  # came with a patch of 4.46


def rows(release: str) -> Iterator[Key]:
    yield from (key for key in TRAINER_CHECKPOINT_KEYS if key.lifetime.holds(release))


@pytest.mark.drill
def test_defaults_are_those_of_the_installed_trainer(installed: Any) -> None:
    fields = {field.name: field for field in dataclasses.fields(installed.Seq2SeqTrainingArguments)}
    for key in rows(installed.__version__):
        default = fields[key.name].default
        assert default is dataclasses.MISSING if key.default is REQUIRED else default == key.default, key.name


@pytest.mark.drill
def test_the_installed_trainer_takes_every_kind_of_value_that_the_table_allows(installed: Any, tmp_path: Any) -> None:
    for key in rows(installed.__version__):
        if key.name in ELSEWHERE:
            continue
        values = [SAMPLES[kind] for kind in key.kinds if kind != "str" or not key.choices] + list(key.choices)
        for value in values:
            settings = {"output_dir": str(tmp_path), "report_to": "none", "eval_strategy": "no", key.name: value}
            if value not in (None, 0, False) and key.name == "load_best_model_at_end":
                settings |= {"eval_strategy": "steps", "eval_steps": 500}
            installed.Seq2SeqTrainingArguments(**settings)


@pytest.mark.drill
@pytest.mark.parametrize("name", ["save_strategy", "eval_strategy", "hub_strategy"])
def test_the_installed_trainer_refuses_what_is_not_among_the_choices(installed: Any, tmp_path: Any, name: str) -> None:
    for value in (False, None, "never"):
        with pytest.raises(ValueError, match="is not a valid"):
            installed.Seq2SeqTrainingArguments(output_dir=str(tmp_path), report_to="none", **{name: value})
