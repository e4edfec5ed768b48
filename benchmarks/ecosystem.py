"""What a change of ckptlint does to its findings over whole repositories.

Every directory is checked by two versions, the working tree and a commit (in a git worktree of its own), and the findings that
came and went are printed by rule. A finding is the same where file, line, rule and severity are.

usage: python benchmarks/ecosystem.py DIR... --against REV [--show 5] [--each]

A DIR that holds repositories (directories with a .git, or any directories with --each) may stand for all of them.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

TREE = Path(__file__).resolve().parents[1]
# The package `ckptlint.rules` lies beside the engine, and is found there without being installed.
RUN = """
import pathlib, sys, types
tree = pathlib.Path(sys.argv.pop(1))
sys.path[:0] = [str(tree)]
import ckptlint
assert pathlib.Path(ckptlint.__file__).parent == tree / "ckptlint", ckptlint.__file__
rules = types.ModuleType("ckptlint.rules")
rules.__path__ = [str(tree / "rules")]
sys.modules["ckptlint.rules"] = ckptlint.rules = rules
from ckptlint.cli import main
main()
"""


class Place(NamedTuple):
    """What makes two findings the same one."""

    repository: str
    path: str
    line: int
    code: str
    severity: str


class Checked(NamedTuple):
    """The findings of one version over one repository."""

    findings: dict[Place, str]
    seconds: float
    errors: str


@contextlib.contextmanager
def worktree(revision: str) -> Iterator[Path]:
    """The files of a commit, in a place of their own that is gone afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder, "tree")
        git("worktree", "add", "--detach", str(place), revision)
        try:
            yield place
        finally:
            git("worktree", "remove", "--force", str(place))


def git(*arguments: str) -> None:
    """Run git in the repository of this file.

    Raises:
        SystemExit: git refuses; shows what it said.
    """
    done = subprocess.run(["git", "-C", str(TREE), *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"git {' '.join(arguments)}: {done.stderr.strip()}")


def check(tree: Path, repository: Path) -> Checked:
    """What the version in ``tree`` finds in a repository."""
    start = time.perf_counter()
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", RUN, str(tree), "check", "--output-format", "json", "."],
        cwd=repository,
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )
    seconds = time.perf_counter() - start
    try:
        found = json.loads(done.stdout)
    except ValueError:
        return Checked({}, seconds, done.stderr.strip() or f"exit status {done.returncode}, and no JSON")
    findings = {
        Place(repository.name, item["path"], item["line"], f"{item['code']} {item['name']}", item["severity"]): item["message"]
        for item in found
    }
    errors = "\n".join(line for line in done.stderr.splitlines() if line.startswith("error"))
    return Checked(findings, seconds, errors)


def repositories(directories: Sequence[Path], *, each: bool) -> list[Path]:
    """The directories themselves, or, of one that holds repositories, those."""
    found: list[Path] = []
    for directory in directories:
        if not directory.is_dir():
            sys.exit(f"{directory}: no such directory")
        inner = [path for path in sorted(directory.iterdir()) if path.is_dir() and (each or (path / ".git").exists())]
        found += inner if inner and not (directory / ".git").exists() else [directory]
    return found


def report(old: dict[Place, str], new: dict[Place, str], show: int) -> Iterator[str]:
    """By rule: how many came, went and stayed, with some of each."""
    came, went = new.keys() - old.keys(), old.keys() - new.keys()
    counts = {name: Counter(place.code for place in places) for name, places in (("came", came), ("went", went))}
    stayed = Counter(place.code for place in new.keys() & old.keys())
    by_rule: dict[str, list[tuple[str, Place]]] = defaultdict(list)
    for sign, places in (("+", came), ("-", went)):
        for place in sorted(places):
            by_rule[place.code].append((sign, place))
    yield f"{len(came)} came, {len(went)} went, {sum(stayed.values())} stayed"
    for code in sorted(by_rule):
        yield f"\n{code}: +{counts['came'][code]} -{counts['went'][code]} ={stayed[code]}"
        for sign in "+-":
            chosen = [place for mark, place in by_rule[code] if mark == sign]
            for place in chosen[:show]:
                message = (new if sign == "+" else old)[place]
                yield f"  {sign} {place.repository}/{place.path}:{place.line} {place.severity}: {message}"
            if len(chosen) > show:
                yield f"  {sign} … and {len(chosen) - show} more"


def main() -> None:
    """Check all, print what differs; exit status 1 where a version could not check a repository."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directories", nargs="+", type=Path, metavar="DIR")
    parser.add_argument("--against", required=True, metavar="REV", help="the commit to compare with")
    parser.add_argument("--show", type=int, default=5, help="findings shown of each rule and sign")
    parser.add_argument("--each", action="store_true", help="every directory in a DIR is a repository")
    options = parser.parse_args()
    old: dict[Place, str] = {}
    new: dict[Place, str] = {}
    failed = False
    with worktree(options.against) as before:
        for repository in repositories(options.directories, each=options.each):
            for name, tree, all_of in ((options.against, before, old), ("working tree", TREE, new)):
                checked = check(tree, repository.resolve())
                all_of.update(checked.findings)
                print(f"{repository.name}: {len(checked.findings)} findings in {checked.seconds:.1f} s by {name}", flush=True)
                if checked.errors:
                    failed = failed or not checked.findings
                    print(f"  {checked.errors}")
    print()
    print("\n".join(report(old, new, options.show)))
    sys.exit(failed)


if __name__ == "__main__":
    main()
