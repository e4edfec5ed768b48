"""The command group, and the commands about rules."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from ckptlint.cli import cli
from ckptlint.rule import all_rules


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, arguments, prog_name="ckptlint")


def test_help_lists_every_command_with_what_it_does() -> None:
    result = run("--help")
    assert result.exit_code == 0
    for name in ("check", "explain", "rules"):
        assert f"  {name} " in result.stdout


def test_the_version_is_the_distributions() -> None:
    from importlib.metadata import version

    assert run("--version").stdout == f"ckptlint {version('ckptlint')}\n"


@pytest.mark.parametrize(
    ("word", "words"),
    [
        ("chek", "no command is called `chek`; did you mean `check`?"),
        ("train.yaml", "no command is called `train.yaml`; to check that path: `ckptlint check train.yaml`"),
        ("xyz", "no command is called `xyz`; there are: "),
    ],
)
def test_a_word_that_is_no_command_is_refused_with_advice(project: Path, word: str, words: str) -> None:
    (project / "train.yaml").touch()
    result = run(word)
    assert result.exit_code == 2
    assert words in result.stderr


@pytest.mark.parametrize("word", ["CKP202", "resume-disabled"])
def test_explain_prints_the_page(word: str) -> None:
    result = run("explain", word)
    assert result.exit_code == 0
    assert result.stdout.startswith("# resume-disabled (CKP202, error")
    assert "## Why it matters" in result.stdout


def test_explain_suggests_what_was_meant() -> None:
    result = run("explain", "resume-disabeld")
    assert result.exit_code == 2
    assert "did you mean `resume-disabled`?" in result.stderr


def test_the_catalogue_has_a_line_for_every_rule() -> None:
    head, *rows = run("rules").stdout.splitlines()
    assert head.split() == ["code", "name", "severity", "fix", "summary"]
    assert [row.split()[:2] for row in rows] == [[rule.code, rule.name] for rule in all_rules()]


def test_the_catalogue_comes_as_json_too() -> None:
    catalogue = json.loads(run("rules", "--output-format", "json").stdout)
    assert [entry["name"] for entry in catalogue] == [rule.name for rule in all_rules()]
    assert set(catalogue[0]) == {"code", "name", "severity", "fix", "summary"}


def test_a_broken_rule_pack_ends_a_command_with_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from conftest import install_rule_pack

    install_rule_pack(tmp_path, "no_such_pack_anywhere", monkeypatch)
    result = run("rules")
    all_rules.cache_clear()
    assert result.exit_code == 2
    assert "the rule pack `no_such_pack_anywhere` cannot be imported" in result.stderr


def test_what_nobody_expected_is_an_error_and_never_looks_like_findings(monkeypatch: pytest.MonkeyPatch) -> None:
    from ckptlint.cli import explain

    def fault(word: str) -> object:
        raise ZeroDivisionError("at fault")

    monkeypatch.delenv("CKPTLINT_DEBUG", raising=False)
    monkeypatch.setattr(explain, "rule_named", fault)
    result = run("explain", "CKP202")
    assert result.exit_code == 2
    assert "internal error in this command: ZeroDivisionError: at fault" in result.stderr
    assert "Traceback" not in result.stderr
    monkeypatch.setenv("CKPTLINT_DEBUG", "1")
    assert "Traceback" in run("explain", "CKP202").stderr


def test_bash_can_complete_commands_and_options() -> None:
    environment = {"_CKPTLINT_COMPLETE": "bash_complete", "COMP_WORDS": "ckptlint check --unsa", "COMP_CWORD": "2"}
    result = CliRunner().invoke(cli, [], prog_name="ckptlint", env=environment)
    assert "plain,--unsafe-fixes" in result.stdout


def test_a_check_of_one_file_loads_nothing_that_it_does_not_need(project: Path) -> None:
    (project / "train.yaml").write_text(
        "model_name_or_path: m\nstage: sft\ndo_train: true\noutput_dir: saves/x\nsave_steps: 5\n"
    )
    script = (
        "import sys\nfrom ckptlint.cli import cli\n"
        "cli(['check', 'train.yaml'], standalone_mode=False)\n"
        "print(*sorted(set(sys.modules) & set(sys.argv[1:])))"
    )
    heavy = ["json", "msgspec", "pathspec", "importlib.metadata", "difflib", "tomllib", "torch", "ckptlint.server", "pygls"]
    result = subprocess.run([sys.executable, "-c", script, *heavy], capture_output=True, text=True, check=True)
    assert result.stdout.splitlines()[-1] == ""
