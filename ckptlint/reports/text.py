"""The report for people: each finding with its line, the outcome of each run, and a total."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ckptlint.linter import Result, RunReport
from ckptlint.outcome import Kind
from ckptlint.reports.terminal import PLAIN, Colours, expanded, width
from ckptlint.rule import Applicability, Diagnostic, Severity
from ckptlint.source.text import Span

LONGEST = 160  # characters of a source line that are shown
_BEFORE = 60  # of them before the marked ones, where a line has to be cut


class Fixed(NamedTuple):
    """What ``--fix`` did: the findings that are gone, and those whose fix was taken back, with the reason."""

    applied: tuple[Diagnostic, ...] = ()
    refused: tuple[tuple[Diagnostic, str], ...] = ()


class Options(NamedTuple):
    """What the report shows besides the findings."""

    colours: Colours = PLAIN
    show_unknown: bool = False
    statistics: bool = False
    fixed: Fixed = Fixed()


def render(result: Result, options: Options | None = None) -> str:
    """The report, ending with a line break."""
    options = options or Options()
    blocks = [fix_lines(options.fixed)]
    if options.statistics:
        blocks.append(statistics(result.diagnostics))
    else:
        blocks += [list(block(diagnostic, options.colours)) for diagnostic in result.diagnostics]
    blocks.append([outcome_line(entry, options.colours) for entry in result.runs])
    if options.show_unknown:
        blocks.append(unknown_lines(result))
    blocks.append(list(total(result)))
    return "\n\n".join("\n".join(lines) for lines in blocks if lines) + "\n"


# ------------------------------------------------------------------------------------------------ a finding


def heading(diagnostic: Diagnostic, colours: Colours) -> str:
    """``path:line:column: severity[code] name: message``."""
    line, column = diagnostic.span.start_position
    severity = _coloured(diagnostic.severity, f"{diagnostic.severity.value}[{diagnostic.code}]", colours)
    place = colours.bold(f"{expanded(diagnostic.span.path)}:{line}:{column}:")
    return f"{place} {severity} {diagnostic.name}: {expanded(diagnostic.message)}"


def _coloured(severity: Severity, text: str, colours: Colours) -> str:
    paint = {Severity.ERROR: colours.red, Severity.WARNING: colours.yellow, Severity.INFO: colours.blue}
    return paint[severity](text)


def block(diagnostic: Diagnostic, colours: Colours) -> Iterator[str]:
    """A finding's lines: heading, source, fix."""
    yield heading(diagnostic, colours)
    number = str(diagnostic.span.line)
    gutter = " " * len(number)
    text, marks = frame(diagnostic.span)
    if text:
        yield colours.blue(f" {gutter} |")
        yield f"{colours.blue(f' {number} |')} {text}"
        yield f"{colours.blue(f' {gutter} |')} {_coloured(diagnostic.severity, marks, colours)}"
    if diagnostic.fix is not None:
        safe = diagnostic.fix.applicability is Applicability.SAFE
        how = "safe" if safe else "needs --unsafe-fixes"
        yield f"{colours.blue(f' {gutter} =')} fix: {expanded(diagnostic.fix.title)} ({how})"


def frame(span: Span) -> tuple[str, str]:
    """The first line of a span as a terminal shows it, and carets below what belongs to the span; "" for an empty line."""
    line = span.source.line_at(span.start)
    start, end = span.start - line.start, min(span.end, line.end) - line.start
    text = line.text
    if text.startswith("\ufeff"):
        text, start, end = text[1:], max(start - 1, 0), max(end - 1, 0)
    start = min(start, len(text))
    text, start, end = _cut(text, start, max(end, start))
    if not text.strip():
        return "", ""
    before, marked = expanded(text[:start]), expanded(text[:end])
    indent = width(before)
    return expanded(text), " " * indent + "^" * max(width(marked) - indent, 1)


def _cut(text: str, start: int, end: int) -> tuple[str, int, int]:
    """A long line is shown around its mark."""
    if len(text) <= LONGEST:
        return text, start, end
    first = 0 if start < _BEFORE * 2 else start - _BEFORE
    piece = text[first : first + LONGEST]
    head = "…" if first else ""
    tail = "…" if first + LONGEST < len(text) else ""
    shift = len(head) - first
    return head + piece + tail, start + shift, min(end, first + LONGEST) + shift


# ------------------------------------------------------------------------------------------------ below the findings


def outcome_line(entry: RunReport, colours: Colours = PLAIN) -> str:
    """``path: LLaMA-Factory: resumes, losing at most 500 steps``."""
    run, outcome = entry.run, entry.outcome
    paint = {Kind.EXACT: colours.green, Kind.LOSING: colours.yellow, Kind.UNKNOWN: colours.dim}
    text = paint.get(outcome.kind, colours.red)(expanded(outcome.text))
    name = f", {run.name}" if run.name else ""
    return f"{colours.bold(expanded(run.where.path) + ':')} {expanded(run.title + name)}: {text}"


def unknown_lines(result: Result) -> list[str]:
    """What could not be decided, and how to settle it."""
    lines = []
    for run, unknown in result.unknowns:
        settle = f" To settle it: {unknown.settle}" if unknown.settle else ""
        lines.append(f"  {run.where.path}:{run.where.line}: {unknown.why}.{settle}")
    return [expanded(line) for line in ["Not decided:", *lines]] if lines else ["Nothing was left undecided."]


def fix_lines(fixed: Fixed) -> list[str]:
    """A line for each fix that was made or taken back."""
    lines = [f"fixed: {_where(diagnostic)}: {_title(diagnostic)}" for diagnostic in fixed.applied]
    lines += [f"not fixed: {_where(diagnostic)}: {_title(diagnostic)}: {why}" for diagnostic, why in fixed.refused]
    return [expanded(line) for line in lines]


def _where(diagnostic: Diagnostic) -> str:
    return f"{diagnostic.span.path}:{diagnostic.span.line}: {diagnostic.name}"


def _title(diagnostic: Diagnostic) -> str:
    return diagnostic.fix.title if diagnostic.fix else diagnostic.message


def statistics(diagnostics: Sequence[Diagnostic]) -> list[str]:
    """How often each rule was broken, most often first."""
    counts = Counter((diagnostic.code, diagnostic.name) for diagnostic in diagnostics)
    digits = max((len(str(count)) for count in counts.values()), default=0)
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return [f"{count:>{digits}}  {code}  {name}" for (code, name), count in ordered]


_PHRASES = {
    Kind.EXACT: ("resumes exactly", "resume exactly"),
    Kind.LOSING: ("resumes with a loss", "resume with a loss"),
    Kind.RESTARTS: ("restarts at step 0", "restart at step 0"),
    Kind.CANNOT: ("cannot resume", "cannot resume"),
    Kind.UNKNOWN: ("is undecided", "are undecided"),
}


def total(result: Result) -> Iterator[str]:
    """What was looked at and what came of it; that nothing was recognised is said, because it is not the same as healthy."""
    yield checked(result)
    found = result.diagnostics
    if found:
        yield f"{_count(len(found), 'finding')} ({', '.join(_severities(found))}).{_fixable(found)}"
    elif result.runs:
        yield "No findings."


def checked(result: Result) -> str:
    """``Checked 3 files, 2 training runs: 1 resumes exactly, 1 restarts at step 0.``"""
    skipped = f" ({result.files_skipped} skipped by `# ckptlint: skip-file`)" if result.files_skipped else ""
    files = f"Checked {_count(result.files_read, 'file')}{skipped}"
    if not result.runs:
        return f"{files}, recognised no training run."
    kinds = Counter(entry.outcome.kind for entry in result.runs)
    outcomes = [f"{kinds[kind]} {_PHRASES[kind][kinds[kind] > 1]}" for kind in Kind if kinds[kind]]
    return f"{files}, {_count(len(result.runs), 'training run')}: {', '.join(outcomes)}."


def _severities(diagnostics: Sequence[Diagnostic]) -> Iterator[str]:
    counts = Counter(diagnostic.severity for diagnostic in diagnostics)
    nouns = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}
    for severity, noun in nouns.items():
        if counts[severity]:
            yield _count(counts[severity], noun)


def _fixable(diagnostics: Sequence[Diagnostic]) -> str:
    kinds = Counter(diagnostic.fix.applicability for diagnostic in diagnostics if diagnostic.fix)
    safe, unsafe = kinds[Applicability.SAFE], kinds[Applicability.UNSAFE]
    words = []
    if safe:
        words.append(f"{safe} can be fixed with --fix")
    if unsafe:
        words.append(f"{unsafe} {'more ' if safe else ''}with --fix --unsafe-fixes")
    if words and not safe:
        words[0] = words[0].replace(" with", " can be fixed with", 1)
    return f" {', '.join(words)}." if words else ""


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
