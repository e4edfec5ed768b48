"""One line a finding: ``path:line:column: severity[code] name: message``."""

from __future__ import annotations

from ckptlint.linter import Result
from ckptlint.reports.terminal import PLAIN
from ckptlint.reports.text import heading


def render(result: Result) -> str:
    """The findings only."""
    return "".join(heading(diagnostic, PLAIN) + "\n" for diagnostic in result.diagnostics)
