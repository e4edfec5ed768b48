"""Comments silence findings; those that silence nothing are found and taken out."""

from __future__ import annotations

import pytest

from ckptlint.linter import FileReport, Linter
from ckptlint.settings import Choice, SettingsFinder
from ckptlint.source.file import SourceFile
from ckptlint.source.text import apply

pytestmark = pytest.mark.usefixtures("toy", "project")


def report(text: str, **choice: tuple[str, ...]) -> FileReport:
    return Linter(SettingsFinder(), Choice(**choice)).check_file(SourceFile("a.yaml", text.encode()))


def found(text: str, **choice: tuple[str, ...]) -> list[tuple[int, str, str]]:
    return [(entry.span.line, entry.name, entry.message) for entry in report(text, **choice).diagnostics]


def names(text: str, **choice: tuple[str, ...]) -> list[tuple[int, str]]:
    return [(line, name) for line, name, _ in found(text, **choice)]


def fixed(text: str) -> str:
    """The text after the fixes of all unused suppressions."""
    diagnostics = [entry for entry in report(text).diagnostics if entry.name == "unused-suppression"]
    return apply(diagnostics[0].span.source, [edit for entry in diagnostics if entry.fix for edit in entry.fix.edits])


@pytest.mark.parametrize("word", ["no-foo", "TOY101"])
def test_a_finding_is_silenced_on_its_line_by_name_or_code(word: str) -> None:
    assert names("toy: true\nfoo: true\n") == [(2, "no-foo")]
    assert names(f"toy: true\nfoo: true  # ckptlint: ignore[{word}] wanted here\n") == []


def test_several_rules_are_named_in_one_comment() -> None:
    assert names("{toy: true, foo: true, bar: 1}  # ckptlint: ignore[no-foo, no-bar]\n") == []


def test_a_comment_behind_another_one_counts() -> None:
    assert names("toy: true\nfoo: true  # for the demo # ckptlint: ignore[no-foo]\n") == []


def test_a_suppression_alone_on_a_line_is_for_the_next_line_that_is_no_comment() -> None:
    text = "toy: true\n# ckptlint: ignore[no-foo]\n# because of the demo\nfoo: true\nbar: 1\n"
    assert names(text) == [(5, "no-bar")]


def test_it_holds_for_its_line_only() -> None:
    text = "toy: true  # ckptlint: ignore[no-foo]\nfoo: true\n"
    assert names(text) == [(1, "unused-suppression"), (2, "no-foo")]


def test_what_only_looks_like_a_comment_silences_nothing() -> None:
    text = 'toy: true\nname: "# ckptlint: skip-file"\nfoo: true\nnote: a#ckptlint:ignore[no-foo]\n'
    assert names(text) == [(3, "no-foo")]


def test_a_file_can_be_skipped() -> None:
    result = report("foo: true\ntoy: true\n# ckptlint: skip-file\n")
    assert (result.skipped, result.diagnostics, result.runs) == (True, (), ())


def test_a_file_that_cannot_be_read_can_be_skipped_too() -> None:
    assert [name for _, name in names("toy: [\n")] == ["syntax-error"]
    assert report("{% if x %}\n  # ckptlint: skip-file\ntoy: [\n").skipped


def test_a_suppression_of_nothing_is_reported_with_the_line_it_is_for() -> None:
    assert found("toy: true\n# ckptlint: ignore[no-foo]\nfoo: false\n") == [
        (2, "unused-suppression", "nothing on line 3 breaks `no-foo`, so this suppression is not needed")
    ]


def test_a_bare_ignore_silences_nothing_and_says_what_to_write() -> None:
    (foo, bare) = found("toy: true\nfoo: true # ckptlint: ignore\n")
    assert foo[1] == "no-foo"
    assert bare[1] == "unused-suppression"
    assert "write `ignore[rule-name]`" in bare[2]


def test_an_unknown_rule_is_named_with_a_suggestion() -> None:
    assert found("toy: true # ckptlint: ignore[no-fooo]\n") == [
        (1, "unused-suppression", "no rule is called `no-fooo`; did you mean `no-foo`?")
    ]


@pytest.mark.parametrize("comment", ["ckptlint: disable[no-foo]", "ckptlint: ignroe[no-foo]", "ckptlint: skipfile"])
def test_a_misspelt_suppression_is_reported(comment: str) -> None:
    ((_, name, message),) = found(f"toy: true # {comment}\n")
    assert name == "unused-suppression"
    assert "write `# ckptlint: " in message


def test_prose_about_the_tool_is_not_a_suppression() -> None:
    assert names("toy: true # ckptlint: see the README\n") == []


def test_a_rule_that_is_switched_off_does_not_make_its_suppression_unused() -> None:
    text = "toy: true\nfoo: true  # ckptlint: ignore[no-foo]\n"
    assert names(text, ignore=("no-foo",)) == []
    assert names(text, select=("no-bar", "unused-suppression")) == []


def test_unused_suppressions_can_be_switched_off_and_suppressed() -> None:
    assert names("toy: true # ckptlint: ignore[no-foo]\n", ignore=("unused-suppression",)) == []
    assert names("toy: true # ckptlint: ignore[no-foo, unused-suppression]\n") == []


def test_nothing_is_called_unused_where_a_rule_crashed() -> None:
    result = report("toy: true # ckptlint: ignore[crashing]\ncrash_rule: 1\n")
    assert result.diagnostics == ()
    assert len(result.troubles) == 1


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("toy: true  # ckptlint: ignore[no-foo]\nx: 1\n", "toy: true\nx: 1\n"),
        ("toy: true\t# ckptlint: ignore[no-foo]\r\nx: 1\r\n", "toy: true\r\nx: 1\r\n"),
        ("toy: true # ckptlint: ignore[no-foo]", "toy: true"),
        ("toy: true\n  # ckptlint: ignore[no-foo]\nx: 1\n", "toy: true\nx: 1\n"),
        ("# ckptlint: ignore[no-foo]\ntoy: true\n", "toy: true\n"),
        ("\ufeff# ckptlint: ignore[no-foo]\ntoy: true\n", "\ufefftoy: true\n"),
        ("toy: true\n# ckptlint: ignore[no-foo]", "toy: true"),
        ("toy: true\r\n# ckptlint: ignore[no-foo]", "toy: true"),
        ("toy: true # a note # ckptlint: ignore[no-foo]\n", "toy: true # a note\n"),
        ("toy: true # ckptlint: ignore[no-foo] # noqa\n", "toy: true # noqa\n"),
        ("toy: true # ckptlint: ignore[no-foo] why not\n", "toy: true\n"),
        (
            "toy: true\nfoo: true # ckptlint: ignore[no-bar, TOY101 ,no-foo]\n",
            "toy: true\nfoo: true # ckptlint: ignore[TOY101, no-foo]\n",
        ),
        ("toy: true\nfoo: true # ckptlint: ignore[no-foo, nothing]\n", "toy: true\nfoo: true # ckptlint: ignore[no-foo]\n"),
    ],
)
def test_the_fix_takes_out_what_is_not_needed_and_nothing_else(before: str, after: str) -> None:
    assert fixed(before) == after
    assert "unused-suppression" not in [name for _, name in names(after)]
