"""RunWhere's job YAML; the rules' pages hold what is reported about it."""

from __future__ import annotations

from pathlib import Path

import pytest

from ckptlint.frameworks.runwhere import RunWhere
from ckptlint.linter import Linter
from ckptlint.run import Run
from ckptlint.settings import SettingsFinder
from ckptlint.source.file import SourceFile

TRAIN = "llamafactory-cli train --stage sft --do_train --finetuning_type lora --output_dir /ckpts/durable/run"


def runs(text: str) -> tuple[Run, ...]:
    return RunWhere().read(SourceFile("job.yaml", text.encode()))


def job(command: str, storage: str = "storage: {checkpoint: {path: /ckpts}}\n") -> str:
    return f"kind: Training\nenvironment:\n  command: {command}\n{storage}"


def test_the_command_of_a_training_job_is_read_as_a_command() -> None:
    (run,) = runs(job(TRAIN))
    assert run.framework == "llamafactory"
    assert run.where.start_position == (3, 12)
    assert run.platform is not None
    assert (str(run.platform.mount), run.platform.durable, run.platform.scratch) == ("/ckpts", "/ckpts/durable", "/ckpts/fast")


@pytest.mark.parametrize(
    "text",
    [
        job(TRAIN).replace("Training", "Inference"),
        job("nvidia-smi"),
        job("[python, train.py]"),
        "kind: Training\nenvironment: {}\n",
        "kind: Training\n",
        "- kind: Training\n",
        f"kind: Training\ncommand: {TRAIN}\n",
        "kind: Training\nenvironment:\n  command:\n",
    ],
)
def test_other_jobs_and_commands_describe_no_run(text: str) -> None:
    assert runs(text) == ()


def test_a_job_without_a_checkpoint_directory_says_so() -> None:
    for storage in ("", "storage: {}\n", "storage: {checkpoint: {}}\n", "storage: {checkpoint: {path: }}\n"):
        (run,) = runs(job(TRAIN, storage))
        assert run.platform is not None
        assert run.platform.mount is None


def test_the_script_that_a_job_runs_is_part_of_it(project: Path) -> None:
    (project / "run.sh").write_text(TRAIN.replace("/ckpts/durable", "/workspace") + "\n")
    (project / "job.yaml").write_text(job("bash run.sh"))
    result = Linter(SettingsFinder()).check_paths(["job.yaml"])
    assert [(d.name, d.span.path, d.span.line) for d in result.diagnostics] == [("platform-path-mismatch", "run.sh", 1)]


def test_a_finding_in_a_command_stands_in_the_yaml_and_is_repaired_there(project: Path) -> None:
    (project / "job.yaml").write_text(job(f"|\n    {TRAIN} | tee x"))
    (found,) = Linter(SettingsFinder()).check_paths(["job.yaml"]).diagnostics
    assert (found.name, found.span.path, found.span.line, found.span.text) == ("exit-code-masked", "job.yaml", 4, "tee")
    assert found.fix is not None
    assert [(edit.span.path, edit.span.line, edit.replacement) for edit in found.fix.edits] == [
        ("job.yaml", 4, "set -o pipefail\n    ")
    ]
