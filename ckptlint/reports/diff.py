"""Changes of a text as a patch."""

from __future__ import annotations


def unified(path: str, before: str, after: str) -> str:
    """A unified diff that ``patch`` takes, "" where nothing changed: lines end at newlines only, a missing last one is
    marked.
    """
    import difflib

    lines = [text.split("\n") for text in (before, after)]
    old, new = ([f"{line}\n" for line in text[:-1]] + ([text[-1]] if text[-1] else []) for text in lines)
    pieces = difflib.unified_diff(old, new, path, path)
    return "".join(piece if piece.endswith("\n") else f"{piece}\n\\ No newline at end of file\n" for piece in pieces)
