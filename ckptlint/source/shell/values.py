"""What the evaluator knows of a text: pieces with the place they are written at, and pieces that only a run will know."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from ckptlint.source.text import Span


class Quote(str, Enum):
    """The quotes a text stands in, which is what an edit of it must respect."""

    NONE = ""
    SINGLE = "'"
    DOUBLE = '"'
    ANSI = "$'"
    HEREDOC = "<<"


class Kind(str, Enum):
    """Where an unknown text comes from."""

    ENVIRONMENT = "environment"
    POSITIONAL = "positional"
    COMMAND = "command"
    TIME = "time"
    ARITHMETIC = "arithmetic"
    GLOB = "glob"
    STATUS = "status"
    SCRIPT = "script"
    SHELL = "shell"
    BRANCH = "branch"


class Known(NamedTuple):
    """Text the script fixes. ``span`` is where these very characters are written, None when they were computed.

    ``origins`` are the places a computed text was made from. ``braced``: written inside ``${X:-…}``. ``via``
    are the expansions it came through on its way from one variable into the next, the first first.
    """

    text: str
    span: Span | None = None
    quote: Quote = Quote.NONE
    origins: tuple[Span, ...] = ()
    braced: bool = False
    via: tuple[Span, ...] = ()

    @property
    def exact(self) -> bool:
        """Whether every character of the text is one character of the span."""
        return self.span is not None and self.span.end - self.span.start == len(self.text)

    def cut(self, start: int, end: int) -> Known:
        if start == 0 and end == len(self.text):
            return self
        if self.span is None or not self.exact:
            return Known(self.text[start:end], None, self.quote, places((self,)), self.braced, self.via)
        at = self.span.start
        span = Span(self.span.source, at + start, at + end)
        return Known(self.text[start:end], span, self.quote, self.origins, self.braced, self.via)


class Unknown(NamedTuple):
    """Text that only a run knows. ``shown`` is how the script spells it.

    ``default`` is what stands there when the environment or the caller gives nothing (None: then it is empty); it stays one
    argument when ``keeps``, being quoted inside ``${X:-"…"}``. ``commands`` are the numbers of the commands whose exit status
    it is.
    """

    kind: Kind
    shown: str
    name: str = ""
    default: tuple[Piece, ...] | None = None
    span: Span | None = None
    commands: frozenset[int] = frozenset()
    keeps: bool = False
    via: tuple[Span, ...] = ()


Piece = Known | Unknown
Value = tuple[Piece, ...]


def places(pieces: Iterable[Piece]) -> tuple[Span, ...]:
    """Every place that has a part in these pieces."""
    found: dict[Span, None] = {}
    for piece in pieces:
        if isinstance(piece, Known):
            found.update(dict.fromkeys(piece.origins))
            if piece.span is not None:
                found[piece.span] = None
        elif piece.default:
            found.update(dict.fromkeys(places(piece.default)))
    return tuple(found)


def text_of(value: Value) -> str | None:
    """The whole text, or None when a part of it is unknown."""
    if len(value) == 1:
        piece = value[0]
        return piece.text if isinstance(piece, Known) else None
    texts = []
    for piece in value:
        if not isinstance(piece, Known):
            return None
        texts.append(piece.text)
    return "".join(texts)


def default_text(value: Value) -> str | None:
    """The text in an empty environment, without arguments; None when it hangs on more than that."""
    texts: list[str] = []
    for piece in value:
        if isinstance(piece, Known):
            texts.append(piece.text)
        elif piece.default is None and piece.kind not in (Kind.ENVIRONMENT, Kind.POSITIONAL):
            return None
        else:
            text = default_text(piece.default or ())
            if text is None:
                return None
            texts.append(text)
    return "".join(texts)


def shown(value: Value) -> str:
    """The text as a message shows it, unknown parts as the script spells them."""
    return "".join(piece.text if isinstance(piece, Known) else piece.shown for piece in value)


def computed(text: str, sources: Value) -> Known:
    """A text made from others."""
    return Known(text, None, Quote.NONE, places(sources))


def strip_newlines(value: Value) -> Value:
    """What ``$(…)`` does to the end of an output."""
    pieces = list(value)
    while pieces:
        last = pieces[-1]
        if not isinstance(last, Known):
            break
        text = last.text.rstrip("\n")
        if text:
            pieces[-1] = last.cut(0, len(text))
            break
        pieces.pop()
    return tuple(pieces)


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of a command.

    ``span`` is the word of the command it comes from. ``may_split``: an unknown part stands unquoted, so a run may make several
    arguments, or none, of it. ``split``: it was cut out of a longer text by word splitting. ``glob``: it may match files.
    """

    pieces: Value
    span: Span
    may_split: bool = False
    split: bool = False
    glob: bool = False
    quoted: bool = False

    @property
    def text(self) -> str | None:
        return text_of(self.pieces)

    @property
    def default(self) -> str | None:
        """The text when the environment and the caller give nothing; None when that is not enough to know it."""
        return default_text(self.pieces)

    @property
    def vanishes(self) -> bool:
        """Whether in an empty environment there is no such argument at all."""
        return not self.quoted and self.default == ""

    @property
    def is_rest(self) -> bool:
        """Whether this is ``"$@"`` of an unknown caller: none or many arguments."""
        return any(isinstance(piece, Unknown) and piece.name in ("@", "*") for piece in self.pieces) and self.may_split

    def template(self) -> str:
        return shown(self.pieces)

    @property
    def written(self) -> Span | None:
        """Where the whole text is written in one stretch; None when it is computed, unknown or scattered."""
        spans = [piece.span if isinstance(piece, Known) else None for piece in self.pieces if not is_empty(piece)]
        known = [span for span in spans if span is not None]
        if not known or len(known) < len(spans):
            return None
        first, last = known[0], known[-1]
        same = all(span.source is first.source for span in known)
        ordered = all(a.end <= b.start for a, b in itertools.pairwise(known))
        return Span(first.source, first.start, last.end) if same and ordered else None


def is_empty(piece: Piece) -> bool:
    """Whether a piece is no text at all."""
    return isinstance(piece, Known) and not piece.text
