"""The comparison of two versions over repositories."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).parents[1] / "benchmarks" / "ecosystem.py"


@pytest.fixture(scope="module")
def ecosystem() -> ModuleType:
    spec = importlib.util.spec_from_file_location("ecosystem", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["ecosystem"] = module
    spec.loader.exec_module(module)
    return module


def test_findings_that_came_and_went_are_listed_by_rule(ecosystem: ModuleType) -> None:
    def place(line: int, code: str) -> object:
        return ecosystem.Place("repo", "a.sh", line, code, "error")

    old = {place(1, "CKP101 no-save"): "old", place(2, "CKP101 no-save"): "same"}
    new = {place(2, "CKP101 no-save"): "same", place(3, "CKP209 exit-code-masked"): "new"}
    lines = list(ecosystem.report(old, new, 5))
    assert lines[0] == "1 came, 1 went, 1 stayed"
    assert [line.strip() for line in lines if line.startswith("\n")] == [
        "CKP101 no-save: +0 -1 =1",
        "CKP209 exit-code-masked: +1 -0 =0",
    ]
    assert "  - repo/a.sh:1 error: old" in lines
    assert "  + repo/a.sh:3 error: new" in lines


def test_only_so_many_of_each_are_shown(ecosystem: ModuleType) -> None:
    new = {ecosystem.Place("repo", "a.sh", line, "CKP101 no-save", "error"): "x" for line in range(10)}
    lines = list(ecosystem.report({}, new, 3))
    assert sum(line.startswith("  + repo") for line in lines) == 3
    assert lines[-1] == "  + … and 7 more"


def test_a_directory_of_repositories_stands_for_them(ecosystem: ModuleType, tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name / ".git").mkdir(parents=True)
    (tmp_path / "c").mkdir()
    assert [path.name for path in ecosystem.repositories([tmp_path], each=False)] == ["a", "b"]
    assert [path.name for path in ecosystem.repositories([tmp_path], each=True)] == ["a", "b", "c"]
    assert ecosystem.repositories([tmp_path / "a"], each=False) == [tmp_path / "a"]


def test_the_working_tree_checks_a_repository(ecosystem: ModuleType, project: Path) -> None:
    (project / "run.sh").write_text("python3 -m verl.trainer.main_ppo trainer.save_freq=-1\n")
    checked = ecosystem.check(SCRIPT.parents[1], project)
    assert not checked.errors
    assert [(place.path, place.line, place.code) for place in checked.findings] == [
        ("run.sh", 1, "CKP102 save-interval-disabled")
    ]
