"""YAML is read where it stands, and an edit changes one key and nothing else."""

from __future__ import annotations

import gc

import pytest
import yaml
from omegaconf import OmegaConf

from ckptlint.source.text import CannotEdit, SourceError, SourceText, apply, decode
from ckptlint.source.yaml import OMEGACONF, SAFE_LOAD, Mapping, YamlSource, parse, render
from ckptlint.source.yaml_composer import MAX_DEPTH

KEY = "resume_from_checkpoint"


def read(text: str) -> tuple[YamlSource, Mapping]:
    source = parse(SourceText("run.yaml", text))
    root = source.documents[0].root
    assert isinstance(root, Mapping)
    return source, root


def loaded(text: str) -> object:
    """The first document as PyYAML loads it."""
    return next(yaml.load_all(text.removeprefix("\ufeff"), Loader=yaml.CSafeLoader))


def put(text: str, value: object, key: str = KEY) -> str:
    """The text with a top-level key set."""
    source, root = read(text)
    entry = root.get(key)
    assert entry is not None
    return apply(source.source, source.set_value(entry, render(value, flow=root.flow)))


def insert(text: str, value: object, after: str = "output_dir", key: str = KEY) -> str:
    source, root = read(text)
    entry = root.get(after)
    assert entry is not None
    return apply(source.source, [source.insert_after(root, entry, key, render(value, flow=root.flow))])


def remove(text: str, key: str = KEY) -> str:
    source, root = read(text)
    entry = root.get(key)
    assert entry is not None
    return apply(source.source, [source.remove(root, entry)])


def inner(text: str, *path: str) -> tuple[YamlSource, Mapping]:
    source, mapping = read(text)
    for name in path:
        entry = mapping.get(name)
        assert entry is not None
        assert isinstance(entry.value, Mapping)
        mapping = entry.value
    return source, mapping


# ------------------------------------------------------------------------------------------------ setting a value

SPELLINGS = {
    "plain": (f"{KEY}: out\n", f"{KEY}: NEW\n"),
    "single quotes": (f"{KEY}: 'it''s'\n", f"{KEY}: NEW\n"),
    "double quotes": (f'{KEY}: "a\\tb"\n', f"{KEY}: NEW\n"),
    "comment behind, with its spacing": (f"{KEY}: out  # our mount\n", f"{KEY}: NEW  # our mount\n"),
    "quote and comment": (f'{KEY}: "out"  # x\n', f"{KEY}: NEW  # x\n"),
    "hash inside quotes": (f'{KEY}: "my run #1"\n', f"{KEY}: NEW\n"),
    "hash inside a word": (f"{KEY}: run#1 # c\n", f"{KEY}: NEW # c\n"),
    "tabs around": (f"{KEY}:\tout\t#\tc\n", f"{KEY}:\tNEW\t#\tc\n"),
    "trailing spaces": (f"{KEY}: out   \nb: 1\n", f"{KEY}: NEW   \nb: 1\n"),
    "null": (f"{KEY}: null\n", f"{KEY}: NEW\n"),
    "tilde": (f"{KEY}: ~\n", f"{KEY}: NEW\n"),
    "true": (f"{KEY}: true\n", f"{KEY}: NEW\n"),
    "nothing": (f"{KEY}:\n", f"{KEY}: NEW\n"),
    "nothing at the end": (f"{KEY}:", f"{KEY}: NEW"),
    "nothing and spaces": (f"{KEY}:   \nb: 1\n", f"{KEY}: NEW   \nb: 1\n"),
    "nothing and a comment": (f"{KEY}: # none yet\nb: 1\n", f"{KEY}: NEW # none yet\nb: 1\n"),
    "nothing and comments with colons": (f"{KEY}:\n# a: b\nb: 1\n", f"{KEY}: NEW\n# a: b\nb: 1\n"),
    "environment": (f"{KEY}: ${{train_output}}\n", f"{KEY}: NEW\n"),
    "next line": (f"{KEY}:\n  out\nb: 1\n", f"{KEY}:\n  NEW\nb: 1\n"),
    "next line behind a comment": (f"{KEY}: # c\n  # d\n  out\n", f"{KEY}: # c\n  # d\n  NEW\n"),
    "several plain lines": (f"{KEY}: out\n  more\n\n  lines # c\nb: 1\n", f"{KEY}: NEW # c\nb: 1\n"),
    "several quoted lines": (f'{KEY}: "out\n  more"  # c\nb: 1\n', f"{KEY}: NEW  # c\nb: 1\n"),
    "space before the colon": (f"{KEY} : out\n", f"{KEY} : NEW\n"),
    "quoted key": (f'"{KEY}": out\n', f'"{KEY}": NEW\n'),
    "single quoted key": (f"'{KEY}': out\n", f"'{KEY}': NEW\n"),
    "explicit key": (f"? {KEY}\n: out\nb: 1\n", f"? {KEY}\n: NEW\nb: 1\n"),
    "explicit key, empty": (f"? {KEY}\n:\nb: 1\n", f"? {KEY}\n: NEW\nb: 1\n"),
    "explicit key alone": (f"? {KEY}\nb: 1\n", f"? {KEY}\n: NEW\nb: 1\n"),
    "explicit key alone at the end": (f"b: 1\n? {KEY}", f"b: 1\n? {KEY}\n: NEW"),
    "explicit key alone, comment": (f"? {KEY} # a: b\nb: 1\n", f"? {KEY} # a: b\n: NEW\nb: 1\n"),
    "explicit key, on the next line": (f"?\n  {KEY}\nb: 1\n", f"?\n  {KEY}\n: NEW\nb: 1\n"),
    "explicit block key": (f"? |-\n  {KEY}\n: out\nb: 1\n", f"? |-\n  {KEY}\n: NEW\nb: 1\n"),
    "tag": (f"{KEY}: !!str out\n", f"{KEY}: NEW\n"),
    "tag alone": (f"{KEY}: !!str # c\nb: 1\n", f"{KEY}: NEW # c\nb: 1\n"),
    "tag on a line of its own": (f"{KEY}: !!str # c\n  out\nb: 1\n", f"{KEY}: NEW  # c\nb: 1\n"),
    "unused anchor": (f"{KEY}: &x out\n", f"{KEY}: NEW\n"),
    "alias": (f"a: &o out\n{KEY}: *o  # c\n", f"a: &o out\n{KEY}: NEW  # c\n"),
    "key is an alias": (f"a: &k {KEY}\n*k : out\n", f"a: &k {KEY}\n*k : NEW\n"),
    "literal": (f"{KEY}: |\n  out\nb: 1\n", f"{KEY}: NEW\nb: 1\n"),
    "folded, stripped": (f"{KEY}: >-\n  out\n  more\n\nb: 1\n", f"{KEY}: NEW\n\nb: 1\n"),
    "literal, kept": (f"{KEY}: |+\n  out\n\n\nb: 1\n", f"{KEY}: NEW\n\n\nb: 1\n"),
    "literal, indented": (f"{KEY}: |2-\n   out\nb: 1\n", f"{KEY}: NEW\nb: 1\n"),
    "literal, comment in the header": (f"{KEY}: >+1   # why\n  out # no comment\nb: 1\n", f"{KEY}: NEW  # why\nb: 1\n"),
    "literal without content": (f"{KEY}: |\nb: 1\n", f"{KEY}: NEW\nb: 1\n"),
    "literal at the end": (f"{KEY}: |\n  out", f"{KEY}: NEW"),
    "comment behind a literal": (f"{KEY}: |\n  out\n # c\nb: 1\n", f"{KEY}: NEW\n # c\nb: 1\n"),
    "flow": (f"{{a: 1, {KEY}: out, b: 2}}\n", f"{{a: 1, {KEY}: NEW, b: 2}}\n"),
    "flow, empty": (f"{{a: 1, {KEY}: , b: 2}}\n", f"{{a: 1, {KEY}: NEW , b: 2}}\n"),
    "flow, empty at the end": (f"{{{KEY}: }}\n", f"{{{KEY}: NEW }}\n"),
    "flow, no colon": (f"{{a: 1, {KEY}, b: 2}}\n", f"{{a: 1, {KEY}: NEW, b: 2}}\n"),
    "flow, no colon at the end": (f"{{a: 1, {KEY} }}\n", f"{{a: 1, {KEY}: NEW }}\n"),
    "flow, quoted key, tight": (f'{{"{KEY}":"out"}}', f'{{"{KEY}":NEW}}'),
    "flow, quoted key, empty": (f'{{"{KEY}":}}', f'{{"{KEY}": NEW}}'),
    "flow, explicit": (f"{{? {KEY} : out, b: 1}}", f"{{? {KEY} : NEW, b: 1}}"),
    "flow, explicit, alone": (f"{{? {KEY}, b: 1}}", f"{{? {KEY}: NEW, b: 1}}"),
    "flow over lines": (f"{{\n  a: 1, # c\n  {KEY}: out # d\n}}\n", f"{{\n  a: 1, # c\n  {KEY}: NEW # d\n}}\n"),
    "CRLF": (f"a: 1\r\n{KEY}: out\r\nb: 2\r\n", f"a: 1\r\n{KEY}: NEW\r\nb: 2\r\n"),
    "CRLF, empty": (f"a: 1\r\n{KEY}:\r\nb: 2\r\n", f"a: 1\r\n{KEY}: NEW\r\nb: 2\r\n"),
    "CRLF, literal": (f"{KEY}: |\r\n  out\r\n\r\nb: 2\r\n", f"{KEY}: NEW\r\n\r\nb: 2\r\n"),
    "CR": (f"a: 1\r{KEY}: out\rb: 2\r", f"a: 1\r{KEY}: NEW\rb: 2\r"),
    "mixed line ends": (f"a: 1\r\n{KEY}: out\nb: 2\rc: 3\r\n", f"a: 1\r\n{KEY}: NEW\nb: 2\rc: 3\r\n"),
    "line ends that only YAML knows": (
        f"a: 1\x85{KEY}: out\u2028b: 2\u2029c: 3\n",
        f"a: 1\x85{KEY}: NEW\u2028b: 2\u2029c: 3\n",
    ),
    "CR inside quotes": (f'a: "x\ry"\n{KEY}: out\n', f'a: "x\ry"\n{KEY}: NEW\n'),
    "byte order mark": (f"\ufeff{KEY}: out\nb: é\n", f"\ufeff{KEY}: NEW\nb: é\n"),
    "byte order mark, empty": (f"\ufeff{KEY}:\n", f"\ufeff{KEY}: NEW\n"),
    "no newline at the end": (f"a: 1\n{KEY}: out", f"a: 1\n{KEY}: NEW"),
    "other alphabets": (f"a: 中文 # 注释\n{KEY}: 输出 # 😀\nb: 😀\n", f"a: 中文 # 注释\n{KEY}: NEW # 😀\nb: 😀\n"),
    "indented root": (f"  a: 1\n  {KEY}: out\n", f"  a: 1\n  {KEY}: NEW\n"),
    "document marks": (f"%YAML 1.1\n---\n{KEY}: out\n...\n", f"%YAML 1.1\n---\n{KEY}: NEW\n...\n"),
    "flow behind the mark": (f"--- {{{KEY}: out}} # c\n", f"--- {{{KEY}: NEW}} # c\n"),
    "second document": (f"{KEY}: out\n---\n{KEY}: other\n", f"{KEY}: NEW\n---\n{KEY}: other\n"),
    "written twice": (f"{KEY}: null\n{KEY}: out\n", f"{KEY}: null\n{KEY}: NEW\n"),
    "nested above": (f"eval:\n  {KEY}: null\n{KEY}: out\n", f"eval:\n  {KEY}: null\n{KEY}: NEW\n"),
    "in a block scalar above": (
        f"notes: |\n  {KEY}: put it here\n# {KEY}: x\n{KEY}: out\n",
        f"notes: |\n  {KEY}: put it here\n# {KEY}: x\n{KEY}: NEW\n",
    ),
    "spellings of others": (
        f"lr: 1.0e-4\nsteps: 500\nflag: True\nq: 'x'\n{KEY}: out\n",
        f"lr: 1.0e-4\nsteps: 500\nflag: True\nq: 'x'\n{KEY}: NEW\n",
    ),
}


@pytest.mark.parametrize(("before", "after"), SPELLINGS.values(), ids=SPELLINGS)
def test_a_value_is_replaced_in_every_spelling(before: str, after: str) -> None:
    assert put(before, "NEW") == after
    assert put(after, "NEW") == after, "the second time nothing changes"
    expected = read(before)[1].value(SAFE_LOAD) | {KEY: "NEW"}
    assert loaded(after) == expected


def test_a_value_that_needs_quotes_gets_them() -> None:
    assert put(f"{KEY}: 'a: b'\n", "a: b/checkpoint-5") == f"{KEY}: 'a: b/checkpoint-5'\n"
    assert put(f'{KEY}: "my run #1" # c\n', "my run #1/checkpoint-5") == f"{KEY}: 'my run #1/checkpoint-5' # c\n"
    assert put(f"{{{KEY}: x}}", "a, b") == f"{{{KEY}: 'a, b'}}"


def test_the_first_alias_takes_over_the_anchor_of_a_value_that_changes() -> None:
    before = f"{KEY}: &o out  # c\nb: *o # d\nc: [*o]\n"
    after = put(before, "NEW")
    assert after == f"{KEY}: NEW  # c\nb: &o out # d\nc: [*o]\n"
    assert yaml.safe_load(after) == {KEY: "NEW", "b": "out", "c": ["out"]}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (f"{KEY}: &o one, two\nb: [*o, x]\n", f"{KEY}: NEW\nb: [&o 'one, two', x]\n"),
        (f"{KEY}: &o 'one, two'\nb: [*o, x]\n", f"{KEY}: NEW\nb: [&o 'one, two', x]\n"),
        (f"{KEY}: &o !!str 5\nb: *o\n", f"{KEY}: NEW\nb: &o !!str 5\n"),
        (f"{KEY}: &o\nb: *o\n", f"{KEY}: NEW\nb: &o\n"),
        (f"{KEY}: &o k\n*o : v\n", f"{KEY}: NEW\n&o k : v\n"),
    ],
)
def test_an_anchor_keeps_its_value_where_it_moves_to(before: str, after: str) -> None:
    assert put(before, "NEW") == after
    assert yaml.safe_load(after) == yaml.safe_load(before) | {KEY: "NEW"}


def test_an_anchored_value_of_several_lines_that_is_used_elsewhere_is_refused() -> None:
    with pytest.raises(CannotEdit, match="`&o` is used at line 3"):
        put(f"{KEY}: &o |\n  out\nb: *o\n", "NEW")


def test_a_mapping_or_a_list_is_not_replaced_by_a_value() -> None:
    for text in (f"{KEY}:\n  a: 1\n", f"{KEY}: [1]\n"):
        with pytest.raises(CannotEdit, match="not a single value"):
            put(text, "NEW")


def test_a_part_that_is_used_elsewhere_is_not_edited() -> None:
    text = "base: &b\n  k: 1\n  l: {m: 2}\nrun:\n  <<: *b\nother: *b\n"
    for path in (("base",), ("run",), ("base", "l"), ("other",)):
        source, mapping = inner(text, *path)
        entry = mapping.get("m" if path == ("base", "l") else "k")
        assert entry is not None
        with pytest.raises(CannotEdit, match="`&b`, which is used at line 5 too"):
            source.set_value(entry, "3")
        if mapping.owns(entry):
            with pytest.raises(CannotEdit, match="used at line 5"):
                source.remove(mapping, entry)
            with pytest.raises(CannotEdit, match="used at line 5"):
                source.insert_after(mapping, entry, "n", "3")


def test_a_merged_key_is_overridden_by_a_key_of_its_own() -> None:
    text = "base: &b\n  k: 1\nrun:\n  <<: *b\n  l: 2\n"
    source, mapping = inner(text, "run")
    entry = mapping.get("k")
    assert entry is not None
    assert not mapping.owns(entry)
    after = apply(source.source, [source.insert_after(mapping, entry, "k", "3")])
    assert after == "base: &b\n  k: 1\nrun:\n  <<: *b\n  l: 2\n  k: 3\n"
    assert yaml.safe_load(after)["run"] == {"k": 3, "l": 2}


# ------------------------------------------------------------------------------------------------ inserting

INSERTIONS = {
    "in the middle": ("output_dir: out\nb: 1\n", f"output_dir: out\n{KEY}: NEW\nb: 1\n"),
    "behind a comment": ("output_dir: out  # c\nb: 1\n", f"output_dir: out  # c\n{KEY}: NEW\nb: 1\n"),
    "at the end": ("a: 1\noutput_dir: out\n", f"a: 1\noutput_dir: out\n{KEY}: NEW\n"),
    "without a last newline": ("a: 1\noutput_dir: out", f"a: 1\noutput_dir: out\n{KEY}: NEW"),
    "without any newline": ("output_dir: out", f"output_dir: out\n{KEY}: NEW"),
    "CRLF": ("output_dir: out\r\nb: 1\r\n", f"output_dir: out\r\n{KEY}: NEW\r\nb: 1\r\n"),
    "CRLF without a last one": ("a: 1\r\noutput_dir: out", f"a: 1\r\noutput_dir: out\r\n{KEY}: NEW"),
    "CR": ("output_dir: out\rb: 1\r", f"output_dir: out\r{KEY}: NEW\rb: 1\r"),
    "mixed": ("a: 1\noutput_dir: out\r\nb: 1\n", f"a: 1\noutput_dir: out\r\n{KEY}: NEW\r\nb: 1\n"),
    "a break only YAML knows": ("output_dir: out\x85b: 1\n", f"output_dir: out\n{KEY}: NEW\x85b: 1\n"),
    "byte order mark": ("\ufeffoutput_dir: out\nb: 1\n", f"\ufeffoutput_dir: out\n{KEY}: NEW\nb: 1\n"),
    "indented root": ("  output_dir: out\n  b: 1\n", f"  output_dir: out\n  {KEY}: NEW\n  b: 1\n"),
    "behind a list": ("output_dir:\n- a\n- b # c\nb: 1\n", f"output_dir:\n- a\n- b # c\n{KEY}: NEW\nb: 1\n"),
    "behind an empty item": ("output_dir:\n- a\n-\n# c\nb: 1\n", f"output_dir:\n- a\n-\n{KEY}: NEW\n# c\nb: 1\n"),
    "behind a mapping": ("output_dir:\n  a:\n    b: 1\nb: 1\n", f"output_dir:\n  a:\n    b: 1\n{KEY}: NEW\nb: 1\n"),
    "behind a mapping that ends empty": ("output_dir:\n  a:\n\nb: 1\n", f"output_dir:\n  a:\n{KEY}: NEW\n\nb: 1\n"),
    "behind nothing": ("output_dir:\nb: 1\n", f"output_dir:\n{KEY}: NEW\nb: 1\n"),
    "behind several lines": ("output_dir: 'a\n  b' # c\nb: 1\n", f"output_dir: 'a\n  b' # c\n{KEY}: NEW\nb: 1\n"),
    "behind a flow mapping": ("output_dir: {\n  a: 1\n}\nb: 1\n", f"output_dir: {{\n  a: 1\n}}\n{KEY}: NEW\nb: 1\n"),
    "behind a literal": ("output_dir: |\n  a\n\n\nb: 1\n", f"output_dir: |\n  a\n{KEY}: NEW\n\n\nb: 1\n"),
    "behind a kept literal": ("output_dir: |+\n  a\n\n\nb: 1\n", f"output_dir: |+\n  a\n\n\n{KEY}: NEW\nb: 1\n"),
    "behind a kept literal at the end": ("output_dir: |+\n  a\n\n", f"output_dir: |+\n  a\n\n{KEY}: NEW\n"),
    "behind a kept literal inside": (
        "output_dir:\n  x: >1+ # c\n    a\n\n\nb: 1\n",
        f"output_dir:\n  x: >1+ # c\n    a\n\n\n{KEY}: NEW\nb: 1\n",
    ),
    "behind a literal that ends with a break only YAML knows": (
        "output_dir: |\n  a\u2028b: 1\n",
        f"output_dir: |\n  a\u2028{KEY}: NEW\nb: 1\n",
    ),
    "behind an empty literal at the end": ("output_dir: |", f"output_dir: |\n{KEY}: NEW"),
    "a literal without its last newline": ("a: 1\noutput_dir: |\n  a", f"a: 1\n{KEY}: NEW\noutput_dir: |\n  a"),
    "behind an alias": ("a: &x |+\n  a\n\noutput_dir: *x\nb: 1\n", f"a: &x |+\n  a\n\noutput_dir: *x\n{KEY}: NEW\nb: 1\n"),
    "behind an explicit key": ("? output_dir\n: out\nb: 1\n", f"? output_dir\n: out\n{KEY}: NEW\nb: 1\n"),
    "behind an explicit key alone": ("? output_dir # c\nb: 1\n", f"? output_dir # c\n{KEY}: NEW\nb: 1\n"),
    "before a document end": ("output_dir: out\n...\n", f"output_dir: out\n{KEY}: NEW\n...\n"),
    "before a second document": ("output_dir: out\n---\nb: 1\n", f"output_dir: out\n{KEY}: NEW\n---\nb: 1\n"),
    "only a comment has the key": (f"output_dir: out\n# {KEY}: x\n", f"output_dir: out\n{KEY}: NEW\n# {KEY}: x\n"),
    "flow": ("{output_dir: out, b: 1}", f"{{output_dir: out, {KEY}: NEW, b: 1}}"),
    "flow, last": ("{output_dir: out}", f"{{output_dir: out, {KEY}: NEW}}"),
    "flow, empty": ("{output_dir: , b: 1}", f"{{output_dir: , {KEY}: NEW , b: 1}}"),
    "flow, no colon": ("{output_dir}", f"{{output_dir , {KEY}: NEW}}"),
    "flow, comma at the end": ("{\n  output_dir: out, # c\n}\n", f"{{\n  output_dir: out, {KEY}: NEW, # c\n}}\n"),
}


@pytest.mark.parametrize(("before", "after"), INSERTIONS.values(), ids=INSERTIONS)
def test_a_key_is_inserted_right_behind_another(before: str, after: str) -> None:
    assert insert(before, "NEW") == after
    expected = read(before)[1].value(SAFE_LOAD) | {KEY: "NEW"}
    assert loaded(after) == expected


def test_a_key_is_inserted_into_a_mapping_behind_a_dash() -> None:
    source = parse(SourceText("x", "- a: 1\n  b: 2\n- c: 3\n"))
    for item, after in ((0, "- a: 1\n  n: 9\n  b: 2\n- c: 3\n"), (1, "- a: 1\n  b: 2\n- c: 3\n  n: 9\n")):
        mapping = source.documents[0].root.items[item]  # type: ignore[union-attr, index]
        assert isinstance(mapping, Mapping)
        assert apply(source.source, [source.insert_after(mapping, mapping.entries[0], "n", "9")]) == after


def test_a_pair_without_braces_takes_no_second_one() -> None:
    for text in ("[a: 1]", "[a: {}]", "[{}: {}]", "[? a : 1]"):
        source = parse(SourceText("x", text))
        mapping = source.documents[0].root.items[0]  # type: ignore[union-attr, index]
        assert isinstance(mapping, Mapping)
        with pytest.raises(CannotEdit, match="no braces"):
            source.insert_after(mapping, mapping.entries[0], "n", "9")
        with pytest.raises(CannotEdit, match="no braces"):
            source.remove(mapping, mapping.entries[0])


# ------------------------------------------------------------------------------------------------ removing

REMOVALS = {
    "in the middle": (f"a: 1\n{KEY}: out  # c\nb: 2\n", "a: 1\nb: 2\n"),
    "first": (f"{KEY}: out\nb: 2\n", "b: 2\n"),
    "first behind a byte order mark": (f"\ufeff{KEY}: out\nb: 2\n", "\ufeffb: 2\n"),
    "last": (f"a: 1\n{KEY}: out\n", "a: 1\n"),
    "last without a newline": (f"a: 1\n{KEY}: out", "a: 1"),
    "last without a newline, CRLF": (f"a: 1\r\n{KEY}: out", "a: 1"),
    "only one": (f"{KEY}: out  # c\n", "{}  # c\n"),
    "CRLF": (f"a: 1\r\n{KEY}: out\r\nb: 2\r\n", "a: 1\r\nb: 2\r\n"),
    "CR": (f"a: 1\r{KEY}: out\rb: 2\r", "a: 1\rb: 2\r"),
    "comments and blank lines around stay": (f"a: 1\n# x\n\n{KEY}: out\n\n# y\nb: 2\n", "a: 1\n# x\n\n\n# y\nb: 2\n"),
    "empty": (f"a: 1\n{KEY}:\nb: 2\n", "a: 1\nb: 2\n"),
    "literal": (f"a: 1\n{KEY}: |\n  out\n  more\nb: 2\n", "a: 1\nb: 2\n"),
    "kept literal": (f"a: 1\n{KEY}: |+\n  out\n\n\nb: 2\n", "a: 1\n\n\nb: 2\n"),
    "several lines": (f"a: 1\n{KEY}: out\n  more\nb: 2\n", "a: 1\nb: 2\n"),
    "a mapping": (f"a: 1\n{KEY}:\n  x: 1\n  y:\n    - 2\nb: 2\n", "a: 1\nb: 2\n"),
    "a list at the same indent": (f"a: 1\n{KEY}:\n- x\n- y\nb: 2\n", "a: 1\nb: 2\n"),
    "explicit": (f"a: 1\n? {KEY}\n: out\nb: 2\n", "a: 1\nb: 2\n"),
    "explicit alone": (f"a: 1\n? {KEY}\nb: 2\n", "a: 1\nb: 2\n"),
    "behind a literal, without a newline": (f"a: |\n  x\n{KEY}: out", "a: |\n  x\n"),
    "behind a kept literal": (f"a: |+\n  x\n{KEY}: out\n\n\nb: 2\n", "a: |+\n  x\nb: 2\n"),
    "its own alias": (f"a: 1\n{KEY}: {{x: &q 1, y: *q}}\nb: 2\n", "a: 1\nb: 2\n"),
    "an alias": (f"a: &q 1\n{KEY}: *q\nb: 2\n", "a: &q 1\nb: 2\n"),
    "flow, first": (f"{{{KEY}: out, b: 2}}", "{b: 2}"),
    "flow, middle": (f"{{a: 1, {KEY}: out, b: 2}}", "{a: 1, b: 2}"),
    "flow, last": (f"{{a: 1, {KEY}: out}}", "{a: 1}"),
    "flow, last behind an empty one": (f"{{a: , {KEY}: out}}", "{a: }"),
    "flow, last, comma": (f"{{a: 1, {KEY}: out,}}", "{a: 1,}"),
    "flow, only one": (f"{{{KEY}: out}}", "{}"),
    "flow, only one, comma": (f"{{{KEY}: out, }}", "{}"),
    "flow, no colon": (f"{{a: 1, {KEY}, b}}", "{a: 1, b}"),
    "flow, explicit": (f"{{a: 1, ? {KEY} : out, b: 2}}", "{a: 1, b: 2}"),
    "flow over lines": (f"{{\n  {KEY}: out, # c\n  # d\n  b: 2\n}}\n", "{\n  # d\n  b: 2\n}\n"),
    "flow over lines, last": (f"{{\n  a: 1, # c\n  {KEY}: out\n}}\n", "{\n  a: 1, # c\n}\n"),
    "JSON": (f'{{\n  "a": 1,\n  "{KEY}": "out"\n}}\n', '{\n  "a": 1\n}\n'),
}


@pytest.mark.parametrize(("before", "after"), REMOVALS.values(), ids=REMOVALS)
def test_an_entry_is_taken_out_and_nothing_else(before: str, after: str) -> None:
    assert remove(before) == after
    expected = read(before)[1].value(SAFE_LOAD)
    del expected[KEY]
    assert loaded(after) == expected


@pytest.mark.parametrize(
    "text", ["output_dir: out", "a: 1\r\noutput_dir: out\r\nb: 2", "{output_dir: out, b: 1}", "{output_dir: x}"]
)
def test_inserting_and_removing_gives_the_old_bytes(text: str) -> None:
    assert remove(insert(text, "NEW")) == text


def test_the_first_key_behind_a_dash_lets_the_second_move_up() -> None:
    source = parse(SourceText("x", "- a: 1 # c\n  b: 2\n- c: 3\n"))
    first, second = source.documents[0].root.items  # type: ignore[union-attr]
    assert isinstance(first, Mapping)
    assert isinstance(second, Mapping)
    assert apply(source.source, [source.remove(first, first.entries[0])]) == "- b: 2\n- c: 3\n"
    assert apply(source.source, [source.remove(second, second.entries[0])]) == "- a: 1 # c\n  b: 2\n- {}\n"


def test_a_key_that_would_be_there_all_the_same_is_not_removed() -> None:
    with pytest.raises(CannotEdit, match="`a` would still be set, at line 1"):
        remove("a: 1\na: 2\n", "a")
    source, mapping = inner("base: &b {k: 1}\nrun:\n  <<: *b\n  k: 2\n", "run")
    entry = mapping.get("k")
    assert entry is not None
    with pytest.raises(CannotEdit, match="`k` would still be set, at line 1"):
        source.remove(mapping, entry)


def test_a_key_between_a_block_scalar_and_an_indented_comment_is_not_removed() -> None:
    with pytest.raises(CannotEdit, match="the comment behind `b` would become part of the text before it"):
        remove("a: |\n  x\nb: 1\n\n  # c\nd: 2\n", "b")


def test_a_duplicate_that_loses_can_be_removed() -> None:
    source, root = read("a: 1\na: 2\n")
    ((loser, _),) = root.duplicates
    assert apply(source.source, [source.remove(root, loser)]) == "a: 2\n"


def test_a_key_merged_in_or_with_an_anchor_in_use_is_not_removed() -> None:
    source, mapping = inner("base: &b {k: 1}\nrun: {<<: *b}\n", "run")
    entry = mapping.get("k")
    assert entry is not None
    with pytest.raises(CannotEdit, match="merged in"):
        source.remove(mapping, entry)
    with pytest.raises(CannotEdit, match="an anchor inside `a` is used at line 3"):
        remove("a:\n  b: &x 1\nc: *x\n", "a")
    with pytest.raises(CannotEdit, match="an anchor inside `a` is used at line 2"):
        remove("&x a: 1\nc: *x\n", "a")


# ------------------------------------------------------------------------------------------------ what the loader sees


@pytest.mark.parametrize(
    "text",
    [
        "a: 1\na: 2\n",
        "1: a\n'1': b\n1: c\n",
        "yes: a\ntrue: b\n",
        "b: &b {x: 1, y: 1}\nc: &c {y: 2, z: 2}\nd: {<<: [*b, *c], z: 3}\n",
        "b: &b {x: 1}\nc: &c {<<: *b, x: 2}\nd: {x: 0, <<: *c, <<: *b}\n",
        "b: &b {x: 1}\nd: {'<<': *b, !!str <<: 1}\n",
        "b: &b {x: 1}\nd: {<<: {x: 3, y: 4}, x: 2}\n",
        "a: &x [1, &y {k: *z0}]\n".replace("*z0", "2") + "b: [*x, *y]\n",
        "~: 1\n'': 2\n2024-01-01: 3\n",
        "a:\n  - b: [c, {d: e}]\n    f:\n  -\n  - - g\n",
        "? |\n  block\n: v\n",
    ],
)
def test_a_document_has_the_value_that_the_loader_makes_of_it(text: str) -> None:
    assert read(text)[1].value(SAFE_LOAD) == yaml.load(text, Loader=yaml.CSafeLoader)


def test_a_key_is_found_by_its_name_and_the_last_one_counts() -> None:
    _, root = read("a: 1\n'a': 2\n\"b\": 3\n")
    entry = root.get("a")
    assert entry is not None
    assert entry.value.value(OMEGACONF) == 2
    assert root.get("c") is None
    assert [name for name, _ in root.items()] == ["a", "b"]


def test_spans_say_where_keys_and_values_stand() -> None:
    _, root = read("\ufeffa: &x 'é 😀'  # c\nb:\n- 1\n- [2,\n  3]\n\n# end\nc: *x\n")
    entries = dict(root.items())
    assert entries["a"].value_span.text == "&x 'é 😀'"
    assert entries["a"].span.start_position == (1, 1)
    assert entries["b"].value_span.text == "- 1\n- [2,\n  3]"
    assert entries["b"].span.end_position == (5, 5)
    assert entries["c"].value_span.text == "*x"
    assert entries["c"].span.text == "c: *x"
    assert root.span.end_position == (8, 6)


def test_every_document_has_its_own_span_and_anchors() -> None:
    source = parse(SourceText("x", "a: &x 1\n---\nb: &x 2\n...\n# c\n---\n"))
    assert [document.span.start_position[0] for document in source.documents] == [1, 2, 6]
    with pytest.raises(SourceError, match="undefined alias"):
        parse(SourceText("x", "a: &x 1\n---\nb: *x\n"))


@pytest.mark.parametrize(
    "text", ["", "\ufeff", "\n\n", "# only\n# comments", "\ufeff# x\r\n", "---\n", "--- # x\n...\n", "%YAML 1.1\n---\n"]
)
def test_a_file_without_content_is_read_like_any_other(text: str) -> None:
    source = parse(decode("x", text.encode()))
    assert source.source.encode() == text.encode()
    assert [document.root.value(SAFE_LOAD) for document in source.documents] in ([], [None])


# ------------------------------------------------------------------------------------------------ comments


@pytest.mark.parametrize(
    ("text", "comments"),
    [
        ("a: 1 # x\n# y\nb: 'q # no'\n", ["# x", "# y"]),
        ("a: b#no # yes # still\n", ["# yes # still"]),
        ('a: "x # no\n  # no"  # yes\n', ["# yes"]),
        ("a: |  # yes\n  # no\n  x # no\n# yes too\nb: 1\n", ["# yes", "# yes too"]),
        ("a: >-\n  x # no\n # yes\nb: 1", ["# yes"]),
        ("a: !x 1 # yes\nb: !y # too\n - 1 # end\n", ["# yes", "# too", "# end"]),
        ('{a: "x"#yes\n, b: [1,#too\n 2]} # end', ["#yes", "#too", "# end"]),
        ("%YAML 1.1 # yes\n--- # too\na: 1\n... # end\n", ["# yes", "# too", "# end"]),
        ("\ufeff# yes\r\na: 1\t# too\rb: 2\r# end", ["# yes", "# too", "# end"]),
        ("a: 1 # yes\x85b: 2\n", ["# yes"]),
        ("# é 😀\na: 😀 # 中文\n", ["# é 😀", "# 中文"]),
        ("a: x\n  y # yes\n", ["# yes"]),
        ("? a # yes\n: b # too\n", ["# yes", "# too"]),
        ("a: *no\n".replace("*no", "1"), []),
    ],
)
def test_comments_are_found_exactly(text: str, comments: list[str]) -> None:
    assert [comment.text for comment in parse(SourceText("x", text)).comments] == comments


# ------------------------------------------------------------------------------------------------ what is no YAML


@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        ("a: 1\n\tb: 2\n", (2, 1), "tab character|cannot start any token"),
        ("a: b: c\n", (1, 5), "mapping values are not allowed"),
        ("a: [1\n", (2, 1), "did not find expected"),
        ("a: 'x\n", (2, 1), "found unexpected end of stream"),
        ("é: 1\nb: \x01\n", (2, 4), "control characters are not allowed; take the character out"),
        ("\ufeffé: \x00\n", (1, 4), "control characters"),
        ("a: *nobody\n", (1, 4), "found undefined alias 'nobody'"),
        ("a: &x [*x]\n", (1, 8), "found alias 'x' inside its own anchor"),
        ("a: &x 1\nb: &x 2\n", (2, 4), "found duplicate anchor 'x'"),
        ("%YAML 3.0\n---\na: 1\n", (1, 1), "incompatible YAML document"),
        ("a: !no!tag x\n", (1, 4), "undefined tag handle"),
        ("a: \ud83d\n", (1, 4), "half a surrogate pair"),
        ("a: 1\n---\nb: [\n", (4, 1), "did not find expected"),
    ],
)
def test_what_is_no_yaml_is_an_error_with_its_place(text: str, place: tuple[int, int], words: str) -> None:
    with pytest.raises(SourceError, match=words) as caught:
        parse(SourceText("run.yaml", text))
    assert caught.value.span.start_position == place
    assert str(caught.value).startswith(f"run.yaml:{place[0]}:{place[1]}: not valid YAML: ")


@pytest.mark.parametrize(
    "text",
    [
        "[" * 10_000,
        "{a: " * 10_000 + "1" + "}" * 10_000,
        "".join("  " * depth + "a:\n" for depth in range(1000)),
        "- " * 2000 + "x",
        "a0: &a0 [1]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}]\n" for n in range(1, 1000)),
        "a0: &a0 {k: 1}\n" + "".join(f"a{n}: &a{n} {{<<: *a{n - 1}, k{n}: 1}}\n" for n in range(1, 1000)),
    ],
    ids=["brackets", "braces", "indents", "dashes", "aliases", "merges"],
)
def test_a_file_that_nests_too_deeply_is_an_error_and_no_crash(text: str) -> None:
    with pytest.raises(SourceError, match="not valid YAML"):
        parse(SourceText("x", text))


def test_the_deepest_file_that_is_read_can_be_used_in_every_way() -> None:
    depth = MAX_DEPTH
    text = "{a: " * depth + "1" + "}" * depth
    source, root = read(text)
    assert root.value(SAFE_LOAD) == yaml.safe_load(text)
    entry = root.get("a")
    assert entry is not None
    assert apply(source.source, [source.remove(root, entry)]) == "{}"
    with pytest.raises(SourceError):
        parse(SourceText("x", f"[{text}]"))


def test_aliases_that_multiply_are_read_once_each() -> None:
    text = "a0: &a0 [x, x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 60))
    value = read(text)[1].value(SAFE_LOAD)
    level = value["a59"]
    for _ in range(59):
        assert isinstance(level, list)
        assert level[0] is level[1]
        level = level[0]
    assert level == ["x", "x"]


def test_reading_leaves_the_garbage_collector_as_it_was() -> None:
    assert gc.isenabled()
    parse(SourceText("x", "a: 1"))
    assert gc.isenabled()
    with pytest.raises(SourceError):
        parse(SourceText("x", "a: ["))
    assert gc.isenabled()


def test_omegaconf_reads_the_edited_file_too() -> None:
    before = "model: x\nlearning_rate: 1e-4\noutput_dir: out  # c\nflag: no\n"
    after = insert(before, "out/checkpoint-500")
    assert OmegaConf.to_container(OmegaConf.create(after)) == {
        "model": "x",
        "learning_rate": 1e-4,
        "output_dir": "out",
        KEY: "out/checkpoint-500",
        "flag": False,
    }
