"""Every case of every page under fixtures/rules, through the linter.

The form of a page, ``fixtures/rules/<rule name>.md``:

- A heading ``## …`` for each case, and below it a sentence that says why the case is reported, or why it must not be.
- Fenced blocks with ``title=PATH``: the files of the case. They lie together in an empty repository (so a ``ckptlint.toml`` or
  a ``requirements.txt`` counts), and every YAML and JSON file among them is checked.
- ``# ← CKP202`` at the end of each line that must be reported, ``# ← CKP202 info`` where the severity is not the rule's own,
  ``# ← CKP202, CKP104`` for two. Nothing else may be reported, by any rule; a case without a mark is one that must stay silent.
  The mark and the blanks before it are taken out before the file is read.
- A block with ``title=PATH fixed=safe`` (or ``unsafe``): the file after the fixes of the page's rule. A case in which the rule
  offers a fix must show it, and one in which it offers none cannot.
- A block ``text says``: each line must stand in a message of the page's rule.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest
from fixture_pages import Case, all_cases, pages

from ckptlint.fixing import repair
from ckptlint.linter import Linter, Result
from ckptlint.rule import Diagnostic, Severity, all_rules, rule_named
from ckptlint.settings import SettingsFinder
from ckptlint.source.file import SourceFile

CASES = all_cases()
SEVERITY = {rule.code: rule.severity for rule in all_rules()}


@pytest.fixture
def place(case: Case, project: Path) -> Path:
    """The files of a case on disk."""
    for path, text in case.files.items():
        (project / path).parent.mkdir(parents=True, exist_ok=True)
        (project / path).write_text(text, encoding="utf-8")
    return project


def _linter() -> Linter:
    return Linter(SettingsFinder())


def _check(linter: Linter, case: Case) -> Result:
    result = linter.check_paths(path for path in case.files if path.endswith((".yaml", ".yml", ".json", ".sh")))
    assert not result.troubles
    return result


def _fix(linter: Linter, case: Case, data: bytes, path: str, *, unsafe: bool) -> bytes:
    """The file after the fixes of the case's rule."""
    repaired = repair(SourceFile(path, data), lambda file: _own(linter.check_file(file).diagnostics, case), unsafe=unsafe)
    assert not repaired.refused
    return repaired.file.data


def _own(diagnostics: Iterable[Diagnostic], case: Case) -> list[Diagnostic]:
    return [diagnostic for diagnostic in diagnostics if diagnostic.name == case.rule]


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.usefixtures("place")
def test_a_case_is_reported_exactly_as_its_page_marks_it_with_the_fix_that_is_shown(case: Case) -> None:
    diagnostics = _check(_linter(), case).diagnostics
    found = sorted((d.span.path, d.span.line, d.code, d.severity.value) for d in diagnostics)
    expected = sorted((path, line, code, severity or SEVERITY[code].value) for path, line, code, severity in case.expected)
    assert found == expected, "\n".join(f"{d.span.line}: {d.code} {d.message}" for d in diagnostics)
    own = _own(diagnostics, case)
    for words in case.says:
        assert any(words in diagnostic.message for diagnostic in own), [diagnostic.message for diagnostic in own]
    offered = {(d.span.path, d.fix.applicability.value) for d in own if d.fix is not None and d.fix.edits}
    assert offered == {(path, case.applicability) for path in case.fixed}
    assert all(diagnostic.fix.title for diagnostic in own if diagnostic.fix is not None)


@pytest.mark.parametrize("case", [case for case in CASES if case.fixed], ids=str)
@pytest.mark.usefixtures("place")
def test_a_fix_leaves_exactly_the_text_on_its_page_and_takes_the_finding_away(case: Case) -> None:
    linter = _linter()
    before = Counter(diagnostic.code for diagnostic in _check(linter, case).diagnostics)
    after: Counter[str] = Counter()
    for path, expected in case.fixed.items():
        fixed = _fix(linter, case, case.files[path].encode(), path, unsafe=case.applicability == "unsafe")
        assert fixed.decode() == expected
        assert _fix(linter, case, fixed, path, unsafe=True) == fixed
        after.update(diagnostic.code for diagnostic in linter.check_file(SourceFile(path, fixed)).diagnostics)
    assert rule_named(case.rule).code not in after
    assert not after - before, f"the fix raised {after - before}"


@pytest.mark.parametrize("case", [case for case in CASES if case.applicability == "unsafe"], ids=str)
@pytest.mark.usefixtures("place")
def test_an_unsafe_fix_is_applied_only_when_it_is_asked_for(case: Case) -> None:
    linter = _linter()
    _check(linter, case)
    for path in case.fixed:
        data = case.files[path].encode()
        assert _fix(linter, case, data, path, unsafe=False) == data


@pytest.mark.parametrize("rule", sorted(pages()))
def test_a_page_has_what_must_be_reported_and_what_must_not(rule: str) -> None:
    """At least two of each; and a short run, whose severity is lower, where the rule knows one."""
    own = [case for case in CASES if case.rule == rule]
    code = rule_named(rule).code
    reported = [case for case in own if any(mark[2] == code for mark in case.expected)]
    assert len(reported) >= 2
    assert len(own) - len(reported) >= 2
    assert len({case.title for case in own}) == len(own)
    assert all(case.prose.endswith((".", "`.")) for case in own)


def test_a_severity_on_a_page_is_one_that_there_is() -> None:
    words = {severity for case in CASES for *_, severity in case.expected if severity}
    assert words <= {severity.value for severity in Severity}
