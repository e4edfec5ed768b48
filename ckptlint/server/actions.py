"""What an editor can do about findings, as edits of the text: fixes, all safe fixes, and suppressions."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from ckptlint import suppressions
from ckptlint.fixing import MAY_APPEAR, repair
from ckptlint.linter import SYNTAX_ERROR, UNUSED_SUPPRESSION
from ckptlint.rule import Applicability, Diagnostic
from ckptlint.server.buffers import Checked
from ckptlint.source.file import SourceFile
from ckptlint.source.text import BOM, Edit, SourceError, SourceText, Span, apply

QUICK_FIX = "quickfix"
FIX_ALL = "source.fixAll.ckptlint"
COMMENTED = (".yaml", ".yml")  # where it is certain what a comment is


@dataclass(frozen=True)
class Action:
    """One offer. ``diagnostic`` None: it is about the whole file. ``preferred``: it may be taken without a second thought."""

    title: str
    kind: str
    edits: tuple[Edit, ...]
    diagnostic: Diagnostic | None = None
    preferred: bool = False


def offers(checked: Checked, start: int, end: int, kinds: list[str] | None) -> Iterator[Action]:
    """What can be done about the findings that touch the characters ``[start, end]``, and about the whole file.

    Args:
        kinds: the kinds that the editor asks for, None for all; ``source.fixAll`` stands for all kinds below it.
    """
    here = [diagnostic for diagnostic in own_diagnostics(checked) if _touches(diagnostic.span, start, end)]
    if _wanted(QUICK_FIX, kinds):
        for diagnostic in here:
            yield from _fix(checked, diagnostic)
        for diagnostic in {(diagnostic.span.line, diagnostic.code): diagnostic for diagnostic in here}.values():
            yield from _suppression(checked, diagnostic)
    if _wanted(FIX_ALL, kinds):
        yield from _fix_all(checked)


def own_diagnostics(checked: Checked) -> list[Diagnostic]:
    """The findings that stand in this very file."""
    return [diagnostic for diagnostic in checked.diagnostics if diagnostic.span.path == checked.file.path]


def _touches(span: Span, start: int, end: int) -> bool:
    return span.start <= end and start <= span.end


def _wanted(kind: str, kinds: list[str] | None) -> bool:
    return kinds is None or any(wanted in ("", kind) or kind.startswith(f"{wanted}.") for wanted in kinds)


# ------------------------------------------------------------------------------------------------ fixes


def _fix(checked: Checked, diagnostic: Diagnostic) -> Iterator[Action]:
    fix = diagnostic.fix
    if fix is None or any(edit.span.source is not checked.file.text for edit in fix.edits):
        return
    if not _does_its_work(checked, diagnostic, fix.edits, MAY_APPEAR):
        return
    safe = fix.applicability is Applicability.SAFE
    title = f"{diagnostic.code}: {fix.title}" + ("" if safe else " (unsafe)")
    yield Action(title, QUICK_FIX, fix.edits, diagnostic, preferred=safe)


@lru_cache(maxsize=64)  # an editor asks again at every move of the cursor
def _does_its_work(checked: Checked, diagnostic: Diagnostic, edits: tuple[Edit, ...], may_appear: frozenset[str]) -> bool:
    """Whether edits take a finding away, leave a file that can be read, and raise nothing that was not there."""
    try:
        found = checked.again(_edited(checked.file, edits))
    except (SourceError, UnicodeEncodeError):
        return False
    before = Counter(known.name for known in checked.diagnostics)
    after = Counter(left.name for left in found)
    return after[diagnostic.name] < before[diagnostic.name] and set(after - before) <= may_appear


def _edited(file: SourceFile, edits: tuple[Edit, ...]) -> SourceFile:
    return SourceFile(file.path, apply(file.text, edits).encode("utf-8"))


@lru_cache(maxsize=8)
def _fix_all(checked: Checked) -> tuple[Action, ...]:
    fixes = [diagnostic.fix for diagnostic in checked.diagnostics if diagnostic.fix is not None]
    if not any(fix.applicability is Applicability.SAFE for fix in fixes):
        return ()
    try:
        repaired = repair(checked.file, checked.again, unsafe=False)
        edits = differences(checked.file.text, repaired.file.text.text)
    except SourceError:
        return ()
    return (Action("Fix all safely fixable ckptlint findings", FIX_ALL, edits),) if edits else ()


def differences(source: SourceText, after: str) -> tuple[Edit, ...]:
    """Edits of whole lines that turn a text into another one. Lines that stay are not touched: editors keep marks on them."""
    from difflib import SequenceMatcher

    old, new = source.text.splitlines(keepends=True), after.splitlines(keepends=True)
    same = next((at for at, (one, other) in enumerate(zip(old, new, strict=False)) if one != other), min(len(old), len(new)))
    starts = [0]
    for line in old:
        starts.append(starts[-1] + len(line))
    edits = []
    for kind, old_start, old_end, new_start, new_end in SequenceMatcher(None, old[same:], new[same:]).get_opcodes():
        if kind != "equal":
            span = Span(source, starts[same + old_start], starts[same + old_end])
            edits.append(Edit(span, "".join(new[same + new_start : same + new_end])))
    return tuple(edits)


# ------------------------------------------------------------------------------------------------ suppressions


def _suppression(checked: Checked, diagnostic: Diagnostic) -> Iterator[Action]:
    """The first place for a suppression that is read as one: behind the first line of a value over several lines is none."""
    if checked.file.suffix not in COMMENTED:
        return
    if diagnostic.code in (SYNTAX_ERROR, UNUSED_SUPPRESSION) or diagnostic.span.source is not checked.file.text:
        return
    for edit in _suppressing(checked.file, diagnostic):
        if _is_read(_edited(checked.file, (edit,)), edit) and _does_its_work(checked, diagnostic, (edit,), frozenset()):
            yield Action(f"Suppress {diagnostic.code} {diagnostic.name} on this line", QUICK_FIX, (edit,), diagnostic)
            return


def _is_read(file: SourceFile, edit: Edit) -> bool:
    """Whether what was written is a suppression there, and not a piece of a value."""
    written = range(edit.span.start, edit.span.start + len(edit.replacement) + 1)
    return any(name.end in written for entry in suppressions.read(file).ignores for name in entry.names or ())


def _suppressing(file: SourceFile, diagnostic: Diagnostic) -> Iterator[Edit]:
    source, name = file.text, diagnostic.name
    for entry in suppressions.read(file).ignores:
        if entry.line == diagnostic.span.line:
            yield _extended(entry, name)
    line = source.line_at(diagnostic.span.start)
    text = line.text.rstrip(" \t")
    yield Edit(Span(source, line.start + len(text), line.end), f"  # ckptlint: ignore[{name}]")
    mark = len(BOM) if text.startswith(BOM) else 0
    start = line.start + mark
    indent = text[mark : len(text) - len(text[mark:].lstrip(" \t"))]
    yield Edit(Span(source, start, start), f"{indent}# ckptlint: ignore[{name}]{source.line_break_at(line.end)}")


def _extended(entry: suppressions.Suppression, name: str) -> Edit:
    if entry.names:
        end = entry.names[-1].end
        return Edit(Span(entry.span.source, end, end), f", {name}")
    return Edit(entry.span, re.sub(r"ignore[ \t]*(?:\[[ \t,]*\]?)?", f"ignore[{name}]", entry.span.text, count=1))
