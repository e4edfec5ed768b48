"""``test``, ``[ … ]`` and ``[[ … ]]``: true, false, or unknown."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ckptlint.source.shell import arithmetic, patterns

# An operand is its text, or None for one that is unknown.
Operand = str | None
FILE_TESTS = frozenset(f"-{letter}" for letter in "abcdefghkprstuwxGLNOS")
NUMBERS: dict[str, Callable[[int, int], bool]] = {
    "-eq": lambda a, b: a == b,
    "-ne": lambda a, b: a != b,
    "-lt": lambda a, b: a < b,
    "-le": lambda a, b: a <= b,
    "-gt": lambda a, b: a > b,
    "-ge": lambda a, b: a >= b,
}
TEXTS: dict[str, Callable[[str, str], bool]] = {
    "=": lambda a, b: a == b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    ">": lambda a, b: a > b,
}


def negated(value: bool | None) -> bool | None:
    """The opposite; of an unknown, unknown."""
    return None if value is None else not value


def unary(operator: str, operand: Operand) -> bool | None:
    """Whether a test of one operand holds. Files are never known."""
    if operator in FILE_TESTS:
        return False if operand == "" else None
    if operand is None:
        return None
    if operator == "-z":
        return not operand
    if operator == "-n":
        return bool(operand)
    return None


def number(text: str) -> int:
    """Raises Undecided: it is none."""
    stripped = text.strip()
    digits = stripped[1:] if stripped[:1] in "+-" else stripped
    if not (digits.isascii() and digits.isdigit() and len(digits) < 19):
        raise arithmetic.Undecided
    return int(stripped)


def binary(left: Operand, operator: str, right: Operand) -> bool | None:
    """Whether a test of two operands holds."""
    if left is None or right is None:
        return None
    if operator in TEXTS:
        return TEXTS[operator](left, right)
    if operator not in NUMBERS:
        return None
    try:
        return NUMBERS[operator](number(left), number(right))
    except arithmetic.Undecided:
        return False  # bash complains and the test fails


def matches(text: Operand, pattern: patterns.Parts | None) -> bool | None:
    """Whether a text is of a pattern; ``*`` alone matches even the unknown."""
    if pattern is None or (text is None and any(one != "*" or quoted for one, quoted in pattern)):
        return None
    if text is None:
        return True
    if patterns.effort(pattern, text) > 2_000_000:
        return None
    regex = patterns.regex(pattern)
    return None if regex is None else bool(regex.fullmatch(text))


class TestCommand:
    """``test`` over its arguments, read by the number of them as POSIX does."""

    def __init__(self, arguments: Sequence[Operand]) -> None:
        self.arguments = arguments
        self.at = 0

    def result(self) -> bool | None:
        if not self.arguments:
            return False
        if len(self.arguments) == 3 and self.arguments[1] in NUMBERS.keys() | TEXTS.keys():
            return binary(self.arguments[0], self.arguments[1] or "", self.arguments[2])
        if len(self.arguments) == 1:
            return unary("-n", self.arguments[0])
        value = self.either()
        return value if self.at >= len(self.arguments) else None

    def peek(self) -> Operand:
        return self.arguments[self.at] if self.at < len(self.arguments) else ""

    def either(self) -> bool | None:
        value = self.both()
        while self.peek() == "-o":
            self.at += 1
            other = self.both()
            value = True if value or other else (None if value is None or other is None else False)
        return value

    def both(self) -> bool | None:
        value = self.one()
        while self.peek() == "-a":
            self.at += 1
            other = self.one()
            value = False if value is False or other is False else (None if value is None or other is None else True)
        return value

    def one(self) -> bool | None:
        left = len(self.arguments) - self.at
        first = self.peek()
        if first == "!" and left > 1:
            self.at += 1
            return negated(self.one())
        if first == "(" and left > 2:
            self.at += 1
            value = self.either()
            self.at += 1
            return value
        following = self.arguments[self.at + 1] if left > 1 else ""
        if left > 2 and following is not None and following in NUMBERS.keys() | TEXTS.keys() | {"-nt", "-ot", "-ef"}:
            third = self.arguments[self.at + 2]
            self.at += 3
            return binary(first, following, third)
        if first is not None and len(first) == 2 and first[0] == "-" and left > 1:
            self.at += 2
            return unary(first, following)
        self.at += 1
        return unary("-n", first)
