"""Runs snippets by the real bash and by the reader, for tests that compare the two."""

from __future__ import annotations

import pathlib
import shutil
import subprocess

import pytest

from ckptlint.source.shell import Argument, Kind, Known, Piece, ShellSource, read
from ckptlint.source.text import SourceText

BASH = shutil.which("bash")
needs_bash = pytest.mark.skipif(BASH is None, reason="there is no bash here")
LAUNCHERS = ("python", "python3", "torchrun", "msrun", "ray", "srun", "docker")
STUB = """#!/bin/sh
printf '%s\\0' "$#" "$@" >>"$SHOWN"
"""
NAMED = """#!/bin/sh
printf '%s\\0' "$(($# + 1))" "${0##*/}" "$@" >>"$SHOWN"
"""


def run(snippet: str, folder: pathlib.Path) -> list[list[str]]:
    """The arguments of every call of ``show``, and the words of every launch, when bash runs this in an empty environment."""
    stubs, log, script = folder / "stubs", folder / "log", folder / "snippet.sh"
    if not stubs.is_dir():
        stubs.mkdir()
        for name in ("show", *LAUNCHERS):
            (stubs / name).write_text(NAMED if name in LAUNCHERS else STUB)
            (stubs / name).chmod(0o755)
    work = folder / "work"
    work.mkdir(exist_ok=True)
    log.write_bytes(b"")
    script.write_text(snippet, newline="")
    environment = {"PATH": f"{stubs}:/usr/bin:/bin", "SHOWN": str(log), "LC_ALL": "C.UTF-8"}
    subprocess.run(
        [BASH or "bash", str(script)],
        env=environment,
        cwd=work,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=20,
        check=False,
    )
    return parsed(log.read_bytes())


def parsed(data: bytes) -> list[list[str]]:
    fields = data.decode("utf-8", "surrogateescape").split("\0")
    calls, at = [], 0
    while at < len(fields) - 1:
        count = int(fields[at])
        calls.append(fields[at + 1 : at + 1 + count])
        at += 1 + count
    return calls


def shown(snippet: str) -> list[list[str | None]]:
    """What the reader says of the same: the calls made as shipped, in their order. None for text it cannot know."""
    return calls(read(SourceText("snippet.sh", snippet)))


def calls(source: ShellSource) -> list[list[str | None]]:
    found = [command for command in source.shipped() if command.name == "show"]
    return [[text_of(word) for word in command.argv[1:] if not word.vanishes] for command in found]


def text_of(word: Argument) -> str | None:
    texts = [default(piece) for piece in word.pieces]
    known = [text for text in texts if text is not None]
    return "".join(known) if len(known) == len(texts) else None


def default(piece: Piece) -> str | None:
    if isinstance(piece, Known):
        return piece.text
    if piece.default is None:
        return "" if piece.kind in (Kind.ENVIRONMENT, Kind.POSITIONAL) else None
    texts = [default(one) for one in piece.default]
    known = [text for text in texts if text is not None]
    return "".join(known) if len(known) == len(texts) else None
