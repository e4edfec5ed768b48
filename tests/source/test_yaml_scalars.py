"""A scalar means what the frameworks' own loaders make of it, and what is written is read back."""

from __future__ import annotations

import math
from pathlib import PurePosixPath

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st
from omegaconf import OmegaConf
from yaml_loaders import OMEGACONF_LOADER

from ckptlint.source.text import CannotEdit, SourceText
from ckptlint.source.yaml import OMEGACONF, SAFE_LOAD, Mapping, Scalar, Schema, parse, render

TABLE = """
true True TRUE tRUE false False yes Yes YES no No NO on On off Off y n Y N
null Null NULL nULL ~ none None
0 1 -1 +1 007 0123 089 0o17 0x1F 0xfg 0b101 1_000 _1 1__0 1:30 1:30:15 190:20:30 1:99
1.0 .5 5. -.5 +.5 1e5 1E5 1e-4 1e+4 1.0e-4 1.e4 1.0e4 .1e-3 .1e3 1_0.5 1_0e3 e5 1e
1.5:30 1:30.5 .inf -.inf +.INF .nan .NaN inf nan
2024-01-01 2024-13-45 2024-01-01T10:00:00Z 2001-12-14t21:59:43.10-05:00
12345678901234567890 0.1.2 1.2.3 v1 500steps - -- --- ... = << 1,000 a:b http://x:80/y a#b ${x} $x
"""
SCALARS = [word for line in TABLE.splitlines() for word in line.split()]


def of_yaml(text: str, schema: Schema) -> object:
    (document,) = parse(SourceText("x", text)).documents
    return document.root.value(schema)


def same(one: object, other: object) -> bool:
    """Equal, of the same kind, and NaN like NaN."""
    return repr(one) == repr(other) and type(one) is type(other)


def loaded(text: str, loader: object) -> object:
    try:
        return yaml.load(text, Loader=loader)  # type: ignore[arg-type]
    except Exception as error:
        return error


@pytest.mark.parametrize(("schema", "loader"), [(SAFE_LOAD, yaml.SafeLoader), (OMEGACONF, OMEGACONF_LOADER)])
@pytest.mark.parametrize("scalar", SCALARS)
def test_a_scalar_means_what_the_loader_makes_of_it(scalar: str, schema: Schema, loader: object) -> None:
    for form in ("{}", "'{}'", '"{}"', "! {}", "! '{}'", "!!str {}"):
        text = f"key: {form.format(scalar)}\n"
        expected = loaded(text, loader)
        if isinstance(expected, (yaml.scanner.ScannerError, yaml.parser.ParserError)):
            continue  # a dash alone, for one, is no YAML here
        if isinstance(expected, Exception):
            expected = {"key": scalar}  # what the loader refuses stays the text
        assert same(of_yaml(text, schema), expected), text


@pytest.mark.parametrize(
    "tag", ["int", "float", "bool", "null", "binary", "timestamp", "str", "set", "map", "seq", "python/name:os.system"]
)
def test_a_written_tag_never_crashes_and_means_what_the_loader_says(tag: str) -> None:
    for text in ("", "12", "yes", "x", "2024-01-01", "aGk=", "é", ":"):
        source = f"!!{tag} '{text}'"
        expected = loaded(source, yaml.SafeLoader)
        assert same(of_yaml(source, SAFE_LOAD), text if isinstance(expected, Exception) else expected), source


@pytest.mark.parametrize("scalar", [word for word in SCALARS if "$" not in word])
def test_omegaconf_itself_agrees(scalar: str) -> None:
    text = f"key: {scalar}\n"
    try:
        expected = OmegaConf.to_container(OmegaConf.create(text))
    except (yaml.YAMLError, ValueError):
        expected = {"key": scalar}
        if scalar == "-":
            return
    assert same(of_yaml(text, OMEGACONF), expected)


PLAIN = st.text(alphabet="0123456789.eE+-_:xobaynulsif~=<T Z", min_size=1, max_size=12)


@settings(max_examples=400, deadline=None)
@given(PLAIN)
@example("1e-5")
@example("0b_")
@example("0x_")
@example("2024-02-30")
@example("-_")
def test_any_plain_scalar_means_the_same_to_us_and_to_the_loaders(text: str) -> None:
    source = f"key: {text}\n"
    for schema, loader in ((SAFE_LOAD, yaml.CSafeLoader), (OMEGACONF, OMEGACONF_LOADER)):
        expected = loaded(source, loader)
        if isinstance(expected, dict) and set(expected) == {"key"}:
            assert same(of_yaml(source, schema), expected)
        elif isinstance(expected, (ValueError, yaml.constructor.ConstructorError)) and not isinstance(
            expected, yaml.scanner.ScannerError
        ):
            of_yaml(source, schema)


# ------------------------------------------------------------------------------------------------ writing

VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(),
    st.text(alphabet=" #:'\"-?,[]{}&*!|>%@`\\ab1\n\t\x85\u2028\ufeff~=<.", max_size=8),
)


def assert_read_back(value: object, text: str) -> None:
    assert "\n" not in text
    assert "\r" not in text
    for loader in (yaml.CSafeLoader, yaml.SafeLoader, OMEGACONF_LOADER):
        back = yaml.load(text, Loader=loader)
        wanted: object = {"key": value, "next": 1}
        assert same(back, wanted), (text, loader)


@settings(max_examples=300, deadline=None)
@given(VALUES, st.sampled_from([None, "'", '"']))
@example("no", None)
@example("1e-4", None)
@example(1e-05, None)
@example(1e300, None)
@example(-math.inf, None)
@example("<<", None)
@example("=", None)
@example("a\ufeffb", None)
@example("\U0010ffff\ufffe\uffff", None)
@example("my run #1", '"')
@example("a: b", None)
@example("it's", "'")
@example("---", None)
def test_a_rendered_value_is_read_back_as_that_very_value(value: object, quote: str | None) -> None:
    assert_read_back(value, f"{{key: {render(value, flow=True, quote=quote)}, next: 1}}")
    text = render(value, quote=quote)
    assert "\n" not in text
    for loader in (yaml.CSafeLoader, yaml.SafeLoader, OMEGACONF_LOADER):
        assert same(yaml.load(f"key: {text}\nnext: 1\n", Loader=loader), {"key": value, "next": 1})
        assert same(yaml.load(f"- key: {text}  # why\n", Loader=loader), [{"key": value}])


@settings(max_examples=100, deadline=None)
@given(
    st.recursive(
        VALUES,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
        max_leaves=8,
    )
)
def test_lists_and_mappings_are_rendered_too(value: object) -> None:
    for loader in (yaml.CSafeLoader, OMEGACONF_LOADER):
        assert same(yaml.load(f"key: {render(value)}\n", Loader=loader), {"key": value})


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("saves/llama3/checkpoint-500", "saves/llama3/checkpoint-500"),
        (PurePosixPath("/data/run 1"), "/data/run 1"),
        ("my run #1", "'my run #1'"),
        ("it's", "it's"),
        ("'quoted'", "'''quoted'''"),
        ("a: b", "'a: b'"),
        ("no", "'no'"),
        ("500", "'500'"),
        ("", "''"),
        ("2024-01-01", "'2024-01-01'"),
        ("路径/检查点 😀", "路径/检查点 😀"),
        ("two\nlines", '"two\\nlines"'),
        ("\x85", '"\\x85"'),
        (500, "500"),
        (1e-05, "1.0e-05"),
        (0.5, "0.5"),
        (True, "true"),
        (None, "null"),
    ],
)
def test_values_are_written_the_way_people_write_them(value: object, text: str) -> None:
    assert render(value) == text


def test_the_authors_quote_is_kept_where_it_can_hold_the_text() -> None:
    assert render("a", quote="'") == "'a'"
    assert render("a", quote='"') == '"a"'
    assert render("a\n", quote="'") == '"a\\n"'


def test_a_file_name_that_is_no_unicode_is_refused_rather_than_changed() -> None:
    with pytest.raises(CannotEdit, match="not Unicode"):
        render(b"run-\xff".decode("utf-8", "surrogateescape"))


def test_what_yaml_does_not_have_is_a_type_error() -> None:
    with pytest.raises(TypeError, match="object"):
        render(object())


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=6))
def test_writing_a_value_twice_gives_the_same_bytes(value: str) -> None:
    source = SourceText("x", f"key: {render(value)}\n")
    (document,) = parse(source).documents
    assert isinstance(document.root, Mapping)
    (entry,) = document.root.entries
    assert isinstance(entry.value, Scalar)
    assert render(entry.value.value(OMEGACONF)) == entry.value.span.text
