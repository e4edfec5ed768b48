"""DeepSpeed's configuration: what is reported in it, what is not, and that it counts as no run."""

from __future__ import annotations

from pathlib import Path

import pytest

from ckptlint.frameworks import all_frameworks
from ckptlint.frameworks.deepspeed import DeepSpeed
from ckptlint.linter import FileReport, Linter, read_file
from ckptlint.resume import CannotPlan, plan
from ckptlint.run import Run
from ckptlint.settings import SettingsFinder
from ckptlint.source.file import SourceFile

CONFIGS = Path(__file__).parents[2] / "fixtures" / "configs"
TEXT = '{"zero_optimization": {"stage": 2}, "checkpoint": %s}'


def runs(text: str, path: str = "ds.json") -> tuple[Run, ...]:
    file = SourceFile(path, text.encode())
    return DeepSpeed().read(file) if DeepSpeed().mentions(file.data) else ()


def section(text: str) -> Run:
    (run,) = runs(TEXT % text)
    return run


def report(text: str, path: str = "ds.json") -> FileReport:
    return Linter(SettingsFinder()).check_file(SourceFile(path, text.encode()))


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        '{"tag_validation": "fail", "load_universal": false, "use_node_local_storage": true}',
        '{"parallel_write": {"pipeline_stage": true}, "writer": {"type": "fast"}, "checkpoint_serialization": true}',
    ],
)
def test_deepspeed_s_own_keys_are_silent(text: str) -> None:
    run = section(text)
    assert (run.strange_keys, run.refusals) == ((), ())


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ("tag_latest", "`latest` is written at every save anyway"),
        ("save_on_each_node", "`use_node_local_storage`"),
        ("save_interval", "no setting for an interval"),
        ("save_dir", "no setting for a directory"),
        ("keep_last", "never deletes a checkpoint"),
        ("auto_resume", "resumes nothing by itself"),
        ("type", "dropped without a word"),
    ],
)
def test_an_invented_key_comes_with_what_to_know_instead(key: str, words: str) -> None:
    (strange,) = section(f'{{"{key}": 1}}').strange_keys
    assert strange.name == f"checkpoint.{key}"
    assert words in strange.effect
    assert strange.remove


def test_a_near_miss_is_renamed_and_not_removed() -> None:
    (strange,) = section('{"tag_validaton": "Fail"}').strange_keys
    assert strange.nearest == "tag_validation"
    assert [edit.replacement for edit in strange.rename] == ['"tag_validation"']
    assert strange.remove == ()


@pytest.mark.parametrize("value", ['"Strict"', "true", "1", "null", "[]"])
def test_a_validation_mode_that_is_none_stops_the_launch(value: str) -> None:
    (refusal,) = section(f'{{"tag_validation": {value}}}').refusals
    assert refusal.setting.name == "tag_validation"
    assert refusal.stops


def test_a_pipeline_stage_is_true_or_false() -> None:
    assert section('{"parallel_write": {"pipeline_stage": "yes"}}').refusals
    assert not section('{"parallel_write": {"pipeline_stage": 1}}').refusals


@pytest.mark.parametrize(
    "text",
    [
        '{"checkpoint": {"tag_latest": true}}',
        '{"train_batch_size": 4, "checkpoint": {"tag_latest": true}}',
        '{"zero_optimization": {"stage": 2}, "checkpoint": "out"}',
        '{"zero_optimization": {"stage": 2}, "checkpoint": {"tag_latest": true},}',  # Hjson; only DeepSpeed itself reads it
        '["zero_optimization", "checkpoint"]',
        "",
    ],
)
def test_what_is_no_configuration_of_deepspeed_is_nobody_s(text: str) -> None:
    assert runs(text) == ()


@pytest.mark.parametrize("path", sorted(CONFIGS.glob("others-json/*.json")), ids=lambda path: path.name)
def test_json_of_other_tools_is_nobody_s(path: Path) -> None:
    assert read_file(SourceFile(str(path), path.read_bytes()), all_frameworks(), named=False).runs == ()


def test_a_configuration_alone_is_no_training_run(project: Path) -> None:
    found = report(TEXT % '{"tag_latest": true}')
    assert [diagnostic.code for diagnostic in found.diagnostics] == ["CKP701"]
    assert found.runs == ()
    (project / "ds.json").write_text(TEXT % '{"tag_latest": true}')
    with pytest.raises(CannotPlan, match="no training run"):
        plan("ds.json", {})


def test_a_plain_configuration_has_no_findings() -> None:
    path = CONFIGS / "deepspeed" / "zero2.json"
    found = report(path.read_text(), str(path))
    assert (found.diagnostics, found.runs, found.troubles) == ((), (), ())


def test_a_section_inside_a_run_s_own_file_is_read_beside_the_run() -> None:
    text = (
        "base_model: a\nmicro_batch_size: 1\nsequence_len: 1\nval_set_size: 0\nnum_epochs: 3\n"
        "auto_resume_from_checkpoints: true\ndeepspeed:\n  zero_optimization: {stage: 2}\n  checkpoint: {tag_latest: true}\n"
    )
    found = report(text, "train.yml")
    assert [diagnostic.framework for diagnostic in found.diagnostics] == ["deepspeed"]
    assert [entry.run.framework for entry in found.runs] == ["axolotl"]


def test_json_that_is_named_must_be_json(project: Path) -> None:
    (project / "broken.json").write_text('{\n  "zero_optimization": {},\n}\n')
    (found,) = Linter(SettingsFinder()).check_paths(["broken.json"]).diagnostics
    assert (found.code, found.span.start_position) == ("CKP900", (3, 1))
