"""JSON: what is read equals what json.load reads, errors stand where they are, and edits leave all else byte for byte."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ckptlint.frameworks.yaml_settings import YamlSettings
from ckptlint.source.json import JSON, MAX_DEPTH, parse, write
from ckptlint.source.text import CannotEdit, SourceError, SourceText, apply
from ckptlint.source.yaml import Mapping

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(codec="utf-8")),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(codec="utf-8")), inner),
    max_leaves=12,
)

WRITTEN = (
    '{"a": 1e-4, "b": [1, 2, {"c": null}], "d": "\\u00e9\\ud83d\\ude00\\/", "e": NaN, "f": -Infinity, "g": 1.50, "h": true}',
    '\t{\n\t"tabs":\t1\n\t}\r\n',
    '{"big": 123456789012345678901234567890, "minus": -0, "E": 1E5, "twice": 1, "twice": 2}',
    '{"' + "k" * 2000 + '":"v"}',
    '{"a":1,"b":{"c":2},"d":[]}',
    "[]",
    '"text"',
)

REFUSED = {
    '{"a": 1,}': (1, 9, "a key is missing before `}`"),
    "[1,\n 2,]": (2, 4, "a value is missing before `]`"),
    '{"a": 1\n "b": 2}': (2, 2, "`,` or `}` is missing"),
    '{\n  // why\n  "a": 1}': (2, 3, "JSON has no comments"),
    '{"a": 1 # why\n}': (1, 9, "`,` or `}` is missing"),
    "{'a': 1}": (1, 2, "JSON quotes with"),
    "{a: 1}": (1, 2, "a key in double quotes is missing"),
    '{"a" 1}': (1, 6, "`a` is not followed by `:`"),
    '{"a": 01}': (1, 7, "this is no JSON value"),
    '{"a": True}': (1, 7, "this is no JSON value"),
    '{"a": "x\ny"}': (1, 9, "invalid control character"),
    '{"a": "\\x"}': (1, 8, "invalid \\escape"),
    '{"a": [1, 2': (1, 12, "the text ends before `]`"),
    '{"a": ': (1, 7, "the text ends where a value is due"),
    "": (1, 1, "the text ends where a value is due"),
    '{"a": 1} {}': (1, 10, "the value has ended before this"),
    '\ufeff{"a": 1}': (1, 1, "byte order mark"),
}


@pytest.mark.parametrize("text", WRITTEN)
def test_what_is_read_equals_what_json_load_reads(text: str) -> None:
    assert repr(parse(SourceText("x.json", text)).root.value(JSON)) == repr(json.loads(text))


@given(VALUES, st.sampled_from([None, 1, "\t"]), st.booleans())
def test_whatever_json_writes_is_read_back(value: object, indent: str | int | None, ascii_only: bool) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    assert repr(parse(SourceText("x.json", text)).root.value(JSON)) == repr(json.loads(text))


@given(st.text(alphabet="{}[]\",:0123456789.eE+-truefalsn \n\t\\/#'") | st.text())
def test_what_json_load_refuses_is_refused_and_nothing_else(text: str) -> None:
    try:
        expected = json.loads(text)
    except ValueError:
        with pytest.raises(SourceError):
            parse(SourceText("x.json", text))
    else:
        assert repr(parse(SourceText("x.json", text)).root.value(JSON)) == repr(expected)


@pytest.mark.parametrize("text", REFUSED)
def test_an_error_names_the_place_and_what_is_wrong_there(text: str) -> None:
    line, column, words = REFUSED[text]
    with pytest.raises(SourceError, match=r"x\.json") as caught:
        parse(SourceText("x.json", text))
    assert caught.value.span.start_position == (line, column)
    assert words in str(caught.value)


def test_a_text_nested_without_end_is_an_error_and_no_crash() -> None:
    with pytest.raises(SourceError, match=f"more than {MAX_DEPTH} levels"):
        parse(SourceText("x.json", "[" * 100_000))


def test_half_a_surrogate_pair_becomes_a_character_that_can_be_printed() -> None:
    assert parse(SourceText("x.json", '"\\ud800x"')).root.value(JSON) == "\ufffdx"


def test_values_stand_where_they_are_written() -> None:
    root = parse(SourceText("x.json", '{\r\n\t"a": 1,\r\n\t"b": "x"\r\n}')).root
    assert isinstance(root, Mapping)
    spans = {name: (entry.key.span.text, entry.value.span.text, entry.value.span.line) for name, entry in root.items()}
    assert spans == {"a": ('"a"', "1", 2), "b": ('"b"', '"x"', 3)}


# ------------------------------------------------------------------------------------------------ edits


def settings(text: str, *after: str) -> YamlSettings:
    source = parse(SourceText("x.json", text))
    assert isinstance(source.root, Mapping)
    return YamlSettings(source, source.root, JSON, {}, "default", after, write)


def edited(text: str, name: str, value: object, *after: str) -> str:
    own = settings(text, *after)
    return apply(own.yaml.source, own.setting(name).set(value))


def without(text: str, name: str) -> str:
    own = settings(text)
    return apply(own.yaml.source, own.setting(name).remove())


TABS = '{\r\n\t"steps" : 500,\r\n\t"dir":"out"\r\n}'


def test_a_value_is_replaced_and_nothing_else() -> None:
    assert edited(TABS, "steps", 100) == TABS.replace("500", "100")
    assert edited(TABS, "dir", 'a "b" ü') == TABS.replace('"out"', '"a \\"b\\" ü"')
    assert edited(TABS, "dir", None) == TABS.replace('"out"', "null")


def test_a_key_is_added_on_a_line_of_its_own_where_the_others_have_one() -> None:
    assert edited(TABS, "new", True) == TABS.replace('"out"', '"out",\r\n\t"new": true')
    assert edited(TABS, "new", True, "steps") == TABS.replace("500,", '500,\r\n\t"new": true,')
    assert edited('{"a": 1, "b": 2}', "c", 0.5, "a") == '{"a": 1, "c": 0.5, "b": 2}'


def test_a_key_goes_with_one_comma_wherever_it_stands() -> None:
    assert without(TABS, "steps") == '{\r\n\t"dir":"out"\r\n}'
    assert without(TABS, "dir") == '{\r\n\t"steps" : 500\r\n}'
    assert without('{"a": 1, "b": 2, "c": 3}', "b") == '{"a": 1, "c": 3}'
    assert without('{\n  "a": {"b": [1]}\n}', "a") == "{}"


def test_a_key_is_renamed_in_quotes() -> None:
    own = settings(TABS)
    assert apply(own.yaml.source, own.rename("steps", "save_steps")) == TABS.replace("steps", "save_steps")


def test_what_cannot_be_changed_alone_is_refused() -> None:
    with pytest.raises(CannotEdit, match="not a single value"):
        edited('{"a": {"b": 1}}', "a", 1)
    with pytest.raises(CannotEdit, match="written twice"):
        without('{"a": 1, "a": 2}', "a")
    with pytest.raises(CannotEdit, match="no place"):
        edited("{}", "a", 1)


@given(st.dictionaries(st.sampled_from("abcd"), VALUES, min_size=1), st.sampled_from([None, 2, "\t"]), st.sampled_from("abcdx"))
def test_after_an_edit_the_other_keys_hold_what_they_held(
    values: dict[str, object], indent: str | int | None, name: str
) -> None:
    text = json.dumps(values, indent=indent)
    rest = {key: value for key, value in values.items() if key != name}
    if not isinstance(values.get(name), (dict, list)):
        assert repr(json.loads(edited(text, name, 7))) == repr({**values, name: 7})
    assert repr(json.loads(without(text, name))) == repr(rest)
