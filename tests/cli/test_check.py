"""``ckptlint check``: exit codes, streams, fixing, standard input."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from ckptlint.cli import cli

FOO = "toy: true\nfoo: true  # why\nsave_to: keep/x\nsteps: 1000\n"
BAR = "toy: true\nbar: 1\nsave_to: keep/y\nsteps: 1000\n"
CLEAN = "toy: true\nsave_to: keep/z\nsteps: 1000\n"
TOYS = ("--select", "TOY101,no-bar,syntax-error,unused-suppression")


def run(*arguments: str, stdin: str | bytes | None = None, toys: bool = True) -> Result:
    return CliRunner().invoke(cli, ["check", *(TOYS if toys else ()), *arguments], input=stdin, prog_name="ckptlint")


@pytest.fixture
def files(toy: None, project: Path) -> Path:
    (project / "foo.yaml").write_text(FOO)
    (project / "bar.yaml").write_text(BAR)
    (project / "clean.yaml").write_text(CLEAN)
    return project


# ------------------------------------------------------------------------------------------------ exit codes and streams


def test_exit_0_is_clean_1_is_findings_2_is_an_error(files: Path) -> None:
    assert run("clean.yaml").exit_code == 0
    assert run("foo.yaml").exit_code == 1
    assert run("foo.yaml", "missing.yaml").exit_code == 2


def test_exit_zero_forgives_findings_but_no_error(files: Path) -> None:
    assert run("--exit-zero", "foo.yaml").exit_code == 0
    assert run("--exit-zero", "foo.yaml", "missing.yaml").exit_code == 2


def test_without_a_path_the_working_directory_is_checked(files: Path) -> None:
    result = run("--output-format", "concise")
    assert [line.split(":")[0] for line in result.stdout.splitlines()] == ["bar.yaml", "foo.yaml"]


def test_a_missing_path_is_named_and_the_others_are_still_reported(files: Path) -> None:
    result = run("--output-format", "concise", "missing.yaml", "foo.yaml")
    assert result.stdout.startswith("foo.yaml:2:6: error[TOY101] no-foo: foo is true")
    assert result.stderr == "error: missing.yaml: no such file or directory\n"


def test_one_file_that_is_not_utf_8_stops_nobody(files: Path) -> None:
    (files / "latin.yaml").write_bytes(b"toy: caf\xe9\n")
    result = run("--output-format", "concise")
    assert result.exit_code == 1
    assert "latin.yaml:1:9: error[CKP900] syntax-error: byte 0xe9 is not UTF-8; save the file as UTF-8" in result.stdout
    assert "foo.yaml:2:6" in result.stdout


def test_a_file_that_does_not_parse_is_a_finding(files: Path) -> None:
    (files / "foo.yaml").write_text("toy: true\nfoo: [\n")
    result = run("foo.yaml")
    assert result.exit_code == 1
    assert "error[CKP900] syntax-error: not valid YAML" in result.stdout


def test_a_crash_is_reported_with_file_and_rule_and_the_rest_goes_on(files: Path) -> None:
    (files / "crash.yaml").write_text(CLEAN + "crash_rule: 1\n")
    result = run("--extend-select", "crashing", "--output-format", "concise")
    assert result.exit_code == 2
    assert "foo.yaml:2:6" in result.stdout
    assert "error: crash.yaml: internal error in rule TOY103 crashing: ZeroDivisionError" in result.stderr
    assert "Traceback" not in result.stderr


def test_a_crash_shows_its_traceback_to_whoever_asks(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CKPTLINT_DEBUG", "1")
    (files / "crash.yaml").write_text(CLEAN + "crash_rule: 1\n")
    assert "Traceback (most recent call last)" in run("--extend-select", "crashing").stderr


def test_recognising_no_run_is_said_in_every_format(files: Path) -> None:
    (files / "empty").mkdir()
    (files / "empty" / "a.yaml").write_text("other: 1\n")
    words = "Checked 1 file, recognised no training run.\n"
    assert run("empty").stdout == words
    for name in ("concise", "json", "sarif", "github"):
        result = run("--output-format", name, "empty")
        assert (result.exit_code, result.stderr) == (0, words)


def test_nothing_is_coloured_in_a_pipe_or_a_file(files: Path) -> None:
    assert "\x1b" not in run("foo.yaml").output
    run("foo.yaml", "--output-file", "report.txt")
    assert "\x1b" not in (files / "report.txt").read_text()


@pytest.mark.parametrize(
    ("environment", "coloured"),
    [({}, True), ({"NO_COLOR": "1"}, False), ({"NO_COLOR": ""}, True), ({"TERM": "dumb"}, False)],
)
def test_a_terminal_gets_colours_unless_it_says_no(
    files: Path, monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], coloured: bool
) -> None:
    from ckptlint.cli import check
    from ckptlint.reports.terminal import Colours

    class Terminal:
        def isatty(self) -> bool:
            return True

    for name in ("NO_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "stdout", Terminal())
    assert check._colours(None, to_stderr=False) == Colours(on=coloured)
    assert check._colours(Path("report"), to_stderr=False) == Colours(on=False)


# ------------------------------------------------------------------------------------------------ options


@pytest.mark.parametrize("option", ["--select", "--ignore", "--extend-select"])
def test_an_unknown_rule_is_an_error_with_a_suggestion(files: Path, option: str) -> None:
    result = run(option, "no-foo,keep-oen", "foo.yaml")
    assert result.exit_code == 2
    assert "no rule is called `keep-oen`; did you mean `keep-one`?" in result.stderr


def test_rules_are_chosen_by_comma_lists_that_may_be_repeated(files: Path) -> None:
    both = run("--select", "TOY101, TOY102", "--output-format", "json", toys=False)
    assert [entry["name"] for entry in json.loads(both.stdout)] == ["no-bar", "no-foo"]
    none = run("--select", "TOY101", "--select", "no-bar", "--ignore", "no-foo,no-bar", "--output-format", "json", toys=False)
    assert json.loads(none.stdout) == []


def test_a_settings_file_can_be_named_and_its_globs_start_at_the_working_directory(files: Path) -> None:
    config = files.parent / "team.toml"
    config.write_text('exclude = ["/bar.yaml"]\n[per-file-ignores]\n"/foo.yaml" = ["no-foo"]\n')
    result = run("--config", str(config), "--output-format", "concise")
    assert (result.exit_code, result.stdout) == (0, "")


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("ckptlint.toml", "colour = 1\n", "ckptlint.toml:1: no setting is called `colour`"),
        ("pyproject.toml", "[project]\n", "pyproject.toml: holds no [tool.ckptlint] table"),
        ("gone.toml", None, "gone.toml: cannot be read: No such file or directory"),
    ],
)
def test_a_wrong_settings_file_is_an_error(files: Path, name: str, text: str | None, words: str) -> None:
    if text is not None:
        (files / name).write_text(text)
    result = run("--config", name)
    assert result.exit_code == 2
    assert words in result.stderr


def test_a_format_that_is_only_planned_is_told_apart(files: Path) -> None:
    planned, strange = run("--output-format", "junit"), run("--output-format", "xml")
    assert (planned.exit_code, strange.exit_code) == (2, 2)
    assert "the format `junit` is not built yet; there are text, concise, json, sarif, github" in planned.stderr
    assert "'xml' is not one of" in strange.stderr


def test_a_report_can_be_written_to_a_file(files: Path) -> None:
    result = run("--output-format", "json", "--output-file", "report.json", "foo.yaml")
    assert (result.exit_code, result.stdout) == (1, "")
    assert json.loads((files / "report.json").read_text())[0]["code"] == "TOY101"


def test_a_report_that_cannot_be_written_is_an_error(files: Path) -> None:
    result = run("--output-file", "no/such/report.txt", "foo.yaml")
    assert result.exit_code == 2
    assert "no/such/report.txt" in result.stderr


def test_statistics_count_and_go_with_formats_for_people(files: Path) -> None:
    assert run("--statistics", "--output-format", "concise").stdout == "1  TOY101  no-foo\n1  TOY102  no-bar\n"
    result = run("--statistics", "--output-format", "json")
    assert result.exit_code == 2


def test_unknowns_are_listed_on_demand(files: Path) -> None:
    (files / "open.yaml").write_text("toy: true\n")
    assert "the number of steps is not given" not in run("open.yaml").output
    assert "the number of steps is not given. To settle it: write `steps`" in run("--show-unknown", "open.yaml").stdout
    assert "the number of steps is not given" in run("--show-unknown", "--output-format", "json", "open.yaml").stderr


# ------------------------------------------------------------------------------------------------ fixing


def test_fix_applies_safe_fixes_and_reports_what_is_left(files: Path) -> None:
    result = run("--fix")
    assert result.exit_code == 1
    assert (files / "foo.yaml").read_text() == FOO.replace("foo: true ", "foo: false ")
    assert (files / "bar.yaml").read_text() == BAR
    assert "fixed: foo.yaml:2: no-foo: set `foo` to `false`" in result.stdout
    assert "bar.yaml:2:6: warning[TOY102] no-bar" in result.stdout
    assert "foo.yaml:2:6" not in result.stdout


def test_unsafe_fixes_need_to_be_asked_for(files: Path) -> None:
    assert run("--fix", "--unsafe-fixes").exit_code == 0
    assert (files / "bar.yaml").read_text() == BAR.replace("bar: 1\n", "")


def test_unsafe_fixes_alone_change_nothing(files: Path) -> None:
    run("--unsafe-fixes")
    assert (files / "bar.yaml").read_text() == BAR
    assert (files / "foo.yaml").read_text() == FOO


def test_fixing_twice_changes_nothing_the_second_time(files: Path) -> None:
    run("--fix", "--unsafe-fixes")
    before = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in files.glob("*.yaml")}
    assert "fixed:" not in run("--fix", "--unsafe-fixes").stdout
    assert {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in files.glob("*.yaml")} == before
    assert sorted(path.name for path in files.iterdir()) == [".git", "bar.yaml", "clean.yaml", "foo.yaml"]


def test_a_file_that_cannot_be_written_is_an_error_and_the_others_are_fixed(
    files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ckptlint import fixing

    (files / "other.yaml").write_text(FOO)
    replace_file = fixing.replace_file

    def refuse_one(path: Path, data: bytes, expected: bytes | None = None) -> bool:
        if path.name == "foo.yaml":
            raise fixing.CannotWrite(path, "the file system is read-only", "work on a copy")
        return replace_file(path, data, expected)

    monkeypatch.setattr(fixing, "replace_file", refuse_one)
    result = run("--fix")
    assert result.exit_code == 2
    assert "error: foo.yaml: not fixed: the file system is read-only; work on a copy" in result.stderr
    assert (files / "foo.yaml").read_text() == FOO
    assert "foo.yaml:2:6: error[TOY101] no-foo" in result.stdout
    assert (files / "other.yaml").read_text() == FOO.replace("foo: true ", "foo: false ")


def test_a_file_that_changes_meanwhile_is_read_again(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from ckptlint import fixing

    replace_file = fixing.replace_file
    theirs = "# theirs\n" + FOO

    def overtaken(path: Path, data: bytes, expected: bytes | None = None) -> bool:
        if path.read_text() == FOO:
            path.write_text(theirs)
        return replace_file(path, data, expected)

    monkeypatch.setattr(fixing, "replace_file", overtaken)
    assert run("--fix", "foo.yaml").exit_code == 0
    assert (files / "foo.yaml").read_text() == theirs.replace("foo: true ", "foo: false ")


def test_diff_shows_what_fix_would_do_and_writes_nothing(files: Path) -> None:
    result = run("--diff")
    assert result.exit_code == 1
    assert result.stdout.splitlines()[:2] == ["--- foo.yaml", "+++ foo.yaml"]
    assert "-foo: true  # why\n+foo: false  # why\n" in result.stdout
    assert "bar.yaml" not in result.stdout
    assert "-bar: 1\n" in run("--diff", "--unsafe-fixes").stdout
    assert (files / "foo.yaml").read_text() == FOO


@pytest.mark.skipif(shutil.which("patch") is None, reason="needs the program patch")
def test_patch_makes_of_a_diff_what_fix_makes(files: Path) -> None:
    (files / "crlf.yaml").write_bytes(b"toy: true\r\nname: \xe5\x90\x8d\r\nfoo: true")
    patch = run("--diff", "--unsafe-fixes").stdout_bytes
    subprocess.run(["patch", "-p0", "--binary", "-s"], input=patch, check=True, cwd=files)
    patched = {path.name: path.read_bytes() for path in files.glob("*.yaml")}
    assert patched["crlf.yaml"] == b"toy: true\r\nname: \xe5\x90\x8d\r\nfoo: false"
    (files / "crlf.yaml").write_bytes(b"toy: true\r\nname: \xe5\x90\x8d\r\nfoo: true")
    (files / "foo.yaml").write_text(FOO)
    (files / "bar.yaml").write_text(BAR)
    run("--fix", "--unsafe-fixes")
    assert {path.name: path.read_bytes() for path in files.glob("*.yaml")} == patched


# ------------------------------------------------------------------------------------------------ standard input


def test_a_dash_reads_standard_input(files: Path) -> None:
    result = run("-", stdin=FOO)
    assert result.exit_code == 1
    assert "-:2:6: error[TOY101] no-foo: foo is true" in result.stdout


def test_standard_input_is_known_by_the_name_it_is_given(files: Path) -> None:
    (files / "sub").mkdir()
    (files / "sub" / "ckptlint.toml").write_text('ephemeral-paths = ["keep"]')
    for arguments in (["--stdin-filename", "sub/x.yaml"], ["--stdin-filename", "sub/x.yaml", "-"]):
        result = run(*arguments, "--output-format", "json", "--select", "TOY101,ephemeral-path", stdin=FOO, toys=False)
        paths = {entry["path"] for entry in json.loads(result.stdout)}
        assert paths == {"sub/x.yaml"}


def test_broken_standard_input_is_a_finding(files: Path) -> None:
    result = run("--stdin-filename", "x.yaml", stdin=b"toy: \xff\n")
    assert result.exit_code == 1
    assert "x.yaml:1:6: error[CKP900] syntax-error" in result.stdout


@pytest.mark.parametrize("text", [FOO, CLEAN, FOO.replace("\n", "\r\n")])
def test_fix_on_standard_input_prints_the_text_and_reports_beside_it(files: Path, text: str) -> None:
    result = run("--fix", "-", stdin=text.encode())
    assert result.exit_code == 0
    assert result.stdout_bytes == text.replace("foo: true ", "foo: false ").encode()
    assert "Checked 1 file" in result.stderr


def test_fix_on_standard_input_never_touches_the_file_it_is_named_after(files: Path) -> None:
    text = "# unsaved\n" + FOO
    result = run("--fix", "--stdin-filename", "foo.yaml", stdin=text)
    assert result.stdout == text.replace("foo: true ", "foo: false ")
    assert (files / "foo.yaml").read_text() == FOO


def test_standard_input_that_cannot_be_fixed_comes_back_as_it_was(files: Path) -> None:
    result = run("--fix", "-", stdin=b"toy: [\xff\r\n")
    assert (result.exit_code, result.stdout_bytes) == (1, b"toy: [\xff\r\n")


def test_a_name_for_standard_input_beside_files_is_refused(files: Path) -> None:
    assert run("--stdin-filename", "x.yaml", "foo.yaml").exit_code == 2
    assert run("--fix", "-", "foo.yaml", stdin=FOO).exit_code == 2


def test_a_file_called_dash_can_still_be_named(files: Path) -> None:
    (files / "-").write_text(FOO)
    run("--fix", "./-")
    assert (files / "-").read_text() == FOO.replace("foo: true ", "foo: false ")


# ------------------------------------------------------------------------------------------------ the real thing


def test_python_m_ckptlint_checks_a_llama_factory_config(project: Path) -> None:
    (project / "train.yaml").write_text(
        "model_name_or_path: m\nstage: sft\ndo_train: true\noutput_dir: saves/x\nsave_steps: 500\noverwrite_output_dir: true\n"
    )
    command = [sys.executable, "-m", "ckptlint", "check", "--output-format", "concise", "."]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 1
    assert "train.yaml:6:23: error[CKP202] resume-disabled" in result.stdout
    assert result.stderr == ""
