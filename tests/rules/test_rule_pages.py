"""The catalogue of rules, and the page that each carries as its docstring."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from fixture_pages import cases, fences, pages

from ckptlint.linter import Linter
from ckptlint.rule import Rule, SourceRule, all_rules
from ckptlint.settings import SettingsFinder

# Names and codes are what users write into settings and comments, so they never change; severities are the defaults.
CATALOGUE = {
    "CKP101": ("no-save", "error", "unsafe"),
    "CKP102": ("save-interval-disabled", "error", "unsafe"),
    "CKP103": ("save-only-at-end", "warning", "unsafe"),
    "CKP104": ("interval-too-long", "error", "unsafe"),
    "CKP105": ("save-setting-unused", "error", ""),
    "CKP201": ("no-resume", "error", "safe or unsafe"),
    "CKP202": ("resume-disabled", "error", "safe or unsafe"),
    "CKP203": ("resume-arg-unused", "error", "safe"),
    "CKP204": ("resume-fails-first-launch", "error", "safe or unsafe"),
    "CKP205": ("resume-path-not-a-checkpoint", "error", ""),
    "CKP206": ("stale-pin", "warning", ""),
    "CKP209": ("exit-code-masked", "warning", "safe"),
    "CKP210": ("wipes-output-dir", "error", ""),
    "CKP211": ("not-resumable", "error", ""),
    "CKP212": ("reference-model-lost", "warning", "unsafe"),
    "CKP213": ("weights-only-resume", "error", "unsafe"),
    "CKP306": ("rng-not-saved", "info", "safe"),
    "CKP311": ("optimizer-not-restored", "error", "safe or unsafe"),
    "CKP312": ("scheduler-not-restored", "warning", "safe"),
    "CKP321": ("weights-only-checkpoint", "error", "safe"),
    "CKP406": ("keep-one", "warning", "safe"),
    "CKP407": ("shared-save-dir", "error", ""),
    "CKP501": ("ephemeral-path", "error", ""),
    "CKP502": ("fast-path-only", "warning", ""),
    "CKP503": ("fresh-output-dir", "error", ""),
    "CKP504": ("placeholder-path", "error", ""),
    "CKP701": ("key-misspelt", "warning", "unsafe"),
    "CKP702": ("value-invalid", "error", "safe"),
    "CKP703": ("argument-lost", "error", "unsafe"),
    "CKP704": ("platform-path-mismatch", "warning", ""),
    "CKP900": ("syntax-error", "error", ""),
    "CKP901": ("unused-suppression", "warning", "safe"),
}
SECTIONS = ("What it does", "Why it matters", "Example", "Use instead", "Fix safety", "References")

RULES = all_rules()


def _named(rule: Rule) -> str:
    return rule.name


def _sections(rule: Rule) -> dict[str, str]:
    parts = re.split(r"^## (.+)$", rule.page(), flags=re.M)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def test_the_rules_that_are_installed_are_those_of_the_catalogue() -> None:
    assert {rule.code: (rule.name, rule.severity.value, rule.fix) for rule in RULES} == CATALOGUE


def test_no_two_rules_share_a_code_or_a_name() -> None:
    modules = sorted((Path(__file__).parents[2] / "rules").glob("[a-z]*.py"))
    assert len(modules) == len({rule.code for rule in RULES}) == len({rule.name for rule in RULES})


@pytest.mark.parametrize("rule", RULES, ids=_named)
def test_a_module_is_called_as_its_rule(rule: Rule) -> None:
    assert type(rule).__module__ == "ckptlint.rules." + rule.name.replace("-", "_")


def test_every_rule_has_a_page_of_fixtures() -> None:
    assert set(pages()) == {rule.name for rule in RULES}
    assert all(text.startswith(f"# {name}\n") for name, text in pages().items())


@pytest.mark.parametrize("rule", RULES, ids=_named)
def test_a_page_has_its_sections_in_order_and_tells_of_the_fix_only_where_there_is_one(rule: Rule) -> None:
    expected = [section for section in SECTIONS if rule.fix or section != "Fix safety"]
    assert [section for section in _sections(rule) if section in SECTIONS] == expected
    assert list(_sections(rule)) == expected
    assert all(text.strip() for text in _sections(rule).values())


@pytest.mark.parametrize("rule", RULES, ids=_named)
def test_a_page_begins_with_one_short_sentence(rule: Rule) -> None:
    summary = rule.summary()
    assert summary.endswith(".")
    assert len(summary) <= 90


def _findings(files: dict[str, str], project: Path) -> set[str]:
    for path, text in files.items():
        (project / path).write_text(text, encoding="utf-8")
    return {diagnostic.code for diagnostic in Linter(SettingsFinder()).check_paths(files).diagnostics}


def _files(section: str) -> dict[str, str]:
    return {words["title"]: content for words, content in fences(section)}


@pytest.mark.parametrize("rule", RULES, ids=_named)
def test_the_example_on_a_page_is_reported(rule: Rule, project: Path) -> None:
    assert rule.code in _findings(_files(_sections(rule)["Example"]), project)


@pytest.mark.parametrize("rule", RULES, ids=_named)
def test_what_a_page_advises_is_not_reported_by_any_rule(rule: Rule, project: Path) -> None:
    assert not _findings(_files(_sections(rule)["Use instead"]), project)


@pytest.mark.parametrize("rule", [rule for rule in RULES if not isinstance(rule, SourceRule)], ids=_named)
def test_the_fix_that_a_rule_declares_is_shown_in_its_fixtures(rule: Rule) -> None:
    shown = {case.applicability for case in cases(rule.name, pages().get(rule.name, "")) if case.applicability}
    assert shown <= set(rule.fix.split(" or "))
    assert bool(shown) == bool(rule.fix)
