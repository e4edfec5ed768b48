"""YAML with exact positions, and edits by splicing text.

The parser is PyYAML on libyaml, because that is what the frameworks themselves call (OmegaConf, ``yaml.safe_load``): what it
accepts and what a plain scalar means is theirs, not an opinion of ours. Nothing is ever dumped: an edit replaces the characters
of one value.
"""

from __future__ import annotations

import gc
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property

import yaml

from ckptlint.source.text import BOM, CannotEdit, Edit, SourceError, SourceText, Span
from ckptlint.source.yaml_composer import LOADER, Composer, index
from ckptlint.source.yaml_scalars import OMEGACONF, SAFE_LOAD, Schema, render
from ckptlint.source.yaml_tree import (
    BREAK,
    BREAKS,
    COMMENT,
    Document,
    Entry,
    Mapping,
    Node,
    Scalar,
    Sequence,
    colon_end,
    gap,
    is_missing,
    keeps_breaks,
    last_scalar,
    merged,
    nodes,
    written_end,
)

__all__ = [
    "OMEGACONF",
    "SAFE_LOAD",
    "Document",
    "Entry",
    "Mapping",
    "Node",
    "Scalar",
    "Schema",
    "Sequence",
    "YamlSource",
    "parse",
    "render",
]

_REST_OF_LINE = re.compile(f"[^{BREAKS}]*")
_BLANK_LINES = re.compile(f"(?:[ \t]*(?:\r\n|[{BREAKS}]))*")


@dataclass(frozen=True, eq=False)
class YamlSource:
    """A YAML file: its documents, comments and aliases, over one text."""

    source: SourceText
    documents: tuple[Document, ...]
    aliases: tuple[tuple[Span, Node], ...] = field(repr=False)

    @cached_property
    def comments(self) -> tuple[Span, ...]:
        """Every comment, from its ``#`` to the end of the line."""
        if "#" not in self.source.text:
            return ()
        found: list[Span] = []
        shift = 1 if self.source.text.startswith(BOM) else 0
        at = 0
        for token in yaml.scan(self.source.text[shift:], Loader=LOADER):
            start, end = index(token.start_mark) + shift, index(token.end_mark) + shift
            found += self._comments_between(at, start)
            if isinstance(token, yaml.ScalarToken) and token.style in ("|", ">"):
                found += self._comments_between(start, self._line_end(start))
            at = max(at, end)
        found += self._comments_between(at, len(self.source.text))
        return tuple(found)

    def _comments_between(self, start: int, end: int) -> Iterable[Span]:
        if self.source.text.find("#", start, end) < 0:
            return ()
        return [Span(self.source, *comment.span()) for comment in COMMENT.finditer(self.source.text, start, end)]

    # -------------------------------------------------------------------------------------------- lines, as YAML counts them

    def _line_start(self, offset: int) -> int:
        text = self.source.text
        start = max(text.rfind(char, 0, offset) for char in BREAKS) + 1
        return start + 1 if text.startswith(BOM, start) else start

    def _line_end(self, offset: int) -> int:
        line = _REST_OF_LINE.match(self.source.text, offset)
        return line.end() if line else offset

    def _next_line(self, offset: int) -> int:
        """The offset behind the line break that follows; the end of the text on the last line."""
        found = BREAK.search(self.source.text, offset)
        return found.end() if found else len(self.source.text)

    # -------------------------------------------------------------------------------------------- edits

    def set_value(self, entry: Entry, value: str) -> tuple[Edit, ...]:
        """Edits that give an entry another value; ``value`` is YAML text, see ``render``.

        Raises:
            CannotEdit: the old value is a mapping or a list, its anchor is used where it cannot be written out, or the entry
                itself stands in a part that is used elsewhere too.
        """
        self._refuse_shared(entry.name, entry.key_span.start)
        if entry.alias is not None:
            return (Edit(entry.alias, value),)
        if not isinstance(entry.value, Scalar):
            line, _ = entry.value.span.start_position
            raise CannotEdit(f"the value of `{entry.name}` at line {line} is not a single value")
        if is_missing(entry):
            return (self._write_missing(entry, value),)
        body = entry.value.body
        comments = [comment.text for comment in self._comments_inside(body)]
        if len(comments) > 1:
            raise CannotEdit(f"comments stand inside the value of `{entry.name}`")
        return (*self._move_anchor(entry.value), Edit(body, "  ".join([value, *comments])))

    def _comments_inside(self, span: Span) -> list[Span]:
        if "#" not in span.text:
            return []
        return [comment for comment in self.comments if span.start <= comment.start < span.end]

    def _write_missing(self, entry: Entry, value: str) -> Edit:
        """A key whose value is not written: ``key:``, ``key`` in a flow mapping, ``? key``."""
        colon = colon_end(entry)
        text = self.source.text
        if colon is not None:
            behind = text[colon : colon + 1]
            space = "" if not behind or behind in " \t,}]" + BREAKS else " "
            return Edit(Span(self.source, colon, colon), f" {value}{space}")
        mapping = self._owner(entry)
        if mapping.flow:
            at = entry.key_span.end
            return Edit(Span(self.source, at, at), f"{' ' if entry.key_alias else ''}: {value}")
        at = self._line_end(written_end(entry))
        indent = " " * (self._start(mapping, entry) - self._line_start(self._start(mapping, entry)))
        return Edit(Span(self.source, at, at), f"{self._break(at)}{indent}: {value}")

    def _owner(self, entry: Entry) -> Mapping:
        for document in self.documents:
            for node in nodes(document.root):
                if isinstance(node, Mapping) and node.owns(entry):
                    return node
        raise CannotEdit(f"`{entry.name}` is not part of {self.source.path}")

    def _refuse_shared(self, name: str, place: int) -> None:
        """Raises CannotEdit where an edit at this place would show elsewhere too, through an alias or a merge key."""
        for alias, node in self.aliases:
            if not isinstance(node, Scalar) and node.span.start <= place < node.span.end:
                anchor = f"`{name}` stands in `&{node.anchor}`, which is used at line {alias.line} too"
                raise CannotEdit(f"{anchor}; write it there as a key of its own")

    def _move_anchor(self, scalar: Scalar) -> tuple[Edit, ...]:
        """Before an anchored value changes: its first alias takes over the anchor and the old text."""
        uses = [span for span, node in self.aliases if node is scalar]
        if not uses:
            return ()
        text = scalar.span.text
        if scalar.style in ("|", ">") or any(char in text for char in BREAKS):
            raise CannotEdit(f"its anchor `&{scalar.anchor}` is used at line {uses[0].line}; write that value out first")
        if scalar.style is None and self._in_flow(uses[0]) and any(char in scalar.text for char in ",[]{}:?"):
            if scalar.tag is not None:
                raise CannotEdit(f"its anchor `&{scalar.anchor}` is used at line {uses[0].line}; write that value out first")
            text = f"&{scalar.anchor} " + render(scalar.text, flow=True, quote="'")
        return (Edit(uses[0], text),)

    def _in_flow(self, place: Span) -> bool:
        written = (node for document in self.documents for node in nodes(document.root))
        return any(
            not isinstance(node, Scalar) and node.flow and node.span.start <= place.start < node.span.end for node in written
        )

    def _start(self, mapping: Mapping, entry: Entry) -> int:
        """Where an entry begins: its key, or the ``?`` in front of it."""
        place = next(i for i, own in enumerate(mapping.entries) if own is entry)
        before = written_end(mapping.entries[place - 1]) if place else mapping.span.start
        between = gap(self.source, before, entry.key_span.start).rstrip(" \t" + BREAKS)
        return before + len(between) - 1 if between.endswith("?") else entry.key_span.start

    def _break(self, offset: int) -> str:
        """The line break to write at the end of a line."""
        found = BREAK.match(self.source.text, offset) or re.search(r"\r\n|\n|\r", self.source.text)
        return found[0] if found and found[0] in ("\r\n", "\n", "\r") else "\n"

    def insert_after(self, mapping: Mapping, entry: Entry, key: str, value: str) -> Edit:
        """An edit that adds ``key: value`` to a mapping, right behind one of its entries (the last, if it owns none such).

        In front of that entry where nothing can stand behind it: a block scalar that ends with the file, without a line break.

        Raises:
            CannotEdit: the mapping has no lines or braces of its own, or is used elsewhere too.
        """
        self._refuse_shared(key, mapping.span.start)
        if not mapping.owns(entry):
            entry = mapping.entries[-1]
        if mapping.flow:
            if not mapping.braces:
                raise CannotEdit("the mapping has no braces of its own")
            at = written_end(entry)
            space = " " if is_missing(entry) else ""  # libyaml does not take `a:,`
            return Edit(Span(self.source, at, at), f"{space}, {key}: {value}")
        indent = self._indent(mapping)
        scalar = last_scalar(entry.value, entry.alias)
        if scalar is not None and scalar.style in ("|", ">"):
            return self._insert_after_block_scalar(mapping, entry, scalar, f"{indent}{key}: {value}")
        at = self._line_end(written_end(entry))
        return Edit(Span(self.source, at, at), f"{self._break(at)}{indent}{key}: {value}")

    def _insert_after_block_scalar(self, mapping: Mapping, entry: Entry, scalar: Scalar, line: str) -> Edit:
        text = self.source.text
        if scalar.span.end == len(text) and (text[-1] not in BREAKS) and scalar.text:
            start = self._start(mapping, entry)
            return Edit(Span(self.source, start, start), f"{line.lstrip(' ')}{self._break(start)}{self._indent(mapping)}")
        end = self._line_start(scalar.span.end) if keeps_breaks(scalar) else self._next_line(scalar.body.end)
        if text[end - 1] not in BREAKS:
            return Edit(Span(self.source, end, end), f"{self._break(end)}{line}")
        # Behind the line break, which may be part of the value (LS and PS are).
        return Edit(Span(self.source, end, end), f"{line}{self._break(self._line_end(scalar.body.end))}")

    def _indent(self, mapping: Mapping) -> str:
        """The spaces in front of a key of a block mapping."""
        first = self._start(mapping, mapping.entries[0])
        line = self._line_start(first)
        if self.source.text[line:first].strip(" \t-?:"):
            raise CannotEdit("the mapping does not start on a line of its own")
        return " " * (first - line)

    def remove(self, mapping: Mapping, entry: Entry) -> Edit:
        """An edit that takes an entry out: its lines in a block mapping, its piece and one comma in a flow mapping.

        ``{}`` stands where it was the only one.

        Raises:
            CannotEdit: the key would be there all the same (merged in, or written twice), an anchor in it is used elsewhere, it
                shares its line, its neighbours would run together, or the mapping is used elsewhere too.
        """
        self._refuse_removal(mapping, entry)
        if mapping.flow:
            return self._remove_from_flow(mapping, entry)
        start, end = self._start(mapping, entry), written_end(entry)
        if len(mapping.entries) == 1:
            return Edit(Span(self.source, start, end), "{}")
        line = self._line_start(start)
        if self.source.text[line:start].strip(" \t"):
            return self._remove_first(mapping, entry, start)
        after = self._next_line(end)
        if after == self._line_end(end) and self._scalar_before(line) is None:
            return Edit(Span(self.source, self._line_end_before(line), after), "")
        return Edit(Span(self.source, line, self._behind_blank_lines(entry, line, after)), "")

    def _refuse_removal(self, mapping: Mapping, entry: Entry) -> None:
        self._refuse_shared(entry.name, mapping.span.start)
        if not mapping.owns(entry):
            raise CannotEdit(f"`{entry.name}` is merged in from elsewhere")
        others = [own for own in mapping.entries if own is not entry and not own.is_merge]
        again = [own for own in others if own.identity == entry.identity]
        for own in mapping.entries:
            if own.is_merge:
                again += [base.effective[entry.identity] for base in merged(own.value) if entry.identity in base.effective]
        if again and mapping.effective.get(entry.identity) is entry:
            raise CannotEdit(f"`{entry.name}` would still be set, at line {again[-1].key_span.line}")
        inside = {id(node) for node in nodes(entry.key)} | {id(node) for node in nodes(entry.value)}
        inside -= {id(entry.value)} if entry.alias else set()
        inside -= {id(entry.key)} if entry.key_alias else set()
        written = entry.span
        for alias, node in self.aliases:
            if id(node) in inside and not written.start <= alias.start < written.end:
                raise CannotEdit(f"an anchor inside `{entry.name}` is used at line {alias.line}")

    def _remove_first(self, mapping: Mapping, entry: Entry, start: int) -> Edit:
        """The first entry behind ``- ``: the second moves up."""
        if entry is not mapping.entries[0]:
            raise CannotEdit(f"`{entry.name}` shares its line")
        following = self._start(mapping, mapping.entries[1])
        if self.source.text[self._line_end(written_end(entry)) : following].strip(" \t" + BREAKS):
            raise CannotEdit(f"`{entry.name}` shares its line, and comments follow")
        return Edit(Span(self.source, start, following), "")

    def _scalar_before(self, offset: int) -> Scalar | None:
        """The block scalar that ends right before a line, blank lines in between or not; its line breaks may count."""
        for document in self.documents:
            for node in nodes(document.root):
                if not isinstance(node, Scalar) or node.style not in ("|", ">") or node.span.start >= offset:
                    continue
                if not self.source.text[node.body.end : offset].strip(" \t" + BREAKS):
                    return node
        return None

    def _behind_blank_lines(self, entry: Entry, line: int, after: int) -> int:
        """Where a removal ends: behind a block scalar, blank lines that would become part of a ``|+`` go along.

        Raises:
            CannotEdit: an indented comment would become the block scalar's text.
        """
        scalar = self._scalar_before(line)
        if scalar is None:
            return after
        blank = _BLANK_LINES.match(self.source.text, after)
        content = blank.end() if blank else after
        if re.compile("[ \t]+#").match(self.source.text, content):
            raise CannotEdit(f"the comment behind `{entry.name}` would become part of the text before it")
        return content if keeps_breaks(scalar) else after

    def _line_end_before(self, line: int) -> int:
        text = self.source.text
        return line - 2 if text[:line].endswith("\r\n") else max(line - 1, 1 if text.startswith(BOM) else 0)

    def _remove_from_flow(self, mapping: Mapping, entry: Entry) -> Edit:
        if not mapping.braces:
            raise CannotEdit("the mapping has no braces of its own")
        place = next(i for i, own in enumerate(mapping.entries) if own is entry)
        start, end = self._start(mapping, entry), written_end(entry)
        before = written_end(mapping.entries[place - 1]) if place else start
        if 0 < place == len(mapping.entries) - 1 and not self._comments_inside(Span(self.source, before, start)):
            kept = 1 if is_missing(mapping.entries[place - 1]) and self.source.text[before] in " \t" + BREAKS else 0
            return Edit(Span(self.source, before + kept, end), "")
        closing = mapping.span.end - 1
        until = self._start(mapping, mapping.entries[place + 1]) if place + 1 < len(mapping.entries) else closing
        comma = gap(self.source, end, until).find(",")
        end = end if comma < 0 else end + comma + 1
        line, line_end = self._line_start(start), self._line_end(end)
        alone = not (self.source.text[line:start] + gap(self.source, end, line_end)).strip(" \t")
        if alone and line_end < until:
            return Edit(Span(self.source, line, self._next_line(line_end)), "")
        spaces = re.compile("[ \t]*").match(self.source.text, end)
        return Edit(Span(self.source, start, spaces.end() if spaces else end), "")


# ------------------------------------------------------------------------------------------------ reading


def parse(source: SourceText) -> YamlSource:
    """Read a YAML text, all its documents.

    Raises:
        SourceError: it is not YAML, or nests deeper than ``MAX_DEPTH``; with the place and the parser's words.
    """
    shift = 1 if source.text.startswith(BOM) else 0
    collecting = gc.isenabled()
    gc.disable()  # it would walk the growing tree again and again: 10 MB of YAML take half the time without
    try:
        documents, aliases = Composer(source, shift).compose()
        return YamlSource(source, documents, aliases)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        at = min((index(mark) if mark else 0) + shift, len(source.text))
        raise SourceError(Span(source, at, at), f"not valid YAML: {_words(error)}") from None
    except yaml.reader.ReaderError as error:
        at = shift + _offset_of(source.text[shift:], error.position)
        raise SourceError(Span(source, at, at), f"not valid YAML: {error.reason}", "take the character out") from None
    except UnicodeEncodeError as error:
        at = error.start + shift
        raise SourceError(Span(source, at, at), "not valid YAML: half a surrogate pair", "take the character out") from None
    finally:
        if collecting:
            gc.enable()


def _words(error: yaml.MarkedYAMLError) -> str:
    return " ".join(part.strip() for part in (error.context, error.problem) if part)


def _offset_of(text: str, position: int) -> int:
    """Where the reader stopped; libyaml's counts bytes where all else counts characters."""
    return position if LOADER is yaml.SafeLoader else len(text.encode("utf-8")[:position].decode("utf-8", "ignore"))
