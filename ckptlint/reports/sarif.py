"""SARIF 2.1.0, for code scanning and whatever else reads static analysis results."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from urllib.parse import quote

from ckptlint.discovery import Trouble
from ckptlint.linter import Result
from ckptlint.rule import Diagnostic, Fix, Rule, Severity, all_rules
from ckptlint.source.text import Span

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}
_ROOT = "%SRCROOT%"  # the working directory of the check, in CI the repository


def render(result: Result) -> str:
    """One run with every installed rule and all findings. Errors of the check are notifications of its invocation."""
    rules = all_rules()
    run = {
        "tool": {"driver": _driver(rules)},
        "invocations": [_invocation(result.troubles)],
        "columnKind": "unicodeCodePoints",
        "newlineSequences": ["\r\n", "\n", "\r"],
        "results": _results(result.diagnostics, rules),
    }
    return json.dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2, ensure_ascii=False) + "\n"


def _driver(rules: Iterable[Rule]) -> dict[str, object]:
    from importlib.metadata import version

    return {"name": "ckptlint", "version": version("ckptlint"), "rules": [_rule(rule) for rule in rules]}


def _rule(rule: Rule) -> dict[str, object]:
    return {
        "id": rule.code,
        "name": rule.name,
        "shortDescription": {"text": rule.summary()},
        "help": {"text": rule.page(), "markdown": rule.page()},
        "defaultConfiguration": {"level": _LEVELS[rule.severity]},
    }


def _invocation(troubles: Iterable[Trouble]) -> dict[str, object]:
    notifications = [
        {
            "level": "error",
            "message": {"text": trouble.message},
            "locations": [{"physicalLocation": {"artifactLocation": _artifact(trouble.path)}}],
        }
        for trouble in troubles
    ]
    return {"executionSuccessful": not notifications, "toolExecutionNotifications": notifications}


def _results(diagnostics: Iterable[Diagnostic], rules: Iterable[Rule]) -> list[dict[str, object]]:
    indexes = {rule.code: index for index, rule in enumerate(rules)}
    seen: Counter[tuple[str, ...]] = Counter()
    results = []
    for diagnostic in diagnostics:
        identity = _identity(diagnostic)
        results.append(_result(diagnostic, indexes, _fingerprint(identity, seen[identity])))
        seen[identity] += 1
    return results


def _result(diagnostic: Diagnostic, indexes: dict[str, int], fingerprint: str) -> dict[str, object]:
    result: dict[str, object] = {
        "ruleId": diagnostic.code,
        "level": _LEVELS[diagnostic.severity],
        "message": {"text": diagnostic.message},
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": _artifact(diagnostic.span.path),
                    "region": _region(diagnostic.span),
                }
            }
        ],
        "partialFingerprints": {"ckptlint/v1": fingerprint},
    }
    if diagnostic.code in indexes:
        result["ruleIndex"] = indexes[diagnostic.code]
    if diagnostic.fix is not None and diagnostic.fix.edits:
        result["fixes"] = [_fix(diagnostic.fix)]
    if diagnostic.framework:
        result["properties"] = {"framework": diagnostic.framework}
    return result


def _identity(diagnostic: Diagnostic) -> tuple[str, ...]:
    """What makes a finding the same one after lines above it have come or gone."""
    line = diagnostic.span.source.line_at(diagnostic.span.start).text.strip()
    return diagnostic.code, diagnostic.span.path, line


def _fingerprint(identity: tuple[str, ...], occurrence: int) -> str:
    from hashlib import sha256

    return sha256("\0".join((*identity, str(occurrence))).encode("utf-8", "backslashreplace")).hexdigest()[:32]


def _artifact(path: str) -> dict[str, str]:
    uri = quote(path.encode("utf-8", "surrogateescape"), safe="/")
    if path.startswith("/"):
        return {"uri": f"file://{uri}"}
    # SARIF 2.1.0, 3.4.4: a uri that goes with a base does not begin with `..`.
    return {"uri": uri} if path.startswith("../") else {"uri": uri, "uriBaseId": _ROOT}


def _region(span: Span) -> dict[str, int]:
    line, column = span.start_position
    end_line, end_column = span.end_position
    return {"startLine": line, "startColumn": column, "endLine": end_line, "endColumn": end_column}


def _fix(fix: Fix) -> dict[str, object]:
    changes: dict[str, list[dict[str, object]]] = {}
    for edit in fix.edits:
        replacement = {"deletedRegion": _region(edit.span), "insertedContent": {"text": edit.replacement}}
        changes.setdefault(edit.span.path, []).append(replacement)
    return {
        "description": {"text": f"{fix.title} ({fix.applicability.value})"},
        "artifactChanges": [
            {"artifactLocation": _artifact(path), "replacements": replacements} for path, replacements in changes.items()
        ],
        "properties": {"applicability": fix.applicability.value},
    }
