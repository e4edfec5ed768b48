"""A command in a YAML: where its characters are written."""

from __future__ import annotations

import pytest

from ckptlint.source.embedded import EmbeddedText, embedded, home, home_edits
from ckptlint.source.file import SourceFile
from ckptlint.source.text import Edit, Span, apply
from ckptlint.source.yaml import Mapping, Scalar


def command(text: str) -> EmbeddedText:
    root = SourceFile("job.yaml", text.encode()).yaml.documents[0].root
    assert isinstance(root, Mapping)
    entry = root.get("c")
    assert entry is not None
    assert isinstance(entry.value, Scalar)
    return embedded(entry.value)


def span_of(inner: EmbeddedText, words: str) -> Span:
    start = inner.text.index(words)
    return Span(inner, start, start + len(words))


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ("c: run --save /a\n", 1, 10),
        ("c:   run --save /a\n", 1, 12),
        ('c: "run --save /a"\n', 1, 11),
        ("c: 'run --save /a'\n", 1, 11),
        ("c: |\n  run \\\n    --save /a\n", 3, 7),
        ("c: |-\n  cd x\n\n  run --save /a\n", 4, 9),
        ("c: |\r\n  cd x\r\n  run --save /a\r\n", 3, 9),
        ("c: >\n  run\n  --save /a\n", 3, 5),
        ("c: >-\n  cd x &&\n\n  run --save /a\n", 4, 9),
        ("c: run\n   --save /a\n", 2, 6),
        ("c: 'run\n   --save /a'\n", 2, 6),
        ("x: ü\nc: run --save /a\n", 2, 10),
    ],
)
def test_each_character_of_a_command_is_found_where_it_is_written(text: str, line: int, column: int) -> None:
    inner = command(text)
    found = home(span_of(inner, "save"))
    assert (found.text, found.path) == ("save", "job.yaml")
    assert found.start_position == (line, column)
    assert span_of(inner, "save").start_position == (line, column)


@pytest.mark.parametrize(
    "text", ['c: "run \\\n  --save /a"\n', 'c: "run\\n --save /a"\n', "c: 'it''s --save /a'\n", "c: &x run --save /a\n"]
)
def test_where_characters_do_not_correspond_the_whole_value_is_the_place(text: str) -> None:
    inner = command(text)
    place = home(span_of(inner, "save"))
    assert place.start_position[0] == 1
    assert place == inner.scalar.span
    assert home_edits((Edit(span_of(inner, "save"), "x"),)) == ()


def test_an_edit_is_made_in_the_file_and_keeps_to_its_indentation() -> None:
    inner = command("c: |\n    run --save /a\n    wait\nd: 1\n")
    edits = home_edits((Edit(span_of(inner, "/a"), "/b"), Edit(Span(inner, 0, 0), "set -e\n")))
    assert apply(inner.scalar.source, edits) == "c: |\n    set -e\n    run --save /b\n    wait\nd: 1\n"


@pytest.mark.parametrize("replacement", ["a: b", "x #y", "a\nb", "it's", 'say "x"', "back\\slash"])
def test_an_edit_that_would_change_the_yaml_around_it_is_refused(replacement: str) -> None:
    inner = command("c: run --save /a\n")
    assert home_edits((Edit(span_of(inner, "/a"), replacement),)) == ()


def test_an_edit_in_a_plain_value_is_made_in_place() -> None:
    inner = command("c: run --save /a\n")
    edits = home_edits((Edit(span_of(inner, "/a"), "/b"),))
    assert apply(inner.scalar.source, edits) == "c: run --save /b\n"


def test_a_span_of_a_file_is_at_home_already() -> None:
    span = SourceFile("a.sh", b"abc").text.span(0, 1)
    assert home(span) is span
    assert home_edits((Edit(span, "x"),)) == (Edit(span, "x"),)
