"""Reads words: quotes, escapes, ``$`` in all its forms. The half of the parser that knows no commands."""

from __future__ import annotations

import re

from ckptlint.source.shell.syntax import (
    Arithmetic,
    Comment,
    Heredoc,
    Item,
    Literal,
    Parameter,
    Part,
    ProcessSubstitution,
    Substitution,
    Word,
)
from ckptlint.source.shell.values import Quote
from ckptlint.source.text import SourceText, Span

MAX_DEPTH = 60

BARE = re.compile(r"[^ \t\n;&|()<>\\'\"$`]+")
IN_DOUBLE = re.compile(r'[^\\"$`]+')
IN_HEREDOC = re.compile(r"[^\\$`]+")
IN_BRACE = re.compile(r"[^\\'\"$`}/:]+")
IN_BRACE_DOUBLE = re.compile(r"[^\\\"$`}/:']+")
IN_ARITHMETIC = re.compile(r"[^\\'\"$`]+")
BLANK = re.compile(r"(?:[ \t]|\\\n)*")
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
PARAMETER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*|[0-9]+|[@*#?$!-]")
SIMPLE_PARAMETER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*|[0-9]|[@*#?$!-]")
OPERATOR = re.compile(r":[-=?+]|[-=?+]|##?|%%?|//|/#|/%|/|\^\^?|,,?|~~?|:|@[A-Za-z]")
ANSI_ESCAPES = {
    "n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "v": "\v", "\\": "\\",
    "'": "'", '"': '"', "?": "?",
}  # fmt: skip
ANSI_CODE = re.compile(r"x[0-9a-fA-F]{1,2}|u[0-9a-fA-F]{1,4}|U[0-9a-fA-F]{1,8}|[0-7]{1,3}|c.")


class ShellSyntaxError(Exception):
    """Bash would stop reading here; ``start`` is where the part begins that does not end or does not fit."""

    def __init__(self, start: int, problem: str) -> None:
        super().__init__(problem)
        self.start = start
        self.problem = problem


class WordReader:
    """A cursor over one text. ``text`` has as many characters as the source, line breaks made plain."""

    def __init__(self, source: SourceText, text: str, start: int = 0) -> None:
        self.source = source
        self.text = text
        self.at = start
        self.comments: list[Comment] = []
        self.pending: list[Heredoc] = []
        self.depth = 0
        self.string = False

    def span(self, start: int, end: int | None = None) -> Span:
        return Span(self.source, start, self.at if end is None else end)

    def enter(self, start: int) -> None:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise ShellSyntaxError(start, "it nests too deeply to be read")

    def list_until_parenthesis(self, start: int) -> tuple[Item, ...]:
        raise NotImplementedError

    # -------------------------------------------------------------------------------------------- a word

    def at_word(self) -> bool:
        char = self.text[self.at : self.at + 1]
        if not char or char in " \t\n;&|()":
            return False
        if char in "<>":
            return self.text.startswith("(", self.at + 1)
        return True

    def word(self) -> Word:
        start = self.at
        parts: list[Part] = []
        while self.at_word():
            self.bare_part(parts)
        return Word(tuple(parts), self.span(start))

    def bare_part(self, parts: list[Part]) -> None:
        text, start = self.text, self.at
        char = text[start]
        if char == "\\":
            self.escape(parts, Quote.NONE, None)
        elif char == "'":
            parts.append(self.single())
        elif char == '"':
            self.double(parts)
        elif char == "$":
            self.dollar(parts, Quote.NONE)
        elif char == "`":
            parts.append(self.backticks(False))
        elif char in "<>":
            self.at += 2
            parts.append(ProcessSubstitution(self.list_until_parenthesis(start), self.span(start)))
        else:
            found = BARE.match(text, start)
            self.at = found.end() if found else start + 1
            parts.append(Literal(text[start : self.at], self.span(start), Quote.NONE))

    def escape(self, parts: list[Part], quote: Quote, only: str | None, braced: bool = False) -> None:
        """A backslash. In quotes (``only``) it escapes few characters and else stands for itself."""
        start = self.at
        char = self.text[start + 1 : start + 2]
        if char == "\n":
            self.at += 2
        elif not char and only is None and not self.string:
            self.at += 1
        elif not char or (only is not None and char not in only):
            self.at += 1
            parts.append(Literal("\\", self.span(start), quote, braced))
        else:
            self.at += 2
            parts.append(Literal(char, self.span(start), quote, braced))

    def single(self) -> Literal:
        start = self.at
        end = self.text.find("'", start + 1)
        if end < 0:
            raise ShellSyntaxError(start, "the quote ' is not closed")
        self.at = end + 1
        return Literal(self.text[start + 1 : end], self.span(start + 1, end), Quote.SINGLE)

    def double(self, parts: list[Part]) -> None:
        start = self.at
        self.at += 1
        before = len(parts)
        while True:
            if self.at >= len(self.text):
                raise ShellSyntaxError(start, 'the quote " is not closed')
            if self.text[self.at] == '"':
                break
            self.quoted_part(parts, IN_DOUBLE, Quote.DOUBLE, '$`"\\')
        if len(parts) == before:
            parts.append(Literal("", self.span(self.at), Quote.DOUBLE))
        self.at += 1

    def quoted_part(self, parts: list[Part], plain: re.Pattern[str], quote: Quote, only: str) -> None:
        start = self.at
        char = self.text[start]
        if char == "\\":
            self.escape(parts, quote, only)
        elif char == "$":
            self.dollar(parts, quote)
        elif char == "`":
            parts.append(self.backticks(True))
        else:
            found = plain.match(self.text, start)
            self.at = found.end() if found else start + 1
            parts.append(Literal(self.text[start : self.at], self.span(start), quote))

    def ansi(self) -> Literal:
        """``$'…'``."""
        start = self.at
        at, texts = start + 2, []
        text = self.text
        while at < len(text) and text[at] != "'":
            if text[at] != "\\":
                texts.append(text[at])
                at += 1
                continue
            code = ANSI_CODE.match(text, at + 1)
            char = text[at + 1 : at + 2]
            if char in ANSI_ESCAPES and char:
                texts.append(ANSI_ESCAPES[char])
                at += 2
            elif code:
                texts.append(ansi_character(code.group()))
                at = code.end()
            else:
                texts.append("\\")
                at += 1
        if at >= len(text):
            raise ShellSyntaxError(start, "the quote $' is not closed")
        self.at = at + 1
        return Literal("".join(texts), self.span(start + 2, at), Quote.ANSI)

    # -------------------------------------------------------------------------------------------- the dollar

    def dollar(self, parts: list[Part], quote: Quote) -> None:
        start, text = self.at, self.text
        quoted = quote is not Quote.NONE
        following = text[start + 1 : start + 2]
        if following == "(":
            parts.append(self.parenthesis(quoted))
        elif following == "{":
            parts.append(self.brace(quoted))
        elif following == "[":
            parts.append(self.old_arithmetic(quoted))
        elif following == "'" and not quoted:
            parts.append(self.ansi())
        elif following == '"' and not quoted:
            self.at += 1
            self.double(parts)
        elif found := SIMPLE_PARAMETER.match(text, start + 1):
            self.at = found.end()
            parts.append(Parameter(found.group(), self.span(start), quoted))
        else:
            self.at += 1
            parts.append(Literal("$", self.span(start), quote))

    def parenthesis(self, quoted: bool) -> Part:
        start = self.at
        if self.text.startswith("$((", start):
            end = self.closing_parentheses(start + 3)
            if end is not None:
                expression = self.arithmetic(start + 3, end)
                self.at = end + 2
                return Arithmetic(expression, self.span(start), quoted)
        self.at = start + 2
        body = self.list_until_parenthesis(start)
        return Substitution(body, self.span(start), quoted)

    def closing_parentheses(self, at: int) -> int | None:
        """Where the ``))`` stands that closes an arithmetic expression; None if this is no such expression."""
        depth, text = 0, self.text
        while at < len(text):
            char = text[at]
            if char == "(":
                depth += 1
            elif char == ")":
                if depth == 0:
                    return at if text.startswith("))", at) else None
                depth -= 1
            elif char == "\\":
                at += 1
            at += 1
        return None

    def old_arithmetic(self, quoted: bool) -> Part:
        start = self.at
        end = self.text.find("]", start)
        if end < 0:
            raise ShellSyntaxError(start, "the bracket $[ is not closed")
        expression = self.arithmetic(start + 2, end)
        self.at = end + 1
        return Arithmetic(expression, self.span(start), quoted)

    def arithmetic(self, start: int, end: int) -> Word:
        """The expression between two places, its expansions cut out."""
        return self.reader(start, end).everything(IN_ARITHMETIC, Quote.DOUBLE, '$`"\\')

    def reader(self, start: int, end: int) -> WordReader:
        inner = type(self)(self.source, self.text[:end], start)
        inner.comments, inner.depth, inner.string = self.comments, self.depth, self.string
        inner.enter(start)
        return inner

    def everything(self, plain: re.Pattern[str], quote: Quote, only: str) -> Word:
        start, parts = self.at, list[Part]()
        while self.at < len(self.text):
            self.quoted_part(parts, plain, quote, only)
        return Word(tuple(parts), self.span(start))

    def backticks(self, quoted: bool) -> Substitution:
        start, text = self.at, self.text
        end = start + 1
        while end < len(text) and text[end] != "`":
            end += 2 if text[end] == "\\" else 1
        if end >= len(text):
            raise ShellSyntaxError(start, "the quote ` is not closed")
        self.at = end + 1
        body = None
        if "\\" not in text[start:end].replace("\\\n", ""):
            inner = self.reader(start + 1, end)
            body = inner.list_until_parenthesis(start)
        return Substitution(body, self.span(start), quoted)

    # -------------------------------------------------------------------------------------------- ${…}

    def brace(self, quoted: bool) -> Parameter:
        start = self.at
        self.enter(start)
        self.at += 2
        try:
            found = self.brace_inside(start, quoted)
        finally:
            self.depth -= 1
        if not self.text.startswith("}", self.at):
            raise ShellSyntaxError(start, "the brace ${ is not closed, or what is in it is no parameter")
        self.at += 1
        return Parameter(
            found.name,
            self.span(start),
            quoted,
            found.index,
            found.operator,
            found.operands,
            found.length,
            found.indirect,
        )

    def brace_inside(self, start: int, quoted: bool) -> Parameter:
        text = self.text
        length = bool(re.compile(r"#(?=[A-Za-z0-9_@*#?$!-])").match(text, self.at)) and text[self.at + 1] != "}"
        if length and text[self.at + 1] in "#?-" and text[self.at + 2 : self.at + 3] != "}":
            length = False
        indirect = text.startswith("!", self.at) and bool(re.compile("[A-Za-z0-9_@*]").match(text, self.at + 1))
        self.at += 1 if length or indirect else 0
        name = PARAMETER.match(text, self.at)
        if not name:
            raise ShellSyntaxError(start, "the brace ${ is not closed, or what is in it is no parameter")
        self.at = name.end()
        index = self.subscript() if text.startswith("[", self.at) else None
        operator = OPERATOR.match(text, self.at)
        if not operator:
            return Parameter(name.group(), self.span(start), quoted, index, "", (), length, indirect)
        if indirect and text[self.at] in "@*" and text.startswith("}", self.at + 1):
            self.at += 1
            return Parameter(name.group(), self.span(start), quoted, index, "names", (), length, indirect)
        self.at = operator.end()
        kind = operator.group()
        first = self.operand(quoted and kind in QUOTES_STAY, STOPS.get(kind, "}"), start)
        operands = [first]
        if kind in STOPS and self.text.startswith(STOPS[kind][0], self.at):
            self.at += 1
            operands.append(self.operand(quoted, "}", start))
        return Parameter(name.group(), self.span(start), quoted, index, kind, tuple(operands), length, indirect)

    def subscript(self) -> Word:
        start, depth = self.at, 0
        at = start
        while at < len(self.text):
            char = self.text[at]
            depth += {"[": 1, "]": -1}.get(char, 0)
            if depth == 0:
                break
            at += 1
        if depth:
            raise ShellSyntaxError(start, "the bracket [ is not closed")
        inner = self.reader(start + 1, at)
        parts: list[Part] = []
        while inner.at < len(inner.text):
            inner.brace_part(parts, False, start)
        self.at = at + 1
        return Word(tuple(parts), self.span(start + 1, at))

    def operand(self, quoted: bool, stops: str, start: int) -> Word:
        begin, parts = self.at, list[Part]()
        while True:
            if self.at >= len(self.text):
                raise ShellSyntaxError(start, "the brace ${ is not closed")
            if self.text[self.at] in stops:
                return Word(tuple(parts), self.span(begin))
            self.brace_part(parts, quoted, start)

    def brace_part(self, parts: list[Part], quoted: bool, opened: int) -> None:
        text, start = self.text, self.at
        char = text[start]
        quote = Quote.DOUBLE if quoted else Quote.NONE
        if char == "\\":
            self.escape(parts, quote, '$`"\\}' if quoted else None, braced=True)
        elif char == "'" and not quoted:
            parts.append(self.single())
        elif char == '"':
            self.double(parts)
        elif char == "$":
            self.dollar(parts, quote)
        elif char == "`":
            parts.append(self.backticks(quoted))
        else:
            found = (IN_BRACE_DOUBLE if quoted else IN_BRACE).match(text, start)
            self.at = found.end() if found else start + 1
            last = parts[-1] if parts else None
            if (
                isinstance(last, Literal)
                and last.braced
                and last.span.end == start
                and not last.escaped
                and last.quote is quote
            ):
                parts.pop()
                start = last.span.start
            parts.append(Literal(text[start : self.at], self.span(start), quote, True))

    # -------------------------------------------------------------------------------------------- heredocs

    def read_heredocs(self) -> None:
        """The bodies that begin here, on the line behind their operators."""
        pending, self.pending = self.pending, []
        for heredoc in pending:
            self.read_heredoc(heredoc)

    def read_heredoc(self, heredoc: Heredoc) -> None:
        start = at = self.at
        text = self.text
        while at < len(text):
            end = text.find("\n", at)
            end = len(text) if end < 0 else end
            line = text[at:end]
            if (line.lstrip("\t") if heredoc.strip_tabs else line).rstrip("\r ") == heredoc.delimiter.rstrip("\r "):
                self.at = min(end + 1, len(text))
                break
            at = end + 1
        else:
            at = self.at = len(text)
        heredoc.span = self.span(start, at)
        if heredoc.quoted:
            body = text[start:at]
            heredoc.parts = (Literal(body, self.span(start, at), Quote.HEREDOC),)
        else:
            heredoc.parts = self.reader(start, at).everything(IN_HEREDOC, Quote.HEREDOC, "$`\\").parts


QUOTES_STAY = frozenset({":-", "-", ":=", "=", ":+", "+", ":?", "?", ":"})
# What separates the two operands of a substitution and of a substring.
STOPS = {"/": "/}", "//": "/}", "/#": "/}", "/%": "/}", ":": ":}"}


def ansi_character(code: str) -> str:
    """The character a code behind a backslash stands for: ``x41``, ``u00e9``, ``101``."""
    if code[0] in "xuU":
        number = int(code[1:], 16)
    elif code[0] == "c":
        number = ord(code[1]) & 0x1F
    else:
        number = int(code, 8) & 0xFF
    return chr(number) if number < 0xD800 or 0xE000 <= number < 0x110000 else ""
