"""Bash patterns (``*``, ``?``, ``[…]``, ``@(a|b)``) as regular expressions."""

from __future__ import annotations

import re
from functools import lru_cache

Parts = tuple[tuple[str, bool], ...]
CLASSES = {
    "alpha": "a-zA-Z", "digit": "0-9", "alnum": "a-zA-Z0-9", "upper": "A-Z", "lower": "a-z", "space": r"\s", "blank": r" \t",
    "punct": r"!-/:-@\[-`{-~", "xdigit": "0-9A-Fa-f",
}  # fmt: skip


def effort(parts: Parts, text: str) -> int:
    """How many steps matching may take at worst."""
    stars = sum(part.count("*") + part.count("+(") for part, quoted in parts if not quoted)
    return int((len(text) + 1) ** min(stars, 8))


@lru_cache(maxsize=512)
def regex(parts: Parts, greedy: bool = True) -> re.Pattern[str] | None:
    """The pattern of texts, each with whether it stands in quotes; None for one that cannot be translated."""
    found: list[str] = []
    for text, quoted in parts:
        found.append(re.escape(text) if quoted else translate(text, greedy))
    try:
        return re.compile("".join(found), re.DOTALL)
    except (re.error, RecursionError):
        return None


def translate(text: str, greedy: bool) -> str:
    """An unquoted text as a regular expression."""
    found, at = [], 0
    while at < len(text):
        char = text[at]
        end = bracket_end(text, at) if char == "[" else None
        closing = text.find(")", at + 2) if char in "@?*+!" and text.startswith("(", at + 1) else -1
        if closing > 0 and char != "!":
            inside = "|".join(translate(branch, greedy) for branch in text[at + 2 : closing].split("|"))
            found.append(f"(?:{inside}){ {'@': '', '?': '?', '*': '*', '+': '+'}[char] }")
            at = closing
        elif char == "*":
            found.append(".*" if greedy else ".*?")
        elif char == "?":
            found.append(".")
        elif end is not None:
            found.append(bracket(text[at + 1 : end]))
            at = end
        elif char == "\\" and at + 1 < len(text):
            at += 1
            found.append(re.escape(text[at]))
        else:
            found.append(re.escape(char))
        at += 1
    return "".join(found)


def bracket_end(text: str, at: int) -> int | None:
    """Where the ``]`` stands that closes the bracket expression; None if there is none."""
    inside = at + 1
    if text[inside : inside + 1] in ("!", "^"):
        inside += 1
    if text[inside : inside + 1] == "]":
        inside += 1
    while inside < len(text) and text[inside] != "]":
        if text.startswith("[:", inside):
            end = text.find(":]", inside)
            inside = end + 1 if end > 0 else inside
        inside += 1
    return inside if inside < len(text) else None


def bracket(inside: str) -> str:
    """What stands between ``[`` and ``]``."""
    negated = inside[:1] in ("!", "^")
    body = inside[1:] if negated else inside
    body = re.sub(r"\[:(\w+):\]", lambda found: f"\0{found.group(1)}\0", body)
    body = body.replace("\\", "\\\\").replace("[", "\\[").replace("]", "\\]").replace("^", "\\^").replace("&", "\\&")
    body = re.sub("\0(\\w+)\0", lambda found: CLASSES.get(found.group(1), ""), body)
    return f"[{'^' if negated else ''}{body}]"


def is_glob(text: str) -> bool:
    """Whether an unquoted text would be matched against files."""
    if "*" in text or "?" in text:
        return True
    at = text.find("[")
    return at >= 0 and bracket_end(text, at) is not None
