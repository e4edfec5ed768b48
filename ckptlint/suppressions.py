"""Comments that silence findings: ``# ckptlint: ignore[rule, …]`` and ``# ckptlint: skip-file``.

An ``ignore`` holds for the line it stands on; alone on a line it holds for the next line that is not a comment.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from ckptlint.rule import (
    Applicability,
    Diagnostic,
    Fix,
    SourceRule,
    UnknownRule,
    rule_named,
)
from ckptlint.source.file import SourceFile
from ckptlint.source.text import BOM, Edit, SourceError, SourceText, Span

MARK = b"ckptlint:"
_DIRECTIVE = re.compile(r"#[ \t]*ckptlint:[ \t]*(?P<verb>[A-Za-z][\w-]*)[ \t]*(?P<list>\[(?P<names>[^\]#]*)\]?)?[^#]*")
_ANY_COMMENT = re.compile(r"(?:^|(?<=\s))#.*", re.M)
_YAML = (".yaml", ".yml")
IGNORE, SKIP_FILE = "ignore", "skip-file"


class Suppression(NamedTuple):
    """One ``ignore`` comment. ``line``: where the findings stand that it silences. ``names`` None: it names no rules."""

    span: Span
    line: int
    names: tuple[Span, ...] | None


class Suppressions(NamedTuple):
    """All of a file's. ``misspelt``: a verb that is not one, and the one it looks like."""

    skips_file: bool = False
    ignores: tuple[Suppression, ...] = ()
    misspelt: tuple[tuple[Span, str], ...] = ()


NONE = Suppressions()


def read(file: SourceFile) -> Suppressions:
    """The suppressions in a file. One that cannot be read as what it is may still say ``skip-file`` on a line of its own."""
    if MARK not in file.data:
        return NONE
    skips, ignores, misspelt = False, [], []
    for span, match in _directives(file):
        verb = match["verb"]
        if verb == SKIP_FILE:
            skips = True
        elif verb == IGNORE:
            ignores.append(_suppression(span, match))
        elif near := _near(verb, has_list=match["list"] is not None):
            misspelt.append((span, near))
    return Suppressions(skips, tuple(ignores), tuple(misspelt))


def _directives(file: SourceFile) -> Iterator[tuple[Span, re.Match[str]]]:
    for comment in _comments(file):
        for match in _DIRECTIVE.finditer(comment.text):
            start = comment.start + match.start()
            yield Span(comment.source, start, start + len(match[0].rstrip())), match


def _comments(file: SourceFile) -> Iterable[Span]:
    try:
        text = file.text
        if file.suffix in _YAML:
            return file.yaml.comments
    except SourceError:
        return _whole_line_comments(file)
    return [Span(text, match.start(), match.end()) for match in _ANY_COMMENT.finditer(text.text)]


def _whole_line_comments(file: SourceFile) -> Iterator[Span]:
    text = SourceText(file.path, file.data.decode("utf-8", "replace"))
    for match in re.finditer(r"^[ \t]*(#.*)", text.text, re.M):
        yield Span(text, match.start(1), match.end(1))


def _near(verb: str, *, has_list: bool) -> str:
    """Prose may stand behind ``ckptlint:``; a word with a list, or one that is nearly ours, was meant as a suppression."""
    import difflib

    near = difflib.get_close_matches(verb, [IGNORE, SKIP_FILE], 1)
    return near[0] if near else IGNORE if has_list else ""


def _suppression(span: Span, match: re.Match[str]) -> Suppression:
    at = span.start - match.start() + match.start("names")
    words = re.finditer(r"[^,\s][^,]*", match["names"] or "")
    names = [Span(span.source, at + word.start(), at + word.start() + len(word[0].rstrip())) for word in words]
    return Suppression(span, _silenced_line(span), tuple(names) or None)


def _silenced_line(span: Span) -> int:
    source = span.source
    line = source.line_at(span.start)
    if not _is_comment(line.text):
        return line.line
    while line.end < len(source.text):
        following = source.line_at(line.end + len(source.line_break_at(line.end)))
        if following.start <= line.start:
            break
        line = following
        if not _is_comment(line.text):
            break
    return line.line


def _is_comment(line: str) -> bool:
    return line.lstrip(BOM + " \t").startswith("#")


# ------------------------------------------------------------------------------------------------ what they do to findings


def apply(
    diagnostics: Iterable[Diagnostic], suppressions: Suppressions, rule: SourceRule | None, enabled: frozenset[str]
) -> list[Diagnostic]:
    """The findings that are left, and those about suppressions that do nothing.

    Args:
        rule: unused-suppression, None where it is switched off.
        enabled: the codes that are on for this file; a suppression of a rule that is off may yet be needed.
    """
    used: set[tuple[int, str]] = set()
    left = []
    for diagnostic in diagnostics:
        silencing = [entry for entry in suppressions.ignores if _silences(entry, diagnostic)]
        used.update((id(entry), diagnostic.code) for entry in silencing)
        if not silencing:
            left.append(diagnostic)
    if rule is None:
        return left
    about = [*_unused(suppressions, rule, used, enabled), *_misspelt(suppressions, rule)]
    return left + [own for own in about if not any(_silences(entry, own) for entry in suppressions.ignores)]


def _silences(entry: Suppression, diagnostic: Diagnostic) -> bool:
    return entry.line == diagnostic.span.line and any(
        name.text in (diagnostic.code, diagnostic.name) for name in entry.names or ()
    )


def _unused(
    suppressions: Suppressions, rule: SourceRule, used: set[tuple[int, str]], enabled: frozenset[str]
) -> Iterator[Diagnostic]:
    for entry in suppressions.ignores:
        if entry.names is None:
            message = "this suppression names no rule and silences nothing: write `ignore[rule-name]` with the rules it is for"
            yield rule.diagnostic(entry.span, message)
            continue
        reasons: dict[Span, str] = {}
        for name in entry.names:
            reason = _why_unused(name.text, entry, rule, used, enabled)
            if reason:
                reasons[name] = reason
        if reasons:
            place = entry.span if len(reasons) == len(entry.names) else next(iter(reasons))
            yield rule.diagnostic(place, "; ".join(reasons.values()), fix=_fix(entry, list(reasons)))


def _why_unused(word: str, entry: Suppression, rule: SourceRule, used: set[tuple[int, str]], enabled: frozenset[str]) -> str:
    try:
        code = rule_named(word).code
    except UnknownRule as error:
        return str(error)
    if code == rule.code or code not in enabled or (id(entry), code) in used:
        return ""
    return f"nothing on line {entry.line} breaks `{word}`, so this suppression is not needed"


def _misspelt(suppressions: Suppressions, rule: SourceRule) -> Iterator[Diagnostic]:
    for span, near in suppressions.misspelt:
        wanted = "ignore[rule-name]" if near == IGNORE else near
        yield rule.diagnostic(span, f"this silences nothing: write `# ckptlint: {wanted}`")


def _fix(entry: Suppression, unused: Sequence[Span]) -> Fix:
    kept = [name.text for name in entry.names or () if name not in unused]
    if not kept:
        return Fix("remove the suppression", (_removal(entry.span),), Applicability.SAFE)
    names = entry.names or ()
    inside = Span(entry.span.source, names[0].start, names[-1].end)
    title = "remove " + ", ".join(f"`{name.text}`" for name in unused)
    return Fix(title, (Edit(inside, ", ".join(kept)),), Applicability.SAFE)


def _removal(span: Span) -> Edit:
    """The comment with the blanks before it; its whole line where nothing else stands there."""
    source = span.source
    line = source.line_at(span.start)
    mark = 1 if source.text.startswith(BOM, line.start) else 0
    start = line.start + mark
    before = source.text[start : span.start].rstrip(" \t")
    behind = source.text[span.end : line.end].strip()
    if behind:
        return Edit(Span(source, span.start, span.end + len(source.text[span.end : line.end]) - len(behind)), "")
    if before:
        return Edit(Span(source, start + len(before), line.end), "")
    end = line.end
    if end < len(source.text):
        end += len(source.line_break_at(end))
    elif start and source.text[start - 1] == "\n":  # the last line, without a line break: take the one before it
        start -= 2 if source.text.startswith("\r\n", start - 2) else 1
    return Edit(Span(source, start, end), "")
