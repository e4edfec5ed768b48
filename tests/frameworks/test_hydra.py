"""Overrides as Hydra reads them, held against Hydra's own parser; and what composed settings say."""

from __future__ import annotations

import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override as HydraOverride
from hydra.core.override_parser.types import OverrideType, QuotedString
from hydra.errors import HydraException
from hypothesis import given
from hypothesis import strategies as st

from ckptlint.frameworks.hydra import (
    HydraSettings,
    Kind,
    Override,
    OverrideError,
    absolute,
    interpolated,
    parse_override,
    read_command,
    spelled,
)
from ckptlint.run import Unknown
from ckptlint.source.shell import read
from ckptlint.source.text import SourceText, Span

PARSER = OverridesParser.create()
KINDS = {
    OverrideType.CHANGE: Kind.CHANGE,
    OverrideType.ADD: Kind.ADD,
    OverrideType.FORCE_ADD: Kind.FORCE,
    OverrideType.DEL: Kind.DELETE,
}

TEXTS = r"""
a=1 | a.b=c | +a.b=1e-4 | ++x.y=true | ~a.b | ~a.b= | a= | a= 5 | a=[a,b] | a=['console','wandb'] | a={a:b,c: d}
a={a: 1, b: {c: [1,2]}} | a='x y' | a="x,y" | a=/a/b=c | a=/a(b) | a=~/x | a=/a b | a='/a/b=c' | a=${trainer.x}/y
a=${oc.env:HOME} | a=off | a=False | a=nUll | a=001 | a=1_000 | a=-1 | a=+5 | a=1. | a=.5 | a=1e5 | a=inf | a=-nan | a=a\,b
a=a\=b | a='it\'s' | a='x\\' | a=x:y | a={a:b:c} | a=hdfs://x/y | a@b.c=d | a/b=c | a/b@c.d=e | a.0=1 | a=[] | a={}
a=[1, 'a b', "c"] | a=#x | a=x;y | a=x&y | a=<p> | a=é | a=a!b | a=a^b | a=a\ b | a=x\ | a=a*b?c%e | a=[a b, c] | a=[a=b]
a={'q r': 1} | a={a: } | a=[a,] | a=(x) | a=\(x\) | a=1 2 | a=${a}${b} c | a=${a | 1a=2 | a-b=2 | a.b-c=3 | a =1 | a | a.b.=1
a..b=1 | $x=1 | a="a\"b" | a=$X | a=a$b | a='a'b | a='a' 'b' | a=1e-5x | a=0x10 | a=1__0 | a=True1 | a=[[1,2],[3]] | a={a:{b:c}}
a=: | a=a: b  | a='q'  | a=[1]  | a=[ 'q' ] | a={x: a: ,y:1}
""".replace("\n", " | ")


def _theirs(text: str) -> tuple[Kind, str, object] | None:
    try:
        override: HydraOverride = PARSER.parse_override(text)
    except HydraException:
        return None
    key = override.get_key_element().lstrip("+~")
    if override.is_sweep_override():
        return KINDS[override.type], key, "sweep"
    return KINDS[override.type], key, _plain(override.value())


def _plain(value: object) -> object:
    if isinstance(value, QuotedString):
        return value.text
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {_plain(key): _plain(item) for key, item in value.items()}
    return value


def _ours(text: str) -> tuple[Kind, str, object] | None:
    try:
        override = parse_override(text)
    except OverrideError:
        return None
    return override.kind, override.key, "sweep" if isinstance(override.value, Unknown) else override.value


@pytest.mark.parametrize("text", [text.strip() for text in TEXTS.split(" | ") if text.strip()])
def test_an_override_is_read_as_hydra_reads_it(text: str) -> None:
    assert repr(_ours(text)) == repr(_theirs(text))


@pytest.mark.parametrize("text", ["a=1,2", "a=x,[1,2],'y'", "a=choice(1,2)", "a=range(1,5)", "a=int(5)"])
def test_a_sweep_or_a_function_has_no_known_value(text: str) -> None:
    assert isinstance(parse_override(text).value, Unknown)


@given(st.text(alphabet="ab1 .-_/:,'\"\\[]{}()=$e", max_size=12))
def test_no_text_behind_the_sign_is_read_in_another_way_than_by_hydra(text: str) -> None:
    theirs, ours = _theirs(f"k={text}"), _ours(f"k={text}")
    if "(" in text and ours is not None and ours[2] == "sweep":
        return  # a function's arguments are not looked at
    assert repr(ours) == repr(theirs)


@given(st.one_of(st.text(alphabet="ab1 .-_/:,'\"[]{}()=~#", max_size=10), st.integers(), st.booleans(), st.none()))
def test_a_value_that_is_written_is_read_back(value: object) -> None:
    text = f"k={spelled(value)}"
    assert parse_override(text).value == value
    assert _theirs(text) == (Kind.CHANGE, "k", value)


def test_a_list_is_written_as_hydra_reads_it() -> None:
    assert spelled(["model", "optimizer", "a,b"]) == "[model,optimizer,'a,b']"
    assert parse_override(f"k={spelled(['model', 'a,b'])}").value == ["model", "a,b"]


# ------------------------------------------------------------------------------------------------ interpolation


def test_a_reference_with_a_dot_in_front_starts_from_its_own_section() -> None:
    assert absolute("actor.checkpoint.load_contents", ".save_contents") == "actor.checkpoint.save_contents"
    assert absolute("actor.checkpoint.load_contents", "..strategy") == "actor.strategy"
    assert absolute("actor.checkpoint.load_contents", "trainer.x") == "trainer.x"


def test_a_reference_alone_keeps_the_kind_of_its_value() -> None:
    values = {"a.b": ["model"], "a.c": "${.b}", "n": 5}
    assert interpolated("a.c", "${.b}", values.get) == ["model"]
    assert interpolated("x", "run-${n}", values.get) == "run-5"


def test_a_reference_to_itself_is_unknown() -> None:
    assert isinstance(interpolated("a", "${a}", lambda _: "${a}"), Unknown)


def test_environment_and_time_stay_for_the_launch() -> None:
    assert interpolated("a", "/x/${oc.env:HOME}/${now:%Y}", lambda _: None) == "/x/${oc.env:HOME}/${now:%Y}"


# ------------------------------------------------------------------------------------------------ command lines


def _command(text: str) -> HydraSettings:
    source = SourceText("run.sh", text)
    command = next(command for command in read(source).commands if command.argv)
    overrides = read_command(command.argv[1:]).overrides
    return HydraSettings((), {"t.freq": -1, "t.dir": "out/${t.name}", "t.name": "x"}, "default", overrides, place=command.span)


def test_the_last_of_two_overrides_wins() -> None:
    assert _command("run t.freq=5 t.freq=7").value("t.freq") == 7


def test_what_is_not_given_has_its_default() -> None:
    settings = _command("run t.name=y")
    assert settings.value("t.freq") == -1
    assert not settings.setting("t.freq").written
    assert settings.value("t.dir") == "out/y"


def test_a_mapping_for_a_section_is_looked_into() -> None:
    assert _command("run 't={freq: 9}'").value("t.freq") == 9


def test_a_value_that_only_the_launch_knows_is_unknown_and_a_path_with_an_open_part() -> None:
    setting = _command("run t.name=$NAME").setting("t.dir")
    assert isinstance(setting.value, Unknown)
    assert setting.path is not None
    assert setting.path.written == "out/$NAME"


def test_a_default_in_the_script_counts_and_is_what_the_setting_stands_for() -> None:
    setting = _command("F=${F:-20}\nrun t.freq=$F").setting("t.freq")
    assert setting.value == 20
    assert str(setting) == "t.freq=20"
    assert setting.span is not None
    assert setting.span.line == 1


def test_the_name_and_path_of_the_configuration_are_options() -> None:
    words = next(iter(read(SourceText("x.sh", "run --config-path=./c --config-name ppo a=1")).commands)).argv[1:]
    command = read_command(words)
    assert command.config_path is not None
    assert (command.config_path.text, command.config_name and command.config_name.text) == ("./c", "ppo")
    assert [written.override for written in command.overrides] == [Override(Kind.CHANGE, "a", 1, 2)]


def test_an_argument_at_which_hydra_stops_is_kept_with_the_reason() -> None:
    words = next(iter(read(SourceText("x.sh", "run a=1 ' '")).commands)).argv[1:]
    ((argument, why),) = read_command(words).refused
    assert (argument.text, why) == (" ", "it has no key")
    assert isinstance(argument.span, Span)
