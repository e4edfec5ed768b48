"""What the README shows is what happens: its console blocks are run, in order, on a copy of the samples."""

from __future__ import annotations

import os
import re
import runpy
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


@dataclass(frozen=True)
class Shown:
    """One command of a console block, and the output that the README prints below it."""

    command: str
    output: str


def shown() -> Iterator[Shown]:
    for block in re.findall(r"^```console\n(.*?)^```$", README, re.M | re.S):
        for part in re.split(r"^\$ ", block, flags=re.M)[1:]:
            command, _, output = part.partition("\n")
            yield Shown(command, output.strip("\n"))


def test_every_console_block_shows_what_its_commands_really_print(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "samples"))
    runpy.run_path(str(ROOT / "samples/tour.py"))["prepare"](tmp_path)
    commands = list(shown())
    assert commands
    assert [Shown(one.command, _output(one.command, tmp_path)) for one in commands] == commands


def test_the_tour_prints_the_console_block_that_stands_below_its_command(tmp_path: Path) -> None:
    [block] = re.findall(r"samples/tour\.py\n```\n.*?```console\n(.*?)^```$", README, re.M | re.S)
    before = {path: path.read_bytes() for path in (ROOT / "samples").rglob("*") if path.suffix in (".py", ".yaml")}
    command = [sys.executable, str(ROOT / "samples/tour.py")]
    done = subprocess.run(command, cwd=tmp_path, env=_environment(), capture_output=True, text=True, check=True)
    assert (done.stdout.strip("\n"), done.stderr) == (block.strip("\n"), "")
    assert before == {path: path.read_bytes() for path in before}
    assert list(tmp_path.iterdir()) == []


def test_the_checks_of_the_project_end_with_the_test_command_of_the_readme() -> None:
    [command] = re.findall(r"^python3 -m venv .*pytest.*$", README, re.M)
    assert (ROOT / ".ci/run").read_text(encoding="utf-8").rstrip().splitlines()[-1] == command


def test_every_file_that_the_readme_links_exists() -> None:
    targets = re.findall(r"\]\((?!https?:)([^)#]+)[^)]*\)", README)
    assert targets
    assert [target for target in targets if not (ROOT / target).exists()] == []


def _output(command: str, cwd: Path) -> str:
    """Standard output and errors of a ``ckptlint`` command, as a terminal shows them."""
    program, *arguments = shlex.split(command)
    assert program == "ckptlint", f"the README may only show ckptlint commands in console blocks: {command}"
    done = subprocess.run(
        [sys.executable, "-m", "ckptlint", *arguments],
        cwd=cwd,
        env=_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return "\n".join(line.rstrip() for line in done.stdout.strip("\n").splitlines())


def _environment() -> dict[str, str]:
    return {key: value for key, value in os.environ.items() if key not in ("COLUMNS", "FORCE_COLOR", "CI", "GITHUB_ACTIONS")}
