"""Arguments that repeat what a command has already are written as the script writes it."""

from __future__ import annotations

import pytest

from ckptlint.source.shell import append, read
from ckptlint.source.text import SourceText


def _appended(script: str, *texts: str) -> str:
    shell = read(SourceText("run.sh", script))
    command = next(command for command in shell.commands if command.name == "torchrun")
    (edit,) = append(shell, command, texts).edits
    return edit.replacement.strip(" \\\n")


@pytest.mark.parametrize("variable", ["$SAVE", "${SAVE}", '"$SAVE"'])
def test_a_value_of_a_variable_is_written_with_the_variable(variable: str) -> None:
    script = f"SAVE=/data/run\ntorchrun pretrain_gpt.py --save {variable}\n"
    assert _appended(script, "--load", "/data/run") == f"--load {variable}"


def test_a_variable_is_found_in_an_array() -> None:
    script = 'SAVE=/data/run\nARGS=(--save $SAVE)\ntorchrun pretrain_gpt.py "${ARGS[@]}"\n'
    assert _appended(script, "--load", "/data/run") == "--load $SAVE"


def test_a_value_that_stands_there_as_text_is_written_as_text() -> None:
    assert _appended("torchrun pretrain_gpt.py --save /data/run\n", "--load", "/data/run") == "--load /data/run"


def test_a_variable_that_splits_into_words_is_no_value_to_repeat() -> None:
    script = 'SAVE="/data/my run"\ntorchrun pretrain_gpt.py --save $SAVE\n'
    assert _appended(script, "--load", "/data/my run") == "--load '/data/my run'"
