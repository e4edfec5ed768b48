"""From a word to the arguments it becomes: expansion, word splitting, quote removal."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from ckptlint.source.shell import arithmetic, patterns
from ckptlint.source.shell.state import ALWAYS_SET, CLOCKS, State, Variable, literal
from ckptlint.source.shell.syntax import (
    Arithmetic,
    Item,
    Literal,
    Parameter,
    Part,
    ProcessSubstitution,
    Substitution,
    Word,
)
from ckptlint.source.shell.values import (
    Argument,
    Kind,
    Known,
    Piece,
    Quote,
    Unknown,
    Value,
    computed,
    default_text,
    places,
    shown,
    text_of,
)
from ckptlint.source.text import SourceText, Span

WHITESPACE = " \t\n"
MAX_BRACES = 256
MAX_PIECES = 2000
MAX_TEXT = 200_000
MAX_MATCHING = 2_000_000  # steps that matching a pattern may take at worst
TESTED = frozenset({":-", "-", ":=", "=", ":+", "+", ":?", "?"})
RANGE = re.compile(
    r"(-?[0-9]{1,18})\.\.(-?[0-9]{1,18})(?:\.\.(-?[0-9]{1,18}))?$|([A-Za-z])\.\.([A-Za-z])(?:\.\.(-?[0-9]{1,18}))?$"
)
TIMES = re.compile(r"\b(?:date|strftime|now|timestamp)\b|%\(.*\)T")


class Segment(NamedTuple):
    """A piece on its way to an argument. ``quoted`` ones are kept when empty; ``splits`` ones are cut at blanks."""

    piece: Piece
    quoted: bool
    splits: bool


BREAK = Segment(Known(""), False, False)  # between two elements of "$@"; told by identity


class Composite(NamedTuple):
    """A text put together from pieces (``eval``, ``sh -c``): each with the offset where it begins."""

    starts: tuple[int, ...]
    pieces: Value

    def pieces_of(self, start: int, end: int) -> Value:
        found: list[Piece] = []
        for begin, piece in zip(self.starts, self.pieces, strict=True):
            length = len(piece.text) if isinstance(piece, Known) else 1
            low, high = max(start, begin), min(end, begin + length)
            if low >= high:
                continue
            found.append(piece.cut(low - begin, high - begin) if isinstance(piece, Known) else piece)
        return tuple(found)


class Expander:
    """Words against a state. What a substitution prints is the interpreter's part (``output_of``)."""

    def __init__(self) -> None:
        self.composites: dict[SourceText, Composite] = {}
        self.literals: dict[Literal, Known] = {}

    def output_of(self, body: tuple[Item, ...], state: State, span: Span) -> Value:
        raise NotImplementedError

    def default_defeated(self, name: str, parameter: Parameter, variable: Variable, state: State) -> None:
        raise NotImplementedError

    def process_substitution(self, part: ProcessSubstitution, state: State) -> None:
        raise NotImplementedError

    # -------------------------------------------------------------------------------------------- words

    def arguments(self, words: Iterable[Word], state: State) -> list[Argument]:
        found: list[Argument] = []
        for word in words:
            parts = word.parts
            if len(parts) == 1 and isinstance(parts[0], Literal) and self.is_simple(parts[0]):
                found.append(Argument((self.known(parts[0]),), word.span, quoted=parts[0].quoted))
                continue
            for alternative in braces(parts):
                found += self.fields(self.segments(alternative, state), word.span, state)
        return found

    def is_simple(self, part: Literal) -> bool:
        if part.span.source in self.composites:
            return False
        return part.quoted or not any(char in part.text for char in "{~*?[")

    def value(self, word: Word | None, state: State) -> Value:
        """What an assignment takes from a word: no splitting, several elements joined by a blank."""
        if word is None:
            return ()
        pieces: list[Piece] = []
        for segment in self.segments(word.parts, state, assigned=True):
            piece = Known(" ") if segment is BREAK else segment.piece
            pieces.append(piece._replace(keeps=False) if isinstance(piece, Unknown) and piece.keeps else piece)
        if len(pieces) > MAX_PIECES or sum(len(piece.text) for piece in pieces if isinstance(piece, Known)) > MAX_TEXT:
            return (Unknown(Kind.BRANCH, word.span.text[:100], span=word.span),)
        return joined(pieces)

    def pattern(self, word: Word, state: State) -> patterns.Parts | None:
        """A word as a pattern; None when a part of it is unknown."""
        found: list[tuple[str, bool]] = []
        for segment in self.segments(word.parts, state):
            if not isinstance(segment.piece, Known):
                return None
            found.append((segment.piece.text, segment.quoted))
        return tuple(found)

    def segments(self, parts: Sequence[Part], state: State, assigned: bool = False) -> list[Segment]:
        found: list[Segment] = []
        for place, part in enumerate(parts):
            if isinstance(part, Literal):
                found += self.literal_segments(part, place == 0, assigned, len(parts) == place + 1)
            elif isinstance(part, Parameter):
                expanded = self.parameter(part, state)
                found += passed_through(expanded, part.span) if assigned else expanded
            elif isinstance(part, Substitution):
                value = self.substitution(part, state)
                found += [Segment(piece, part.quoted, not part.quoted) for piece in value]
                if part.quoted and not value:
                    found.append(Segment(Known(""), True, False))
            elif isinstance(part, Arithmetic):
                found += [Segment(piece, part.quoted, not part.quoted) for piece in self.arithmetic_value(part, state)]
            else:
                self.process_substitution(part, state)
                found.append(Segment(Unknown(Kind.COMMAND, part.span.text, span=part.span), True, False))
        return found

    def literal_segments(self, part: Literal, first: bool, assigned: bool, last: bool) -> list[Segment]:
        composite = self.composites.get(part.span.source)
        if composite is not None and part.text:
            return [Segment(piece, part.quoted, False) for piece in self.composed(part, composite)]
        if not part.quoted and "~" in part.text:
            return self.tildes(part, first, assigned, last)
        return [Segment(self.known(part), part.quoted, False)]

    def known(self, part: Literal) -> Known:
        known = self.literals.get(part)
        if known is None:
            known = self.literals[part] = Known(part.text, part.span, part.quote, (), part.braced)
        return known

    def composed(self, part: Literal, composite: Composite) -> Value:
        pieces = composite.pieces_of(part.span.start, part.span.end)
        if part.span.end - part.span.start == len(part.text):
            return pieces
        return (computed(part.text, pieces),) if all(isinstance(piece, Known) for piece in pieces) else pieces

    def tildes(self, part: Literal, first: bool, assigned: bool, last: bool) -> list[Segment]:
        known = self.known(part)
        found: list[Segment] = []
        at = 0
        pattern = r"(?:(?<=:)|(?<![\s\S]))~(?=[/:]|$)" if assigned else r"(?<![\s\S])~(?=/|$)"
        for tilde in re.finditer(pattern, part.text):
            if tilde.start() == 0 and not first:
                continue
            if tilde.end() == len(part.text) and not last:
                continue
            if tilde.start() > at:
                found.append(Segment(known.cut(at, tilde.start()), False, False))
            home = Unknown(Kind.SHELL, "~", "HOME", None, part.span)
            found.append(Segment(home, True, False))
            at = tilde.end()
        if at < len(part.text) or not found:
            found.append(Segment(known.cut(at, len(part.text)), False, False))
        return found

    # -------------------------------------------------------------------------------------------- splitting

    def fields(self, segments: list[Segment], span: Span, state: State) -> list[Argument]:
        separators = self.separators(state)
        collector = Collector(span)
        for segment in segments:
            if segment is BREAK:
                collector.flush()
            elif not segment.splits:
                collector.add(segment.piece, segment.quoted, False)
            elif isinstance(segment.piece, Known):
                collector.split(segment.piece, separators)
            else:
                collector.split_unknown(segment.piece, separators)
        collector.flush()
        return collector.arguments

    def separators(self, state: State) -> str:
        variable = state.variables.get("IFS")
        text = WHITESPACE if variable is None else text_of(variable.value)
        return WHITESPACE if text is None else text

    # -------------------------------------------------------------------------------------------- substitutions

    def substitution(self, part: Substitution, state: State) -> Value:
        kind = Kind.TIME if TIMES.search(part.span.text) else Kind.COMMAND
        unknown = (Unknown(kind, part.span.text, span=part.span),)
        if part.body is None:
            return unknown
        return self.output_of(part.body, state, part.span)

    def arithmetic_value(self, part: Arithmetic, state: State) -> Value:
        return self.calculated(part.expression, part.span, state)

    def calculated(self, expression: Word, span: Span, state: State) -> Value:
        """The number as a value: known, or unknown with the number of an empty environment as its default."""
        value = self.value(expression, state)
        sources: list[Piece] = list(value)
        names: list[Piece] = []
        number = self.number(value, state, text_of, names)
        if number is not None:
            return (computed(str(number), (*sources, *names)),)
        default = self.number(value, state, default_text, names)
        shipped = None if default is None else (computed(str(default), (*sources, *names)),)
        return (Unknown(Kind.ARITHMETIC, span.text, "", shipped, span),)

    def number(
        self, value: Value, state: State, read: Callable[[Value], str | None], used: list[Piece] | None = None
    ) -> int | None:
        text = read(value)
        if text is None:
            return None

        def lookup(name: str) -> str:
            found = self.named_value(name, state)
            if found is None:
                return ""
            if used is not None:
                used.extend(found)
            known = read(found)
            if known is None:
                raise arithmetic.Undecided
            return known

        def assign(name: str, number: int) -> None:
            old = state.variables.get(name, Variable())
            sources = (*value, *old.value)
            state.variables[name] = old._replace(value=(computed(str(number), sources),))

        try:
            return arithmetic.evaluate(text, lookup, assign)
        except (arithmetic.Undecided, RecursionError):
            return None

    def named_value(self, name: str, state: State) -> Value | None:
        """What ``$name`` is: None when the script or the shell knows it to be unset."""
        variable = state.variables.get(name)
        if variable is not None:
            return variable.value if variable.items is None else variable.items.get("0")
        if name in state.unset:
            return None
        if name in CLOCKS:
            return (Unknown(Kind.TIME, f"${name}", name),)
        kind = Kind.SHELL if name in ALWAYS_SET else Kind.ENVIRONMENT
        return (Unknown(kind, f"${name}", name),)

    # -------------------------------------------------------------------------------------------- parameters

    def parameter(self, part: Parameter, state: State) -> list[Segment]:
        if part.indirect:
            return self.indirect(part, state)
        if self.is_list(part):
            elements = self.elements(part, state)
            if part.length:
                return self.plain(self.count(elements, part), part.quoted)
            return self.listed(part, self.list_operator(part, elements, state), state)
        value = self.scalar(part, state)
        if part.length:
            return self.plain(self.length(part, value), part.quoted)
        if part.operator in TESTED:
            return self.tested(part, value, state)
        return self.plain(self.operated(part, value or (), state), part.quoted)

    def plain(self, value: Value, quoted: bool) -> list[Segment]:
        if quoted and not value:
            return [Segment(Known(""), True, False)]
        return [Segment(piece, quoted, not quoted) for piece in value]

    def is_list(self, part: Parameter) -> bool:
        return part.name in ("@", "*") or (part.index is not None and part.index.plain in ("@", "*"))

    def elements(self, part: Parameter, state: State) -> list[Value]:
        """The elements of ``$@`` or an array; one unknown piece named ``@`` for none or many that are unknown."""
        if part.name in ("@", "*"):
            if state.positional is not None:
                return list(state.positional)
            name = f"@{state.shifted + 1}" if state.shifted else "@"
            return [(Unknown(Kind.POSITIONAL, "$@", name, None, part.span),)]
        variable = state.variables.get(part.name)
        if variable is None:
            return [] if part.name in state.unset else [(Unknown(Kind.ENVIRONMENT, part.span.text, "@", None, part.span),)]
        if variable.items is None:
            return [variable.value]
        return list(variable.items.values())

    def count(self, elements: list[Value], part: Parameter) -> Value:
        if any(is_many(element) for element in elements):
            return (Unknown(Kind.POSITIONAL, part.span.text, "#", literal("0"), part.span),)
        return literal(str(len(elements)))

    def listed(self, part: Parameter, elements: list[Value], state: State) -> list[Segment]:
        star = part.name == "*" or (part.index is not None and part.index.plain == "*")
        if star and part.quoted:
            between = self.separators(state)[:1]
            pieces: list[Piece] = []
            for place, element in enumerate(elements):
                pieces += [*literal(between)] if place else []
                pieces += element
            return self.plain(tuple(pieces), True)
        found: list[Segment] = []
        for place, element in enumerate(elements):
            if place:
                found.append(BREAK)
            if part.quoted and is_many(element):
                found += [Segment(piece, False, True) for piece in element]
            else:
                found += self.plain(element, part.quoted)
        return found

    def list_operator(self, part: Parameter, elements: list[Value], state: State) -> list[Value]:
        if part.operator in TESTED:
            if part.operator in (":+", "+"):
                return [self.value(part.operands[0], state)] if elements else []
            if elements:
                return elements
            return [self.value(part.operands[0], state)] if part.operator in (":-", "-", ":=", "=") else []
        if part.operator == ":":
            return self.list_slice(part, elements, state)
        if part.operator:
            return [element if is_many(element) else self.operated(part, element, state) for element in elements]
        return elements

    def list_slice(self, part: Parameter, elements: list[Value], state: State) -> list[Value]:
        bounds = [self.number(self.value(word, state), state, text_of) for word in part.operands]
        unknown: list[Value] = [(Unknown(Kind.POSITIONAL, part.span.text, "@", None, part.span),)]
        if any(bound is None for bound in bounds) or any(is_many(element) for element in elements):
            return unknown
        start = bounds[0] or 0
        whole = [self.script_path(part), *elements] if part.name in ("@", "*") else elements
        start = start + len(whole) if start < 0 else start
        return whole[start:] if len(bounds) == 1 else whole[start : start + (bounds[1] or 0)]

    def scalar(self, part: Parameter, state: State) -> Value | None:
        """What a parameter that is no list holds; None when it is known to be unset."""
        name = part.name
        if name.isdigit():
            return self.positional(int(name), part, state)
        if name in "?$!#-" and len(name) == 1:
            return self.special(name, part, state)
        variable = state.variables.get(name)
        if variable is None:
            if name in ("BASH_SOURCE", "FUNCNAME"):
                return self.script_path(part) if name == "BASH_SOURCE" else (Unknown(Kind.SHELL, part.span.text),)
            if name == "PIPESTATUS":
                return self.pipe_status(part, state)
            found = self.named_value(name, state)
            if found and isinstance(found[0], Unknown):
                return (found[0]._replace(shown=part.span.text, span=part.span),)
            return found
        if variable.items is None:
            return variable.value if part.index is None or part.index.plain == "0" else None
        key = "0" if part.index is None else self.key(part.index, variable, state)
        many = next((item for item in variable.items.values() if is_many(item)), None)
        if key is None or many is not None:
            return (Unknown(origin(many) if many else Kind.BRANCH, part.span.text, name, None, part.span),)
        return variable.items.get(key)

    def key(self, index: Word, variable: Variable, state: State) -> str | None:
        """The key of an element; None when it is unknown."""
        value = self.value(index, state)
        if variable.named:
            return text_of(value)
        number = self.number(value, state, text_of)
        if number is None:
            return None
        if number < 0 and variable.items:
            number += max(int(item) for item in variable.items) + 1
        return str(number)

    def script_path(self, part: Parameter) -> Value:
        return (Unknown(Kind.SCRIPT, part.span.text, "path", None, part.span),)

    def positional(self, number: int, part: Parameter, state: State) -> Value | None:
        if number == 0:
            return self.script_path(part)
        if state.positional is not None:
            return state.positional[number - 1] if number <= len(state.positional) else None
        return (Unknown(Kind.POSITIONAL, part.span.text, str(number + state.shifted), None, part.span),)

    def special(self, name: str, part: Parameter, state: State) -> Value:
        if name == "#":
            return self.count(self.elements(Parameter("@", part.span, True), state), part)
        if name == "?":
            if state.status.code is not None:
                return literal(str(state.status.code))
            return (Unknown(Kind.STATUS, "$?", "?", literal("0"), part.span, state.status.commands),)
        return (Unknown(Kind.SHELL, f"${name}", name, None, part.span),)

    def pipe_status(self, part: Parameter, state: State) -> Value:
        index = part.index.plain if part.index is not None else "0"
        stages = state.pipe_statuses
        place = int(index) if index and re.fullmatch("[0-9]{1,4}", index) else -1
        commands = stages[place] if 0 <= place < len(stages) else frozenset().union(*stages)
        return (Unknown(Kind.STATUS, part.span.text, "?", literal("0"), part.span, frozenset(commands)),)

    def length(self, part: Parameter, value: Value | None) -> Value:
        text = text_of(value or ())
        if text is not None:
            return (computed(str(len(text)), value or ()),)
        default = default_text(value or ())
        shipped = None if default is None else literal(str(len(default)))
        return (Unknown(Kind.ARITHMETIC, part.span.text, "", shipped, part.span),)

    def indirect(self, part: Parameter, state: State) -> list[Segment]:
        if part.operator == "names" or (part.index is not None and part.index.plain in ("@", "*")):
            variable = state.variables.get(part.name)
            keys = list(variable.items) if variable is not None and variable.items is not None else None
            if part.operator == "names" or keys is None:
                return self.plain((Unknown(Kind.SHELL, part.span.text, "@", None, part.span),), False)
            return self.listed(part, [literal(key) for key in keys], state)
        name = text_of(self.scalar(Parameter(part.name, part.span, part.quoted), state) or ())
        if not name or not re.fullmatch(r"[A-Za-z_]\w*|\d+|[A-Za-z_]\w*\[[@*\d]+\]", name):
            return self.plain((Unknown(Kind.ENVIRONMENT, part.span.text, "", None, part.span),), part.quoted)
        index = None
        if "[" in name:
            name, inside = name.rstrip("]").split("[")
            index = Word((Literal(inside, part.span, Quote.NONE),), part.span)
            index = Word((Literal(inside, Span(part.span.source, 0, len(inside)), Quote.NONE),), part.span)
        target = Parameter(name, part.span, part.quoted, index, part.operator, part.operands, part.length)
        return self.parameter(target, state)

    # -------------------------------------------------------------------------------------------- ${X:-y} and its like

    def tested(self, part: Parameter, value: Value | None, state: State) -> list[Segment]:
        null_counts = part.operator.startswith(":")
        presence = present(value, null_counts)
        kind = part.operator[-1]
        operand = part.operands[0]
        if kind == "+":
            if presence is False:
                return self.plain((), part.quoted)
            alternative = self.operand_segments(part, state)
            if presence:
                return alternative
            shipped = self.value(operand, state) if present_by_default(value, null_counts) else ()
            keeps = any(segment.quoted for segment in alternative)
            unknown = Unknown(origin(value), part.span.text, naming(value), shipped, part.span, keeps=keeps)
            return self.plain((unknown,), part.quoted)
        if presence:
            variable = state.variables.get(part.name)
            if variable is not None and kind in "-=":
                self.default_defeated(part.name, part, variable, state)
            return self.plain(value or (), part.quoted)
        if kind == "?":
            state.shipped = state.shipped and presence is not None and False
            return self.plain(value or (), part.quoted)
        if presence is False:
            if kind == "=":
                state.variables[part.name] = Variable(self.value(operand, state))
            return self.operand_segments(part, state)
        segments = self.segments(operand.parts, state, assigned=True)
        default = joined([Known(" ") if segment is BREAK else segment.piece for segment in segments])
        keeps = any(segment.quoted for segment in segments)
        whole: Value = (Unknown(origin(value), part.span.text, naming(value), default, part.span, keeps=keeps),)
        if kind == "=":
            state.variables[part.name] = Variable(whole)
        return self.plain(whole, part.quoted)

    def operand_segments(self, part: Parameter, state: State) -> list[Segment]:
        segments = self.segments(part.operands[0].parts, state)
        if part.quoted:
            return [segment._replace(quoted=True, splits=False) for segment in segments] or self.plain((), True)
        literals = {id(one) for one in part.operands[0].parts if isinstance(one, Literal) and not one.quoted}
        if not literals:
            return segments
        # An unquoted default is split like any other result.
        return [segment if segment.quoted or segment is BREAK else segment._replace(splits=True) for segment in segments]

    # -------------------------------------------------------------------------------------------- ${X#p}, ${X/a/b}, ${X,,}

    def operated(self, part: Parameter, value: Value, state: State) -> Value:
        if not part.operator:
            return value
        text = text_of(value)
        if text is not None:
            result = self.operation(part, value, text, state)
            if result is not None:
                return result
            return (Unknown(Kind.SHELL, part.span.text, part.name, None, part.span),)
        default = default_text(value)
        shipped = self.operation(part, (computed(default, value),), default, state) if default is not None else None
        return (Unknown(origin(value), part.span.text, naming(value), shipped, part.span),)

    def operation(self, part: Parameter, value: Value, text: str, state: State) -> Value | None:
        operator = part.operator
        if operator == ":":
            return self.substring(part, value, text, state)
        if operator in ("^^", ",,", "^", ","):
            return self.cased(operator, value, text)
        if operator == "@Q":
            return (computed("'" + text.replace("'", "'\\''") + "'", value),)
        if operator.startswith(("@", "~")):
            return None
        pattern = self.pattern(part.operands[0], state)
        if pattern is None:
            return None
        if operator in ("#", "##", "%", "%%"):
            return self.trimmed(operator, value, text, pattern)
        return self.replaced(part, value, text, pattern, state)

    def substring(self, part: Parameter, value: Value, text: str, state: State) -> Value | None:
        bounds = [self.number(self.value(word, state), state, text_of) for word in part.operands]
        if any(bound is None for bound in bounds):
            return None
        start = bounds[0] or 0
        start = max(start + len(text), 0) if start < 0 else min(start, len(text))
        end = len(text)
        if len(bounds) > 1:
            length = bounds[1] or 0
            end = len(text) + length if length < 0 else min(start + length, len(text))
        return cut(value, start, max(end, start))

    def cased(self, operator: str, value: Value, text: str) -> Value:
        change = str.upper if "^" in operator else str.lower
        result = change(text) if len(operator) == 2 else change(text[:1]) + text[1:]
        return value if result == text else (computed(result, value),)

    def trimmed(self, operator: str, value: Value, text: str, pattern: patterns.Parts) -> Value | None:
        regex = patterns.regex(pattern)
        if regex is None:
            return None
        if patterns.effort(pattern, text) * (len(text) + 1) > MAX_MATCHING:
            return None
        lengths: Iterable[int] = range(len(text) + 1)
        if operator in ("##", "%%"):
            lengths = reversed(range(len(text) + 1))
        for length in lengths:
            if operator[0] == "#" and regex.fullmatch(text, 0, length):
                return cut(value, length, len(text))
            if operator[0] == "%" and regex.fullmatch(text, len(text) - length):
                return cut(value, 0, len(text) - length)
        return value

    def replaced(self, part: Parameter, value: Value, text: str, pattern: patterns.Parts, state: State) -> Value | None:
        regex = patterns.regex(pattern)
        replacement = self.value(part.operands[1], state) if len(part.operands) > 1 else ()
        new = text_of(replacement)
        if regex is None or new is None or patterns.effort(pattern, text) > MAX_MATCHING:
            return None
        if not any(one for one, _ in pattern):
            around = {"/#": (*replacement, *value), "/%": (*value, *replacement)}
            return around.get(part.operator, value)
        anchored = {"/#": re.compile(r"\A(?:" + regex.pattern + ")", re.DOTALL),
                    "/%": re.compile("(?:" + regex.pattern + r")\Z", re.DOTALL)}  # fmt: skip
        found = anchored.get(part.operator, regex)
        return substituted(value, text, found, replacement, part.operator == "//")


# ------------------------------------------------------------------------------------------------ values


def passed_through(segments: list[Segment], span: Span) -> list[Segment]:
    """The segments of an expansion inside an assignment, which an edit may want to take out there."""
    return [
        segment if segment is BREAK else segment._replace(piece=segment.piece._replace(via=(*segment.piece.via, span)))
        for segment in segments
    ]


def joined(pieces: list[Piece]) -> Value:
    """The pieces without empty ones."""
    return tuple(piece for piece in pieces if not (isinstance(piece, Known) and not piece.text))


def is_many(value: Value) -> bool:
    """Whether a value stands for none or many elements."""
    return len(value) == 1 and isinstance(value[0], Unknown) and value[0].name[:1] == "@"


def present(value: Value | None, null_counts: bool) -> bool | None:
    """Whether a parameter is set (and, with a colon, not empty); None when only a run can say."""
    if value is None:
        return False
    if not null_counts and all(isinstance(piece, Known) for piece in value):
        return True
    if any(isinstance(piece, Known) and piece.text for piece in value):
        return True
    if not value:
        return False
    for piece in value:
        if isinstance(piece, Unknown) and piece.default and present(piece.default, True):
            return True  # `${X:-y}` is never empty
        if isinstance(piece, Unknown) and piece.kind in (Kind.SHELL, Kind.SCRIPT, Kind.TIME):
            return True
    return None


def present_by_default(value: Value | None, null_counts: bool) -> bool:
    if value is None:
        return False
    text = default_text(value)
    return bool(text) if null_counts or not value else text is None or bool(text)


def origin(value: Value | None) -> Kind:
    """Where the first unknown part comes from; the environment when there is none."""
    return next((piece.kind for piece in value or () if isinstance(piece, Unknown)), Kind.ENVIRONMENT)


def naming(value: Value | None) -> str:
    return next((piece.name for piece in value or () if isinstance(piece, Unknown)), "")


def cut(value: Value, start: int, end: int) -> Value:
    """A part of a known value."""
    found: list[Piece] = []
    at = 0
    for piece in value:
        if not isinstance(piece, Known):
            continue
        low, high = max(start - at, 0), min(end - at, len(piece.text))
        if low < high:
            found.append(piece.cut(low, high))
        at += len(piece.text)
    return tuple(found)


def substituted(value: Value, text: str, pattern: re.Pattern[str], replacement: Value, everywhere: bool) -> Value:
    """The value with what matches replaced, each kept character still knowing its place."""
    found: list[Piece] = []
    at = 0
    for match in pattern.finditer(text):
        if match.start() == match.end():
            continue
        found += cut(value, at, match.start())
        found += replacement
        at = match.end()
        if not everywhere:
            break
    found += cut(value, at, len(text))
    if len(found) > 2000:
        return (computed(shown(tuple(found)), value),)
    return tuple(found)


class Collector:
    """Puts segments together to arguments."""

    def __init__(self, span: Span) -> None:
        self.span = span
        self.arguments: list[Argument] = []
        self.reset()

    def reset(self) -> None:
        self.pieces: list[Piece] = []
        self.quoted = self.may_split = self.was_split = self.glob = False

    def add(self, piece: Piece, quoted: bool, split: bool) -> None:
        known = isinstance(piece, Known)
        if quoted or not known or piece.text:  # type: ignore[union-attr]
            self.pieces.append(piece)
        self.quoted = self.quoted or quoted
        self.was_split = self.was_split or split
        if known and not quoted and patterns.is_glob(piece.text):  # type: ignore[union-attr]
            self.glob = True

    def flush(self) -> None:
        if self.pieces or self.quoted:
            kept = joined(self.pieces) or tuple(self.pieces[:1])
            argument = Argument(kept, self.span, self.may_split, self.was_split, self.glob, self.quoted)
            self.arguments.append(argument)
        self.reset()

    def split(self, piece: Known, separators: str) -> None:
        if not separators:
            self.add(piece, False, True)
            return
        blanks = "".join(char for char in separators if char in WHITESPACE)
        others = "".join(char for char in separators if char not in WHITESPACE)
        at, text = 0, piece.text
        for start, end, field in cuts(text, blanks, others):
            if start > at or field:
                self.add(piece.cut(at, start), False, True)
            if field and not self.pieces:
                self.quoted = True
                self.pieces.append(Known(""))
            self.flush()
            at = end
        if at < len(text):
            self.add(piece.cut(at, len(text)), False, True)

    def split_unknown(self, piece: Unknown, separators: str) -> None:
        """An unknown text may be several arguments; its default, if known, says which it is as shipped."""
        default = piece.default
        if (
            piece.keeps
            or default is None
            or not any(isinstance(one, Known) and any(c in one.text for c in separators) for one in default)
        ):
            self.add(piece, False, True)
            self.may_split = True
            return
        inner = Collector(self.span)
        for one in default:
            if isinstance(one, Known):
                inner.split(one, separators)
            else:
                inner.split_unknown(one, separators)
        inner.flush()
        for place, argument in enumerate(inner.arguments):
            if place:
                self.flush()
            self.add(piece._replace(default=argument.pieces), False, True)
            self.may_split = True


def cuts(text: str, blanks: str, others: str) -> list[tuple[int, int, bool]]:
    """The separators of a text: start, end, and whether one of them makes a field even of nothing."""
    found: list[tuple[int, int, bool]] = []
    at = 0
    while at < len(text):
        if text[at] not in blanks and text[at] not in others:
            at += 1
            continue
        start, hard = at, False
        while at < len(text) and text[at] in blanks:
            at += 1
        if at < len(text) and text[at] in others:
            hard = True
            at += 1
            while at < len(text) and text[at] in blanks:
                at += 1
        found.append((start, at, hard))
    return found


# ------------------------------------------------------------------------------------------------ braces


def braces(parts: Sequence[Part]) -> list[Sequence[Part]]:
    """Brace expansion: the words one word stands for."""
    if not any(isinstance(part, Literal) and not part.quoted and not part.braced and "{" in part.text for part in parts):
        return [parts]
    found = alternatives(atoms(parts))
    return [merged(atom) for atom in found[:MAX_BRACES]]


Atom = tuple[str, Part]  # an unquoted character with the literal that holds just it; "" and any other part


def atoms(parts: Sequence[Part]) -> list[Atom]:
    found: list[Atom] = []
    for part in parts:
        if not isinstance(part, Literal) or part.quoted:
            found.append(("", part))
            continue
        for place, char in enumerate(part.text):
            at = part.span.start + place
            found.append((char, Literal(char, Span(part.span.source, at, at + 1), Quote.NONE, part.braced)))
    return found


def merged(found: list[Atom]) -> list[Part]:
    parts: list[Part] = []
    for char, part in found:
        last = parts[-1] if parts else None
        longer = lengthened(last, part)
        if longer is not None:
            parts[-1:] = longer
            continue
        if (
            char
            and isinstance(last, Literal)
            and isinstance(part, Literal)
            and not last.quoted
            and last.span.end == part.span.start
            and last.span.source is part.span.source
        ):
            span = Span(last.span.source, last.span.start, part.span.end)
            parts[-1] = Literal(last.text + part.text, span, Quote.NONE, last.braced)
        else:
            parts.append(part)
    return parts


def lengthened(last: Part | None, part: Part) -> list[Part] | None:
    """Braces are expanded first: ``$X{a,b}`` is ``$Xa $Xb``."""
    if not isinstance(last, Parameter) or not isinstance(part, Literal) or last.quoted:
        return None
    if part.quote is not Quote.NONE or part.span.text.startswith("\\"):
        return None
    more = re.match(r"\w+", part.text, re.ASCII)
    if not more or last.span.text.startswith("${") or not re.match("[A-Za-z_]", last.name):
        return None
    end = more.end()
    parameter = Parameter(last.name + more.group(), last.span, False)
    rest = Literal(part.text[end:], Span(part.span.source, part.span.start + end, part.span.end), Quote.NONE)
    return [parameter, rest] if rest.text else [parameter]


def alternatives(found: list[Atom]) -> list[list[Atom]]:
    for start, (char, _) in enumerate(found):
        if char != "{":
            continue
        end, commas = closing(found, start)
        if end is None:
            continue
        options = choices(found, start, end, commas)
        if options is None:
            continue
        results: list[list[Atom]] = []
        tails = alternatives(found[end + 1 :])
        for option in options:
            for inner in alternatives(option):
                results += [[*found[:start], *inner, *tail] for tail in tails]
                if len(results) > MAX_BRACES:
                    return results
        return results
    return [found]


def closing(found: list[Atom], start: int) -> tuple[int | None, list[int]]:
    depth, commas = 0, list[int]()
    for at in range(start, len(found)):
        char = found[at][0]
        if char == "{":
            depth += 1
        elif char == "}":
            depth -= 1
            if depth == 0:
                return at, commas
        elif char == "," and depth == 1:
            commas.append(at)
    return None, commas


def choices(found: list[Atom], start: int, end: int, commas: list[int]) -> list[list[Atom]] | None:
    if commas:
        bounds = [start, *commas, end]
        return [found[low + 1 : high] for low, high in itertools.pairwise(bounds)]
    inside = found[start + 1 : end]
    if not inside or not all(char for char, _ in inside):
        return None
    range_ = RANGE.match("".join(char for char, _ in inside))
    if not range_:
        return None
    first = inside[0][1].span
    whole = Span(first.source, first.start, inside[-1][1].span.end)
    return [[("", Literal(text, whole, Quote.NONE))] for text in sequence(range_)]


def sequence(found: re.Match[str]) -> list[str]:
    if found.group(1) is not None:
        low, high = int(found.group(1)), int(found.group(2))
        step = abs(int(found.group(3) or 1)) or 1
        width = max(len(found.group(1)), len(found.group(2))) if zero_led(found.group(1), found.group(2)) else 0
        numbers = range(low, high + 1, step) if low <= high else range(low, high - 1, -step)
        return [str(number).zfill(width) for number in numbers[:MAX_BRACES]]
    low, high = ord(found.group(4)), ord(found.group(5))
    step = abs(int(found.group(6) or 1)) or 1
    letters = range(low, high + 1, step) if low <= high else range(low, high - 1, -step)
    return [chr(letter) for letter in letters]


def zero_led(*texts: str) -> bool:
    return any(re.match(r"-?0\d", text) for text in texts)


__all__ = ["Composite", "Expander", "cut", "is_many", "joined", "literal", "places"]
