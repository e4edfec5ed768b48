"""A text knows its lines, and edits leave the rest byte for byte."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ckptlint.source.text import Edit, EditConflict, SourceError, SourceText, apply, decode


@pytest.mark.parametrize(
    ("text", "offset", "position"),
    [
        ("a: 1\nb: 2\n", 5, (2, 1)),
        ("a: 1\r\nb: 2\r\n", 6, (2, 1)),
        ("a: 1\rb: 2\r", 5, (2, 1)),
        ("a\nb\r\nc\rd", 7, (4, 1)),
        ("é😀: 1", 2, (1, 3)),
        ("\ufeffa: 1", 0, (1, 1)),
        ("\ufeffa: 1", 1, (1, 1)),
        ("\ufeffa: 1\nb", 6, (2, 1)),
        ("", 0, (1, 1)),
        ("a\n", 2, (2, 1)),
        ("a\n\n\n", 3, (3, 1)),
    ],
)
def test_a_position_counts_lines_and_characters_from_one(text: str, offset: int, position: tuple[int, int]) -> None:
    assert SourceText("x", text).position(offset) == position


@pytest.mark.parametrize("char", ["\x85", "\u2028", "\u2029", "\x0b", "\x0c", "\x1c"])
def test_only_what_editors_call_a_line_break_begins_a_line(char: str) -> None:
    assert SourceText("x", f"a{char}b\nc").position(2) == (1, 3)
    assert SourceText("x", f"a{char}b\nc").position(4) == (2, 1)


@given(st.text(alphabet="ab\n\r\ufeff\x85é😀"), st.integers(0, 40))
def test_a_position_leads_back_to_its_offset(text: str, offset: int) -> None:
    source = SourceText("x", text)
    offset = min(offset, len(text))
    back = source.offset(*source.position(offset))
    between_break = text[offset - 1 : offset + 1] == "\r\n"
    assert back == offset or (offset, back) == (0, 1) or between_break


def test_a_position_outside_is_clipped_to_its_line_and_to_the_text() -> None:
    source = SourceText("x", "ab\r\nc")
    assert source.offset(1, 99) == 2
    assert source.offset(9, 1) == 5
    assert source.offset(0, 0) == 0


def test_a_line_comes_without_its_break() -> None:
    source = SourceText("x", "a\r\nbc\n")
    assert source.line_at(0).text == "a"
    assert source.line_at(3).text == "bc"
    assert source.line_break_at(0) == "\r\n"
    assert source.line_break_at(3) == "\n"


def test_a_last_line_without_a_break_takes_the_files_own() -> None:
    assert SourceText("x", "a\r\nb").line_break_at(3) == "\r\n"
    assert SourceText("x", "a").line_break_at(0) == "\n"


@given(st.text())
def test_bytes_come_back_as_they_were_read(text: str) -> None:
    data = text.encode("utf-8")
    assert decode("x", data).encode() == data


def test_bytes_that_are_not_utf8_name_the_line_and_the_byte() -> None:
    with pytest.raises(SourceError) as caught:
        decode("run.yaml", "a: é\n# ".encode() + "中".encode("gbk"))
    assert str(caught.value) == "run.yaml:2:3: byte 0xd6 is not UTF-8; save the file as UTF-8"


def test_insertions_at_one_place_keep_their_order() -> None:
    source = SourceText("x", "ab")
    assert apply(source, [Edit(source.span(1, 1), "1"), Edit(source.span(1, 1), "2"), Edit(source.span(1, 2), "B")]) == "a12B"


def test_overlapping_edits_and_edits_of_another_text_are_refused() -> None:
    source = SourceText("x", "abc")
    with pytest.raises(EditConflict, match="x:1: two edits"):
        apply(source, [Edit(source.span(0, 2), ""), Edit(source.span(1, 3), "")])
    with pytest.raises(EditConflict, match="other"):
        apply(source, [Edit(SourceText("other", "abc").whole, "")])


@given(st.data())
def test_everything_outside_the_edits_stays(data: st.DataObject) -> None:
    text = data.draw(st.text(max_size=30))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=8)))
    source = SourceText("x", text)
    pairs = list(zip(cuts[::2], cuts[1::2], strict=False))
    result = apply(source, [Edit(source.span(start, end), "<>") for start, end in pairs])
    kept, at = [], 0
    for start, end in pairs:
        kept.append(text[at:start])
        at = end
    assert result == "<>".join([*kept, text[at:]])


def test_a_span_survives_being_sent_to_another_process() -> None:
    span = pickle.loads(pickle.dumps(SourceText("x", "ab\ncd").span(3, 5)))
    assert (span.text, span.start_position, span.end_position) == ("cd", (2, 1), (2, 3))
