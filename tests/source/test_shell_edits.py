"""Edits of scripts: the text after them, byte for byte, and what bash then passes."""

from __future__ import annotations

import pathlib

import pytest
from bash_runs import calls, needs_bash, run
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ckptlint.source.shell import (
    Argument,
    Change,
    Command,
    ShellSource,
    append,
    insert_line,
    quoted,
    read,
    remove,
    set_here,
    set_value,
)
from ckptlint.source.text import CannotEdit, SourceText, apply


def opened(text: str) -> tuple[ShellSource, Command]:
    shell = read(SourceText("run.sh", text))
    return shell, next(one for one in shell.commands if one.name == "show")


def word(command: Command, text: str) -> Argument:
    return next(one for one in command.words if (one.default or one.template()) == text)


def after(shell: ShellSource, change: Change) -> str:
    return apply(shell.source, change.edits)


# ------------------------------------------------------------------------------------------------ values


@pytest.mark.parametrize(
    ("text", "target", "key", "value", "expected"),
    [
        ("show --n 5 x\n", "5", "", "7", "show --n 7 x\n"),
        ("show --n=5\n", "--n=5", "--n=", "7", "show --n=7\n"),
        ("N=5  # steps\nshow --n $N\n", "5", "", "7", "N=7  # steps\nshow --n $N\n"),
        ("N=${N:-5}\nshow a.b=$N\n", "a.b=5", "a.b=", "7", "N=${N:-7}\nshow a.b=$N\n"),
        ('N=${N:-"a/b"}\nshow a.b="$N"\n', "a.b=a/b", "a.b=", "c d", 'N=${N:-"c d"}\nshow a.b="$N"\n'),
        ('A="--n 5 \\\n --m 6"\nshow $A\n', "6", "", "7", 'A="--n 5 \\\n --m 7"\nshow $A\n'),
        ('A=(--d "x y")\nshow "${A[@]}"\n', "x y", "", 'p "q"', 'A=(--d "p \\"q\\"")\nshow "${A[@]}"\n'),
        ("show 'x y'\n", "x y", "", "it's", "show 'it'\\''s'\n"),
        ("show x\n", "x", "", "a b", "show 'a b'\n"),
        ("show x\n", "x", "", "it's $5", 'show "it\'s \\$5"\n'),
        ("show k=\n", "k=", "k=", "/a/b", "show k=/a/b\n"),
        ('show --d ""\n', "", "", "/a", 'show --d "/a"\n'),
        ("show --d ''\n", "", "", "/a", "show --d '/a'\n"),
        ("show k='a'b\"c\"\n", "k=abc", "k=", "z", "show k=z\n"),
        ("show 'k=[1,2]'\n", "k=[1,2]", "k=", "[3]", "show 'k=[3]'\n"),
        ("D=/a\nshow --d $D/x\n", "/a/x", "", "/b", "D=/a\nshow --d /b\n"),
        ("bash -c 'show --n 5'\n", "5", "", "7", "bash -c 'show --n 7'\n"),
        ('C="show --n 5"\neval $C\n', "5", "", "7", 'C="show --n 7"\neval $C\n'),
        ("f() { show --n $1; }\nf 5\n", "5", "", "7", "f() { show --n $1; }\nf 7\n"),
        ("show --n $((2 * 3))\n", "6", "", "7", "show --n 7\n"),
        ("show --n $(echo 5)\n", "5", "", "7", "show --n $(echo 7)\n"),
        ("show --n $X\n", "$X", "", "7", "show --n 7\n"),
        ("A='--n 5'\nshow $A\n", "5", "", "7 8", None),
        ("show --n 5 \\\r\n  --m 6\r\n", "6", "", "7", "show --n 5 \\\r\n  --m 7\r\n"),
        ("N=5\nif [ $N -gt 6 ]; then echo; fi\nshow $N\n", "5", "", "7", "N=5\nif [ $N -gt 6 ]; then echo; fi\nshow 7\n"),
        ("cat <<EOF\n5\nEOF\nshow 5", "5", "", "7", "cat <<EOF\n5\nEOF\nshow 7"),
    ],
)
def test_a_value_is_changed_where_it_is_written(text: str, target: str, key: str, value: str, expected: str | None) -> None:
    shell, command = opened(text)
    argument = word(command, target)
    if expected is None:
        with pytest.raises(CannotEdit):
            set_value(shell, command, argument, value, key)
        return
    assert after(shell, set_value(shell, command, argument, value, key)) == expected


@pytest.mark.parametrize(
    ("text", "target", "key", "expected"),
    [
        ("N=5\nshow --n $N --m $N\n", "5", "", "N=5\nshow --n 7 --m $N\n"),
        ('D=/a\nshow x.y="$D"/b z\n', "x.y=/a/b", "x.y=", "D=/a\nshow x.y=7 z\n"),
        ('D=/a\nshow "x.y=$D" z\n', "x.y=/a", "x.y=", 'D=/a\nshow "x.y=7" z\n'),
        ('N=5\nA="--n $N \\\n --m 6"\nshow $A $N\n', "5", "", 'N=5\nA="--n 7 \\\n --m 6"\nshow $A $N\n'),
        ('N=5\nA=(--n "$N" --m)\nshow "${A[@]}" $N\n', "5", "", 'N=5\nA=(--n 7 --m)\nshow "${A[@]}" $N\n'),
    ],
)
def test_a_value_is_written_out_in_the_command_so_that_nothing_else_changes(
    text: str, target: str, key: str, expected: str
) -> None:
    shell, command = opened(text)
    change = set_here(shell, command, word(command, target), "7", key)
    assert after(shell, change) == expected
    assert change.uses == ()


def test_the_other_uses_of_a_variable_are_told() -> None:
    shell, command = opened("N=5\nshow --n $N --m $((N * 2))\nother $N\nmkdir $N.d\n")
    change = set_value(shell, command, word(command, "5"), "7")
    assert [(one.name, argument.text) for one, argument in change.uses] == [("show", "10"), ("other", "5"), ("mkdir", "5.d")]


def test_a_change_that_touches_nothing_else_tells_no_uses() -> None:
    shell, command = opened("N=5\nM=5\nshow --n $N\nother $M\n")
    assert set_value(shell, command, word(command, "5"), "7").uses == ()


def test_a_value_in_another_script_is_changed_there() -> None:
    inner = SourceText("env.sh", "N=5\n")
    shell = read(SourceText("run.sh", ". ./env.sh\nshow --n $N\n"), lambda name: inner if name == "./env.sh" else None)
    command = next(one for one in shell.commands if one.name == "show")
    change = set_value(shell, command, word(command, "5"), "7")
    assert apply(inner, change.edits) == "N=7\n"


# ------------------------------------------------------------------------------------------------ taking out


@pytest.mark.parametrize(
    ("text", "targets", "expected"),
    [
        ("show --a 1 --b 2\n", ["--a", "1"], "show --b 2\n"),
        ("show --a 1 --b 2\n", ["--b", "2"], "show --a 1\n"),
        ("show \\\n  --a 1 \\\n  --b 2 \\\n  --c 3\n", ["--b", "2"], "show \\\n  --a 1 \\\n  --c 3\n"),
        ("show \\\n  --a 1 \\\n  --b 2\necho x\n", ["--b", "2"], "show \\\n  --a 1\necho x\n"),
        ("show \\\n  --a 1 \\\n  --b 2 | tee l\n", ["--b", "2"], "show \\\n  --a 1 \\\n | tee l\n"),
        ("show \\\n  --a \\\n  1 \\\n  --b 2\n", ["--a", "1"], "show \\\n  --b 2\n"),
        ('A="\n  --a 1 \\\n  --b 2 \\\n"\nshow $A x\n', ["--b", "2"], 'A="\n  --a 1 \\\n"\nshow $A x\n'),
        ('A=(\n  --a "1"  # why\n  --b 2\n)\nshow "${A[@]}"\n', ["--a", "1"], 'A=(\n  --b 2\n)\nshow "${A[@]}"\n'),
        ("A=(--a '1 2' --b)\nshow \"${A[@]}\"\n", ["--a", "1 2"], 'A=(--b)\nshow "${A[@]}"\n'),
        ("A='--a 1 --b'\nshow $A\n", ["1"], "A='--a --b'\nshow $A\n"),
        ("show --a 1 \\\r\n  --b 2 \\\r\n  --c\r\n", ["--b", "2"], "show --a 1 \\\r\n  --c\r\n"),
        ("A='--a 1'\nshow $A --b\nother $A\n", ["--a"], None),
        ("bash -c 'show --a 1 --b'\n", ["--a", "1"], "bash -c 'show --b'\n"),
    ],
)
def test_arguments_are_taken_out_with_their_line(text: str, targets: list[str], expected: str | None) -> None:
    shell, command = opened(text)
    arguments = [word(command, target) for target in targets]
    if expected is None:
        with pytest.raises(CannotEdit):
            remove(shell, command, arguments)
        return
    assert after(shell, remove(shell, command, arguments)) == expected


# ------------------------------------------------------------------------------------------------ putting in


@pytest.mark.parametrize(
    ("text", "texts", "expected"),
    [
        ("show --a 1\n", ["--b", "2"], "show --a 1 --b 2\n"),
        ("show --a 1", ["--b", "x y"], "show --a 1 --b 'x y'"),
        ("show --a 1 > log 2>&1 &\n", ["--b"], "show --a 1 --b > log 2>&1 &\n"),
        ("show --a 1 2>&1 | tee log\n", ["--b"], "show --a 1 --b 2>&1 | tee log\n"),
        (
            "show \\\n    --a 1 \\\n    --b 2 2>&1 | tee l\n",
            ["--c"],
            "show \\\n    --a 1 \\\n    --b 2 \\\n    --c 2>&1 | tee l\n",
        ),
        ("show \\\n    --a 1 \\\n", ["--c"], "show \\\n    --a 1 \\\n    --c \\\n"),
        ("show \\\r\n\t--a 1 \\\r\n\t--b\r\n", ["--c"], "show \\\r\n\t--a 1 \\\r\n\t--b \\\r\n\t--c\r\n"),
        ("show a=1 $@\n", ["b=2"], "show a=1 b=2 $@\n"),
        ('show \\\n  a=1 \\\n  "$@" | tee l\n', ["b=2"], 'show \\\n  a=1 \\\n  b=2 \\\n  "$@" | tee l\n'),
        ('A=(--a)\nshow "${A[@]}"\n', ["--b"], 'A=(--a)\nshow "${A[@]}" --b\n'),
        ("nohup show --a 1 &\n", ["--b"], "nohup show --a 1 --b &\n"),
        ("bash -c 'show --a 1'\n", ["--b"], "bash -c 'show --a 1 --b'\n"),
        ("C='show --a'\nsrun sh -c \"$C\"\n", ["--b"], "C='show --a --b'\nsrun sh -c \"$C\"\n"),
        ("if true; then show --a; fi\n", ["--b"], "if true; then show --a --b; fi\n"),
    ],
)
def test_arguments_are_put_at_the_end_of_the_command(text: str, texts: list[str], expected: str) -> None:
    shell, command = opened(text)
    assert after(shell, append(shell, command, texts)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("#!/bin/bash\npython t.py\n", "#!/bin/bash\nset -o pipefail\npython t.py\n"),
        ("python t.py\n", "set -o pipefail\npython t.py\n"),
        (
            "#!/bin/bash\n# (c)\n# all\n\n# run\nset -ex\n\na\n",
            "#!/bin/bash\n# (c)\n# all\n\n# run\nset -ex\nset -o pipefail\n\na\n",
        ),
        (
            "#!/bin/bash\n\n#SBATCH -N 2\n#SBATCH -n 1\n\na\n",
            "#!/bin/bash\n\n#SBATCH -N 2\n#SBATCH -n 1\nset -o pipefail\n\na\n",
        ),
        ("#!/bin/bash\n\n# run it\na\n", "#!/bin/bash\nset -o pipefail\n\n# run it\na\n"),
        ("#!/bin/bash\r\na\r\n", "#!/bin/bash\r\nset -o pipefail\r\na\r\n"),
        ("#!/bin/bash", "#!/bin/bash\nset -o pipefail"),
        ("\ufeff#!/bin/bash\na\n", "\ufeff#!/bin/bash\nset -o pipefail\na\n"),
    ],
)
def test_a_line_goes_to_the_top_behind_what_must_come_first(text: str, expected: str) -> None:
    shell = read(SourceText("run.sh", text))
    assert apply(shell.source, [insert_line(shell)]) == expected


def test_the_line_lets_a_failure_through_the_pipe() -> None:
    shell, command = opened("#!/bin/bash\nshow t.py 2>&1 | tee log\n")
    assert command.failure.pipefail
    again = read(SourceText("run.sh", apply(shell.source, [insert_line(shell)])))
    assert next(one for one in again.commands if one.name == "show").failure.reaches_exit


# ------------------------------------------------------------------------------------------------ against bash

HOSTS = [
    "show --n {0}\n",
    "V={0}\nshow --n $V end\n",
    'V="{1}"\nshow --n "$V" end\n',
    "V='old text'\nshow --n \"$V\"\n",
    'A=(--n "old text" end)\nshow "${{A[@]}}"\n',
    'V=${{V:-old}}\nshow k="$V" end\n',
    "bash -c \"show --n 'old text'\"\n",
    "show --n ol\\d\n",
    "show --n o'l'\"d\"\n",
]


@needs_bash
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], derandomize=True)
@given(value=st.text(st.sampled_from("ab/ '\"$\\`*{}~#=!&;é"), min_size=1, max_size=6), host=st.sampled_from(HOSTS))
def test_what_is_written_is_what_bash_passes(value: str, host: str, tmp_path: pathlib.Path) -> None:
    shell, command = opened(host.format("old", "old text"))
    target = next(one for one in command.words if (one.default or "").endswith(("old", "old text")))
    key = "k=" if target.template().startswith("k=") else ""
    try:
        change = set_value(shell, command, target, value, key)
    except CannotEdit:
        return
    text = after(shell, change)
    expected = [key + value if one is target else one.default for one in command.words[1:]]
    assert run(text, tmp_path) == [expected]
    assert calls(read(SourceText("run.sh", text))) == [expected]


@needs_bash
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], derandomize=True)
@given(value=st.text(st.sampled_from("ab/ '\"$\\`*{}~#=!&;\n"), max_size=6))
def test_a_quoted_text_is_that_text_to_bash(value: str, tmp_path: pathlib.Path) -> None:
    assert run(f"show {quoted(value)}\n", tmp_path) == [[value]]
