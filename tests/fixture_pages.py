"""Reads the pages under fixtures/rules; their form is described in tests/rules/test_rule_fixtures.py."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

PAGES = Path(__file__).parents[1] / "fixtures" / "rules"

_FENCE = re.compile(r"^(`{3,})(\w+) (.*)$")
_MARK = re.compile(r"[ \t]*# ← (CKP\d{3}(?: \w+)?(?:, CKP\d{3}(?: \w+)?)*)$", re.M)


@dataclass(frozen=True)
class Case:
    """One heading of a page. ``expected``: "path:line CODE severity", the severity "" where it is the rule's own."""

    rule: str
    title: str
    prose: str
    files: Mapping[str, str]
    expected: tuple[tuple[str, int, str, str], ...]
    fixed: Mapping[str, str] = field(default_factory=dict)
    applicability: str = ""
    says: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.rule}: {self.title}"


def pages() -> dict[str, str]:
    """Rule name to the text of its page."""
    return {path.stem: path.read_text(encoding="utf-8") for path in sorted(PAGES.glob("*.md"))}


def all_cases() -> list[Case]:
    return [case for rule, text in pages().items() for case in cases(rule, text)]


def cases(rule: str, page: str) -> Iterator[Case]:
    sections = re.split(r"^## (.+)$", page, flags=re.M)
    for title, body in zip(sections[1::2], sections[2::2], strict=True):
        yield _case(rule, title.strip(), body)


def fences(text: str) -> Iterator[tuple[dict[str, str], str]]:
    """The fenced blocks of a text: the words behind the opening fence (``key=value``, or a bare key), and the content."""
    lines = iter(text.split("\n"))
    for line in lines:
        match = _FENCE.match(line)
        if match is None:
            continue
        content = []
        for inner in lines:
            if inner == match[1]:
                break
            content.append(inner)
        words = dict(word.partition("=")[::2] for word in match[3].split())
        yield {key: value.strip('"') for key, value in words.items()}, "".join(line + "\n" for line in content)


def _case(rule: str, title: str, body: str) -> Case:
    files: dict[str, str] = {}
    fixed: dict[str, str] = {}
    expected: list[tuple[str, int, str, str]] = []
    says: list[str] = []
    applicability = ""
    for words, content in fences(body):
        if "says" in words:
            says += content.splitlines()
        elif "fixed" in words:
            fixed[words["title"]] = content
            applicability = words["fixed"]
        else:
            files[words["title"]] = _MARK.sub("", content)
            expected += _marks(words["title"], content)
    prose = re.sub(r"^(`{3,}).*?^\1$", "", body, flags=re.M | re.S).strip()
    return Case(rule, title, prose, files, tuple(expected), fixed, applicability, tuple(says))


def _marks(path: str, content: str) -> Iterator[tuple[str, int, str, str]]:
    for number, line in enumerate(content.split("\n"), 1):
        match = _MARK.search(line)
        for mark in match[1].split(", ") if match else ():
            code, _, severity = mark.partition(" ")
            yield path, number, code, severity
