"""The parts of a bash script, as bash's own grammar cuts them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from ckptlint.source.shell.values import Quote
from ckptlint.source.text import Span

# ------------------------------------------------------------------------------------------------ words


@dataclass(frozen=True, slots=True, eq=False)
class Literal:
    """Characters that stand for themselves. An escaped character is a literal of its own."""

    text: str
    span: Span
    quote: Quote
    braced: bool = False

    @property
    def quoted(self) -> bool:
        return self.quote is not Quote.NONE or self.escaped

    @property
    def escaped(self) -> bool:
        return self.span.end - self.span.start > len(self.text)


@dataclass(frozen=True, slots=True, eq=False)
class Parameter:
    """``$name`` or ``${…}``. ``operator`` is what follows the name; ``operands`` its one or two words."""

    name: str
    span: Span
    quoted: bool
    index: Word | None = None
    operator: str = ""
    operands: tuple[Word, ...] = ()
    length: bool = False
    indirect: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Substitution:
    """``$(…)`` or backticks; ``body`` is None where the text could not be read."""

    body: tuple[Item, ...] | None
    span: Span
    quoted: bool


@dataclass(frozen=True, slots=True, eq=False)
class Arithmetic:
    """``$((…))``; also the inside of ``((…))`` and ``[…]``."""

    expression: Word
    span: Span
    quoted: bool


@dataclass(frozen=True, slots=True, eq=False)
class ProcessSubstitution:
    """``<(…)`` or ``>(…)``."""

    body: tuple[Item, ...]
    span: Span
    quoted: bool = True


Part = Literal | Parameter | Substitution | Arithmetic | ProcessSubstitution


@dataclass(frozen=True, slots=True, eq=False)
class Word:
    """What stands between blanks: literals and expansions, one against the other."""

    parts: tuple[Part, ...]
    span: Span

    @property
    def plain(self) -> str | None:
        """The text of a word without quotes and expansions: what a reserved word must be."""
        if len(self.parts) != 1:
            return None
        part = self.parts[0]
        return part.text if isinstance(part, Literal) and not part.quoted else None


@dataclass(frozen=True, slots=True, eq=False)
class Element:
    """One word of ``(…)`` behind ``name=``, with its index where one is written."""

    index: Word | None
    value: Word


@dataclass(frozen=True, slots=True, eq=False)
class Assignment:
    """``name=word``, ``name[index]+=word`` or ``name=(elements)``."""

    name: str
    name_span: Span
    index: Word | None
    append: bool
    value: Word | None
    elements: tuple[Element, ...] | None
    span: Span


@dataclass(frozen=True, slots=True, eq=False)
class Redirect:
    """``operator`` without its number; ``body`` is the text of a heredoc, ``target`` the word behind all others."""

    operator: str
    number: str
    target: Word
    span: Span
    body: Heredoc | None = None


@dataclass(slots=True, eq=False)
class Heredoc:
    """Filled when the parser comes to the line break behind it."""

    delimiter: str
    quoted: bool
    strip_tabs: bool
    parts: tuple[Part, ...] = ()
    span: Span | None = None


# ------------------------------------------------------------------------------------------------ commands


@dataclass(frozen=True, slots=True, eq=False)
class Simple:
    """A command with its assignments, words and redirections."""

    assignments: tuple[Assignment, ...]
    words: tuple[Word | Assignment, ...]
    redirects: tuple[Redirect, ...]
    span: Span


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """``{ … }``, or ``( … )`` when ``subshell``."""

    body: tuple[Item, ...]
    subshell: bool
    redirects: tuple[Redirect, ...]
    span: Span


@dataclass(frozen=True, slots=True, eq=False)
class If:
    """``arms`` are (condition, body) pairs; ``otherwise`` is the body of ``else``."""

    arms: tuple[tuple[tuple[Item, ...], tuple[Item, ...]], ...]
    otherwise: tuple[Item, ...] | None
    redirects: tuple[Redirect, ...]
    span: Span


@dataclass(frozen=True, slots=True, eq=False)
class For:
    """``for name in words``; ``words`` is None for ``for name`` alone, which runs over ``"$@"``."""

    name: str
    words: tuple[Word, ...] | None
    body: tuple[Item, ...]
    redirects: tuple[Redirect, ...]
    span: Span


@dataclass(frozen=True, slots=True, eq=False)
class ArithmeticFor:
    """``for ((start; condition; step))``."""

    start: Word
    condition: Word
    step: Word
    body: tuple[Item, ...]
    redirects: tuple[Redirect, ...]
    span: Span


@dataclass(frozen=True, slots=True, eq=False)
class While:
    """``while`` or ``until``."""

    condition: tuple[Item, ...]
    body: tuple[Item, ...]
    until: bool
    redirects: tuple[Redirect, ...]
    span: Span


@dataclass(frozen=True, slots=True, eq=False)
class Arm:
    """``patterns) body`` of a ``case``; ``end`` is ``;;``, ``;&``, ``;;&`` or nothing."""

    patterns: tuple[Word, ...]
    body: tuple[Item, ...]
    end: str


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """``case subject in … esac``."""

    subject: Word
    arms: tuple[Arm, ...]
    redirects: tuple[Redirect, ...]
    span: Span


@dataclass(frozen=True, slots=True, eq=False)
class Function:
    """``name() body``."""

    name: str
    body: Node
    span: Span


@dataclass(frozen=True, slots=True, eq=False)
class ArithmeticCommand:
    """``((expression))``."""

    expression: Word
    redirects: tuple[Redirect, ...]
    span: Span


@dataclass(frozen=True, slots=True, eq=False)
class Test:
    """An expression of ``[[ … ]]``: ``operator`` over words (``-z``, ``==``) or over tests (``!``, ``&&``, ``||``)."""

    operator: str
    words: tuple[Word, ...] = ()
    tests: tuple[Test, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Conditional:
    """``[[ … ]]``."""

    test: Test
    redirects: tuple[Redirect, ...]
    span: Span


@dataclass(frozen=True, slots=True, eq=False)
class Pipeline:
    """``stages`` joined by ``|``; one alone when ``negated``."""

    stages: tuple[Node, ...]
    negated: bool
    span: Span


@dataclass(frozen=True, slots=True, eq=False)
class AndOr:
    """``operators[i]`` stands between ``parts[i]`` and ``parts[i + 1]``."""

    parts: tuple[Node, ...]
    operators: tuple[str, ...]
    span: Span


Node = Simple | Group | If | For | ArithmeticFor | While | Case | Function | ArithmeticCommand | Conditional | Pipeline | AndOr


@dataclass(frozen=True, slots=True, eq=False)
class Item:
    """One command of a list."""

    node: Node
    background: bool


@dataclass(frozen=True, slots=True, eq=False)
class Comment:
    """``after_continuation``: it stands where a backslash promised more of a command, and so ends it."""

    span: Span
    after_continuation: bool


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """A script as far as bash would read it: ``error`` is what it stumbles over, after having run ``items``."""

    items: tuple[Item, ...]
    comments: tuple[Comment, ...] = ()
    error: tuple[Span, str] | None = None
    functions: tuple[str, ...] = field(default=())


def bodies(node: Node) -> Iterator[tuple[Item, ...]]:
    """The lists of commands that stand directly inside a compound command."""
    if isinstance(node, Group | For | ArithmeticFor):
        yield node.body
    elif isinstance(node, If):
        for condition, body in node.arms:
            yield condition
            yield body
        if node.otherwise is not None:
            yield node.otherwise
    elif isinstance(node, While):
        yield node.condition
        yield node.body
    elif isinstance(node, Case):
        for arm in node.arms:
            yield arm.body
