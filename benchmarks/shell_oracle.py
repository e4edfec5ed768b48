"""How often the shell reader agrees with bash about what a launch script passes to its launchers.

Every script of a repository is run by bash in a scratch copy, with an empty environment, stub launchers on PATH that write
down their arguments, and no network where the machine allows that. The same script is read by ``ckptlint.source.shell``. The
two agree when some way of the reading has the same sequence of launcher calls, where known text equals and only what comes
from the date, a command or the file system may be anything; what the environment could give must be what an empty one gives.

usage: python benchmarks/shell_oracle.py REPO_DIR... [--show] [--glob '**/*.sh'] [--timeout 20] [--jobs 4]
"""

from __future__ import annotations

import argparse
import concurrent.futures
import functools
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from typing import NamedTuple

from ckptlint.source.shell import Argument, Command, Kind, Known, Piece, ShellSource, patterns, read, wrappers
from ckptlint.source.text import SourceError, SourceText, decode

LAUNCHERS = frozenset(
    [
        "python",
        "python3",
        "torchrun",
        "msrun",
        "deepspeed",
        "accelerate",
        "llamafactory-cli",
        "swift",
        "axolotl",
        "ray",
        "mpirun",
        "srun",
        "sbatch",
        "horovodrun",
        "megatron",
        "docker",
        "nohup",
        "sudo",
        "nsys",
        "megatron-cli",
    ]
)
SILENT = frozenset(
    [
        "pip",
        "pip3",
        "git",
        "wget",
        "curl",
        "nvidia-smi",
        "npu-smi",
        "conda",
        "huggingface-cli",
        "hf",
        "ssh",
        "scp",
        "rm",
        "mv",
        "cp",
        "kill",
        "pkill",
        "chmod",
        "chown",
        "find",
        "tensorboard",
        "apt",
        "apt-get",
        "yum",
        "hdfs",
        "aws",
        "sleep",
        "make",
        "cmake",
        "patch",
        "unzip",
        "tar",
        "ln",
        "touch",
    ]
)
REAL = [
    "cat",
    "basename",
    "dirname",
    "date",
    "expr",
    "seq",
    "tr",
    "cut",
    "head",
    "tail",
    "sed",
    "awk",
    "grep",
    "wc",
    "sort",
    "printf",
    "echo",
    "tee",
    "readlink",
    "realpath",
    "env",
    "true",
    "false",
    "test",
    "uname",
    "hostname",
    "mkdir",
    "bash",
    "sh",
    "xargs",
    "nproc",
    "timeout",
    "nice",
    "stdbuf",
    "uniq",
    "ls",
    "mktemp",
]
TRANSPARENT = frozenset({"env", "exec", "command", "builtin", "time", "timeout", "nice", "stdbuf"})
SHELLS = frozenset({"bash", "sh", "source", "."})
STUB = '#!/bin/sh\nprintf \'%s\\0\' "$(($# + 1))" "${0##*/}" "$@" >>"$ARGV_LOG"\n'


class Ran(NamedTuple):
    calls: list[list[str]]
    timed_out: bool


class Row(NamedTuple):
    script: str
    reached: bool
    equal: bool
    shipped: bool
    seconds: float
    reason: str


# ------------------------------------------------------------------------------------------------ bash


def make_stubs(folder: pathlib.Path) -> None:
    folder.mkdir()
    for name in REAL:
        real = shutil.which(name)
        if real:
            (folder / name).symlink_to(real)
    for name in LAUNCHERS | SILENT:
        stub = folder / name
        stub.write_text(STUB if name in LAUNCHERS else "#!/bin/sh\n")
        stub.chmod(0o755)


def isolation() -> list[str]:
    """A network and a process table of its own, so that a script reaches and kills nothing outside."""
    unshare = shutil.which("unshare")
    for flags in (["-n", "-p", "-f", "--kill-child"], ["-n"]):
        if unshare and subprocess.run([unshare, *flags, "true"], capture_output=True, check=False).returncode == 0:
            return [unshare, *flags]
    return []


# What runs on in the background gets a moment, then the process table goes and all in it.
LINGER = '"$0" "$1"; exec "$2" 0.05'


def run_bash(script: pathlib.Path, work: pathlib.Path, stubs: pathlib.Path, prefix: list[str], timeout: float) -> Ran:
    with tempfile.TemporaryDirectory() as home:
        log = pathlib.Path(home, "argv")
        log.touch()
        bash = shutil.which("bash") or "bash"
        process = subprocess.Popen(
            [*prefix, bash, "-c", LINGER, bash, str(script), shutil.which("sleep") or "sleep"],
            cwd=work,
            env={"PATH": str(stubs), "HOME": home, "ARGV_LOG": str(log)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            process.wait(timeout)
            timed_out = False
        except subprocess.TimeoutExpired:
            timed_out = True
            process.kill()
            process.wait()
        return Ran(parse_log(log.read_bytes()), timed_out)


def parse_log(data: bytes) -> list[list[str]]:
    fields = data.decode("utf-8", "replace").split("\0")
    calls, at = [], 0
    while at < len(fields) - 1:
        count = int(fields[at])
        calls.append(fields[at + 1 : at + 1 + count])
        at += 1 + count
    return calls


# ------------------------------------------------------------------------------------------------ ours against bash's


def logged(command: Command) -> tuple[Argument, ...]:
    """The words a stub would write down; () when no stub is called."""
    words = command.words
    while words:
        name = wrappers.base(words[0])
        if name not in TRANSPARENT:
            break
        passed = wrappers.WRAPPERS[name](words)
        if passed >= len(words):
            return ()
        words = words[passed:]
    name = (words[0].default or "").rpartition("/")[2] if words else ""
    path = words[0].default or "" if words else ""
    return words if name in LAUNCHERS and "/" not in path else ()


def carried_by_stub(command: Command, commands: dict[int, Command]) -> bool:
    number = command.place.carrier
    while number is not None:
        if logged(commands[number]):
            return True
        number = commands[number].place.carrier
    return False


class Matcher:
    """Whether a way through the reading makes these calls."""

    def __init__(self, source: ShellSource, calls: list[list[str]]) -> None:
        self.calls = calls
        commands = {command.number: command for command in source.commands}
        self.words = {
            command.number: () if carried_by_stub(command, commands) else logged(command) for command in source.commands
        }
        self.background = any(command.place.background for command in source.commands)
        self.ends = source.ends
        self.memo: dict[tuple[int, int], bool] = {}
        self.matches: dict[tuple[int, int], bool] = {}

    def any_way(self) -> bool:
        stack = [(end, len(self.calls)) for end in self.ends]
        seen = set()
        while stack:
            trace, left = stack.pop()
            if (id(trace), left) in seen:
                continue
            seen.add((id(trace), left))
            words = self.words[trace.command] if trace.command is not None else ()
            if words:
                if not left or not self.same(trace.command, left - 1):
                    continue
                left -= 1
            if not trace.parents and left == 0:
                return True
            stack += [(parent, left) for parent in trace.parents]
        return self.background and self.unordered()

    def same(self, number: int | None, call: int) -> bool:
        key = (number or 0, call)
        if key not in self.matches:
            self.matches[key] = same_arguments(self.words[number or 0], self.calls[call])
        return self.matches[key]

    def unordered(self) -> bool:
        """For commands in the background: every call is one of ours, each by a command of its own."""
        free = [number for number, words in self.words.items() if words]
        for call in range(len(self.calls)):
            number = next((number for number in free if self.same(number, call)), None)
            if number is None:
                return False
            free.remove(number)
        return True

    def as_shipped(self, source: ShellSource) -> bool:
        """Whether the way said to be taken in an empty environment makes these calls."""
        shipped = [one.number for one in source.shipped() if self.words[one.number]]
        same = len(shipped) == len(self.calls)
        return same and all(self.same(number, call) for call, number in enumerate(shipped))


def same_arguments(words: tuple[Argument, ...], call: list[str]) -> bool:
    patterns = [pattern for word in words for pattern in [argument_pattern(word)] if pattern is not None]

    @functools.cache
    def match(at: int, given: int) -> bool:
        if at == len(patterns):
            return given == len(call)
        regex, several = patterns[at]
        if given < len(call) and re.fullmatch(regex, call[given], re.DOTALL) and match(at + 1, given + 1):
            return True
        if not several:
            return False
        return match(at + 1, given) or (given < len(call) and match(at, given + 1))

    return match(0, 0)


def argument_pattern(word: Argument) -> tuple[str, bool] | None:
    """A regular expression for what an empty environment makes of an argument, and whether it may be none or several."""
    pieces = list(plain(word.pieces))
    if not word.quoted and all(piece == "" for piece in pieces):
        return None
    regex = "".join(re.escape(piece) if isinstance(piece, str) else ".*" for piece in pieces)
    wild = any(piece is None for piece in pieces)
    if word.glob and word.text is not None:
        files = patterns.regex(((word.text, False),))
        return f"(?:{regex}|{files.pattern if files else regex})", False
    return regex, wild and word.may_split


def plain(pieces: tuple[Piece, ...]) -> Iterator[str | None]:
    for piece in pieces:
        if isinstance(piece, Known):
            yield piece.text
        elif piece.default is not None:
            yield from plain(piece.default)
        elif piece.kind in (Kind.ENVIRONMENT, Kind.POSITIONAL):
            yield ""
        elif piece.kind is Kind.BRANCH:
            yield "\0a way that was not kept apart"
        else:
            yield None


# ------------------------------------------------------------------------------------------------ a repository


def neighbours(script: pathlib.Path, repo: pathlib.Path) -> functools.partial[SourceText | None]:
    return functools.partial(neighbour, script, repo)


def neighbour(script: pathlib.Path, repo: pathlib.Path, name: str) -> SourceText | None:
    folders = [script.parent] if name.startswith("./") else [repo, script.parent]
    for folder in [*folders, repo]:
        path = folder / name
        try:
            if path.is_file() and path.resolve().is_relative_to(repo.resolve()):
                return decode(str(path), path.read_bytes())
        except (SourceError, OSError, ValueError):
            return None
    return None


def compare(script: pathlib.Path, repo: pathlib.Path, ran: Ran) -> Row:
    name = str(script.relative_to(repo))
    try:
        text = decode(name, script.read_bytes())
    except SourceError as error:
        return Row(name, False, False, False, 0.0, str(error))
    start = time.perf_counter()
    source = read(text, neighbours(script, repo))
    seconds = time.perf_counter() - start
    if not ran.calls:
        return Row(name, False, False, False, seconds, "")
    if ran.timed_out:
        return Row(name, False, False, False, seconds, "bash did not end")
    matcher = Matcher(source, ran.calls)
    equal = matcher.any_way()
    shipped = matcher.as_shipped(source)
    reason = "" if equal and shipped else difference(source, ran.calls)
    return Row(name, True, equal, shipped, seconds, reason)


def difference(source: ShellSource, calls: list[list[str]]) -> str:
    """The first call of bash that no command of ours makes."""
    matcher = Matcher(source, calls)
    for number, call in enumerate(calls):
        if any(matcher.same(ours, number) for ours, words in matcher.words.items() if words):
            continue
        near = [command for command in source.commands if matcher.words[command.number]]
        near = [command for command in near if (matcher.words[command.number][0].default or "").endswith(call[0])] or near
        shown = [f"bash: {call}"[:600]]
        for command in near[:3]:
            words = matcher.words[command.number]
            fits = [pattern for word in words for pattern in [argument_pattern(word)] if pattern is not None]
            alone = [one for one in call if not any(re.fullmatch(regex, one, re.DOTALL) for regex, _ in fits)]
            ours = [
                word.template()
                for word in words
                for pattern in [argument_pattern(word)]
                if pattern is not None and not any(re.fullmatch(pattern[0], one, re.DOTALL) for one in call)
            ]
            shown.append(
                f"line {command.span.line}: {len(call)} and {len(fits)} words; bash alone {alone[:5]}, ours alone {ours[:5]}"
            )
        return "\n      ".join(line[:900] for line in shown)
    ours = [command for command in source.commands if matcher.words[command.number]]
    firsts = [call[:3] for call in calls[:6]]
    return f"order or number of calls: bash {len(calls)} {firsts}, ours {[str(one)[:40] for one in ours[:8]]}"


def survey(repo: pathlib.Path, pattern: str, timeout: float, jobs: int) -> list[Row]:
    scripts = sorted(path for path in repo.glob(pattern) if path.is_file())
    prefix = isolation()
    with tempfile.TemporaryDirectory() as scratch:
        stubs, work = pathlib.Path(scratch, "bin"), pathlib.Path(scratch, "work")
        make_stubs(stubs)
        shutil.copytree(repo, work, symlinks=True, ignore=shutil.ignore_patterns(".git"))
        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            ran = list(pool.map(lambda path: run_bash(work / path.relative_to(repo), work, stubs, prefix, timeout), scripts))
    return [compare(script, repo, one) for script, one in zip(scripts, ran, strict=True)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("repo", nargs="+", type=pathlib.Path)
    parser.add_argument("--show", action="store_true", help="the first difference of every script that is not equal")
    parser.add_argument("--glob", default="**/*.sh")
    parser.add_argument("--timeout", type=float, default=20)
    parser.add_argument("--jobs", type=int, default=4)
    options = parser.parse_args()
    total = reached = equal = 0
    for repo in options.repo:
        rows = survey(repo.resolve(), options.glob, options.timeout, options.jobs)
        hit = [row for row in rows if row.reached]
        same = [row for row in hit if row.equal]
        times = [row.seconds for row in rows] or [0.0]
        shipped = sum(row.shipped for row in hit)
        print(f"{repo}: scripts {len(rows)}, reached {len(hit)}, equal {len(same)}, as shipped {shipped}")
        print(f"  median {statistics.median(times) * 1000:.1f} ms, longest {max(times) * 1000:.0f} ms")
        for row in rows:
            if row.reason and (options.show or not row.equal):
                reason = row.reason if options.show else row.reason.splitlines()[-1][:200]
                print(f"  {'as shipped: ' if row.equal else ''}{row.script}: {reason}")
        total, reached, equal = total + len(rows), reached + len(hit), equal + len(same)
    share = 100 * equal / reached if reached else 100.0
    print(f"all: scripts {total}, reached {reached}, equal {equal} ({share:.2f} %)")
    return 0 if equal == reached else 1


if __name__ == "__main__":
    sys.exit(main())
