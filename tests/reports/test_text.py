"""The report for people: frames, outcomes, totals."""

from __future__ import annotations

from toy_framework import ToyFramework

from ckptlint.discovery import Trouble
from ckptlint.linter import FileReport, Result, RunReport
from ckptlint.outcome import Kind, Outcome
from ckptlint.reports import concise
from ckptlint.reports.terminal import PLAIN, Colours
from ckptlint.reports.text import LONGEST, Fixed, Options, block, frame, render
from ckptlint.rule import Applicability, Diagnostic, Fix, Severity
from ckptlint.run import Run
from ckptlint.source.file import SourceFile
from ckptlint.source.text import Edit, SourceText, Span


def diagnostic(
    text: str, marked: str, message: str = "it is so", fix: Fix | None = None, severity: Severity = Severity.ERROR
) -> Diagnostic:
    source = SourceText("a.yaml", text)
    start = text.index(marked)
    return Diagnostic("CKP202", "resume-disabled", severity, message, Span(source, start, start + len(marked)), "toy", fix)


def runs(text: str, path: str = "a.yaml") -> tuple[Run, ...]:
    return ToyFramework().read(SourceFile(path, text.encode()))


def result(*diagnostics: Diagnostic, kinds: tuple[Kind, ...] = (), troubles: tuple[Trouble, ...] = ()) -> Result:
    (run,) = runs("toy: true\n")
    reports = tuple(RunReport(run, Outcome(kind, f"is {kind.value}")) for kind in kinds)
    return Result((FileReport(SourceFile("a.yaml", b""), False, diagnostics, reports),), troubles)


def marks(text: str, marked: str) -> list[str]:
    return list(frame(diagnostic(text, marked).span))


def test_a_finding_shows_its_line_with_carets_under_the_place_and_the_fix() -> None:
    found = diagnostic("a: 1\nresume: no  # why\n", "no")
    fix = Fix("set `resume` to `true`", (Edit(found.span, "true"),), Applicability.SAFE)
    found = Diagnostic(found.code, found.name, found.severity, found.message, found.span, "toy", fix)
    assert list(block(found, PLAIN)) == [
        "a.yaml:2:9: error[CKP202] resume-disabled: it is so",
        "   |",
        " 2 | resume: no  # why",
        "   |         ^^",
        "   = fix: set `resume` to `true` (safe)",
    ]


def test_an_unsafe_fix_says_what_it_needs() -> None:
    found = diagnostic("a: 1\n", "1")
    fix = Fix("remove `a`", (Edit(found.span, ""),), Applicability.UNSAFE)
    found = Diagnostic(found.code, found.name, found.severity, found.message, found.span, "toy", fix)
    assert list(block(found, PLAIN))[-1] == "   = fix: remove `a` (needs --unsafe-fixes)"


def test_wide_characters_take_two_columns_and_combining_ones_none() -> None:
    assert marks("名前: 値\n", "値") == ["名前: 値", "      ^^"]
    assert marks("e\u0301te\u0301: x\n", "x") == ["e\u0301te\u0301: x", "     ^"]


def test_tabs_are_shown_as_blanks_and_the_carets_follow() -> None:
    assert marks("a:\tb # x\n", "b") == ["a:  b # x", "    ^"]


def test_control_and_direction_characters_never_reach_the_terminal() -> None:
    text, carets = marks("a: \x1b[31m\u202ered\n", "red")
    assert (text, carets) == ("a: \ufffd[31m\ufffdred", "         ^^^")
    found = diagnostic("a: 1\n", "1", message="is \x1b[2J\nnothing")
    assert "\x1b" not in "".join(block(found, PLAIN))


def test_a_mark_over_several_lines_ends_with_the_first() -> None:
    assert marks("a: [1,\n 2]\n", "[1,\n 2]") == ["a: [1,", "   ^^^"]


def test_an_empty_place_gets_one_caret_also_behind_the_end_of_the_line() -> None:
    source = SourceText("a.yaml", "a:\n")
    assert frame(Span(source, 2, 2)) == ("a:", "  ^")


def test_an_empty_line_and_an_empty_file_have_no_frame() -> None:
    assert frame(Span(SourceText("a.yaml", "a\n\n"), 2, 2)) == ("", "")
    assert frame(Span(SourceText("a.yaml", ""), 0, 0)) == ("", "")


def test_a_byte_order_mark_takes_no_column() -> None:
    source = SourceText("a.yaml", "\ufeffa: 1\n")
    assert frame(Span(source, 1, 2)) == ("a: 1", "^")
    assert frame(Span(source, 0, 5)) == ("a: 1", "^^^^")


def test_a_very_long_line_is_shown_around_its_mark() -> None:
    text = "a" * 5000 + " MARK " + "b" * 5000
    shown, carets = marks(text, "MARK")
    assert len(shown) == LONGEST + 2
    assert shown[carets.index("^") : len(carets)] == "MARK"
    assert shown.startswith("…a") and shown.endswith("b…")
    shown, carets = marks(text, "a" * 5000)
    assert shown.endswith("…")
    assert len(carets) == LONGEST


def test_colours_are_only_there_when_they_are_on() -> None:
    found = diagnostic("a: 1\n", "1")
    assert "\x1b[1;31merror[CKP202]\x1b[0m" in "".join(block(found, Colours(on=True)))
    assert "\x1b" not in "".join(block(found, PLAIN))


def test_each_run_has_its_outcome_and_the_total_counts_them() -> None:
    report = render(result(kinds=(Kind.EXACT, Kind.RESTARTS, Kind.RESTARTS)))
    assert report.splitlines() == [
        "a.yaml: Toy: is exact",
        "a.yaml: Toy: is restarts",
        "a.yaml: Toy: is restarts",
        "",
        "Checked 1 file, 3 training runs: 1 resumes exactly, 2 restart at step 0.",
        "No findings.",
    ]


def test_recognising_nothing_is_said_and_not_called_healthy() -> None:
    assert render(result()) == "Checked 1 file, recognised no training run.\n"
    assert render(Result(())) == "Checked 0 files, recognised no training run.\n"


def test_skipped_files_are_counted() -> None:
    skipped = Result((FileReport(SourceFile("a.yaml", b""), True, skipped=True),))
    assert "Checked 1 file (1 skipped by `# ckptlint: skip-file`), recognised" in render(skipped)


def test_the_total_counts_severities_and_what_can_be_fixed() -> None:
    def fixable(applicability: Applicability, severity: Severity) -> Diagnostic:
        found = diagnostic("a: 1\n", "1")
        return diagnostic("a: 1\n", "1", fix=Fix("f", (Edit(found.span, ""),), applicability), severity=severity)

    safe = fixable(Applicability.SAFE, Severity.ERROR)
    unsafe = fixable(Applicability.UNSAFE, Severity.INFO)
    none = diagnostic("a: 1\n", "1", severity=Severity.WARNING)
    last = [
        render(result(*found, kinds=(Kind.EXACT,))).splitlines()[-1] for found in ((safe, unsafe, none), (unsafe,), (none,))
    ]
    assert last == [
        "3 findings (1 error, 1 warning, 1 note). 1 can be fixed with --fix, 1 more with --fix --unsafe-fixes.",
        "1 finding (1 note). 1 can be fixed with --fix --unsafe-fixes.",
        "1 finding (1 warning).",
    ]


def test_what_is_unknown_is_listed_with_how_to_settle_it() -> None:
    report = render(result(kinds=(Kind.UNKNOWN,)), Options(show_unknown=True))
    assert "Not decided:\n  a.yaml:1: the number of steps is not given. To settle it: write `steps`" in report
    assert "Nothing was left undecided." in render(result(), Options(show_unknown=True))


def test_statistics_count_each_rule_instead_of_listing_findings() -> None:
    report = render(result(diagnostic("a: 1\n", "1"), diagnostic("a: 1\n", "a")), Options(statistics=True))
    assert report.splitlines()[0] == "2  CKP202  resume-disabled"
    assert "^" not in report


def test_fixes_that_were_made_or_taken_back_are_listed() -> None:
    found = diagnostic("a: 1\n", "1")
    fix = Fix("set it", (Edit(found.span, "2"),), Applicability.SAFE)
    found = Diagnostic(found.code, found.name, found.severity, found.message, found.span, "toy", fix)
    report = render(result(), Options(fixed=Fixed((found,), ((found, "it would raise x"),))))
    assert report.splitlines()[:2] == [
        "fixed: a.yaml:1: resume-disabled: set it",
        "not fixed: a.yaml:1: resume-disabled: set it: it would raise x",
    ]


def test_concise_is_one_line_a_finding() -> None:
    two = result(diagnostic("a: 1\n", "a"), diagnostic("a: 1\n", "1", message="two\nlines"))
    assert concise.render(two).splitlines() == [
        "a.yaml:1:1: error[CKP202] resume-disabled: it is so",
        "a.yaml:1:4: error[CKP202] resume-disabled: two\ufffdlines",
    ]
