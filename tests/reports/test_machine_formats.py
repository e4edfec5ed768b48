"""JSON, SARIF and GitHub annotations, as their readers want them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from ckptlint.discovery import Trouble
from ckptlint.linter import FileReport, Result
from ckptlint.reports import MACHINE_FORMATS, github, renderer, sarif
from ckptlint.reports import json as json_report
from ckptlint.rule import Applicability, Diagnostic, Fix, Severity, all_rules
from ckptlint.source.file import SourceFile
from ckptlint.source.text import Edit, SourceText, Span

SCHEMA = json.loads((Path(__file__).parent.parent / "schemas" / "sarif-schema-2.1.0.json").read_text(encoding="utf-8"))
TEXT = "\ufeffname: 名前, 😀\r\nresume: no  # why\r\nlist: [1,\r\n  2]\r\n"


def diagnostic(marked: str, path: str = "a.yaml", text: str = TEXT, *, fixed: bool = False, message: str = "so") -> Diagnostic:
    source = SourceText(path, text)
    start = text.index(marked)
    span = Span(source, start, start + len(marked))
    edits = (Edit(span, "auto"), Edit(Span(source, span.end, span.end), "!"))
    fix = Fix("set it", edits, Applicability.UNSAFE) if fixed else None
    return Diagnostic("CKP202", "resume-disabled", Severity.ERROR, message, span, "llamafactory", fix)


def result(*diagnostics: Diagnostic, troubles: tuple[Trouble, ...] = ()) -> Result:
    return Result((FileReport(SourceFile("a.yaml", b""), True, diagnostics),), troubles)


def sarif_run(*diagnostics: Diagnostic, troubles: tuple[Trouble, ...] = ()) -> dict[str, Any]:
    log = json.loads(sarif.render(result(*diagnostics, troubles=troubles)))
    jsonschema.validate(log, SCHEMA, cls=jsonschema.Draft4Validator)
    (run,) = log["runs"]
    return run


@pytest.mark.parametrize("name", MACHINE_FORMATS)
def test_a_format_says_the_same_thing_twice(name: str) -> None:
    once = renderer(name)(result(diagnostic("no"), diagnostic("名前")))
    assert once == renderer(name)(result(diagnostic("no"), diagnostic("名前")))
    assert once.endswith("\n")


# ------------------------------------------------------------------------------------------------ json


def test_json_has_the_documented_keys_and_counts_from_one() -> None:
    assert json.loads(json_report.render(result(diagnostic("no", fixed=True)))) == [
        {
            "code": "CKP202",
            "name": "resume-disabled",
            "severity": "error",
            "path": "a.yaml",
            "line": 2,
            "column": 9,
            "end_line": 2,
            "end_column": 11,
            "message": "so",
            "framework": "llamafactory",
            "fix": {
                "title": "set it",
                "applicability": "unsafe",
                "edits": [
                    {"line": 2, "column": 9, "end_line": 2, "end_column": 11, "text": "auto"},
                    {"line": 2, "column": 11, "end_line": 2, "end_column": 11, "text": "!"},
                ],
            },
        }
    ]


def test_json_of_nothing_is_an_empty_list() -> None:
    assert json.loads(json_report.render(result())) == []
    assert json.loads(json_report.render(result(diagnostic("no"))))[0]["fix"] is None


def test_json_columns_count_characters_and_not_bytes_or_the_byte_order_mark() -> None:
    (found,) = json.loads(json_report.render(result(diagnostic("😀"))))
    assert (found["column"], found["end_column"]) == (11, 12)


# ------------------------------------------------------------------------------------------------ sarif


def test_sarif_of_findings_fixes_and_errors_fits_the_schema() -> None:
    run = sarif_run(
        diagnostic("no", fixed=True),
        diagnostic("[1,\r\n  2]", "sub dir/ü#1.yaml"),
        diagnostic("no", "/abs/a.yaml"),
        troubles=(Trouble("b.yaml", "cannot be read"),),
    )
    assert run["columnKind"] == "unicodeCodePoints"
    assert [entry["locations"][0]["physicalLocation"]["artifactLocation"] for entry in run["results"]] == [
        {"uri": "file:///abs/a.yaml"},
        {"uri": "a.yaml", "uriBaseId": "%SRCROOT%"},
        {"uri": "sub%20dir/%C3%BC%231.yaml", "uriBaseId": "%SRCROOT%"},
    ]
    assert run["invocations"][0]["executionSuccessful"] is False
    assert run["invocations"][0]["toolExecutionNotifications"][0]["message"]["text"] == "cannot be read"


def test_sarif_of_nothing_fits_the_schema_and_was_successful() -> None:
    run = sarif_run()
    assert run["results"] == []
    assert run["invocations"][0]["executionSuccessful"] is True


def test_every_result_points_at_its_rule_with_the_page_as_help() -> None:
    run = sarif_run(diagnostic("no"))
    (found,) = run["results"]
    rule = run["tool"]["driver"]["rules"][found["ruleIndex"]]
    assert (rule["id"], rule["name"]) == ("CKP202", "resume-disabled")
    assert "## Why it matters" in rule["help"]["markdown"]
    assert len(run["tool"]["driver"]["rules"]) == len(all_rules())


def test_a_sarif_fix_carries_its_edits_and_how_safe_it_is() -> None:
    (fix,) = sarif_run(diagnostic("no", fixed=True))["results"][0]["fixes"]
    (change,) = fix["artifactChanges"]
    assert change["replacements"][0] == {
        "deletedRegion": {"startLine": 2, "startColumn": 9, "endLine": 2, "endColumn": 11},
        "insertedContent": {"text": "auto"},
    }
    assert fix["properties"] == {"applicability": "unsafe"}


def fingerprints(*diagnostics: Diagnostic) -> list[str]:
    return [entry["partialFingerprints"]["ckptlint/v1"] for entry in sarif_run(*diagnostics)["results"]]


def test_a_finding_keeps_its_fingerprint_when_lines_above_come_and_two_alike_differ() -> None:
    before = fingerprints(diagnostic("no", text="resume: no\n"))
    after = fingerprints(diagnostic("no", text="# more\n\n  resume: no\n"))
    assert before == after
    source = SourceText("a.yaml", "resume: no\nresume: no\n")
    twice = [Diagnostic("CKP202", "n", Severity.INFO, "m", Span(source, at, at + 2), "f") for at in (8, 19)]
    assert len(set(fingerprints(*twice))) == 2


# ------------------------------------------------------------------------------------------------ github


def test_an_annotation_names_place_and_rule() -> None:
    assert github.render(result(diagnostic("no"))) == (
        "::error file=a.yaml,line=2,col=9,endLine=2,title=CKP202 resume-disabled::so\n"
    )


def test_an_annotation_over_lines_ends_with_the_last_one_it_touches() -> None:
    assert "line=3,col=7,endLine=4," in github.render(result(diagnostic("[1,\r\n  2]")))
    assert "line=2,col=13,endLine=2," in github.render(result(diagnostic("# why\r\n")))


def test_what_the_runner_would_read_as_syntax_is_escaped() -> None:
    found = diagnostic("no", "a,b:c%.yaml", message="100%\r\n::error::x, y: z")
    assert github.render(result(found)) == (
        "::error file=a%2Cb%3Ac%25.yaml,line=2,col=9,endLine=2,title=CKP202 resume-disabled::100%25%0D%0A::error::x, y: z\n"
    )


def test_errors_of_the_check_are_annotations_too() -> None:
    assert github.render(result(troubles=(Trouble("b.yaml", "cannot be read"),))) == (
        "::error file=b.yaml,title=ckptlint::cannot be read\n"
    )
