"""Workflow commands of GitHub Actions: each finding becomes an annotation on its lines."""

from __future__ import annotations

from ckptlint.linter import Result
from ckptlint.rule import Diagnostic, Severity

_COMMANDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "notice"}


def render(result: Result) -> str:
    """A command a finding, and one for each file that could not be checked."""
    lines = [_command(diagnostic) for diagnostic in result.diagnostics]
    lines += [f"::error file={_property(trouble.path)},title=ckptlint::{_data(trouble.message)}" for trouble in result.troubles]
    return "".join(f"{line}\n" for line in lines)


def _command(diagnostic: Diagnostic) -> str:
    span = diagnostic.span
    line, column = span.start_position
    last_line, _ = span.source.position(max(span.end - 1, span.start))
    properties = {
        "file": span.path,
        "line": str(line),
        "col": str(column),
        "endLine": str(last_line),
        "title": f"{diagnostic.code} {diagnostic.name}",
    }
    listed = ",".join(f"{key}={_property(value)}" for key, value in properties.items())
    return f"::{_COMMANDS[diagnostic.severity]} {listed}::{_data(diagnostic.message)}"


def _data(text: str) -> str:
    """The escapes that the runner takes back out of a message (actions/toolkit, packages/core/src/command.ts)."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
