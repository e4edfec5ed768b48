"""Reads a bash script the way bash does: one complete command after the other, up to the first it cannot read.

Why not tree-sitter-bash: of 1564 launch scripts of six repositories it leaves ERROR nodes in 55 that bash runs without
complaint (most end in a backslash), and it takes ``\\ # text`` for a comment where bash passes an argument.
What bash runs before a syntax error has happened, too; an error node in the middle cannot say what that was.
"""

from __future__ import annotations

import re

from ckptlint.source.shell.syntax import (
    AndOr,
    ArithmeticCommand,
    ArithmeticFor,
    Arm,
    Assignment,
    Case,
    Comment,
    Conditional,
    Element,
    For,
    Function,
    Group,
    Heredoc,
    If,
    Item,
    Literal,
    Node,
    Part,
    Pipeline,
    Program,
    Redirect,
    Simple,
    Test,
    While,
    Word,
)
from ckptlint.source.shell.values import Quote
from ckptlint.source.shell.words import BLANK, ShellSyntaxError, WordReader
from ckptlint.source.text import BOM, SourceText, Span

OPERATORS = re.compile(r"&&|\|\||;;&|;;|;&|\|&|[;&|()]|\n")
REDIRECT = re.compile(r"(\{[A-Za-z_]\w*\}|[0-9]*)(&>>|&>|<<<|<<-|<<|>>|<&|>&|<>|>\||<(?!\()|>(?!\())")
ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(?=\[|\+?=)")
FUNCTION = re.compile(r"([^\s;&|()<>$`'\"\\=]+)[ \t]*\([ \t]*\)")
RESERVED_END = frozenset({"then", "else", "elif", "fi", "do", "done", "esac", "}"})
DECLARATIONS = frozenset({"declare", "typeset", "local", "export", "readonly"})
UNARY = re.compile(r"-[a-zA-Z]$")
BINARY = frozenset({"==", "=", "!=", "=~", "<", ">", "-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-nt", "-ot", "-ef"})
RESERVED = re.compile(r"(?:if|then|else|elif|fi|for|while|until|do|done|case|esac|function|select|time|coproc|in|\[\[|[{}!])"
                      r"(?=[\s;&|()<>]|$)")  # fmt: skip


def plain_breaks(text: str) -> str:
    """The text with line feeds alone, every character in its old place: a file with CRLF throughout is read as if it had none.

    Bash itself would take each carriage return into the word before it.
    """
    if "\r\n" not in text or text.count("\r\n") != text.count("\n"):
        return text
    return text.replace("\\\r\n", " \\\n").replace("\r\n", " \n")


def parse(source: SourceText, string: bool = False) -> Program:
    """Never raises: what cannot be read ends the program, with the place and the reason.

    ``string``: the text is not a file but an argument, where a backslash at the very end stays.
    """
    parser = Parser(source, source.text if string else plain_breaks(source.text))
    parser.string = string
    if source.text.startswith(BOM):
        parser.at = 1
    items: list[Item] = []
    error: tuple[Span, str] | None = None
    try:
        while parser.more():
            items += parser.line()
    except ShellSyntaxError as problem:
        start = min(problem.start, len(source.text))
        end = min(parser.at, len(source.text))
        error = (Span(source, start, end if end > start else source.line_at(start).end), problem.problem)
    except RecursionError:
        error = (Span(source, parser.at, parser.at), "it nests too deeply to be read")
    return Program(tuple(items), tuple(parser.comments), error)


class Parser(WordReader):
    """Commands, on top of words."""

    # -------------------------------------------------------------------------------------------- between the words

    def blank(self) -> bool:
        """Passes blanks, continuations and a comment; says whether a continuation was among them."""
        found = BLANK.match(self.text, self.at)
        start, self.at = self.at, found.end() if found else self.at
        continued = "\n" in self.text[start : self.at]
        if self.text.startswith("#", self.at) and (self.at == 0 or self.text[self.at - 1] in " \t\n;&|()\ufeff`"):
            end = self.text.find("\n", self.at)
            end = len(self.text) if end < 0 else end
            self.comments.append(Comment(Span(self.source, self.at, end), continued))
            self.at = end
        return continued

    def newlines(self) -> None:
        """Passes blanks, comments and line breaks, and the heredocs behind them."""
        while True:
            self.blank()
            if not self.text.startswith("\n", self.at):
                return
            self.at += 1
            self.read_heredocs()

    def more(self) -> bool:
        self.newlines()
        return self.at < len(self.text)

    def operator(self) -> str:
        found = OPERATORS.match(self.text, self.at)
        return found.group() if found else ""

    def reserved(self) -> str:
        found = RESERVED.match(self.text, self.at)
        return found.group() if found else ""

    def expect(self, word: str, opened: int, what: str) -> None:
        self.newlines()
        if self.reserved() != word:
            raise ShellSyntaxError(opened, f"{what} has no `{word}`")
        self.at += len(word)

    # -------------------------------------------------------------------------------------------- lists

    def line(self) -> list[Item]:
        """The commands up to the end of a line, which bash reads before it runs the first of them."""
        items: list[Item] = []
        while True:
            self.blank()
            if self.at >= len(self.text) or self.text[self.at] == "\n":
                break
            start = self.at
            items.append(self.item())
            if self.at == start:
                raise ShellSyntaxError(start, f"`{self.text[start]}` does not fit here")
        if self.at < len(self.text):
            self.at += 1
            self.read_heredocs()
        elif self.pending:
            self.read_heredocs()
        return items

    def item(self) -> Item:
        node = self.and_or()
        self.blank()
        operator = self.operator()
        if operator in ("&", ";"):
            self.at += 1
        return Item(node, operator == "&")

    def body(self, opened: int) -> tuple[Item, ...]:
        """Commands up to a word or bracket that ends a list; that one is left."""
        self.enter(opened)
        items: list[Item] = []
        while True:
            self.newlines()
            if self.at >= len(self.text) or self.operator() in (")", ";;", ";&", ";;&"):
                break
            if self.reserved() in RESERVED_END:
                break
            start = self.at
            items.append(self.item())
            if self.at == start:
                raise ShellSyntaxError(start, f"`{self.text[start]}` does not fit here")
        self.depth -= 1
        return tuple(items)

    def list_until_parenthesis(self, start: int) -> tuple[Item, ...]:
        """The commands of ``$(…)``, with the bracket; of backticks, whose text ends there."""
        pending, self.pending = self.pending, []
        body = self.body(start)
        self.newlines()
        if self.text.startswith(")", self.at):
            self.at += 1
        elif self.at < len(self.text) or not self.source.text.startswith("`", start):
            raise ShellSyntaxError(start, f"`{self.text[start : start + 2]}` is not closed")
        self.pending = pending + self.pending
        return body

    def and_or(self) -> Node:
        start = self.at
        parts, operators = [self.pipeline()], list[str]()
        while True:
            self.blank()
            operator = self.operator()
            if operator not in ("&&", "||"):
                break
            self.at += 2
            self.newlines()
            operators.append(operator)
            parts.append(self.pipeline())
        if not operators:
            return parts[0]
        return AndOr(tuple(parts), tuple(operators), self.span(start))

    def pipeline(self) -> Node:
        start = self.at
        negated = False
        while self.reserved() in ("!", "time"):
            negated ^= self.reserved() == "!"
            self.at += len(self.reserved())
            self.blank()
            if self.text.startswith("-p ", self.at):
                self.at += 3
                self.blank()
        stages = [self.command()]
        while True:
            self.blank()
            operator = self.operator()
            if operator not in ("|", "|&"):
                break
            self.at += len(operator)
            self.newlines()
            stages.append(self.command())
        if len(stages) == 1 and not negated:
            return stages[0]
        return Pipeline(tuple(stages), negated, self.span(start))

    # -------------------------------------------------------------------------------------------- commands

    def command(self) -> Node:
        self.blank()
        start = self.at
        if start >= len(self.text):
            raise ShellSyntaxError(start, "a command is missing at the end")
        self.enter(start)
        try:
            return self.compound(start) or self.simple(start)
        finally:
            self.depth -= 1

    def compound(self, start: int) -> Node | None:
        if self.text.startswith("((", start):
            end = self.closing_parentheses(start + 2)
            if end is not None:
                expression = self.arithmetic(start + 2, end)
                self.at = end + 2
                return ArithmeticCommand(expression, self.redirects(), self.span(start))
        if self.text.startswith("(", start):
            self.at += 1
            body = self.body(start)
            if not self.text.startswith(")", self.at):
                raise ShellSyntaxError(start, "`(` is not closed")
            self.at += 1
            return Group(body, True, self.redirects(), self.span(start))
        word = self.reserved()
        reader = COMPOUNDS.get(word)
        if reader is not None:
            self.at += len(word)
            return reader(self, start)
        if word in RESERVED_END:
            raise ShellSyntaxError(start, f"`{word}` does not fit here")
        function = FUNCTION.match(self.text, start)
        if function:
            self.at = function.end()
            return self.function_body(function.group(1), start)
        return None

    def group(self, start: int) -> Node:
        body = self.body(start)
        if self.reserved() != "}":
            raise ShellSyntaxError(start, "`{` is not closed")
        self.at += 1
        return Group(body, False, self.redirects(), self.span(start))

    def if_(self, start: int) -> Node:
        arms: list[tuple[tuple[Item, ...], tuple[Item, ...]]] = []
        otherwise: tuple[Item, ...] | None = None
        while True:
            condition = self.body(start)
            self.expect("then", start, "this `if`")
            arms.append((condition, self.body(start)))
            word = self.reserved()
            self.at += len(word)
            if word == "elif":
                continue
            if word == "else":
                otherwise = self.body(start)
                self.expect("fi", start, "this `if`")
            elif word != "fi":
                raise ShellSyntaxError(start, "this `if` has no `fi`")
            return If(tuple(arms), otherwise, self.redirects(), self.span(start))

    def loop_body(self, start: int) -> tuple[Item, ...]:
        self.newlines()
        if self.reserved() == "{":
            self.at += 1
            body = self.body(start)
            if self.reserved() != "}":
                raise ShellSyntaxError(start, "`{` is not closed")
            self.at += 1
            return body
        self.expect("do", start, "this loop")
        body = self.body(start)
        self.expect("done", start, "this loop")
        return body

    def for_(self, start: int) -> Node:
        self.blank()
        if self.text.startswith("((", self.at):
            return self.arithmetic_for(start)
        name = self.word()
        words: list[Word] | None = None
        self.newlines()
        if self.reserved() == "in":
            self.at += 2
            words = []
            self.blank()
            while self.at_word():
                words.append(self.word())
                self.blank()
        self.separator()
        body = self.loop_body(start)
        listed = None if words is None else tuple(words)
        return For(name.plain or "", listed, body, self.redirects(), self.span(start))

    def separator(self) -> None:
        self.blank()
        if self.text.startswith(";", self.at) and not self.text.startswith(";;", self.at):
            self.at += 1

    def arithmetic_for(self, start: int) -> Node:
        end = self.closing_parentheses(self.at + 2)
        inside = self.text[self.at + 2 : end] if end is not None else ""
        if end is None or inside.count(";") != 2:
            raise ShellSyntaxError(start, "`for ((` needs three expressions and `))`")
        first = self.at + 2 + inside.index(";")
        second = self.at + 2 + inside.rindex(";")
        bounds = ((self.at + 2, first), (first + 1, second), (second + 1, end))
        words = [self.arithmetic(begin, until) for begin, until in bounds]
        self.at = end + 2
        self.separator()
        body = self.loop_body(start)
        return ArithmeticFor(words[0], words[1], words[2], body, self.redirects(), self.span(start))

    def while_(self, start: int, until: bool = False) -> Node:
        condition = self.body(start)
        body = self.loop_body(start)
        return While(condition, body, until, self.redirects(), self.span(start))

    def until_(self, start: int) -> Node:
        return self.while_(start, until=True)

    def case_(self, start: int) -> Node:
        self.blank()
        subject = self.word()
        self.expect("in", start, "this `case`")
        arms: list[Arm] = []
        while True:
            self.newlines()
            if self.at >= len(self.text):
                raise ShellSyntaxError(start, "this `case` has no `esac`")
            if self.reserved() == "esac":
                self.at += 4
                return Case(subject, tuple(arms), self.redirects(), self.span(start))
            arms.append(self.arm(start))

    def arm(self, start: int) -> Arm:
        if self.text.startswith("(", self.at):
            self.at += 1
        patterns: list[Word] = []
        while True:
            self.blank()
            if not self.at_word():
                raise ShellSyntaxError(start, "a pattern of this `case` cannot be read")
            patterns.append(self.pattern())
            self.blank()
            operator = self.operator()
            self.at += 1
            if operator == ")":
                break
            if operator != "|":
                raise ShellSyntaxError(start, "a pattern of this `case` has no `)`")
        body = self.body(start)
        end = self.operator()
        if end in (";;", ";&", ";;&"):
            self.at += len(end)
        return Arm(tuple(patterns), body, end)

    def pattern(self) -> Word:
        """A word that may hold ``@(a|b)``."""
        start = self.at
        word = self.word()
        parts = list(word.parts)
        while self.text.startswith("(", self.at) and self.text[self.at - 1] in "@?*+!":
            end = self.text.find(")", self.at)
            if end < 0:
                break
            parts.append(Literal(self.text[self.at : end + 1], self.span(self.at, end + 1), Quote.NONE))
            self.at = end + 1
            parts += self.word().parts
        return Word(tuple(parts), self.span(start))

    def function_(self, start: int) -> Node:
        self.blank()
        name = self.word()
        self.blank()
        if self.text.startswith("(", self.at):
            self.at += 1
            self.blank()
            if not self.text.startswith(")", self.at):
                raise ShellSyntaxError(start, "this function has no `()`")
            self.at += 1
        return self.function_body(name.span.text, start)

    def function_body(self, name: str, start: int) -> Node:
        self.newlines()
        body = self.compound(self.at) if self.at < len(self.text) else None
        if body is None:
            raise ShellSyntaxError(start, f"the function `{name}` has no body")
        return Function(name, body, self.span(start))

    # -------------------------------------------------------------------------------------------- [[ … ]]

    def conditional(self, start: int) -> Node:
        test = self.test_or(start)
        self.newlines()
        if not self.text.startswith("]]", self.at):
            raise ShellSyntaxError(start, "`[[` is not closed")
        self.at += 2
        return Conditional(test, self.redirects(), self.span(start))

    def test_or(self, start: int) -> Test:
        tests = [self.test_and(start)]
        while self.next_is("||"):
            tests.append(self.test_and(start))
        return tests[0] if len(tests) == 1 else Test("||", (), tuple(tests))

    def test_and(self, start: int) -> Test:
        tests = [self.test_one(start)]
        while self.next_is("&&"):
            tests.append(self.test_one(start))
        return tests[0] if len(tests) == 1 else Test("&&", (), tuple(tests))

    def next_is(self, operator: str) -> bool:
        self.newlines()
        if not self.text.startswith(operator, self.at):
            return False
        self.at += len(operator)
        return True

    def test_one(self, start: int) -> Test:
        self.enter(start)
        try:
            return self.test_inside(start)
        finally:
            self.depth -= 1

    def test_inside(self, start: int) -> Test:
        self.newlines()
        if self.reserved() == "!":
            self.at += 1
            return Test("!", (), (self.test_one(start),))
        if self.text.startswith("(", self.at):
            self.at += 1
            inner = self.test_or(start)
            if not self.next_is(")"):
                raise ShellSyntaxError(start, "a bracket in `[[` is not closed")
            return inner
        if not self.at_word() or self.text.startswith("]]", self.at):
            raise ShellSyntaxError(start, "a test is missing in `[[`")
        left = self.word()
        self.blank()
        if UNARY.match(left.plain or "") and self.at_word() and not self.text.startswith("]]", self.at):
            return self.unary_or_binary(left)
        return self.binary(left)

    def unary_or_binary(self, left: Word) -> Test:
        before = self.at
        right = self.word()
        if (right.plain or "") in BINARY:
            self.at = before
            return self.binary(left)
        return Test(left.plain or "", (right,))

    def binary(self, left: Word) -> Test:
        for operator in ("<", ">"):
            if self.text.startswith(operator, self.at) and not self.text.startswith("(", self.at + 1):
                self.at += 1
                self.blank()
                return Test(operator, (left, self.word()))
        before = self.at
        operator = (self.word().plain or "") if self.at_word() else ""
        if operator not in BINARY:
            self.at = before
            return Test("-n", (left,))
        self.blank()
        right = self.regex() if operator == "=~" else self.pattern()
        return Test(operator, (left, right))

    def regex(self) -> Word:
        """The right side of ``=~``, where brackets and bars are characters."""
        start, parts, depth = self.at, list[Part](), 0
        while self.at < len(self.text):
            char = self.text[self.at]
            if char in " \t\n" and depth <= 0:
                break
            if char in "()|<>;& \t":
                depth += {"(": 1, ")": -1}.get(char, 0)
                begin = self.at
                self.at += 1
                parts.append(Literal(char, self.span(begin), Quote.NONE))
                continue
            if char == "\n":
                break
            self.bare_part(parts)
        return Word(tuple(parts), self.span(start))

    # -------------------------------------------------------------------------------------------- simple commands

    def redirects(self) -> tuple[Redirect, ...]:
        found: list[Redirect] = []
        while True:
            self.blank()
            redirect = REDIRECT.match(self.text, self.at)
            if not redirect:
                return tuple(found)
            found.append(self.redirect(redirect))

    def redirect(self, found: re.Match[str]) -> Redirect:
        start, operator = self.at, found.group(2)
        self.at = found.end()
        self.blank()
        if not self.at_word():
            raise ShellSyntaxError(start, f"nothing stands behind `{operator}`")
        target = self.word()
        if operator not in ("<<", "<<-"):
            return Redirect(operator, found.group(1), target, self.span(start))
        delimiter = "".join(part.text if isinstance(part, Literal) else part.span.text for part in target.parts)
        quoted = any(isinstance(part, Literal) and part.quoted for part in target.parts)
        heredoc = Heredoc(delimiter, quoted, operator == "<<-")
        self.pending.append(heredoc)
        return Redirect(operator, found.group(1), target, self.span(start), heredoc)

    def simple(self, start: int) -> Node:
        assignments: list[Assignment] = []
        words: list[Word | Assignment] = []
        redirects: list[Redirect] = []
        declares = False
        end = start
        while True:
            self.blank()
            redirect = REDIRECT.match(self.text, self.at)
            if redirect:
                redirects.append(self.redirect(redirect))
            elif not self.at_word():
                break
            elif (not words or declares) and (assignment := self.assignment()):
                (words if words else assignments).append(assignment)
            else:
                word = self.word()
                words.append(word)
                declares = declares or (len(words) == 1 and word.plain in DECLARATIONS)
            end = self.at
        if self.text.startswith("(", self.at) and (words or assignments):
            raise ShellSyntaxError(self.at, "`(` does not fit here")
        if end == start:
            raise ShellSyntaxError(start, f"`{self.operator() or self.text[start : start + 1]}` does not fit here")
        return Simple(tuple(assignments), tuple(words), tuple(redirects), Span(self.source, start, end))

    def assignment(self) -> Assignment | None:
        start = self.at
        name = ASSIGNMENT.match(self.text, start)
        if not name:
            return None
        self.at = name.end()
        index = None
        if self.text.startswith("[", self.at):
            try:
                index = self.subscript()
            except ShellSyntaxError:
                self.at = start
                return None
        append = self.text.startswith("+=", self.at)
        if not append and not self.text.startswith("=", self.at):
            self.at = start
            return None
        self.at += 2 if append else 1
        name_span = Span(self.source, start, name.end())
        if self.text.startswith("(", self.at):
            elements = self.elements()
            return Assignment(name.group(), name_span, index, append, None, elements, self.span(start))
        return Assignment(name.group(), name_span, index, append, self.word(), None, self.span(start))

    def elements(self) -> tuple[Element, ...]:
        start = self.at
        self.at += 1
        found: list[Element] = []
        while True:
            self.newlines()
            if self.text.startswith(")", self.at):
                self.at += 1
                return tuple(found)
            if not self.at_word():
                raise ShellSyntaxError(start, "the array `(` is not closed, or something in it does not fit")
            found.append(self.element())

    def element(self) -> Element:
        before = self.at
        if self.text.startswith("[", before):
            try:
                index = self.subscript()
            except ShellSyntaxError:
                index = None
            if index is not None and self.text.startswith("=", self.at):
                self.at += 1
                return Element(index, self.word())
            self.at = before
        return Element(None, self.word())


COMPOUNDS = {
    "{": Parser.group,
    "if": Parser.if_,
    "for": Parser.for_,
    "select": Parser.for_,
    "while": Parser.while_,
    "until": Parser.until_,
    "case": Parser.case_,
    "function": Parser.function_,
    "[[": Parser.conditional,
}
