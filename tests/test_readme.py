"""What the README shows is what happens: its console blocks are run, in order, on a copy of the sample.

``python tests/test_readme.py`` writes what the commands print now into the README.
"""

from __future__ import annotations

import os
import re
import runpy
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from ckptlint.settings import in_directory

ROOT = Path(__file__).parent.parent
SAMPLES = ROOT / "samples"
README = ROOT / "README.md"
BLOCK = re.compile(r"(?<=^```console\n).*?(?=^```$)", re.M | re.S)
COMMAND = re.compile(r"^\$ (?P<command>.*)\n(?P<output>(?:(?!\$ |# ).*\n)*)", re.M)


def replayed(text: str, directory: Path) -> str:
    """The text with what its console blocks' commands really print in a directory that holds the sample."""

    def command(match: re.Match[str]) -> str:
        gap = "\n" if f"\n{match['output']}".endswith("\n\n") else ""
        return f"$ {match['command']}\n{_printed(match['command'], directory)}{gap}"

    return BLOCK.sub(lambda block: COMMAND.sub(command, block[0]), text)


def test_every_console_block_shows_what_its_commands_really_print(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(SAMPLES))
    readme = README.read_text(encoding="utf-8")
    _prepare(tmp_path)
    assert len(COMMAND.findall(readme)) >= 3
    assert replayed(readme, tmp_path) == readme


def test_the_tour_prints_the_console_block_below_it_and_touches_nothing(tmp_path: Path) -> None:
    [block] = re.findall(r"samples/tour\.py\n```\n.*?```console\n(.*?)^```$", README.read_text(encoding="utf-8"), re.M | re.S)
    before = {path: path.read_bytes() for path in SAMPLES.rglob("*.*") if path.suffix in (".py", ".yaml")}
    command = [sys.executable, str(SAMPLES / "tour.py")]
    done = subprocess.run(command, cwd=tmp_path, env=_environment(), capture_output=True, text=True, check=True)
    assert (done.stdout.lstrip("\n"), done.stderr) == (block, "")
    assert before == {path: path.read_bytes() for path in before}
    assert list(tmp_path.iterdir()) == []


def test_the_checks_of_the_project_end_with_the_test_command_of_the_readme() -> None:
    [command] = re.findall(r"^python3 -m venv .*pytest.*$", README.read_text(encoding="utf-8"), re.M)
    assert (ROOT / ".ci/run").read_text(encoding="utf-8").rstrip().splitlines()[-1] == command


def test_every_file_that_the_readme_links_exists() -> None:
    targets = re.findall(r"\]\((?!https?:)([^)#]+)[^)]*\)", README.read_text(encoding="utf-8"))
    assert targets
    assert [target for target in targets if not (ROOT / target).exists()] == []


def test_the_settings_that_the_readme_shows_are_valid(tmp_path: Path) -> None:
    [block] = re.findall(r"^```toml\n(.*?)^```$", README.read_text(encoding="utf-8"), re.M | re.S)
    (tmp_path / "pyproject.toml").write_text(block)
    settings = in_directory(str(tmp_path))
    assert settings is not None
    assert settings.durable_paths == ("/mnt/shared",)


# ------------------------------------------------------------------------------------------------ how


def _prepare(directory: Path) -> None:
    runpy.run_path(str(SAMPLES / "tour.py"))["prepare"](directory)


def _printed(command: str, directory: Path) -> str:
    """Standard output and errors of a ``ckptlint`` command, as a terminal shows them."""
    program, *arguments = shlex.split(command)
    assert program == "ckptlint", f"the README may only show ckptlint commands in console blocks: {command}"
    done = subprocess.run(
        [sys.executable, "-m", "ckptlint", *arguments],
        cwd=directory,
        env=_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode in (0, 1), f"{command} exits {done.returncode}:\n{done.stdout}"
    assert "Traceback" not in done.stdout
    return done.stdout.strip("\n") + "\n"


def _environment() -> dict[str, str]:
    return {key: value for key, value in os.environ.items() if key not in ("COLUMNS", "FORCE_COLOR", "CI", "GITHUB_ACTIONS")}


if __name__ == "__main__":
    sys.path.insert(0, str(SAMPLES))
    with tempfile.TemporaryDirectory() as scratch:
        _prepare(Path(scratch))
        README.write_text(replayed(README.read_text(encoding="utf-8"), Path(scratch)), encoding="utf-8")
