"""Command lines, as argparse reads them."""

from __future__ import annotations

import argparse

import pytest
from command_lines import TextEditor, edited, last_command
from hypothesis import given
from hypothesis import strategies as st

from ckptlint.frameworks.flags import FlagSettings, program
from ckptlint.frameworks.megatron_keys import Flag
from ckptlint.run import Changing, Unknown, Variable

FLAGS = (
    Flag("save", ("--save",)),
    Flag("save_interval", ("--save-interval", "--persistent-save-interval"), "int"),
    Flag("lr", ("--lr",), "float", 0.1),
    Flag("finetune", ("--finetune",), "on"),
    Flag("targets", ("--targets",), many=True),
)


def _settings(arguments: str, before: str = "", *, abbreviations: bool = False) -> FlagSettings:
    command = last_command(f"{before}\nrun {arguments}")
    return FlagSettings(command.argv[1:], FLAGS, "default", command.span, TextEditor(command), abbreviations)


def test_a_value_follows_its_option_or_an_equals_sign() -> None:
    for arguments in ("--save /a --save-interval 5", "--save=/a --save-interval=5"):
        settings = _settings(arguments)
        assert (settings.value("save"), settings.value("save_interval")) == ("/a", 5)
        assert str(settings.setting("save_interval")) == "--save-interval 5"


def test_a_flag_is_on_where_it_is_given_and_has_its_default_where_not() -> None:
    assert _settings("--finetune").value("finetune") is True
    assert str(_settings("--finetune").setting("finetune")) == "--finetune"
    assert _settings("--save x").value("finetune") is None
    assert _settings("").value("lr") == 0.1


def test_the_last_of_two_wins_under_whatever_name() -> None:
    settings = _settings("--save-interval 5 --persistent-save-interval 7")
    assert settings.value("save_interval") == 7
    assert settings.setting("save_interval").name == "--persistent-save-interval"


def test_several_values_go_up_to_the_next_option() -> None:
    assert _settings("--targets a b --save x").value("targets") == ["a", "b"]


def test_an_unknown_option_is_a_name_of_its_own_and_leaves_the_others_alone() -> None:
    settings = _settings("--save-intervall 5 --save x")
    assert "--save-intervall" in tuple(settings.names())
    assert settings.value("save") == "x"
    assert "save_interval" not in settings


def test_abbreviations_count_where_the_parser_takes_them() -> None:
    assert _settings("--fine", abbreviations=True).value("finetune") is True
    assert "finetune" not in _settings("--fine")
    assert "save_interval" not in _settings("--save- 5")
    assert _settings("--save-i 5", abbreviations=True).value("save_interval") == 5


def test_a_variable_of_the_environment_is_unknown_and_as_a_path_has_an_open_part() -> None:
    setting = _settings("--save $OUT/run").setting("save")
    assert isinstance(setting.value, Unknown)
    assert setting.path is not None
    assert [part.name for part in setting.path.of(Variable)] == ["OUT"]
    assert str(setting) == "--save $OUT/run"


def test_a_time_in_a_path_changes_at_every_start() -> None:
    setting = _settings("--save /data/$(date +%s)").setting("save")
    assert setting.path is not None
    assert any(setting.path.of(Changing))


def test_a_value_in_a_variable_stands_where_the_variable_is_set() -> None:
    setting = _settings("--save-interval $N", "N=2000").setting("save_interval")
    assert setting.value == 2000
    assert setting.span is not None
    assert setting.span.line == 1
    assert str(setting) == "--save-interval 2000"


def test_a_placeholder_of_several_words_is_one_value() -> None:
    settings = _settings("--save $DIR --finetune", 'DIR="your model save path"')
    assert settings.value("save") == "your model save path"
    assert settings.value("finetune") is True


def test_arguments_of_a_command_substitution_may_hold_anything() -> None:
    assert isinstance(_settings("--save x $(cat args)").value("finetune"), Unknown)
    assert _settings('--save x "$@"').value("finetune") is None
    assert _settings("--save x $EXTRA").value("finetune") is None


def test_a_value_is_changed_and_an_option_is_taken_out_every_time_it_is_given() -> None:
    settings = _settings("--save /a --finetune --save-interval=5 --finetune")
    command = last_command("run --save /a --finetune --save-interval=5 --finetune")
    settings = FlagSettings(command.argv[1:], FLAGS, "default", command.span, TextEditor(command))
    assert edited(command, settings.setting("save_interval").set(9)).endswith("--save-interval=9 --finetune")
    assert edited(command, settings.setting("finetune").set(False)) == "run --save /a --save-interval=5"
    assert edited(command, settings.setting("lr").set(0.5)).endswith("--finetune --lr 0.5")
    assert settings.setting("finetune").set(True) == ()
    assert settings.setting("targets").remove() == ()


_WORDS = st.sampled_from(
    ["--save", "--save=b", "--save-interval", "--save-interval=3", "--finetune", "--targets", "x", "7", "-1"]
)


@given(st.lists(_WORDS, max_size=7))
def test_what_argparse_accepts_is_read_as_argparse_reads_it(words: list[str]) -> None:
    parser = argparse.ArgumentParser(allow_abbrev=False, exit_on_error=False)
    parser.add_argument("--save")
    parser.add_argument("--save-interval", type=int)
    parser.add_argument("--finetune", action="store_true", default=None)
    parser.add_argument("--targets", nargs="+")
    try:
        theirs, rest = parser.parse_known_args(words)
    except (argparse.ArgumentError, SystemExit):
        return
    settings = _settings(" ".join(words))
    for name in ("save", "save_interval", "finetune", "targets"):
        assert settings.value(name) == getattr(theirs, name), (words, rest)


# ------------------------------------------------------------------------------------------------ programs


@pytest.mark.parametrize(
    ("script", "name", "count"),
    [
        ("python3 -u train.py --a 1", "train.py", 2),
        ("python -m verl.trainer.main_ppo a=1", "verl.trainer.main_ppo", 1),
        ("torchrun --nproc_per_node 8 --standalone pretrain_gpt.py --save x", "pretrain_gpt.py", 2),
        ("torchrun --nproc_per_node=8 -m verl.trainer.fsdp_sft_trainer a=1 b=2", "verl.trainer.fsdp_sft_trainer", 2),
        ("python -m torch.distributed.launch --nproc_per_node 8 pretrain_gpt.py --save x", "pretrain_gpt.py", 2),
        ('msrun $ARGS "$root"/pretrain_gpt.py --save x', "$root/pretrain_gpt.py", 2),
        ("nohup torchrun a/b.py x", "a/b.py", 1),
    ],
)
def test_a_program_is_found_behind_its_launcher(script: str, name: str, count: int) -> None:
    found = program(last_command(script).argv)
    assert found is not None
    assert (found.name, len(found.arguments)) == (name, count)
    assert found.script == name.rpartition("/")[2]


@pytest.mark.parametrize(
    "script", ["ls train.py", "python -c 'x'", "python", "torchrun --help", "$RUN train.py", "sed -i s/a/b/ a.py"]
)
def test_a_command_that_launches_no_program_has_none(script: str) -> None:
    assert program(last_command(script).argv) is None
