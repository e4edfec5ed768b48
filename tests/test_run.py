"""The resume contract: questions to paths, intervals, settings and runs."""

from __future__ import annotations

import pytest

from ckptlint.run import (
    NEVER,
    Amount,
    Changing,
    Choice,
    Interval,
    Literal,
    Location,
    Opaque,
    PathExpr,
    Placeholder,
    Read,
    Release,
    Retention,
    Run,
    Setting,
    Storage,
    Unit,
    Unknown,
    UnsetVariable,
    Variable,
    Write,
    at,
    inside,
    same_directory,
    shown,
)
from ckptlint.source.text import SourceText

TEXT = SourceText("run.yaml", "save_steps: 500\nmodel:\nlong: " + "x" * 500 + "\n")
DEFAULT = Setting("save_steps", 500, source="default of Toy 1.0")


def _written(name: str, value: object, start: int, end: int, key: tuple[int, int] = (0, 10)) -> Setting:
    return Setting(name, value, TEXT.span(start, end), TEXT.span(*key))


# ------------------------------------------------------------------------------------------------ amounts


@pytest.mark.parametrize(
    ("amount", "text"),
    [
        (Amount(1, Unit.STEP), "1 step"),
        (Amount(500, Unit.STEP), "500 steps"),
        (Amount(2000000, Unit.STEP), "2000000 steps"),
        (Amount(2.5, Unit.EPOCH), "2.5 epochs"),
        (Amount(0.1, Unit.FRACTION), "10 % of the run"),
        (Amount(1, Unit.MINUTE), "1 minute"),
    ],
)
def test_an_amount_reads_as_people_say_it(amount: Amount, text: str) -> None:
    assert str(amount) == text


@pytest.mark.parametrize(
    ("every", "length", "reached"),
    [
        (Amount(500, Unit.STEP), Amount(1000, Unit.STEP), True),
        (Amount(500, Unit.STEP), Amount(500, Unit.STEP), False),
        (Amount(500, Unit.STEP), Amount(400, Unit.STEP), False),
        (Amount(500, Unit.STEP), Amount(1, Unit.EPOCH), True),  # not comparable, so nothing is claimed
        (Amount(500, Unit.STEP), Unknown("no data"), True),
        (Amount(0.5, Unit.FRACTION), Unknown("no data"), True),
        (Amount(1, Unit.FRACTION), Amount(10, Unit.STEP), False),
        (Unknown("a variable"), Amount(10, Unit.STEP), True),
        (NEVER, Amount(10, Unit.STEP), True),
    ],
)
def test_an_interval_is_too_long_only_where_both_are_known_in_one_unit(every, length, reached) -> None:  # type: ignore[no-untyped-def]
    assert Interval(every, True, DEFAULT).as_long_as(length) is not reached


# ------------------------------------------------------------------------------------------------ settings


def test_a_written_setting_is_shown_as_its_author_wrote_it() -> None:
    assert str(_written("save_steps", 500, 12, 15)) == "save_steps: 500"


def test_an_empty_value_is_shown_as_the_bare_key_and_found_at_the_key() -> None:
    empty = _written("model", None, 22, 22, (16, 21))
    assert str(empty) == "model:"
    assert empty.place == empty.key_span


def test_a_default_is_shown_with_whose_it_is() -> None:
    assert str(DEFAULT) == "save_steps (500, default of Toy 1.0)"
    assert not DEFAULT.written
    assert DEFAULT.place is None


def test_a_long_value_is_shortened_in_the_middle_for_a_message() -> None:
    text = str(_written("long", "x" * 500, 29, 529, (23, 27)))
    assert text.startswith("long: xxx")
    assert "…" in text
    assert len(text) < 250


def test_a_setting_without_an_editor_has_nothing_to_change() -> None:
    assert DEFAULT.set(1) == ()
    assert DEFAULT.remove() == ()


@pytest.mark.parametrize(("value", "text"), [(None, "null"), (True, "true"), (False, "false"), (1e-4, "0.0001"), ("a", "a")])
def test_values_are_shown_as_configuration_files_spell_them(value: object, text: str) -> None:
    assert shown(value) == text


# ------------------------------------------------------------------------------------------------ paths


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("saves/run", [Literal("saves/run")]),
        ("", [Literal("")]),
        ("100$", [Literal("100$")]),
        ("${x}", [Variable("${x}", "x")]),
        ("/a/$USER/b", [Literal("/a/"), Variable("$USER", "USER"), Literal("/b")]),
        ("${x:-/tmp}/b", [Variable("${x:-/tmp}", "x", "/tmp"), Literal("/b")]),
        ("${oc.env:ROOT}", [Variable("${oc.env:ROOT}", "ROOT")]),
        ("${oc.env:ROOT,/tmp}", [Variable("${oc.env:ROOT,/tmp}", "ROOT", "/tmp")]),
        ("out/$(date +%s)", [Literal("out/"), Changing("$(date +%s)", "a time or a random value")]),
        ("out/${now:%Y}", [Literal("out/"), Changing("${now:%Y}", "the date")]),
        ("`whoami`/x", [Opaque("`whoami`", "computed"), Literal("/x")]),
        ("/data/<name>", [Literal("/data/"), Placeholder("<name>")]),
        ("/path/to/model", [Placeholder("/path/to/model")]),
        ("path-to-your-dir", [Placeholder("path-to-your-dir")]),
        ("{{ dir }}", [Placeholder("{{ dir }}")]),
        ("/data/YOUR_NAME", [Literal("/data/"), Placeholder("YOUR_NAME")]),
        ("/xxx/run", [Placeholder("/xxx"), Literal("/run")]),
        ("saves/path_tools/mypath/to_xx", [Literal("saves/path_tools/mypath/to_xx")]),
    ],
)
def test_a_path_is_read_into_its_parts(text: str, parts: list[object]) -> None:
    path = PathExpr.of_text(text, expanded=True)
    assert list(path.parts) == parts
    assert str(path) == text


def test_where_nothing_is_replaced_a_command_is_text_to_be_filled_in() -> None:
    path = PathExpr.of_text("out/$(date)/${X}", expanded=False)
    assert [part.text for part in path.of(Placeholder)] == ["$(date)"]
    assert [part.expanded for part in path.of(Variable)] == [False]


@pytest.mark.parametrize(
    ("text", "absolute"),
    [("/a", True), ("~/a", True), ("s3://bucket/a", True), ("a/b", False), ("./a", False), ("$X/a", None), ("", None)],
)
def test_whether_a_path_is_absolute_may_be_unknown(text: str, absolute: bool | None) -> None:
    assert PathExpr.of_text(text, expanded=True).absolute is absolute


@pytest.mark.parametrize(
    ("text", "directory"),
    [
        ("/tmp/run", "/tmp/run"),
        ("/tmp/run_$USER/x", "/tmp"),
        ("/tmp$X", ""),
        ("/tmp/a/../b/", "/tmp/b"),
        ("//tmp/run", "/tmp/run"),
        ("$X/tmp", ""),
        ("s3://bucket/a", "s3://bucket/a"),
    ],
)
def test_the_known_directory_is_what_surely_holds_the_path(text: str, directory: str) -> None:
    assert PathExpr.of_text(text, expanded=True).known_directory == directory


def test_a_path_is_expanded_from_the_environment_or_its_default() -> None:
    path = PathExpr.of_text("$ROOT/${NAME:-run}", expanded=False)
    assert path.expand({"ROOT": "/data"}) == "/data/run"
    assert path.expand({"ROOT": "/data", "NAME": "b"}) == "/data/b"


def test_a_variable_that_is_not_set_is_named_with_the_path() -> None:
    with pytest.raises(UnsetVariable, match=r"`\$ROOT/x` needs the environment variable ROOT"):
        PathExpr.of_text("$ROOT/x", expanded=False).expand({})


@pytest.mark.parametrize("text", ["out/$(date)", "/path/to/x", "`pwd`"])
def test_a_part_without_a_value_cannot_be_expanded(text: str) -> None:
    with pytest.raises(ValueError, match="has no value before the run starts"):
        PathExpr.of_text(text, expanded=True).expand({})


@pytest.mark.parametrize(
    ("path", "root", "is_inside"),
    [("/tmp", "/tmp", True), ("/tmp/", "/tmp", True), ("/tmp/a", "/tmp/", True), ("/tmpa", "/tmp", False), ("a", "/", False)],
)
def test_inside_is_by_whole_parts(path: str, root: str, is_inside: bool) -> None:
    assert inside(path, root) is is_inside


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("saves/a", "./saves/a/", True),
        ("/work/saves/a", "saves/a", True),
        ("/work/saves/a/", "./saves/a", True),
        ("~/LLaMA-Factory/saves/a", "saves/a", True),
        ("/work/saves/ab", "saves/a", False),
        ("/work/a", "a", False),  # one short name proves nothing
        ("/a/b", "/c/a/b", False),  # two absolute paths
        ("saves/a", "x/saves/a", False),  # two relative ones
        ("../saves/a", "/work/saves/a", False),
    ],
)
def test_an_absolute_path_that_ends_with_a_relative_one_is_the_same_directory(one: str, other: str, same: bool) -> None:
    assert same_directory(one, other) is same
    assert same_directory(other, one) is same


# ------------------------------------------------------------------------------------------------ places


@pytest.mark.parametrize(
    ("storage", "text", "root"),
    [
        (Storage(), "/tmp/run", "/tmp"),
        (Storage(), "/dev/shm/x", "/dev/shm"),
        (Storage(), "/data/run", None),
        (Storage(), "tmp/run", None),
        (Storage(), "$X/run", None),
        (Storage(ephemeral=("/scratch",)), "/scratch/run", "/scratch"),
        (Storage(durable=("/tmp/nfs",)), "/tmp/nfs/run", None),
        (Storage(durable=("/tmp/nfs",)), "/tmp/run", "/tmp"),
    ],
)
def test_a_path_dies_below_what_is_known_to_die_unless_it_is_declared_durable(
    storage: Storage, text: str, root: str | None
) -> None:
    assert storage.dies_below(PathExpr.of_text(text, expanded=True)) == root


# ------------------------------------------------------------------------------------------------ releases and runs


@pytest.mark.parametrize(
    ("release", "other", "before"),
    [("0.9.3", "0.9.4", True), ("0.9.10", "0.9.4", False), ("0.9.4", "0.9.4", False), ("0.9.6.dev0", "0.9.6", False)],
)
def test_releases_compare_by_their_numbers(release: str, other: str, before: bool) -> None:
    assert Release(release).before(other) is before


def test_a_release_that_nobody_pins_says_so() -> None:
    assert str(Release("1.0")) == "1.0 (assumed)"
    assert str(Release("1.0", TEXT.span(0, 1))) == "1.0"


def _run(length: Amount | Unknown, **changes: object) -> Run:
    directory = Location(PathExpr.of_text("out", expanded=False), DEFAULT)
    write = Write(directory, Interval(Unknown("the interval is a variable"), True, DEFAULT), Retention(None, DEFAULT))
    facts: dict[str, object] = {"writes": (write,), "reads": (Read(Choice.NEWEST, DEFAULT),)} | changes
    return Run("toy", "Toy", Release("1.0"), TEXT.span(0, 10), length, DEFAULT, **facts)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("length", "short"),
    [
        (Amount(10, Unit.STEP), True),
        (Amount(50, Unit.STEP), True),
        (Amount(51, Unit.STEP), False),
        (Amount(1, Unit.EPOCH), False),
        (Unknown("no data"), False),
    ],
)
def test_a_run_of_a_few_steps_is_short_and_one_of_unknown_length_is_not(length: Amount | Unknown, short: bool) -> None:
    assert _run(length).short is short


def test_what_could_not_be_decided_is_listed_once() -> None:
    unknown = Unknown("the interval is a variable")
    reads = (
        Read(Choice.UNKNOWN, DEFAULT, why="the path is computed"),
        Read(Choice.UNKNOWN, DEFAULT, why="the path is computed"),
    )
    assert list(_run(unknown, reads=reads).unknowns) == [unknown, Unknown("the path is computed")]


def test_a_finding_about_a_default_stands_at_the_run() -> None:
    run = _run(Amount(1, Unit.EPOCH))
    assert at(DEFAULT, run) == run.where
    written = _written("save_steps", 500, 12, 15)
    assert at(written, run) == written.span
