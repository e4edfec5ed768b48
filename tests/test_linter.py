"""Files in, findings and outcomes out; what goes wrong with one file stays with that file."""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path

import pytest

from ckptlint.linter import DEBUG, Linter, Result
from ckptlint.outcome import Kind
from ckptlint.rule import Applicability, BrokenPlugin, Run, all_rules, rule_named
from ckptlint.run import Storage
from ckptlint.settings import Choice, SettingsError, SettingsFinder
from ckptlint.source.file import SourceFile
from ckptlint.source.text import SourceText

pytestmark = pytest.mark.usefixtures("toy")


def check(*paths: str, **choice: tuple[str, ...]) -> Result:
    return Linter(SettingsFinder(), Choice(**choice)).check_paths(paths or (".",))


def shown(result: Result) -> list[str]:
    return [f"{entry.span.path}:{entry.span.line} {entry.name}" for entry in result.diagnostics]


def runs_seen() -> list[Run]:
    return rule_named("remembering").seen  # type: ignore[attr-defined]


def test_findings_come_by_path_and_place(project: Path) -> None:
    (project / "b.yaml").write_text("toy: true\nbar: 1\nfoo: true\n")
    (project / "a.yaml").write_text("toy: true\nfoo: true\n")
    assert shown(check()) == ["a.yaml:2 no-foo", "b.yaml:2 no-bar", "b.yaml:3 no-foo"]


def test_a_run_gets_an_outcome_and_its_unknowns_are_listed(project: Path) -> None:
    (project / "a.yaml").write_text("toy: true\n---\ntoy: true\nsteps: 1000\n")
    result = check()
    assert [entry.outcome.kind for entry in result.runs] != [Kind.CANNOT, Kind.CANNOT]
    assert len(result.runs) == 2
    assert [unknown.why for _, unknown in result.unknowns] == ["the number of steps is not given"]
    assert (result.files_read, result.files_recognised) == (1, 1)


def test_files_of_nobody_are_read_and_not_recognised(project: Path) -> None:
    (project / "a.yaml").write_text("other: 1\n")
    result = check()
    assert (result.files_read, result.files_recognised, result.runs, result.diagnostics) == (1, 0, [], [])


def test_select_and_ignore_decide_which_rules_look(project: Path) -> None:
    (project / "a.yaml").write_text("toy: true\nbar: 1\nfoo: true\n")
    assert shown(check(select=("no-bar",))) == ["a.yaml:2 no-bar"]
    assert shown(check(ignore=("TOY102",))) == ["a.yaml:3 no-foo"]


def test_the_settings_beside_a_file_hold_for_it_alone(project: Path) -> None:
    for name in ("one", "two"):
        (project / name).mkdir()
        (project / name / "a.yaml").write_text("toy: true\nfoo: true\n")
    (project / "one" / "ckptlint.toml").write_text('ignore = ["no-foo"]\nephemeral-paths = ["/scratch"]\n')
    (project / "two" / "pyproject.toml").write_text('[tool.ckptlint.per-file-ignores]\n"b*.yaml" = ["no-foo"]\n')
    assert shown(check()) == ["two/a.yaml:2 no-foo"]
    assert [run.storage for run in runs_seen()] == [Storage((), ("/scratch",)), Storage()]


def test_a_wrong_settings_file_ends_the_check(project: Path) -> None:
    (project / "a.yaml").write_text("toy: true\n")
    (project / "ckptlint.toml").write_text("colour = 1\n")
    with pytest.raises(SettingsError, match="no setting is called `colour`"):
        check("a.yaml")


# ------------------------------------------------------------------------------------------------ files that cannot be read


def test_a_broken_file_of_a_framework_is_a_finding_at_the_place_where_reading_stops(project: Path) -> None:
    (project / "a.yaml").write_text("toy: true\nfoo: [1,\nbar: }\n")
    (project / "b.yaml").write_text("toy: true\nfoo: true\n")
    result = check()
    assert shown(result) == ["a.yaml:3 syntax-error", "b.yaml:2 no-foo"]
    assert "not valid YAML" in result.diagnostics[0].message
    assert result.diagnostics[0].framework == "toy"
    assert result.troubles == ()


def test_a_broken_file_of_nobody_is_passed_over_in_a_walk_and_reported_when_named(project: Path) -> None:
    (project / "template.yaml").write_text("{{ x }\n")
    assert shown(check(".")) == []
    assert shown(check("template.yaml")) == ["template.yaml:2 syntax-error"]


def test_a_file_that_is_not_utf_8_is_a_finding_and_the_others_go_on(project: Path) -> None:
    (project / "a.yaml").write_bytes(b"toy: true\nname: caf\xe9\n")
    (project / "b.yaml").write_text("toy: true\nfoo: true\n")
    result = check()
    assert shown(result) == ["a.yaml:2 syntax-error", "b.yaml:2 no-foo"]
    assert result.diagnostics[0].message == "byte 0xe9 is not UTF-8; save the file as UTF-8"


def test_a_named_file_of_another_kind_is_not_called_broken(project: Path) -> None:
    (project / "image.png").write_bytes(b"\x89PNG\r\n\x1a\n\0")
    result = check("image.png")
    assert (shown(result), result.troubles, result.files_read) == ([], (), 1)


def test_syntax_errors_can_be_switched_off(project: Path) -> None:
    (project / "a.yaml").write_text("toy: [\n")
    assert shown(check(ignore=("syntax-error",))) == []


def test_a_file_that_may_not_be_read_is_an_error_and_the_others_go_on(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (project / "a.yaml").write_text("toy: true\n")
    (project / "b.yaml").write_text("toy: true\nfoo: true\n")
    read = Path.read_bytes

    def refuse_one(path: Path) -> bytes:  # file modes mean nothing to root
        if path.name == "a.yaml":
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return read(path)

    monkeypatch.setattr(Path, "read_bytes", refuse_one)
    result = check()
    assert [str(trouble) for trouble in result.troubles] == ["a.yaml: cannot be read: Permission denied"]
    assert shown(result) == ["b.yaml:2 no-foo"]


def test_an_empty_file_and_one_of_comments_are_nothing(project: Path) -> None:
    (project / "a.yaml").write_bytes(b"")
    (project / "b.yaml").write_text("# toy: true\n")
    result = check("a.yaml", "b.yaml")
    assert (shown(result), result.troubles, result.runs) == ([], (), [])


# ------------------------------------------------------------------------------------------------ faults of our own


def test_a_rule_that_crashes_is_named_with_the_file_and_all_others_go_on(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(DEBUG, raising=False)
    (project / "a.yaml").write_text("toy: true\ncrash_rule: 1\nfoo: true\n")
    (project / "b.yaml").write_text("toy: true\nfoo: true\n")
    result = check()
    assert shown(result) == ["a.yaml:3 no-foo", "b.yaml:2 no-foo"]
    (trouble,) = result.troubles
    assert str(trouble).startswith("a.yaml: internal error in rule TOY103 crashing: ZeroDivisionError: the rule is at fault")
    assert DEBUG in trouble.message
    assert trouble.detail == ""


def test_a_reader_that_crashes_is_named_with_the_file(project: Path) -> None:
    (project / "a.yaml").write_text("toy: true\ncrash: true\n")
    (trouble,) = check().troubles
    assert str(trouble).startswith("a.yaml: internal error in reading it as Toy: KeyError")


def test_a_parser_that_crashes_costs_one_file(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from ckptlint.source import yaml

    parse = yaml.parse

    def crash_on_one(source: SourceText) -> yaml.YamlSource:
        if source.path == "a.yaml":
            raise MemoryError
        return parse(source)

    monkeypatch.setattr(yaml, "parse", crash_on_one)
    (project / "a.yaml").write_text("toy: true # ckptlint: ignore[no-foo]\n")
    (project / "b.yaml").write_text("toy: true\nfoo: true\n")
    result = check("a.yaml", "b.yaml")
    assert shown(result) == ["b.yaml:2 no-foo"]
    assert {trouble.path for trouble in result.troubles} == {"a.yaml"}


def test_the_traceback_is_there_for_whoever_asks(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(DEBUG, "1")
    (project / "a.yaml").write_text("toy: true\ncrash_rule: 1\n")
    (trouble,) = check().troubles
    assert "Traceback" in trouble.detail
    assert "toy.py" in trouble.detail


# ------------------------------------------------------------------------------------------------ neighbours


def test_runs_that_save_into_one_directory_know_each_other(project: Path) -> None:
    (project / "a.yaml").write_text("toy: true\nsave_to: out/x\n")
    (project / "b.yaml").write_text("toy: true\nsave_to: ./out//x/\n")
    (project / "c.yaml").write_text("toy: true\nsave_to: out/y\n")
    check()
    assert {run.where.path: run.neighbours for run in runs_seen()} == {
        "a.yaml": ("b.yaml",),
        "b.yaml": ("a.yaml",),
        "c.yaml": (),
    }


@pytest.mark.parametrize("path", ["out/${now:%H-%M}", "<your output>", "$(mktemp -d)"])
def test_paths_that_differ_at_each_start_or_are_not_filled_in_make_no_neighbours(project: Path, path: str) -> None:
    for name in ("a.yaml", "b.yaml"):
        (project / name).write_text(f"toy: true\nsave_to: '{path}'\n")
    check()
    assert [run.neighbours for run in runs_seen()] == [(), ()]


def test_a_text_checked_again_keeps_the_neighbours_of_its_file(project: Path) -> None:
    for name in ("a.yaml", "b.yaml"):
        (project / name).write_text("toy: true\n")
    linter = Linter(SettingsFinder())
    linter.check_paths(["."])
    linter.check_file(SourceFile("a.yaml", b"toy: true\nx: 1\n"))
    assert runs_seen()[-1].neighbours == ("b.yaml",)


# ------------------------------------------------------------------------------------------------ rule packs


def test_a_rule_pack_is_found_by_its_entry_point() -> None:
    assert rule_named("no-foo").code == "TOY101"
    assert rule_named("resume-disabled").code == "CKP202"


def test_without_a_rule_pack_no_entry_points_are_read(toy: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if not entry.endswith("/site")])
    monkeypatch.setitem(sys.modules, "importlib.metadata", None)  # importing it now fails
    all_rules.cache_clear()
    assert "TOY101" not in {rule.code for rule in all_rules()}


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("import nothing_of_this_name", "the rule pack `broken_pack` cannot be imported (ModuleNotFoundError"),
        ("1 / 0", "cannot be imported (ZeroDivisionError"),
        (
            "from ckptlint.rule import Severity, SourceRule\n"
            "class Mine(SourceRule):\n    '''Mine.'''\n    code, name, severity = 'CKP202', 'mine', Severity.INFO\n",
            "broken_pack.mine: CKP202 mine is already there as CKP202 resume-disabled",
        ),
    ],
)
def test_a_broken_rule_pack_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, words: str) -> None:
    from conftest import install_rule_pack

    package = tmp_path / "more" / "broken_pack"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "mine.py").write_text(source)
    monkeypatch.delitem(sys.modules, "broken_pack", raising=False)
    monkeypatch.delitem(sys.modules, "broken_pack.mine", raising=False)
    install_rule_pack(tmp_path / "more", "broken_pack", monkeypatch)
    with pytest.raises(BrokenPlugin) as error:
        all_rules()
    assert words in str(error.value)


# ------------------------------------------------------------------------------------------------ the whole way


def test_a_ten_megabyte_file_is_checked(project: Path) -> None:
    filler = "".join(f"key_{number}: {'x' * 990}\n" for number in range(10_000))
    (project / "a.yaml").write_text(f"toy: true\n{filler}foo: true\n")
    (diagnostic,) = check().diagnostics
    assert diagnostic.span.line == 10_002
    assert diagnostic.fix is not None
    assert diagnostic.fix.applicability is Applicability.SAFE
