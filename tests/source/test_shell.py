"""What a reading tells beyond the words: places, ways, what becomes of a failure, what syntax loses."""

from __future__ import annotations

import pytest

from ckptlint.source.shell import Argument, Command, Kind, Known, Loss, Mask, ShellSource, Unknown, read
from ckptlint.source.text import SourceText


def source(text: str, **neighbours: str) -> ShellSource:
    others = {name.replace("_", "."): SourceText(name.replace("_", "."), body) for name, body in neighbours.items()}
    return read(SourceText("run.sh", text), lambda name: others.get(name.removeprefix("./")))


def command(shell: ShellSource, name: str = "python") -> Command:
    return next(one for one in shell.commands if one.name == name)


def argument(shell: ShellSource, text: str, name: str = "python") -> Argument:
    return next(word for one in shell.commands if one.name == name for word in one.words if word.template() == text)


def lines(shell: ShellSource, name: str = "python") -> list[str]:
    return [str(one) for one in shell.commands if one.name == name]


# ------------------------------------------------------------------------------------------------ places


@pytest.mark.parametrize(
    ("text", "value", "line", "written"),
    [
        ("python t.py --n 5", "5", 1, "5"),
        ("N=5\npython t.py --n $N", "5", 1, "5"),
        ('A="--n 5 \\\n  --m 6"\npython t.py $A', "6", 2, "6"),
        ("A=(\n  --n 'x y'\n)\npython t.py \"${A[@]}\"", "x y", 2, "x y"),
        ("P=a/b/c\npython t.py ${P##*/}", "c", 1, "c"),
        ("M=1\nN=$M\npython t.py $N", "1", 1, "1"),
        ("f() { python t.py --n $1; }\nf 7", "7", 2, "7"),
        ("bash -c 'python t.py --n 5'", "5", 1, "5"),
        ("C='python t.py'\neval \"$C --n 5\"", "5", 2, "5"),
        ("for n in 1 2; do python t.py $n; done", "2", 1, "2"),
    ],
)
def test_an_argument_knows_where_its_text_is_written(text: str, value: str, line: int, written: str) -> None:
    span = argument(source(text), value).written
    assert span is not None
    assert (span.line, span.text) == (line, written)


def test_a_computed_text_names_what_it_was_made_of() -> None:
    shell = source("N=5\npython t.py --n $((N * 2))")
    piece = argument(shell, "10").pieces[0]
    assert isinstance(piece, Known)
    assert piece.span is None
    assert "5" in [span.text for span in piece.origins]


def test_a_script_of_another_folder_is_read_where_it_is_sourced() -> None:
    shell = source('source "$(dirname "$0")/env.sh"\npython t.py $N', env_sh="N=3\n")
    span = argument(shell, "3").written
    assert span is not None
    assert (span.path, span.line) == ("env.sh", 1)


def test_a_script_that_is_run_sees_what_is_exported_and_nothing_else() -> None:
    shell = source("export A=1\nB=2\nC=3 bash inner.sh x", inner_sh='python t.py "$A" "$C" "$1" b=$B')
    found = command(shell)
    assert [word.default for word in found.argv[2:]] == ["1", "3", "x", "b="]
    assert found.place.carrier is not None
    assert shell.commands[found.place.carrier].name == "bash"


# ------------------------------------------------------------------------------------------------ what is unknown


@pytest.mark.parametrize(
    ("text", "kind", "default"),
    [
        ("python $X", Kind.ENVIRONMENT, ""),
        ("python ${X:-5}", Kind.ENVIRONMENT, "5"),
        ("X=${X:-5}\npython $X", Kind.ENVIRONMENT, "5"),
        ("python $1", Kind.POSITIONAL, ""),
        ("python ${1:-a}", Kind.POSITIONAL, "a"),
        ("shift\npython $1", Kind.POSITIONAL, ""),
        ("python $(date +%s)", Kind.TIME, None),
        ("T=$(date)\npython $T", Kind.TIME, None),
        ("python $(nproc)", Kind.COMMAND, None),
        ("python $((X * 8))", Kind.ARITHMETIC, "0"),
        ("N=${N:-2}\npython $((N * 8))", Kind.ARITHMETIC, "16"),
        ("python $RANDOM", Kind.SHELL, None),
        ("python ~/x", Kind.SHELL, None),
        ("python $0", Kind.SCRIPT, None),
        ("for f in *.yaml; do python $f; done", Kind.GLOB, None),
        ("a | b\npython ${PIPESTATUS[0]}", Kind.STATUS, "0"),
    ],
)
def test_an_unknown_part_says_where_it_comes_from(text: str, kind: Kind, default: str | None) -> None:
    word = command(source(text)).argv[1]
    piece = word.pieces[0]
    assert isinstance(piece, Unknown)
    assert (piece.kind, word.default, word.text) == (kind, default, None)


def test_shift_counts_on_in_an_unknown_caller() -> None:
    piece = command(source("shift 2\npython $1")).argv[1].pieces[0]
    assert isinstance(piece, Unknown)
    assert piece.name == "3"


def test_the_rest_of_an_unknown_caller_is_none_or_many_arguments() -> None:
    assert command(source('python a "$@"')).argv[-1].is_rest
    assert command(source("python a $@")).argv[-1].is_rest


def test_a_known_part_beside_an_unknown_one_stays_known() -> None:
    word = command(source("D=out\npython $D/run_$(date +%F)/x")).argv[1]
    assert word.template() == "out/run_$(date +%F)/x"
    assert [piece.text for piece in word.pieces if isinstance(piece, Known)] == ["out", "/run_", "/x"]


# ------------------------------------------------------------------------------------------------ ways


def test_both_ways_of_an_unknown_condition_are_kept_apart() -> None:
    shell = source('if [ -z "$X" ]; then A=1; else A=2; fi\npython a $A\npython b $A')
    ways = [[str(one) for one in path if one.name == "python"] for path in shell.paths()]
    assert sorted(ways) == [["python a 1", "python b 1"], ["python a 2", "python b 2"]]
    assert [str(one) for one in shell.shipped() if one.name == "python"] == ["python a 1", "python b 1"]


def test_a_question_asked_twice_is_answered_the_same() -> None:
    shell = source('if [ "$X" = 1 ]; then A=1; fi\nif [ "$X" = 1 ]; then python $A; fi')
    assert lines(shell) == ["python 1"]


def test_in_the_arm_of_a_case_the_variable_is_the_pattern() -> None:
    shell = source("case $B in fsdp) ;; megatron) ;; *) exit 1 ;; esac\npython $B")
    assert lines(shell) == ["python fsdp", "python megatron"]


def test_more_ways_than_can_be_kept_apart_come_together_and_nothing_is_lost() -> None:
    text = "".join(f'if [ -n "$A{i}" ]; then B{i}=1; else B{i}=2; fi\n' for i in range(9)) + "python $B0 end"
    shell = source(text)
    assert shell.complete
    assert all(one.startswith("python ") and one.endswith(" end") for one in lines(shell))


def test_what_stands_behind_an_exit_is_not_run() -> None:
    assert lines(source("python a\nexit 0\npython b")) == ["python a"]
    assert lines(source("if [ $# -lt 1 ]; then exit 1; fi\npython b")) == ["python b"]
    assert source("if [ $# -lt 1 ]; then exit 1; fi\npython b").shipped()[-1].name == "exit"


def test_commands_before_a_syntax_error_run_as_bash_runs_them() -> None:
    shell = source("python a\nMODEL=<path> (x)\npython b")
    assert lines(shell) == ["python a"]
    assert [notice.loss for notice in shell.notices] == [Loss.SYNTAX]


def test_a_command_knows_the_conditions_it_stands_under() -> None:
    found = command(source('if [ "$A" ]; then\n  [ "$B" ] || python t.py\nfi'))
    assert [(one.span.text, one.holds) for one in found.place.conditions] == [('[ "$A" ]', True), ('[ "$B" ]', False)]


@pytest.mark.parametrize(
    ("text", "wrappers"),
    [
        ("nohup python t.py &", ["nohup"]),
        ("srun -N 2 --gres gpu:8 --label python t.py", ["srun", "-N", "2", "--gres", "gpu:8", "--label"]),
        ("ray job submit --address x -- python t.py", ["ray", "job", "submit", "--address", "x", "--"]),
        ("env -u A B=1 python t.py", ["env", "-u", "A", "B=1"]),
        ("timeout -k 5 10m stdbuf -oL python t.py", ["timeout", "-k", "5", "10m", "stdbuf", "-oL"]),
        ("docker exec -it box python t.py", ["docker", "exec", "-it", "box"]),
        ("exec python t.py", ["exec"]),
        ("python t.py", []),
    ],
)
def test_a_command_behind_wrappers_is_found(text: str, wrappers: list[str]) -> None:
    found = command(source(text))
    assert [word.text for word in found.wrappers] == wrappers
    assert [word.text for word in found.argv] == ["python", "t.py"]


def test_a_command_in_the_string_of_a_wrapped_shell_is_found() -> None:
    shell = source("C='python t.py --n 1'\nsrun -N 2 sh -c \"$C\"")
    assert lines(shell) == ["python t.py --n 1"]
    assert command(shell).place.carrier == command(shell, "sh").number


def test_environment_and_redirections_are_told() -> None:
    found = command(source("export A=1\nB=$X C=3 python t.py > out.log 2>&1 <<EOF\nhi $A\nEOF"))
    assert set(found.exported) == {"A"}
    assert set(found.assignments) == {"B", "C"}
    assert [(one.operator, one.number, one.target and one.target.text) for one in found.redirections] == [
        (">", "", "out.log"),
        (">&", "2", "1"),
        ("<<", "", None),
    ]
    assert found.stdin is not None
    assert "".join(piece.text for piece in found.stdin if isinstance(piece, Known)) == "hi 1\n"


def test_the_programs_an_output_goes_through_are_told() -> None:
    found = command(source("python t.py 2>&1 | grep x | tee -a log.txt"))
    assert [[word.text for word in words] for words in found.piped_into] == [["grep", "x"], ["tee", "-a", "log.txt"]]


def test_lines_that_end_with_carriage_returns_are_read_and_remarked_upon() -> None:
    shell = source('#!/bin/bash\r\nA="--a 1 \\\r\n  --b 2"\r\npython t.py \\\r\n  $A \\\r\n  --c 3\r\n')
    assert lines(shell) == ["python t.py --a 1 --b 2 --c 3"]
    assert [notice.loss for notice in shell.notices] == [Loss.CARRIAGE_RETURN]


# ------------------------------------------------------------------------------------------------ failures


@pytest.mark.parametrize(
    "text",
    [
        "python t.py",
        "echo start; python t.py",
        "set -e\npython t.py\necho done",
        "set -eo pipefail\npython t.py | tee log\necho done",
        "set -o pipefail\npython t.py | tee log",
        "python t.py || exit 1\necho done",
        "python t.py || { echo failed; exit 1; }\necho done",
        "if ! python t.py; then exit 3; fi\necho done",
        "python t.py\nrc=$?\necho done\nexit $rc",
        "python t.py | tee log\nexit ${PIPESTATUS[0]}",
        "python t.py\nif [ $? -ne 0 ]; then exit 1; fi\necho done",
        "python t.py && echo fine",
        "main() { python t.py; }\nmain",
        "(python t.py)",
        "bash -c 'python t.py'",
        "python t.py &\nwait $!",
        "trap 'exit 1' ERR\npython t.py\necho done",
        "set -e\nmain() { python t.py; echo x; }\nmain\necho done",
        "exec python t.py",
        "for i in 1 2; do python t.py || exit 1; done\necho end",
    ],
)
def test_a_failure_that_reaches_the_exit_status_is_seen(text: str) -> None:
    assert command(source(text)).failure.reaches_exit


@pytest.mark.parametrize(
    ("text", "masks", "pipefail"),
    [
        ("python t.py | tee log", (Mask.PIPE,), True),
        ("python t.py 2>&1 | tee log | cat", (Mask.PIPE,), True),
        ("set -e\npython t.py | tee log\necho done", (Mask.PIPE,), True),
        ("python t.py | tee log\nchmod 440 x", (Mask.PIPE, Mask.LATER), False),
        ("python t.py || true", (Mask.ALTERNATIVE,), False),
        ("python t.py || echo failed", (Mask.ALTERNATIVE,), False),
        ("python t.py\necho done", (Mask.LATER,), False),
        ("python t.py\nexit 0", (Mask.LATER,), False),
        ("python t.py &", (Mask.BACKGROUND,), False),
        ("python t.py &\nwait", (Mask.BACKGROUND,), False),
        ("nohup python t.py > log 2>&1 &", (Mask.BACKGROUND,), False),
        ("if python t.py; then echo fine; fi", (Mask.CONDITION,), False),
        ("set -e\nset +e\npython t.py\necho done", (Mask.LATER,), False),
    ],
)
def test_a_failure_that_is_masked_says_by_what(text: str, masks: tuple[Mask, ...], pipefail: bool) -> None:
    failure = command(source(text)).failure
    assert not failure.reaches_exit
    assert (failure.masks, failure.pipefail) == (masks, pipefail)


# ------------------------------------------------------------------------------------------------ what syntax loses


@pytest.mark.parametrize(
    ("text", "loss", "cause", "lost"),
    [
        ("python t.py \\\n  # why\n  --save x \\\n  --n 1", Loss.COMMENT, "# why", ["--save x \\\n  --n 1"]),
        ("python t.py \\\n  # one\n  # two\n  a.b=c", Loss.COMMENT, "# one", ["a.b=c"]),
        ("A=$(x)\npython t.py \\\n  # why\n  $A", Loss.COMMENT, "# why", ["$A"]),
        ("python t.py --a 1 \\ \n  --save x", Loss.BLANK, "\\ ", ["--save x"]),
        ("python t.py --a 1 \\ # why\n  a.b=c", Loss.BLANK, "\\ ", ["a.b=c"]),
        ("python t.py --a 1\n  --save x", Loss.MISSING_BACKSLASH, "", ["--save x"]),
        ("python t.py a=1\n  $@", Loss.MISSING_BACKSLASH, "", ["$@"]),
        ("python t.py | tee log \\\n  a.b=c", Loss.AFTER_PIPE, "tee", ["a.b=c"]),
        ("python t.py | tee -a log $@", Loss.AFTER_PIPE, "tee", ["$@"]),
        ("X=-1\nX=${X:-50}\npython $X", Loss.DEFEATED_DEFAULT, "X=-1", ["50"]),
        ("python t.py\nif true; then", Loss.SYNTAX, "if true; then", []),
        ("python 't.py", Loss.SYNTAX, "'t.py", []),
    ],
)
def test_what_syntax_loses_is_told_with_its_cause(text: str, loss: Loss, cause: str, lost: list[str]) -> None:
    (notice,) = source(text).notices
    assert (notice.loss, notice.span.text, [span.text for span in notice.lost]) == (loss, cause, lost)


@pytest.mark.parametrize(
    "text",
    [
        "python t.py \\\n  --a 1 \\\n\n# --b 2 \\\n# --c 3\n",
        "python t.py \\\n  --a 1 \\\n  # --b 2\n\necho done",
        "A=(\n  --a 1  # why\n  # --b 2\n)\npython t.py ${A[@]}",
        "python t.py | tee log.txt",
        "python t.py | tee -a log.txt other.txt",
        "X=${X:-50}\nX=${X:-60}\npython $X",
        'if [ -n "$Y" ]; then X=1; fi\nX=${X:-50}\npython $X',
        "X=\nX=${X:-50}\npython $X",
        "python t.py ' '",
        "python t.py \\",
    ],
)
def test_nothing_is_told_where_nothing_is_lost(text: str) -> None:
    assert source(text).notices == ()


# ------------------------------------------------------------------------------------------------ no harm


@pytest.mark.parametrize(
    "text",
    [
        'X=a\nfor i in {1..60}; do X="$X$X"; done\nshow $X',
        'A=(a)\nfor i in {1..60}; do A+=("${A[@]}" "${A[@]}"); done\nshow "${A[@]}"',
        "show " + "{a,b}" * 40,
        "show {1..99999999999}",
        "f(){ f; f; }; f",
        'X=\'eval "$X"\'\neval "$X"',
        ". ./run.sh; bash run.sh",
        "while true; do :; done",
        "(" * 3000,
        '"$(' * 3000,
        "${" * 3000,
        "if a; then\n" * 1000,
        "X=" + "a" * 4000 + "\nshow ${X//*a*a*a*a*b/}",
        "printf -v X '%999999999d' 1; show $X",
        "show ²; shift ²; exit ²; echo ${PIPESTATUS[²]} {²..³} $((²))",
        "[ " + "9" * 6000 + " -gt 1 ]; exit " + "9" * 5000,
        "\x00\ue000$'\\ud800'",
        "",
        "\ufeff",
    ],
)
def test_nothing_makes_the_reader_fail_or_hang(text: str) -> None:
    own = SourceText("run.sh", text)
    shell = read(own, lambda _: own)
    assert len(list(shell.paths(5))) <= 5
    assert isinstance(shell.shipped(), tuple)


def test_the_end_of_a_script_with_very_many_conditions_is_reached() -> None:
    text = "".join(f'if [ "$A{i}" = 1 ]; then B{i}=1; else B{i}=2; fi\n' for i in range(200)) + "python t.py --n 5"
    shell = source(text)
    assert shell.complete
    assert set(lines(shell)) == {"python t.py --n 5"}
