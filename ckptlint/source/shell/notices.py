"""Arguments that a script seems to pass and does not."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ckptlint.source.shell.command import Loss, Notice
from ckptlint.source.shell.interpret import Record
from ckptlint.source.shell.syntax import Comment
from ckptlint.source.shell.values import Argument, Known
from ckptlint.source.shell.wrappers import base
from ckptlint.source.text import SourceText, Span

# What is an argument and cannot be meant as a command: `--save`, `trainer.save_freq=20`, `+a.b=c`, `++k=v`.
ARGUMENT = re.compile(r"-{1,2}[A-Za-z][\w-]*(?:=.*)?|[+~]{0,2}[A-Za-z_][\w/@]*(?:\.[\w/@-]+)+=.*|\+{1,2}[\w./@]+=.*", re.DOTALL)
TEE_OPTIONS = re.compile(r"-[aip]+|--append|--ignore-interrupts|--output-error(?:=.*)?")
TRAILING = re.compile(r"(\\[ \t])[ \t]*(?:#.*)?$")


def found(source: SourceText, records: Sequence[Record], comments: Sequence[Comment]) -> Iterator[Notice]:
    """What is lost in one script, from its commands and comments."""
    text = source.text
    if "\r\n" in text and text.count("\r\n") == text.count("\n"):
        at = text.index("\r\n")
        yield Notice(Loss.CARRIAGE_RETURN, source.span(at, at + 2))
    seen: set[Span] = set()
    merged: dict[tuple[Loss, Span], Notice] = {}
    for record in records:
        if record.span.source is not source or record.span in seen or not record.words:
            continue
        seen.add(record.span)
        for notice in (*stray(source, record, comments), *blank_arguments(record), *behind_tee(record)):
            old = merged.get((notice.loss, notice.span))
            lost = (*(old.lost if old else ()), *notice.lost)
            merged[notice.loss, notice.span] = Notice(notice.loss, notice.span, lost)
    yield from merged.values()


def looks_like_argument(word: Argument) -> bool:
    """Whether a command's first word is an argument that lost its command."""
    text = word.text
    text = word.template() if text is None else text
    return bool(ARGUMENT.fullmatch(text)) or word.is_rest


def stray(source: SourceText, record: Record, comments: Sequence[Comment]) -> Iterator[Notice]:
    """Arguments that bash takes for a command, since the command before them had ended."""
    start = record.span.start
    line = source.line_at(start)
    if source.text[line.start : start].strip(" \t"):
        return
    comment = continued_comment(source, line.start, comments)
    if not looks_like_argument(record.words[0]) and not (comment and record.words[0].text is None):
        return
    if comment is not None:
        yield Notice(Loss.COMMENT, comment.span, (record.span,))
        return
    before = line_before(source, line.start)
    if before is None:
        return
    blank = TRAILING.search(before.text)
    if blank:
        start = before.start + blank.start(1)
        yield Notice(Loss.BLANK, source.span(start, start + 2), (record.span,))
    elif before.text.strip() and not before.text.lstrip().startswith("#"):
        yield Notice(Loss.MISSING_BACKSLASH, source.span(before.end, before.end), (record.span,))


def continued_comment(source: SourceText, offset: int, comments: Sequence[Comment]) -> Comment | None:
    """The comment that ended the command before a line, with nothing but comments and blank lines between."""
    for comment in reversed(comments):
        if comment.span.source is not source or comment.span.end > offset:
            continue
        if comment.after_continuation:
            between = source.text[comment.span.end : offset].splitlines()
            return comment if all(not line.strip() or line.lstrip().startswith("#") for line in between) else None
        line = source.line_at(comment.span.start)
        if source.text[line.start : comment.span.start].strip():
            return None
    return None


def line_before(source: SourceText, offset: int) -> Span | None:
    """The last line before this one that is not blank."""
    while offset > 0:
        line = source.line_at(offset - 1)
        if line.text.strip():
            return line
        offset = line.start
    return None


def blank_arguments(record: Record) -> Iterator[Notice]:
    """``\\`` and a blank at the end of a line."""
    for word in record.words:
        text = word.text
        piece = word.pieces[0] if word.pieces else None
        if not text or text.strip(" \t") or not isinstance(piece, Known) or piece.span is None:
            continue
        span = piece.span
        line = span.source.line_at(span.start)
        rest = span.source.text[span.end : line.end].strip()
        if span.text.startswith("\\") and (not rest or rest.startswith("#")):
            yield Notice(Loss.BLANK, span)


def behind_tee(record: Record) -> Iterator[Notice]:
    """Words for another program that ``tee`` takes for file names."""
    if record.pipeline is None or not record.argv or base(record.argv[0]) != "tee" or record.first_stage:
        return
    words = [word for word in record.argv[1:] if not TEE_OPTIONS.fullmatch(word.text or "")]
    lost = [word for place, word in enumerate(words) if looks_like_argument(word) or (place and "=" in (word.text or ""))]
    if lost:
        spans = tuple(dict.fromkeys(word.span for word in lost))
        yield Notice(Loss.AFTER_PIPE, record.argv[0].span, spans)
