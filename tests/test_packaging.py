"""What a user installs: the sdist and the wheel, tried in an environment that holds nothing but the declared dependencies."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FOREIGN = shutil.ignore_patterns(".git", ".venv", "build", "dist", "*.egg-info", "__pycache__", ".*_cache", ".hypothesis")

TOOLS = ("build", "packaging", "pip", "setuptools")

pytestmark = pytest.mark.skipif(any(importlib.util.find_spec(name) is None for name in TOOLS), reason="needs the extra `dev`")


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the working tree, so that building leaves nothing behind."""
    copy = tmp_path_factory.mktemp("tree") / "ckptlint"
    shutil.copytree(ROOT, copy, ignore=FOREIGN)
    return copy


@pytest.fixture(scope="module")
def dist(tree: Path) -> Path:
    """An sdist, and the wheel that was built from it."""
    _run([sys.executable, "-m", "build", "--no-isolation", str(tree)])
    return tree / "dist"


@pytest.fixture(scope="module")
def sdist_names(dist: Path) -> set[str]:
    [path] = dist.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        return {name.partition("/")[2] for name in archive.getnames()}


@pytest.fixture(scope="module")
def environment(dist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new environment: the wheel, and links to the distributions that it declares it needs. No network."""
    home = tmp_path_factory.mktemp("environment")
    _run([sys.executable, "-m", "venv", "--without-pip", str(home)])
    [wheel] = dist.glob("*.whl")
    target = home / f"lib/python{sys.version_info.major}.{sys.version_info.minor}/site-packages"
    for path in _files_of_requirements("ckptlint"):
        (target / path.name).symlink_to(path)
    pip = [sys.executable, "-m", "pip", "--python", str(home / "bin/python")]
    _run([*pip, "install", "--quiet", "--no-index", "--no-deps", str(wheel)])
    _run([*pip, "check"])
    return home


def test_the_sdist_holds_the_whole_project(tree: Path, sdist_names: set[str]) -> None:
    tops = ("ckptlint", "rules", "fixtures", "tests", "samples", "docs", "benchmarks", ".ci")
    files = {path for top in tops for path in (tree / top).rglob("*") if path.is_file()}
    expected = {path.relative_to(tree).as_posix() for path in files if path.suffix != ".pyc"}
    papers = "LICENSE README.md CHANGELOG.md CONTRIBUTING.md pyproject.toml .importlinter .pre-commit-hooks.yaml"
    expected |= set(papers.split())
    assert expected - sdist_names == set()


def test_the_wheel_holds_every_module_and_the_rules_inside_the_package(tree: Path, dist: Path) -> None:
    engine = {path.relative_to(tree).as_posix() for path in (tree / "ckptlint").rglob("*.py")}
    rules = {f"ckptlint/rules/{path.name}" for path in (tree / "rules").glob("*.py")}
    names = _wheel_names(dist)
    assert {name for name in names if name.endswith(".py")} == engine | rules
    assert "ckptlint/py.typed" in names
    assert {name.partition("/")[0] for name in names if ".dist-info" not in name} == {"ckptlint"}


def test_a_wheel_built_from_the_tree_is_the_one_built_from_the_sdist(tree: Path, dist: Path, tmp_path: Path) -> None:
    _run([sys.executable, "-m", "build", "--no-isolation", "--wheel", "--outdir", str(tmp_path), str(tree)])
    assert _wheel_contents(tmp_path) == _wheel_contents(dist)


def test_the_installed_commands_run(environment: Path, tmp_path: Path) -> None:
    version = importlib.metadata.version("ckptlint")
    assert version in _run([str(environment / "bin/ckptlint"), "--version"], cwd=tmp_path)
    assert version in _python(environment, tmp_path, "-m", "ckptlint", "--version")


def test_the_installed_catalogue_holds_every_rule(environment: Path, tmp_path: Path) -> None:
    catalogue = _python(environment, tmp_path, "-m", "ckptlint", "rules")
    written = {code for path in (ROOT / "rules").glob("*.py") for code in re.findall(r'code = "(CKP\d+)"', path.read_text())}
    assert written
    assert written <= set(re.findall(r"CKP\d+", catalogue))


def test_no_top_level_package_called_rules_is_installed(environment: Path, tmp_path: Path) -> None:
    found = _python(
        environment,
        tmp_path,
        "-c",
        "import importlib.util as u, ckptlint.rules as r; print(r.__name__, u.find_spec('rules'), r.__file__)",
    )
    assert found.startswith("ckptlint.rules None " + str(environment))


def test_the_installed_linter_checks_the_sample(environment: Path, tmp_path: Path) -> None:
    shutil.copy(ROOT / "samples/llama-factory/llama3_lora_sft.yaml", tmp_path)
    done = subprocess.run(
        [environment / "bin/ckptlint", "check", "--output-format", "concise", "llama3_lora_sft.yaml"],
        cwd=tmp_path,
        env=_clean_environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (1, "")
    assert "llama3_lora_sft.yaml:13:" in done.stdout
    assert "resume-disabled" in done.stdout


def test_the_environment_of_the_tests_sees_the_rules_where_they_are_edited() -> None:
    import ckptlint.rules

    if not Path(importlib.import_module("ckptlint").__file__ or "").is_relative_to(ROOT):
        pytest.skip("ckptlint is not installed in editable mode here")
    assert Path(ckptlint.rules.__file__ or "").parent == ROOT / "rules"


# ------------------------------------------------------------------------------------------------ how


def _files_of_requirements(distribution: str, seen: set[str] | None = None) -> Iterator[Path]:
    """The top-level files and directories of everything that a distribution needs at run time, without extras."""
    from packaging.requirements import Requirement

    seen = set() if seen is None else seen
    for line in importlib.metadata.requires(distribution) or ():
        requirement = Requirement(line)
        if requirement.name in seen or not (requirement.marker is None or requirement.marker.evaluate({"extra": ""})):
            continue
        seen.add(requirement.name)
        found = importlib.metadata.distribution(requirement.name)
        tops = {file.parts[0] for file in found.files or () if file.parts[0] not in ("..", "__pycache__")}
        yield from (Path(str(found.locate_file(top))) for top in sorted(tops))
        yield from _files_of_requirements(requirement.name, seen)


def _wheel_names(dist: Path) -> set[str]:
    return set(_wheel_contents(dist))


def _wheel_contents(dist: Path) -> dict[str, bytes]:
    [path] = dist.glob("*.whl")
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def _python(environment: Path, cwd: Path, *arguments: str) -> str:
    return _run([str(environment / "bin/python"), "-I", *arguments], cwd=cwd)


def _clean_environment() -> dict[str, str]:
    return {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}


def _run(command: list[str], cwd: Path | None = None) -> str:
    done = subprocess.run(command, cwd=cwd, env=_clean_environment(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout
