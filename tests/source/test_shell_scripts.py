"""The shapes launch scripts are written in: each of ``fixtures/scripts`` is read as bash runs it."""

from __future__ import annotations

import pathlib
import re

import pytest
from bash_runs import LAUNCHERS, needs_bash, run, text_of

from ckptlint.source.shell import Argument, Loss, ShellSource, read, wrappers
from ckptlint.source.text import SourceText

SCRIPTS = pathlib.Path(__file__).parents[2] / "fixtures" / "scripts"
NAMES = sorted(path.stem for path in SCRIPTS.glob("*.sh"))
TRANSPARENT = ("env", "exec", "nohup", "stdbuf", "timeout")

LOSSES = {
    "after_the_pipe": [Loss.AFTER_PIPE],
    "backslash_blank": [Loss.BLANK],
    "comment_in_continuation": [Loss.COMMENT],
    "defeated_default": [Loss.DEFEATED_DEFAULT],
}
MASKED = {"redirected", "after_the_pipe", "arrays", "megatron_strings", "waiting_loop"}


def opened(name: str) -> ShellSource:
    text = (SCRIPTS / f"{name}.sh").read_bytes().decode()
    return read(SourceText(f"{name}.sh", text))


def launches(shell: ShellSource) -> list[list[str | None]]:
    """The launches as shipped that a stub would see: not those inside the string of a wrapper that is a stub itself."""
    found: list[list[str | None]] = []
    for command in shell.shipped():
        carrier = command.place.carrier
        if carrier is not None and unwrapped(shell.commands[carrier].words)[0].text in LAUNCHERS:
            continue
        words = unwrapped(command.words)
        if words and words[0].text in LAUNCHERS:
            found.append([text_of(word) for word in words if not word.vanishes])
    return found


def unwrapped(words: tuple[Argument, ...]) -> tuple[Argument, ...]:
    while words and words[0].text in TRANSPARENT:
        words = words[wrappers.WRAPPERS[words[0].text or ""](words) :]
    return words


@needs_bash
@pytest.mark.parametrize("name", NAMES)
def test_a_script_is_read_as_bash_runs_it(name: str, tmp_path: pathlib.Path) -> None:
    shell = opened(name)
    ours = launches(shell)
    expected = run(shell.source.text, tmp_path)
    assert expected
    assert [len(call) for call in ours] == [len(call) for call in expected]
    for call, real in zip(ours, expected, strict=True):
        assert [one for one, _ in zip(call, real, strict=True) if one is not None] == [
            theirs for one, theirs in zip(call, real, strict=True) if one is not None
        ]


@pytest.mark.parametrize("name", NAMES)
def test_only_what_a_script_loses_is_told(name: str) -> None:
    assert [notice.loss for notice in opened(name).notices] == LOSSES.get(name, [])


def test_only_the_time_is_unknown_in_the_shipped_launches() -> None:
    unknown = [(name, one) for name in NAMES for call in launches(opened(name)) for one in call if one is None]
    assert {name for name, _ in unknown} == {"preamble", "time"}


@pytest.mark.parametrize("name", sorted(MASKED))
def test_a_launch_whose_failure_the_pipe_hides_is_told(name: str) -> None:
    shell = opened(name)
    piped = [one for one in shell.commands if one.piped_into and re.match("python|torchrun", one.name or "")]
    assert piped
    assert not any(one.failure.reaches_exit for one in piped)


def test_every_branch_is_read_though_only_one_is_shipped() -> None:
    shell = opened("branches")
    strategies = [
        one.argv[2].text for one in shell.commands if one.name == "python3" and (one.argv[2].text or "")[:8] == "strategy"
    ]
    assert strategies == ["strategy=fsdp2", "strategy=megatron"]
