"""What ``$((…))`` makes of its text: 64-bit integers, C's operators."""

from __future__ import annotations

import re
from collections.abc import Callable

TOKEN = re.compile(
    r"\s*(?:(\d+#[0-9A-Za-z@_]+|0[xX][0-9a-fA-F]+|\d+)|([A-Za-z_]\w*)|(\+\+|--|\*\*|<<=|>>=|<<|>>|<=|>=|==|!=|&&|\|\||"
    r"[-+*/%&^|]=|[-+*/%<>=!&|^~?:(),]))"
)
PRECEDENCE = {
    "||": 1, "&&": 2, "|": 3, "^": 4, "&": 5, "==": 6, "!=": 6, "<": 7, ">": 7, "<=": 7, ">=": 7, "<<": 8, ">>": 8,
    "+": 9, "-": 9, "*": 10, "/": 10, "%": 10, "**": 11,
}  # fmt: skip
ASSIGNS = frozenset({"=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>="})
MAX_LENGTH = 2000


class Undecided(Exception):
    """The value hangs on something unknown, or bash would refuse the expression."""


def evaluate(text: str, lookup: Callable[[str], str], assign: Callable[[str, int], None]) -> int:
    """The value of an expression; an empty one is 0.

    Raises:
        Undecided: a name is unknown (``lookup`` raises it), or the text is not an expression.
    """
    return Calculator(text, lookup, assign, 0).whole()


class Calculator:
    """One expression being read and computed."""

    def __init__(self, text: str, lookup: Callable[[str], str], assign: Callable[[str, int], None], depth: int) -> None:
        self.tokens = tokens(text)
        self.at = 0
        self.lookup, self.assign, self.depth = lookup, assign, depth

    def whole(self) -> int:
        if not self.tokens:
            return 0
        value = self.comma()
        if self.at < len(self.tokens):
            raise Undecided
        return value

    def peek(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def take(self) -> str:
        token = self.peek()
        self.at += 1
        return token

    def comma(self) -> int:
        value = self.choice()
        while self.peek() == ",":
            self.take()
            value = self.choice()
        return value

    def choice(self) -> int:
        value = self.binary(1)
        if self.peek() != "?":
            return value
        self.take()
        yes = self.choice()
        if self.take() != ":":
            raise Undecided
        no = self.choice()
        return yes if value else no

    def binary(self, least: int) -> int:
        left = self.unary()
        while PRECEDENCE.get(self.peek(), 0) >= least:
            operator = self.take()
            level = PRECEDENCE[operator]
            right = self.binary(level if operator == "**" else level + 1)
            left = wrapped(compute(operator, left, right))
        return left

    def unary(self) -> int:
        token = self.take()
        if token in ("++", "--"):
            name = self.take()
            value = self.value(name) + (1 if token == "++" else -1)
            self.assign(name, value)
            return value
        if token == "-":
            return -self.unary()
        if token == "+":
            return self.unary()
        if token == "!":
            return int(not self.unary())
        if token == "~":
            return ~self.unary()
        if token == "(":
            value = self.comma()
            if self.take() != ")":
                raise Undecided
            return value
        return self.operand(token)

    def operand(self, token: str) -> int:
        if token[:1].isdigit():
            return number(token)
        if not (token[:1].isalpha() or token[:1] == "_"):
            raise Undecided
        if self.peek() in ("++", "--"):
            value = self.value(token)
            self.assign(token, value + (1 if self.take() == "++" else -1))
            return value
        if self.peek() in ASSIGNS:
            return self.assignment(token)
        return self.value(token)

    def assignment(self, name: str) -> int:
        operator = self.take()
        right = self.choice()
        value = right if operator == "=" else wrapped(compute(operator[:-1], self.value(name), right))
        self.assign(name, value)
        return value

    def value(self, name: str) -> int:
        text = self.lookup(name).strip()
        if not text:
            return 0
        if text.isascii() and text.isdigit():
            return number(text)
        if self.depth > 10:
            raise Undecided
        return Calculator(text, self.lookup, self.assign, self.depth + 1).whole()


def tokens(text: str) -> list[str]:
    """The numbers, names and operators of an expression. Raises Undecided: something else is in it."""
    if len(text) > MAX_LENGTH:
        raise Undecided
    found, at = [], 0
    stripped = text.strip()
    while at < len(stripped):
        token = TOKEN.match(stripped, at)
        if not token:
            raise Undecided
        found.append(token.group().strip())
        at = token.end()
    return found


def number(token: str) -> int:
    """The value of a number as bash writes it: ``010`` is octal, ``2#11`` binary."""
    try:
        if "#" in token:
            base, digits = token.split("#")
            return int(digits, int(base))
        if token[:2] in ("0x", "0X"):
            return int(token, 16)
        return int(token, 8) if token.startswith("0") else int(token)
    except ValueError:
        raise Undecided from None


def wrapped(value: int) -> int:
    """The value in 64 bits."""
    return (value + 2**63) % 2**64 - 2**63


def compute(operator: str, left: int, right: int) -> int:
    """Raises Undecided: a division by zero, or a shift or power that is none."""
    if operator in ("/", "%"):
        if right == 0:
            raise Undecided
        quotient = abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)
        return quotient if operator == "/" else left - quotient * right
    if operator in ("<<", ">>", "**") and not 0 <= right < 64:
        raise Undecided
    return COMPUTE[operator](left, right)


COMPUTE: dict[str, Callable[[int, int], int]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "**": lambda a, b: int(a**b),
    "<<": lambda a, b: a << b,
    ">>": lambda a, b: a >> b,
    "&": lambda a, b: a & b,
    "|": lambda a, b: a | b,
    "^": lambda a, b: a ^ b,
    "==": lambda a, b: int(a == b),
    "!=": lambda a, b: int(a != b),
    "<": lambda a, b: int(a < b),
    ">": lambda a, b: int(a > b),
    "<=": lambda a, b: int(a <= b),
    ">=": lambda a, b: int(a >= b),
    "&&": lambda a, b: int(bool(a and b)),
    "||": lambda a, b: int(bool(a or b)),
}
