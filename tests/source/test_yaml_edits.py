"""Whatever a YAML file looks like: one edit changes one key, for every loader, and all other bytes stay."""

from __future__ import annotations

import copy
import os
from dataclasses import dataclass

import yaml
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from omegaconf import OmegaConf
from yaml_loaders import OMEGACONF_LOADER

from ckptlint.source.text import CannotEdit, Edit, SourceError, SourceText, apply, decode
from ckptlint.source.yaml import OMEGACONF, SAFE_LOAD, Entry, Mapping, YamlSource, parse, render

# CKPTLINT_EXAMPLES=5000 for a thorough run.
EXAMPLES = int(os.environ.get("CKPTLINT_EXAMPLES", "60"))
PROPERTY = settings(
    max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow]
)

# A value as it follows the colon, without the comment behind; `@` stands for the entry's own number, `%` for an earlier one.
BLOCK_VALUES = [
    "", " ", " x", "\tx y", " 5", " 1e-4", " no", " ~", " null", " 'it''s # no'", ' "a\\tb # no"', " a#b", " é😀", " !!str 5",
    " !!str", " &a@ v@", " &a@ 'q, r'", " &a@", " *a%", " [a, {b: c}, d: e]", " {a: 1, b, c: }", " &a@ {a: 1}", " &a@ [1, 2]",
    "\n  next", " # c\n  # d\n  next", " two\n  lines", " two\n\n  lines", ' "two\n  lines"', " !!str # c\n  next",
    " |\n  text # no", " |\n  text\n\n  more\n", " >-\n  text\n", " |+\n  text\n\n", " |+\n\n", " |\n", " >+1 # c\n  text\n\n",
    " |2-\n   text", "\n  n: 1\n  m:", "\n  n:\n    - 1\n    - ", "\n- x\n-", "\n- n: 1\n  m: |+\n    t\n\n",
    "\n  <<: *a%\n  n: 1",
    " &a@\n  n: 1", " {<<: *a%, z: 1}", " &a@ |\n  text",
]  # fmt: skip
FLOW_VALUES = [
    "", ": ", ": x", ": 'q, r'", ': "q"', ": 5", ": [a, b]", ": {a: 1}", ": &a@ v@", ": *a%", ": !!str 5", ": two\n words",
    ":\n  next",
    ": # c, d\n  next", ": {<<: *a%}", ": a:b", ": http://x/y?z",
]  # fmt: skip
KEYS = ["k@", "'k@'", '"k@"', "k@ ", "&b@ k@", "!!str k@", "? k@\n", "? k@ # c: d\n"]
BETWEEN = ["", "", "", "\n", "# c: 'x\n", "  # deeper\n", "\n\n# k0: no\n"]


@dataclass(frozen=True)
class Case:
    text: str
    keys: tuple[str, ...]


@st.composite
def documents(draw: st.DrawFn) -> Case:
    """A file put together from everything that people (and programs) write."""
    numbers = range(draw(st.integers(1, 5)))
    block = draw(st.booleans()) or draw(st.booleans())
    body = "".join(draw(block_entry(number)) for number in numbers) if block else draw(flow_mapping(len(numbers)))
    if block:
        indent = draw(st.sampled_from(["", "", "  "]))
        body = "".join(indent + line if line.strip() else line for line in body.splitlines(keepends=True))
    text = draw(st.sampled_from(["", "", "---\n", "# c\n", "%YAML 1.1\n---\n", "\n \n"])) + body
    text += draw(st.sampled_from(["", "", "...\n", "---\nother: 1\n", "# end", "\n\n"]))
    if draw(st.booleans()):
        text = text.removesuffix("\n")
    text = with_line_breaks(draw, text)
    return Case(draw(st.sampled_from(["", "", "\ufeff"])) + text, tuple(f"k{number}" for number in numbers))


def filled(template: str, number: int, earlier: int) -> str:
    return template.replace("@", str(number)).replace("%", str(earlier))


@st.composite
def block_entry(draw: st.DrawFn, number: int) -> str:
    earlier = draw(st.integers(0, max(number - 1, 0)))
    key = filled(draw(st.sampled_from(KEYS)), number, earlier)
    value = filled(draw(st.sampled_from(BLOCK_VALUES)), number, earlier)
    comment = draw(st.sampled_from(["", "", "  # c: 'x", "\t# y", "   "])) if "|" not in value and ">" not in value else ""
    end = "" if value.endswith("\n") else "\n"
    return draw(st.sampled_from(BETWEEN)) + f"{key}:{value}{comment}{end}"


@st.composite
def flow_mapping(draw: st.DrawFn, count: int) -> str:
    gaps = st.sampled_from([" ", " ", "\n", "  # c, }\n  ", "\n\n "])
    entries = []
    for number in range(count):
        earlier = draw(st.integers(0, max(number - 1, 0)))
        key = filled(draw(st.sampled_from(["k@", "'k@'", '"k@"', "? k@ ", "&b@ k@ "])), number, earlier)
        entries.append(key + filled(draw(st.sampled_from(FLOW_VALUES)), number, earlier))
    body = "".join(draw(gaps) + entry + draw(st.sampled_from(["", " ", "\n", " # c\n"])) + "," for entry in entries)
    return "{" + (body if draw(st.booleans()) else body.removesuffix(",")) + draw(gaps) + "} # end\n"


def with_line_breaks(draw: st.DrawFn, text: str) -> str:
    kind = draw(st.sampled_from(["\n", "\n", "\r\n", "\r", "mixed"]))
    if kind != "mixed":
        return text.replace("\n", kind)
    lines = text.split("\n")
    return "".join(line + draw(st.sampled_from(["\n", "\r\n", "\r", "\x85", "\u2028"])) for line in lines[:-1]) + lines[-1]


def loaded(text: str, loader: object) -> list[object]:
    return list(yaml.load_all(text.removeprefix("\ufeff"), Loader=loader))  # type: ignore[arg-type]


def read(case: Case) -> tuple[YamlSource, Mapping]:
    """The case as we read it; cases that the frameworks' loaders refuse are passed over."""
    try:
        before = [loaded(case.text, loader) for loader in (yaml.CSafeLoader, OMEGACONF_LOADER)]
    except yaml.YAMLError:
        assume(False)
    source = parse(SourceText("x", case.text))
    for schema, values in zip((SAFE_LOAD, OMEGACONF), before, strict=True):
        assert [document.root.value(schema) for document in source.documents] == values
    root = source.documents[0].root
    assert isinstance(root, Mapping)
    return source, root


def assert_only(source: YamlSource, edits: tuple[Edit, ...], name: str, value: object, *, gone: bool = False) -> str:
    """The text after the edits, in which nothing but one key of the first document has another value."""
    after = apply(source.source, edits)
    for loader in (yaml.CSafeLoader, OMEGACONF_LOADER):
        first, *others = copy.deepcopy(loaded(source.source.text, loader))
        assert isinstance(first, dict)
        if gone:
            del first[name]
        else:
            first[name] = value
        assert loaded(after, loader) == [first, *others], after
    assert_spellings_stay(source, edits, after, name)
    return after


def assert_spellings_stay(source: YamlSource, edits: tuple[Edit, ...], text: str, name: str) -> None:
    """Every other entry is written as it was, but for an alias that took over an anchor; so are the comments."""
    after = parse(decode("x", text.encode()))
    moved = {edit.span for edit in edits if edit.span.text.startswith("*")}
    before_root, after_root = source.documents[0].root, after.documents[0].root
    assert isinstance(before_root, Mapping)
    assert isinstance(after_root, Mapping)
    for key, entry in before_root.items():
        twin = after_root.get(key)
        if key == name or any(entry.span.start <= span.start < entry.span.end for span in moved) or not before_root.owns(entry):
            continue
        assert twin is not None
        assert twin.span.text == entry.span.text
    outside = [comment.text for comment in source.comments if not any(_within(comment.start, edit) for edit in edits)]
    kept = [comment.text for comment in after.comments]
    assert len(outside) - 1 <= len(kept) <= len(source.comments)  # one may now follow another on the same line
    assert all(any(comment in text for text in kept) for comment in outside)


def _within(place: int, edit: Edit) -> bool:
    return edit.span.start <= place < edit.span.end


def chosen(data: st.DataObject, case: Case, root: Mapping) -> Entry:
    entry = root.get(data.draw(st.sampled_from(case.keys)))
    assert entry is not None
    return entry


NEW = st.one_of(
    st.sampled_from(["saves/checkpoint-500", "a: b", "x #1", "a, b", None, True, 500, 1e-5, "it's", ""]), st.text(max_size=5)
)


def usable(value: object) -> bool:
    return not (isinstance(value, str) and any("\ud800" <= char <= "\udfff" for char in value))


@PROPERTY
@given(documents(), NEW.filter(usable), st.data())
def test_setting_one_key_changes_that_key_alone(case: Case, value: object, data: st.DataObject) -> None:
    source, root = read(case)
    entry = chosen(data, case, root)
    try:
        edits = source.set_value(entry, render(value, flow=root.flow))
    except CannotEdit:
        assume(False)
    after = assert_only(source, edits, entry.name, value)
    again = parse(SourceText("x", after))
    mapping = again.documents[0].root
    assert isinstance(mapping, Mapping)
    entry_again = mapping.get(entry.name)
    assert entry_again is not None
    assert apply(again.source, again.set_value(entry_again, render(value, flow=root.flow))) == after


@PROPERTY
@given(documents(), NEW.filter(usable), st.data())
def test_inserting_one_key_adds_that_key_alone(case: Case, value: object, data: st.DataObject) -> None:
    source, root = read(case)
    entry = chosen(data, case, root)
    edit = source.insert_after(root, entry, "new_key", render(value, flow=root.flow))
    assert edit.span.start == edit.span.end
    assert_only(source, (edit,), "new_key", value)


@PROPERTY
@given(documents(), st.data())
def test_removing_one_key_removes_that_key_alone(case: Case, data: st.DataObject) -> None:
    source, root = read(case)
    entry = chosen(data, case, root)
    try:
        edit = source.remove(root, entry)
    except CannotEdit:
        assume(False)
    assert_only(source, (edit,), entry.name, None, gone=True)


@PROPERTY
@given(documents())
def test_comments_are_where_the_loader_finds_none_of_its_text(case: Case) -> None:
    source, _ = read(case)
    without = apply(source.source, [Edit(comment, "#") for comment in source.comments])
    for loader in (yaml.CSafeLoader, OMEGACONF_LOADER):
        assert loaded(without, loader) == loaded(case.text, loader)


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet="ab: \n\t-?{}[],'\"|>&*!%#~\r\x85\ufeff\x01é0", max_size=25))
def test_any_text_is_read_as_the_loader_reads_it_or_refused_with_a_place(text: str) -> None:
    source = SourceText("x", text)
    try:
        documents = parse(source).documents
        _ = parse(source).comments
    except SourceError as error:
        assert 0 <= error.span.start <= len(text)
        return
    try:
        expected = loaded(text, yaml.CSafeLoader)
    except (yaml.YAMLError, TypeError, ValueError, AttributeError, LookupError):
        return
    assert [document.root.value(SAFE_LOAD) for document in documents] == expected


def test_omegaconf_itself_reads_an_edited_file() -> None:
    source = parse(SourceText("x", "a: &x 1e-4\nb: {c: *x}\n"))
    root = source.documents[0].root
    assert isinstance(root, Mapping)
    after = apply(source.source, source.set_value(root.entries[0], render("no")))
    assert OmegaConf.to_container(OmegaConf.create(after)) == {"a": "no", "b": {"c": 1e-4}}
