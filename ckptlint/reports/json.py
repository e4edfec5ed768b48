"""A JSON list of findings. Lines and columns count from 1, columns in characters; ends are just behind the last character."""

from __future__ import annotations

import json

from ckptlint.linter import Result
from ckptlint.rule import Diagnostic, Fix
from ckptlint.source.text import Edit, Span


def render(result: Result) -> str:
    """The list; ``[]`` where nothing was found."""
    return json.dumps([finding(diagnostic) for diagnostic in result.diagnostics], indent=2, ensure_ascii=False) + "\n"


def finding(diagnostic: Diagnostic) -> dict[str, object]:
    """One finding with the keys of the documented format, in their order."""
    return {
        "code": diagnostic.code,
        "name": diagnostic.name,
        "severity": diagnostic.severity.value,
        "path": diagnostic.span.path,
        **_place(diagnostic.span),
        "message": diagnostic.message,
        "framework": diagnostic.framework,
        "fix": _fix(diagnostic.fix) if diagnostic.fix else None,
    }


def _place(span: Span) -> dict[str, int]:
    line, column = span.start_position
    end_line, end_column = span.end_position
    return {"line": line, "column": column, "end_line": end_line, "end_column": end_column}


def _fix(fix: Fix) -> dict[str, object]:
    return {
        "title": fix.title,
        "applicability": fix.applicability.value,
        "edits": [_edit(edit) for edit in fix.edits],
    }


def _edit(edit: Edit) -> dict[str, object]:
    return {**_place(edit.span), "text": edit.replacement}
