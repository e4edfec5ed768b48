from __future__ import annotations

import json
from pathlib import Path

import pytest
from checkpoint_files import cut, write_checkpoint
from click.testing import CliRunner

from ckptlint.cli import cli
from ckptlint.reports.checkpoints import age, size


@pytest.fixture
def saves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run with a complete, an older complete and a damaged newest checkpoint; the working directory is above it."""
    monkeypatch.chdir(tmp_path)
    for step in (100, 200, 300):
        write_checkpoint(tmp_path / "saves" / "run", step)
    cut(tmp_path / "saves" / "run" / "checkpoint-300" / "optimizer.pt", 50)
    return tmp_path / "saves"


def call(*arguments: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(cli, ["checkpoints", *arguments])
    return result.exit_code, result.stdout, result.stderr


def test_the_table_is_newest_first_and_the_last_line_says_what_a_restart_should_take(saves: Path) -> None:
    status, out, _ = call("saves/run")
    lines = out.splitlines()
    assert status == 0
    assert [line.split()[0] for line in lines if line.startswith("  checkpoint-")] == [
        "checkpoint-300",
        "checkpoint-200",
        "checkpoint-100",
    ]
    assert "optimizer.pt is cut short: no ZIP directory" in out
    assert lines[-1] == "A restart should take checkpoint-200 (step 200)."


def test_json_holds_the_documented_keys_and_verdicts(saves: Path) -> None:
    status, out, _ = call("saves/run", "--output-format", "json")
    (found,) = json.loads(out)
    assert status == 0
    assert list(found) == ["directory", "framework", "restart", "checkpoints", "notices"]
    assert found["restart"] == "checkpoint-200"
    assert [(one["step"], one["verdict"]) for one in found["checkpoints"]] == [
        (300, "damaged"),
        (200, "complete"),
        (100, "complete"),
    ]
    assert list(found["checkpoints"][0]) == ["path", "step", "verdict", "reasons", "world_size", "bytes", "modified", "state"]
    assert "optimizer" in found["checkpoints"][1]["state"]


def test_a_directory_of_several_runs_lists_each_of_them(saves: Path) -> None:
    write_checkpoint(saves / "other" / "sft", 7)
    _, out, _ = call("saves", "--output-format", "json")
    assert sorted(found["directory"] for found in json.loads(out)) == ["saves/other/sft", "saves/run"]


def test_a_checkpoint_itself_can_be_named(saves: Path) -> None:
    _, out, _ = call("saves/run/checkpoint-200", "--output-format", "json")
    (found,) = json.loads(out)
    assert [(one["path"], one["verdict"]) for one in found["checkpoints"]] == [(".", "complete")]


def test_a_directory_without_checkpoints_is_said_in_words_and_is_no_error(tmp_path: Path) -> None:
    status, out, _ = call(str(tmp_path))
    assert (status, out) == (0, f"{tmp_path}: no checkpoints of a layout that ckptlint knows\n")
    status, out, err = call(str(tmp_path), "--output-format", "json")
    assert (status, json.loads(out)) == (0, [])
    assert "no checkpoints" in err


def test_a_missing_directory_is_an_error_and_the_others_are_still_listed(saves: Path) -> None:
    status, out, err = call("nowhere", "saves/run")
    assert status == 2
    assert err == "error: nowhere: no such directory\n"
    assert "checkpoint-200" in out


def test_a_file_is_an_error_that_says_what_to_name(saves: Path) -> None:
    status, _, err = call("saves/run/checkpoint-200/trainer_state.json")
    assert status == 2
    assert "name the directory" in err


@pytest.mark.parametrize(
    ("count", "words"),
    [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (3 * 1024**3, "3.0 GiB"), (5000 * 1024**4, "5000.0 TiB")],
)
def test_sizes_read_as_people_say_them(count: int, words: str) -> None:
    assert size(count) == words


@pytest.mark.parametrize(
    ("seconds", "words"), [(-5, "0 s"), (59, "59 s"), (150, "2 min"), (7200, "2 h"), (3600 * 47, "47 h"), (86400 * 2, "2 days")]
)
def test_ages_read_as_people_say_them(seconds: float, words: str) -> None:
    assert age(seconds) == words
