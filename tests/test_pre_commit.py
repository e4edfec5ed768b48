"""The shipped pre-commit hooks, run by the real pre-commit on a real git repository."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parent.parent
SAMPLE = ROOT / "samples/llama-factory/llama3_lora_sft.yaml"
IDENTITY = ["-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main"]

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("pre_commit") is None or shutil.which("git") is None, reason="needs git and the extra `dev`"
)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A git repository with a faulty run, and YAML files that are none of our business."""
    folder = tmp_path / "repository"
    folder.mkdir()
    shutil.copy(SAMPLE, folder / "train.yaml")
    (folder / "values.yaml").write_text("replicas: 3\n")
    (folder / "notes.txt").write_text("overwrite_output_dir: true\n")
    _git(folder, "init", "--quiet")
    _use_shipped_hooks(folder)
    _git(folder, "add", ".")
    return folder


def test_the_check_hook_stops_a_commit_that_would_lose_progress(repository: Path) -> None:
    done = _pre_commit(repository, "run", "ckptlint", "--all-files")
    assert done.returncode == 1
    assert "resume-disabled" in done.stdout
    assert "notes.txt" not in done.stdout


def test_the_check_hook_lets_other_yaml_files_pass(repository: Path) -> None:
    done = _pre_commit(repository, "run", "ckptlint", "--files", "values.yaml")
    assert (done.returncode, done.stderr) == (0, ""), done.stdout


def test_the_fix_hook_repairs_the_run_and_is_content_with_its_own_work(repository: Path) -> None:
    assert _pre_commit(repository, "run", "ckptlint-fix", "--all-files").returncode == 1
    assert "overwrite_output_dir: true" not in (repository / "train.yaml").read_text()
    _git(repository, "add", ".")
    again = _pre_commit(repository, "run", "ckptlint-fix", "--all-files")
    assert again.returncode == 0, again.stdout


def test_the_hooks_see_the_files_that_frameworks_read() -> None:
    hooks = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    assert [hook["id"] for hook in hooks] == ["ckptlint", "ckptlint-fix"]
    assert {hook["language"] for hook in hooks} == {"python"}
    assert all(hook["types_or"] == ["yaml", "json", "shell"] for hook in hooks)


@pytest.mark.index
@pytest.mark.skipif("CKPTLINT_TEST_INDEX" not in os.environ, reason="needs a package index: set CKPTLINT_TEST_INDEX=1")
def test_pre_commit_installs_the_project_and_runs_its_hook(repository: Path, tmp_path: Path) -> None:
    project = tmp_path / "project"
    shutil.copytree(ROOT, project, ignore=shutil.ignore_patterns(".git", ".venv", "*.egg-info", "build", "dist", ".*_cache"))
    _git(project, "init", "--quiet")
    _git(project, "add", ".")
    _git(project, *IDENTITY, "commit", "--quiet", "-m", "The project as it stands")
    done = _pre_commit(repository, "try-repo", str(project), "ckptlint", "--all-files")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "resume-disabled" in done.stdout


# ------------------------------------------------------------------------------------------------ how


def _use_shipped_hooks(folder: Path) -> None:
    """The shipped hooks on this environment's ckptlint: pre-commit has nothing to install."""
    hooks = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    for hook in hooks:
        hook |= {"language": "system", "entry": f"{sys.executable} -m {hook['entry']}"}
        del hook["minimum_pre_commit_version"]
    config = {"repos": [{"repo": "local", "hooks": hooks}]}
    (folder / ".pre-commit-config.yaml").write_text(yaml.safe_dump(config))


def _git(folder: Path, *arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=folder, check=True, env=_environment(folder))


def _pre_commit(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pre_commit", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, env=_environment(folder))


def _environment(folder: Path) -> dict[str, str]:
    """This environment without what an outer git or pre-commit run would leave in it."""
    outer = {key: value for key, value in os.environ.items() if not key.startswith(("GIT_", "PRE_COMMIT"))}
    return outer | {"PRE_COMMIT_HOME": str(folder.parent / "pre-commit")}
