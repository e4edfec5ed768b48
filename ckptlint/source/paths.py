"""Paths as the user knows them."""

from __future__ import annotations

import os


def shown(path: str | os.PathLike[str]) -> str:
    """A path as reports print it: with ``/``, relative to the working directory where it lies below that or was given so.

    It still opens the same file: ``..`` stays, because behind a symbolic link it cannot be taken out.
    """
    text = os.fspath(path)
    if os.path.isabs(text):  # noqa: PTH117 - a string in, a string out; this runs for every file
        text = _below(text, os.getcwd())  # noqa: PTH109
    text = text.replace(os.sep, "/")
    pieces = [piece for piece in text.split("/") if piece not in ("", ".")]
    joined = ("/" if text.startswith("/") else "") + "/".join(pieces) or "."
    return "./-" if joined == "-" else joined  # `-` alone is standard input


def _below(path: str, directory: str) -> str:
    if path == directory:
        return "."
    directory = directory.rstrip(os.sep) + os.sep
    return path[len(directory) :] if path.startswith(directory) else path
