"""The nodes of a YAML file, and where in the text they stand.

YAML 1.1 ends a line at NEL, LS and PS as well, which no editor counts: positions are an editor's, edits go by YAML's lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from ckptlint.source.text import SourceText, Span
from ckptlint.source.yaml_scalars import MERGE, SAFE_LOAD, STRING, Schema

BREAKS = "\r\n\x85\u2028\u2029"
BREAK = re.compile(f"\r\n|[{BREAKS}]")
COMMENT = re.compile(f"#[^{BREAKS}]*")


@dataclass(frozen=True, eq=False, slots=True)
class Scalar:
    """A scalar, from ``start`` to ``end`` with anchor, tag and quotes; empty for a value that is not written.

    ``style`` is the quote or ``|`` or ``>``, None for a plain scalar; ``tag`` is a written tag, ``!`` meaning "as if plain".
    """

    source: SourceText
    start: int
    end: int
    text: str
    tag: str | None
    style: str | None
    anchor: str | None = None

    @property
    def span(self) -> Span:
        return Span(self.source, self.start, self.end)

    def value(self, schema: Schema) -> object:
        if self.tag == "!" or (self.tag is None and self.style is None):
            return schema.value(schema.tag(self.text), self.text)
        return schema.value(self.tag or STRING, self.text)

    @property
    def body(self) -> Span:
        """Where the value itself stands: a block scalar without the blank lines behind it."""
        if self.style not in ("|", ">"):
            return self.span
        text = self.span.text
        return Span(self.span.source, self.span.start, self.span.start + len(text.rstrip()))


@dataclass(frozen=True, eq=False)
class Sequence:
    """A list; ``aliases[i]`` is where item i is written as ``*name``, or None."""

    span: Span
    items: tuple[Node, ...]
    aliases: tuple[Span | None, ...]
    flow: bool
    anchor: str | None = None

    def value(self, schema: Schema) -> list[object]:
        value = _value(self, schema, {})
        assert isinstance(value, list)
        return value


@dataclass(frozen=True, eq=False)
class Mapping:
    """A mapping. ``entries`` are those written here, in order, duplicates included; ``get`` is what the loader sees.

    ``flow`` is true inside braces; ``braces`` is false for the one pair of ``[key: value]``, which has none of its own.
    """

    span: Span
    entries: tuple[Entry, ...]
    flow: bool
    anchor: str | None = None
    braces: bool = False

    @cached_property
    def effective(self) -> dict[object, Entry]:
        """PyYAML's flatten_mapping: merged keys first, own keys over them, the last duplicate wins."""
        found: dict[object, Entry] = {}
        for entry in self.entries:
            if entry.is_merge:
                for mapping in reversed(merged(entry.value)):
                    found.update(mapping.effective)
        for entry in self.entries:
            if not entry.is_merge:
                found[entry.identity] = entry
        return found

    def get(self, name: str) -> Entry | None:
        return self.effective.get(name)

    def items(self) -> Iterator[tuple[str, Entry]]:
        """Every key with the entry that decides it."""
        for entry in self.effective.values():
            yield entry.name, entry

    def owns(self, entry: Entry) -> bool:
        """Whether the entry is written in this mapping itself rather than merged in."""
        return any(own is entry for own in self.entries)

    @cached_property
    def duplicates(self) -> tuple[tuple[Entry, Entry], ...]:
        """Keys written twice here: (the entry that loses, the one that wins)."""
        seen: dict[object, Entry] = {}
        pairs = []
        for entry in self.entries:
            if entry.is_merge:
                continue
            if entry.identity in seen:
                pairs.append((seen[entry.identity], entry))
            seen[entry.identity] = entry
        return tuple(pairs)

    def value(self, schema: Schema) -> dict[object, object]:
        value = _value(self, schema, {})
        assert isinstance(value, dict)
        return value


Node = Scalar | Sequence | Mapping


@dataclass(frozen=True, eq=False)
class Entry:
    """One ``key: value``. ``alias`` is where the value is written as ``*name``; ``value`` is then the anchored node.

    ``key_alias`` likewise for the key.
    """

    key: Node
    value: Node
    alias: Span | None = None
    key_alias: Span | None = None

    @property
    def name(self) -> str:
        return self.key.text if isinstance(self.key, Scalar) else ""

    @cached_property
    def identity(self) -> object:
        """What the loader tells keys apart by: ``1`` is not ``"1"``, but ``yes`` is ``true``."""
        return self.key.value(SAFE_LOAD) if isinstance(self.key, Scalar) else id(self.key)

    @property
    def is_merge(self) -> bool:
        if not isinstance(self.key, Scalar):
            return False
        return self.key.tag == MERGE or (self.key.text == "<<" and self.key.style is None and self.key.tag in (None, "!"))

    @property
    def key_span(self) -> Span:
        return self.key_alias or self.key.span

    @property
    def value_span(self) -> Span:
        return self.alias or self.value.span

    @property
    def span(self) -> Span:
        """From the key to the end of the value, as the reader sees them."""
        key = self.key_span
        return Span(key.source, key.start, max(written_end(self), key.end))

    def key_value(self, schema: Schema) -> object:
        return self.key.value(schema) if isinstance(self.key, Scalar) else repr(self.key.value(schema))


def merged(value: Node) -> list[Mapping]:
    """The mappings that a merge key's value names."""
    if isinstance(value, Mapping):
        return [value]
    if isinstance(value, Sequence):
        return [item for item in value.items if isinstance(item, Mapping)]
    return []


def _value(node: Node, schema: Schema, known: dict[Node, object]) -> object:
    """Each node once, however often aliases name it."""
    if isinstance(node, Scalar):
        return node.value(schema)
    if node not in known:
        if isinstance(node, Sequence):
            known[node] = [_value(item, schema, known) for item in node.items]
        else:
            entries = node.effective.values()
            known[node] = {entry.key_value(schema): _value(entry.value, schema, known) for entry in entries}
    return known[node]


@dataclass(frozen=True)
class Document:
    """One document, from its ``---`` (or its first character) to its end."""

    root: Node
    span: Span


# ------------------------------------------------------------------------------------------------ what is written where


def gap(source: SourceText, start: int, end: int) -> str:
    """The text between two tokens, comments blanked out; offsets stay."""
    return COMMENT.sub(lambda comment: " " * len(comment[0]), source.text[start:end])


def colon_end(entry: Entry) -> int | None:
    """The offset behind the ``:`` of an entry whose value is not written; None where there is no ``:`` either."""
    start = entry.key_span.end
    colon = gap(entry.key_span.source, start, entry.value.span.start).find(":")
    return None if colon < 0 else start + colon + 1


def is_missing(entry: Entry) -> bool:
    """Whether a key stands without a value."""
    return entry.alias is None and entry.value.span.start == entry.value.span.end


def written_end(entry: Entry) -> int:
    """The offset behind the last character of an entry; an open block collection ends with its last item."""
    key = entry.key_alias or (entry.key.body if isinstance(entry.key, Scalar) else entry.key.span)
    if is_missing(entry):
        return colon_end(entry) or key.end
    if entry.alias is not None:
        return entry.alias.end
    return entry.value.body.end if isinstance(entry.value, Scalar) else entry.value.span.end


def last_scalar(node: Node, alias: Span | None) -> Scalar | None:
    """The scalar that a node ends with, where its text goes on to the end of a line."""
    if alias is not None or isinstance(node, Scalar):
        return node if alias is None and isinstance(node, Scalar) else None
    if node.flow:
        return None
    if isinstance(node, Sequence):
        return last_scalar(node.items[-1], node.aliases[-1])
    return last_scalar(node.entries[-1].value, node.entries[-1].alias)


def keeps_breaks(scalar: Scalar | None) -> bool:
    """Whether the blank lines behind a scalar are part of it: ``|+``."""
    if scalar is None or scalar.style not in ("|", ">"):
        return False
    header = re.search(r"[|>][-+0-9]*[ \t]*(?:#.*)?$", BREAK.split(scalar.span.text, maxsplit=1)[0])
    return "+" in (header[0].split("#")[0] if header else scalar.span.text)


def nodes(node: Node) -> Iterator[Node]:
    """A node and all that is written inside it; not what aliases name."""
    yield node
    if isinstance(node, Mapping):
        for entry in node.entries:
            if entry.key_alias is None:
                yield from nodes(entry.key)
            if entry.alias is None:
                yield from nodes(entry.value)
    elif isinstance(node, Sequence):
        for item, alias in zip(node.items, node.aliases, strict=True):
            if alias is None:
                yield from nodes(item)
