"""Edits of a script, each proved by reading the script again: nothing but the intended arguments may change."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from ckptlint.source.shell.command import Command, ShellSource
from ckptlint.source.shell.values import Argument, Kind, Known, Piece, Quote, Unknown, Value, default_text
from ckptlint.source.text import CannotEdit, Edit, Span

SAFE = re.compile(r"[A-Za-z0-9_@%+=:,./-]+")
QUOTES = "'\""
DIRECTIVES = re.compile(r"#(?:SBATCH|PBS|BSUB|DSUB|\$|COBALT|MSUB)")


@dataclass(frozen=True)
class Change:
    """Edits, and the arguments of other places that change with them (several uses of one variable)."""

    edits: tuple[Edit, ...]
    uses: tuple[tuple[Command, Argument], ...] = ()


# ------------------------------------------------------------------------------------------------ quoting


def quoted(value: str, quote: Quote = Quote.NONE, braced: bool = False) -> str:
    """A text as it must be written between such quotes, so that bash reads that very text."""
    if quote is Quote.SINGLE:
        return value.replace("'", "'\\''")
    if quote is Quote.DOUBLE:
        return re.sub(r'([\\"$`}])' if braced else r'([\\"$`])', r"\\\1", value)
    if quote is Quote.HEREDOC:
        return re.sub(r"([\\$`])", r"\\\1", value)
    if quote is Quote.ANSI:
        return re.sub(r"([\\'])", r"\\\1", value).replace("\n", "\\n")
    if SAFE.fullmatch(value):
        return value
    if "'" not in value:
        return f"'{value}'"
    return '"' + quoted(value, Quote.DOUBLE) + '"'


# ------------------------------------------------------------------------------------------------ a value


def set_value(shell: ShellSource, command: Command, argument: Argument, value: str, key: str = "") -> Change:
    """Edits that make the part of an argument behind ``key`` (``--save-interval=``, ``trainer.save_freq=``) another text.

    The text is changed where it is written, which may be a variable; of ``${X:-y}`` it is ``y``. ``uses`` names the other
    arguments that change with it. What cannot be changed there is written out in the command, as ``set_here`` does.

    Raises:
        CannotEdit: neither can be done without changing which commands run, or more than this argument.
    """
    places = {command.words.index(argument)}
    try:
        written = region(written_pieces(argument), key, argument)
        return first_proved(shell, command, replacements(written, value), becomes(command, argument, key + value), places)
    except CannotEdit as refused:
        reason = refused
    try:
        return set_here(shell, command, argument, value, key)
    except CannotEdit:
        raise reason from None


def set_here(shell: ShellSource, command: Command, argument: Argument, value: str, key: str = "") -> Change:
    """Edits that write the value out where the command (or the array or text it takes its arguments from) names it.

    Variables keep their values, so no other argument changes.

    Raises:
        CannotEdit: the argument is no word of its own there.
    """
    candidates: list[Edit] = []
    for place in extents(command, argument):
        text = place.text
        if key and text.startswith(key):
            candidates.append(Edit(Span(place.source, place.start + len(key), place.end), quoted(value)))
        elif key and text[:1] in ("'", '"') and text[1:].startswith(key):
            candidates.append(Edit(place, text[0] + quoted(key + value, Quote(text[0])) + text[0]))
        candidates.append(Edit(place, quoted(key + value)))
    return first_proved(shell, command, candidates, becomes(command, argument, key + value), {command.words.index(argument)})


def becomes(command: Command, argument: Argument, text: str) -> Callable[[Command], bool]:
    """Whether the argument is that text in a command else of the same length."""
    place = command.words.index(argument)

    def intended(new: Command) -> bool:
        return len(new.words) == len(command.words) and new.words[place].default == text

    return intended


def written_pieces(argument: Argument) -> list[Known]:
    """The pieces of an argument as shipped."""
    found: list[Known] = []
    for piece in flattened(argument.pieces):
        if isinstance(piece, Unknown):
            raise CannotEdit(f"`{argument.template()}` is not written in the script, but comes from {piece.shown}")
        found.append(piece)
    return found


def flattened(value: Value) -> Iterable[Piece]:
    """The pieces of an empty environment."""
    for piece in value:
        if isinstance(piece, Unknown) and piece.default is not None and piece.kind is not Kind.ARITHMETIC:
            yield from flattened(piece.default)
        elif isinstance(piece, Unknown) and piece.kind in (Kind.ENVIRONMENT, Kind.POSITIONAL) and piece.default is None:
            yield piece
        else:
            yield piece


@dataclass(frozen=True)
class Region:
    """Where a value is written, without its quotes: from the first to the last of its characters."""

    span: Span
    quotes: frozenset[Quote]
    first: Known
    last: Known


def region(pieces: Sequence[Known], key: str, argument: Argument) -> Region:
    """Where the text behind the key is written. Raises CannotEdit: not in one stretch."""
    if not "".join(piece.text for piece in pieces).startswith(key):
        raise CannotEdit(f"`{argument.template()}` does not begin with `{key}`")
    skip = len(key)
    parts: list[Known] = []
    before: Known | None = None
    for piece in pieces:
        if skip >= len(piece.text) and (piece.text or parts):
            skip -= len(piece.text)
            before = piece
            continue
        parts.append(piece.cut(skip, len(piece.text)))
        skip = 0
    if not parts:
        return empty_region(before, argument)
    if any(part.span is None for part in parts):
        raise CannotEdit(f"`{argument.template()}` is computed")
    spans = [part.span for part in parts if part.span is not None]
    ordered = all(a.source is b.source and a.end <= b.start for a, b in itertools.pairwise(spans))
    if not ordered:
        raise CannotEdit(f"`{argument.template()}` is put together from several places")
    whole = Span(spans[0].source, spans[0].start, spans[-1].end)
    between = whole.source.text[whole.start : whole.end]
    if "$" in between and not all(part.quote in (Quote.SINGLE, Quote.HEREDOC) or "$" not in part.text for part in parts):
        raise CannotEdit(f"`{argument.template()}` is put together from several places")
    return Region(whole, frozenset(part.quote for part in parts), parts[0], parts[-1])


def empty_region(before: Known | None, argument: Argument) -> Region:
    """Behind the ``=`` of ``key=``."""
    if before is None or before.span is None:
        raise CannotEdit(f"`{argument.template()}` is computed")
    end = before.span.end
    source = before.span.source
    empty = Known("", Span(source, end, end), before.quote, (), before.braced)
    assert empty.span is not None
    return Region(empty.span, frozenset({before.quote}), empty, empty)


def replacements(place: Region, value: str) -> list[Edit]:
    """Ways to write the value there, the plainest first."""
    found: list[Edit] = []
    span, text = place.span, place.span.source.text
    if len(place.quotes) == 1:
        found.append(Edit(span, quoted(value, place.first.quote, place.first.braced)))
        if place.first.quote is Quote.NONE and not SAFE.fullmatch(value):
            found.append(Edit(span, re.sub(r"([^A-Za-z0-9_@%+=:,./-])", r"\\\1", value)))
    start, end = span.start, span.end
    if text[start - 1 : start] in tuple(QUOTES) and text[start - 1] in text[end : end + 1]:
        found.append(Edit(Span(span.source, start - 1, end + 1), quoted(value)))
    opening = place.first.quote in (Quote.SINGLE, Quote.DOUBLE) and text[start - 1 : start] in tuple(QUOTES)
    closing = place.last.quote in (Quote.SINGLE, Quote.DOUBLE) and text[end : end + 1] in tuple(QUOTES)
    if len(place.quotes) > 1:
        found.append(Edit(Span(span.source, start - opening, end + closing), quoted(value)))
    return found


# ------------------------------------------------------------------------------------------------ taking arguments out


def remove(shell: ShellSource, command: Command, arguments: Sequence[Argument]) -> Change:
    """Edits that take arguments out of a command, with the line of each that stands alone on one.

    Raises:
        CannotEdit: they are not written as words of their own, or other commands would change.
    """
    places = {command.words.index(argument) for argument in arguments}
    kept = [signature(word) for place, word in enumerate(command.words) if place not in places]

    def intended(new: Command) -> bool:
        return [signature(word) for word in new.words] == kept

    reason = CannotEdit("nothing is to be taken out")
    for extents in ways_to_remove(command, arguments):
        edits = tuple(Edit(removal(span), "") for span in neighbours_joined(extents))
        found = attempt(shell, command, edits, intended, places)
        if isinstance(found, Change):
            return found
        reason = found
    raise reason


def ways_to_remove(command: Command, arguments: Sequence[Argument]) -> list[list[Span]]:
    """Where the arguments may be taken out: for each place of the first, the places of the others next to it."""
    found: list[list[Span]] = []
    all_places = [extents(command, argument) for argument in arguments]
    for first in all_places[0] if all_places else ():
        chosen = [first]
        for spans in all_places[1:]:
            chosen.append(min(spans, key=lambda span: distance(chosen[-1], span)))
        found.append(sorted(chosen, key=lambda span: span.start))
    return found


def distance(one: Span, other: Span) -> int:
    """How far a place stands behind another one; very far in another text."""
    if one.source is not other.source:
        return 1 << 40
    gap = other.start - one.end
    return gap if gap >= 0 else (1 << 20) - gap


def extents(command: Command, argument: Argument) -> list[Span]:
    """The places an argument may be said to be written at, the one nearest to the command first."""
    found: list[Span] = []
    pieces = [piece for piece in argument.pieces if not (isinstance(piece, Known) and not piece.text)]
    alone = sum(word.span == argument.span for word in command.words) == 1
    if alone and not command.in_text and argument.span.source is command.span.source:
        found.append(argument.span)
    for steps in range(1, 1 + max((len(piece.via) for piece in pieces), default=0)):
        through = {piece.via[-steps] for piece in pieces if len(piece.via) >= steps}
        rest = [piece.span for piece in pieces if len(piece.via) < steps]
        spans = [*through, *(span for span in rest if span is not None)]
        if spans and all(span.source is spans[0].source for span in spans):
            whole = Span(spans[0].source, min(span.start for span in spans), max(span.end for span in spans))
            found.append(with_quotes(whole))
    written = extent(argument)
    if written is not None:
        found.append(written)
    if not found:
        raise CannotEdit(f"`{argument.template()}` is not written in one place")
    return found


def extent(argument: Argument) -> Span | None:
    """Where the very characters of an argument stand, with their quotes; None when that is not one place."""
    pieces = [piece for piece in flattened(argument.pieces) if not (isinstance(piece, Known) and not piece.text)]
    spans = [piece.span for piece in pieces]
    known = [span for span in spans if span is not None]
    if not known or len(known) < len(spans) or any(span.source is not known[0].source for span in known):
        return None
    return with_quotes(Span(known[0].source, min(span.start for span in known), max(span.end for span in known)))


def with_quotes(span: Span) -> Span:
    """The place with the quotes around it."""
    start, end, text = span.start, span.end, span.source.text
    quote = text[start - 1 : start] if start else ""
    while quote and quote in QUOTES and text[end : end + 1] == quote:
        start, end = start - 1, end + 1
        quote = text[start - 1 : start] if start else ""
    return Span(span.source, start, end)


def neighbours_joined(extents: Sequence[Span]) -> list[Span]:
    """Neighbours with only blanks and continuations between them as one."""
    found: list[Span] = []
    for span in extents:
        last = found[-1] if found else None
        if last is not None and last.source is span.source:
            between = span.source.text[last.end : span.start]
            if re.fullmatch(r"(?:[ \t]|\\?\r?\n)*", between):
                found[-1] = Span(span.source, last.start, span.end)
                continue
        found.append(span)
    return found


def removal(span: Span) -> Span:
    """What goes with a word: its lines when it is alone there, else the blanks on one side."""
    source, text = span.source, span.source.text
    line = source.line_at(span.start)
    last = source.line_at(span.end)
    before, after = text[line.start : span.start], text[span.end : last.end]
    tail = after.strip(" \t")
    if not before.strip(" \t") and (tail in ("", "\\") or tail.startswith("#")):
        continued = before_continuation(text, line.start)
        if tail == "" and continued is not None:
            return Span(source, continued, span.end)
        following = last.end + len(source.line_break_at(span.end)) if last.end < len(text) else last.end
        return Span(source, line.start, following)
    start = span.start
    while start > line.start and text[start - 1] in " \t":
        start -= 1
    if start < span.start:
        return Span(source, start, span.end)
    end = span.end
    while end < last.end and text[end] in " \t":
        end += 1
    return Span(source, span.start, end)


def before_continuation(text: str, start: int) -> int | None:
    r"""Where the ``\`` (and the blanks in front of it) begins that ends the line before; None if there is none."""
    found = re.search(r"[ \t]*\\\r?\n$", text[:start])
    return found.start() if found else None


# ------------------------------------------------------------------------------------------------ putting arguments in


def append(shell: ShellSource, command: Command, texts: Sequence[str]) -> Change:
    """Edits that give a command more arguments at its end, before redirections and pipes.

    They stand on a line of their own where the command is written one argument a line, and in front of a final ``"$@"``,
    so that what the caller says still wins.

    Raises:
        CannotEdit: the command is not written out, or other commands would change.
    """
    words = [word for word in command.words if word.span.source is command.span.source]
    if not words:
        raise CannotEdit(f"`{command}` is not written as a command")
    rest = words[-1].is_rest and len(words) > 1 and words[-1].span != words[-2].span
    after = words[-2] if rest else words[-1]
    place = len(command.words) - (1 if rest else 0)
    span = after.span
    if command.in_text:
        return append_in_text(shell, command, after, texts, place)
    before = separator(command, span)
    candidates = [before + " ".join(spelling(command, text) for text in texts), before + " ".join(map(quoted, texts))]
    edits = [Edit(Span(span.source, span.end, span.end), written) for written in dict.fromkeys(candidates)]
    return first_proved(shell, command, edits, appended(command, texts, place), set())


_ONE_VARIABLE = re.compile(r'"?\$(?:\w+|\{\w+\})"?')


def spelling(command: Command, text: str) -> str:
    """How the script itself writes a text that the command has already: ``$SAVE_PATH`` follows the variable when it changes."""
    for word in command.words:
        if word.default == text:
            try:
                places = [place.text for place in extents(command, word)]
            except CannotEdit:
                continue
            variable = next((place for place in places if _ONE_VARIABLE.fullmatch(place)), "")
            if variable:
                return variable
    return quoted(text)


def appended(command: Command, texts: Sequence[str], place: int) -> Callable[[Command], bool]:
    """Whether a command is the old one with these arguments at that place."""
    old = [signature(word) for word in command.words]
    expected = [*old[:place], *((text,) for text in texts), *old[place:]]

    def intended(new: Command) -> bool:
        return [signature(word) for word in new.words] == expected

    return intended


def separator(command: Command, span: Span) -> str:
    """What stands between the last argument and a new one."""
    source = span.source
    line = source.line_at(span.start)
    first = source.line_at(command.span.start)
    if line.start == first.start:
        return " "
    indent = re.match(r"[ \t]*", line.text)
    before = source.text[: line.start].rstrip("\r\n")
    if not before.endswith("\\"):
        return " "
    return f" \\{source.line_break_at(line.start)}{indent.group() if indent else ''}"


def append_in_text(shell: ShellSource, command: Command, after: Argument, texts: Sequence[str], place: int) -> Change:
    """For a command inside a string: behind the last of its characters, wherever these are written."""
    pieces = [piece for piece in after.pieces if isinstance(piece, Known) and piece.span is not None]
    if not pieces or pieces[-1] is not after.pieces[-1]:
        raise CannotEdit(f"the end of `{command}` is not written in the script")
    last = pieces[-1]
    assert last.span is not None
    written = "".join(f" {text}" for text in texts)
    edit = Edit(Span(last.span.source, last.span.end, last.span.end), quoted(written, last.quote) if last.quote else written)
    return prove(shell, command, (edit,), appended(command, texts, place), set())


def insert_line(shell: ShellSource, line: str = "set -o pipefail") -> Edit:
    """An edit that puts a line at the top: behind the shebang, the first comments, scheduler directives and ``set`` lines."""
    source = shell.source
    text = source.text
    at = 1 if text.startswith("\ufeff") else 0
    place, block = at, True
    while at < len(text):
        span = source.line_at(at)
        content = span.text.lstrip("\ufeff").strip()
        following = min(span.end + len(source.line_break_at(at)), len(text)) if span.end < len(text) else len(text)
        if content.startswith("#"):
            if block or DIRECTIVES.match(content):
                place = following
        elif re.match(r"set\s+[-+]", content) and not content.endswith("\\"):
            place = following
        elif content:
            break
        else:
            block = False
        at = following
    newline = source.line_break_at(0)
    if place and not text[:place].endswith(("\n", "\r", "\ufeff")):
        return Edit(Span(source, place, place), f"{newline}{line}")
    return Edit(Span(source, place, place), f"{line}{newline}")


# ------------------------------------------------------------------------------------------------ proof


def signature(argument: Argument) -> tuple[object, ...]:
    """An argument without the places it is written at."""
    found: list[object] = []
    for piece in argument.pieces:
        if isinstance(piece, Known):
            if found and isinstance(found[-1], str):
                found[-1] += piece.text
            else:
                found.append(piece.text)
        else:
            found.append((piece.kind, piece.name, default_text(piece.default or ())))
    return tuple(found) or ("",)


def first_proved(
    shell: ShellSource, command: Command, candidates: Sequence[Edit], intended: Callable[[Command], bool], places: set[int]
) -> Change:
    """The first of several edits that does what is intended."""
    reason = CannotEdit(f"`{command}` cannot be edited there")
    for edit in candidates:
        found = attempt(shell, command, (edit,), intended, places)
        if isinstance(found, Change):
            return found
        reason = found
    raise reason


def attempt(
    shell: ShellSource, command: Command, edits: tuple[Edit, ...], intended: Callable[[Command], bool], places: set[int]
) -> Change | CannotEdit:
    """The proved change, or why it is refused."""
    try:
        return prove(shell, command, edits, intended, places)
    except CannotEdit as refused:
        return refused


def prove(
    shell: ShellSource, command: Command, edits: tuple[Edit, ...], intended: Callable[[Command], bool], places: set[int]
) -> Change:
    """Reads the edited script and compares it with what it was."""
    again = shell.reread(edits)
    if [one.loss for one in again.notices] != [one.loss for one in shell.notices]:
        raise CannotEdit("the script would not be read as before")
    if len(again.commands) != len(shell.commands) or shell.complete != again.complete:
        raise CannotEdit("the edit would change which commands run")
    if not intended(again.commands[command.number]):
        raise CannotEdit(f"`{command}` cannot be given that text where it is written")
    uses: list[tuple[Command, Argument]] = []
    for old, new in zip(shell.commands, again.commands, strict=True):
        if len(old.words) != len(new.words):
            if old.number != command.number and not same_place(old, command):
                raise CannotEdit(f"line {old.span.line} would change, too: `{old}`")
            continue
        for at, (one, other) in enumerate(zip(old.words, new.words, strict=True)):
            if signature(one) != signature(other) and not (same_place(old, command) and at in places):
                uses.append((old, one))
    return Change(edits, tuple(uses))


def same_place(one: Command, other: Command) -> bool:
    """Whether two commands are one and the same text, met on different ways."""
    return one.span == other.span
