from __future__ import annotations

import pytest
from editor import CODECS, character_offset
from hypothesis import given
from hypothesis import strategies as st
from lsprotocol import types

from ckptlint.server.positions import offset, position, span_range
from ckptlint.source.text import SourceText

TEXTS = st.text(st.sampled_from("ab :#\n运é😀🏳\ufeff\u2028\x0c\x85"), max_size=30)


@pytest.mark.parametrize("encoding", CODECS)
@given(text=TEXTS, data=st.data())
def test_a_position_is_where_an_editor_finds_the_offset_and_back(encoding: str, text: str, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(text)))
    place = position(SourceText("x.yaml", text), at, encoding)
    assert character_offset(text, place, encoding) == at
    assert offset(SourceText("x.yaml", text), place, encoding) == at


@pytest.mark.parametrize("line_break", ["\n", "\r\n", "\r"])
def test_every_line_break_of_the_protocol_ends_a_line(line_break: str) -> None:
    source = SourceText("x.yaml", line_break.join(["one", "", "二😀 three"]))
    start = source.text.index("three")
    assert span_range(source.span(start, start + 5), "utf-16") == types.Range(types.Position(2, 4), types.Position(2, 9))


def test_a_position_behind_the_line_is_its_end_and_one_behind_the_text_its_end() -> None:
    source = SourceText("x.yaml", "😀\r\nb")
    assert offset(source, types.Position(0, 99), "utf-16") == 1
    assert offset(source, types.Position(9, 0), "utf-16") == 4


@pytest.mark.parametrize(("encoding", "inside"), [("utf-16", 2), ("utf-8", 4)])
def test_a_position_inside_of_a_character_is_the_place_before_it(encoding: str, inside: int) -> None:
    assert offset(SourceText("x.yaml", "a😀b"), types.Position(0, inside), encoding) == 1
