"""Commands that run the command behind them: how many of their words come before it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from ckptlint.source.shell.values import Argument

Words = Sequence[Argument]
ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")

# Options that take the next word as their value, from each tool's manual page.
ENV = frozenset({"-u", "--unset", "-C", "--chdir", "-S", "--split-string"})
TIMEOUT = frozenset({"-s", "--signal", "-k", "--kill-after"})
NICE = frozenset({"-n", "--adjustment"})
SUDO = frozenset({"-u", "-g", "-h", "-p", "-C", "-T", "-U", "-r", "-t", "-D", "-R", "--user", "--group", "--host", "--prompt"})
STDBUF = frozenset({"-i", "-o", "-e", "--input", "--output", "--error"})
NUMACTL = frozenset(
    {"-N", "-m", "-C", "-p", "-i", "-P", "--cpunodebind", "--membind", "--physcpubind", "--preferred", "--interleave"}
)
TASKSET = frozenset[str]()
EXEC = frozenset({"-a"})
TIME = frozenset({"-f", "-o", "--format", "--output"})
DOCKER_EXEC = frozenset({"-e", "--env", "-w", "--workdir", "-u", "--user", "--env-file", "--detach-keys"})
SRUN = frozenset(
    [
        "-A",
        "-a",
        "-b",
        "-c",
        "-C",
        "-d",
        "-D",
        "-e",
        "-G",
        "-i",
        "-I",
        "-J",
        "-L",
        "-m",
        "-M",
        "-n",
        "-N",
        "-o",
        "-p",
        "-q",
        "-r",
        "-S",
        "-t",
        "-T",
        "-w",
        "-x",
        "--account",
        "--begin",
        "--chdir",
        "--cluster-constraint",
        "--clusters",
        "--comment",
        "--constraint",
        "--container",
        "--container-image",
        "--container-mounts",
        "--container-name",
        "--container-workdir",
        "--container-env",
        "--container-writable",
        "--cores-per-socket",
        "--cpu-bind",
        "--cpu-freq",
        "--cpus-per-gpu",
        "--cpus-per-task",
        "--dependency",
        "--distribution",
        "--epilog",
        "--error",
        "--exclude",
        "--export",
        "--gpu-bind",
        "--gpus",
        "--gpus-per-node",
        "--gpus-per-socket",
        "--gpus-per-task",
        "--gres",
        "--het-group",
        "--hint",
        "--input",
        "--job-name",
        "--jobid",
        "--kill-on-bad-exit",
        "--licenses",
        "--mail-type",
        "--mail-user",
        "--mem",
        "--mem-bind",
        "--mem-per-cpu",
        "--mem-per-gpu",
        "--mpi",
        "--network",
        "--nodefile",
        "--nodelist",
        "--nodes",
        "--ntasks",
        "--ntasks-per-core",
        "--ntasks-per-gpu",
        "--ntasks-per-node",
        "--ntasks-per-socket",
        "--open-mode",
        "--output",
        "--partition",
        "--priority",
        "--prolog",
        "--qos",
        "--relative",
        "--reservation",
        "--signal",
        "--slurmd-debug",
        "--task-epilog",
        "--task-prolog",
        "--tasks-per-node",
        "--threads",
        "--threads-per-core",
        "--time",
        "--time-min",
        "--tmp",
        "--uid",
        "--wait",
        "--wckey",
        "--profile",
    ]
)


def options(words: Words, at: int, with_value: frozenset[str]) -> int:
    """The place behind the options that begin at ``at``."""
    while at < len(words):
        text = words[at].text
        text = words[at].template() if text is None else text
        if text == "--":
            return at + 1
        if not text.startswith("-") or text == "-":
            return at
        at += 2 if text in with_value and "=" not in text else 1
    return at


def behind(with_value: frozenset[str], operands: int = 0) -> Callable[[Words], int]:
    """A reader of options, and of so many words before the command."""

    def count(words: Words) -> int:
        return options(words, 1, with_value) + operands

    return count


def env(words: Words) -> int:
    """``env [options] [NAME=value]... command``."""
    at = options(words, 1, ENV)
    while at < len(words) and ASSIGNMENT.match(words[at].template()):
        at += 1
    return at


def sudo(words: Words) -> int:
    """``sudo [options] [NAME=value]... command``."""
    at = options(words, 1, SUDO)
    while at < len(words) and ASSIGNMENT.match(words[at].template()):
        at += 1
    return at


def ray(words: Words) -> int:
    """``ray job submit [options] -- command``."""
    if [word.text for word in words[1:3]] != ["job", "submit"]:
        return len(words)
    marks = [at for at, word in enumerate(words) if word.text == "--"]
    return marks[0] + 1 if marks else len(words)


def docker(words: Words) -> int:
    """``docker exec [options] container command``."""
    if len(words) < 2 or words[1].text != "exec":
        return len(words)
    return options(words, 2, DOCKER_EXEC) + 1


def command(words: Words) -> int:
    """``command -v`` asks, it runs nothing."""
    text = words[1].text if len(words) > 1 else ""
    if text and text.startswith("-"):
        return 2 if text == "-p" else len(words)
    return 1


WRAPPERS: dict[str, Callable[[Words], int]] = {
    "builtin": behind(frozenset()),
    "command": command,
    "docker": docker,
    "env": env,
    "exec": behind(EXEC),
    "ionice": behind(frozenset({"-c", "-n", "-p"})),
    "nice": behind(NICE),
    "nohup": behind(frozenset()),
    "numactl": behind(NUMACTL),
    "ray": ray,
    "setsid": behind(frozenset()),
    "srun": behind(SRUN),
    "stdbuf": behind(STDBUF),
    "sudo": sudo,
    "taskset": behind(TASKSET, 1),
    "time": behind(TIME),
    "timeout": behind(TIMEOUT, 1),
    "unbuffer": behind(frozenset()),
}


def base(argument: Argument) -> str | None:
    """The name of a command without its folder."""
    text = argument.text
    return None if text is None else text.rpartition("/")[2]


def inner(words: Words) -> int:
    """How many words stand before the innermost command; 0 when the first word is that command already."""
    at = 0
    while at < len(words):
        count = WRAPPERS.get(base(words[at]) or "")
        if count is None:
            return at
        passed = count(words[at:])
        if at + passed >= len(words):
            return at
        at += passed
    return at


def environment(words: Words) -> dict[str, Argument]:
    """``NAME=value`` words of ``env`` and ``sudo`` among the wrappers."""
    found: dict[str, Argument] = {}
    for word in words:
        name = ASSIGNMENT.match(word.template())
        if name:
            found[name.group()[:-1]] = word
    return found
