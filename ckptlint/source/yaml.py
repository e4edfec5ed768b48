"""YAML with exact positions, and edits by splicing text.

The parser is PyYAML on libyaml, because that is what the frameworks themselves call (OmegaConf, ``yaml.safe_load``): what it accepts
and what a plain scalar means is theirs, not an opinion of ours. Nothing is ever dumped: an edit replaces the characters of one value.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Union

import yaml

from ckptlint.source.text import BOM, CannotEdit, Edit, SourceError, SourceText, Span

_Loader: type[yaml.SafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_MERGE = "tag:yaml.org,2002:merge"
_STRING = "tag:yaml.org,2002:str"


# ------------------------------------------------------------------------------------------------ what a scalar means


class Schema:
    """How a loader resolves plain scalars. One instance a loader."""

    def __init__(self, name: str, loader: type[yaml.SafeLoader]) -> None:
        self.name = name
        self._loader = loader("")

    def tag(self, text: str) -> str:
        return str(self._loader.resolve(yaml.ScalarNode, text, (True, False)))

    def value(self, tag: str, text: str) -> object:
        """The Python value of a scalar; the text itself where the loader would refuse it."""
        node = yaml.ScalarNode(tag, text)
        try:
            return self._loader.construct_object(node)
        except (yaml.YAMLError, ValueError, OverflowError, KeyError, IndexError):
            return text


class _SafeLoad(yaml.SafeLoader):
    pass


class _OmegaConfLoad(yaml.SafeLoader):
    """OmegaConf 2.4.0 ``_yaml.py`` get_yaml_loader: floats without a dot or sign are floats, dates stay strings."""


_OmegaConfLoad.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(
        r"""^(?:[-+]?[0-9]+(?:_[0-9]+)*\.[0-9_]*(?:[eE][-+]?[0-9]+)?
        |[-+]?[0-9]+(?:_[0-9]+)*(?:[eE][-+]?[0-9]+)
        |\.[0-9]+(?:_[0-9]+)*(?:[eE][-+][0-9]+)?
        |[-+]?[0-9]+(?:_[0-9]+)*(?::[0-5]?[0-9])+\.[0-9_]*
        |[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$""",
        re.X,
    ),
    list("-+0123456789."),
)
_OmegaConfLoad.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in _OmegaConfLoad.yaml_implicit_resolvers.items()
}

SAFE_LOAD = Schema("yaml.safe_load", _SafeLoad)
OMEGACONF = Schema("OmegaConf", _OmegaConfLoad)


# ------------------------------------------------------------------------------------------------ the tree


@dataclass(frozen=True, eq=False)
class Scalar:
    """A scalar; ``span`` covers anchor, tag and quotes, and is empty for a value that is not written."""

    span: Span
    text: str
    tag: str | None
    style: str | None
    anchor: str | None = None

    def value(self, schema: Schema) -> object:
        if self.tag is None or self.tag == "!":
            tag = schema.tag(self.text) if self.style is None and self.tag is None else _STRING
        else:
            tag = self.tag
        return schema.value(tag, self.text)

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

    def value(self, schema: Schema) -> object:
        return [item.value(schema) for item in self.items]


@dataclass(frozen=True, eq=False)
class Mapping:
    """A mapping. ``entries`` are those written here, in order, duplicates included; ``get`` is what the loader sees."""

    span: Span
    entries: tuple[Entry, ...]
    flow: bool
    anchor: str | None = None

    @cached_property
    def _effective(self) -> dict[str, Entry]:
        """PyYAML's flatten_mapping: merged keys first, own keys over them, the last duplicate wins."""
        found: dict[str, Entry] = {}
        for entry in self.entries:
            if entry.is_merge:
                for mapping in reversed(_merged(entry.value)):
                    found.update(mapping._effective)
        for entry in self.entries:
            if not entry.is_merge:
                found[entry.name] = entry
        return found

    def get(self, name: str) -> Entry | None:
        return self._effective.get(name)

    def items(self) -> Iterator[tuple[str, Entry]]:
        """Every key with the entry that decides it."""
        yield from self._effective.items()

    def owns(self, entry: Entry) -> bool:
        """Whether the entry is written in this mapping itself rather than merged in."""
        return any(own is entry for own in self.entries)

    @cached_property
    def duplicates(self) -> tuple[tuple[Entry, Entry], ...]:
        """Keys written twice here: (the entry that loses, the one that wins)."""
        seen: dict[str, Entry] = {}
        pairs = []
        for entry in self.entries:
            if entry.name in seen and not entry.is_merge:
                pairs.append((seen[entry.name], entry))
            seen[entry.name] = entry
        return tuple(pairs)

    def value(self, schema: Schema) -> object:
        return {entry.key_value(schema): entry.value.value(schema) for entry in self._effective.values()}


Node = Union[Scalar, Sequence, Mapping]


@dataclass(frozen=True, eq=False)
class Entry:
    """One ``key: value``. ``alias`` is where the value is written as ``*name``; ``value`` is then the anchored node."""

    key: Node
    value: Node
    alias: Span | None = None

    @property
    def name(self) -> str:
        return self.key.text if isinstance(self.key, Scalar) else ""

    @property
    def is_merge(self) -> bool:
        return isinstance(self.key, Scalar) and self.key.text == "<<" and self.key.style is None

    @property
    def value_span(self) -> Span:
        return self.alias or self.value.span

    @property
    def span(self) -> Span:
        """From the key to the end of the value, as the reader sees them."""
        value = self.alias or (self.value.body if isinstance(self.value, Scalar) else self.value.span)
        return Span(self.key.span.source, self.key.span.start, max(value.end, self.key.span.end))

    def key_value(self, schema: Schema) -> object:
        value = self.key.value(schema)
        return value if isinstance(value, (str, int, float, bool)) or value is None else repr(value)


def _merged(value: Node) -> list[Mapping]:
    if isinstance(value, Mapping):
        return [value]
    if isinstance(value, Sequence):
        return [item for item in value.items if isinstance(item, Mapping)]
    return []


@dataclass(frozen=True)
class Document:
    root: Node
    span: Span


@dataclass(frozen=True, eq=False)
class YamlSource:
    """A YAML file: its documents, comments and aliases, over one text."""

    source: SourceText
    documents: tuple[Document, ...]
    tokens: tuple[Span, ...] = field(repr=False)
    aliases: tuple[tuple[Span, Node], ...] = field(repr=False)

    @cached_property
    def comments(self) -> tuple[Span, ...]:
        """Every comment, from its ``#`` to the end of the line."""
        found = []
        text = self.source.text
        at = 0
        for token in (*self.tokens, self.source.span(len(text), len(text))):
            while (start := text.find("#", at, token.start)) >= 0:
                if start and text[start - 1] not in " \t\r\n" + BOM:
                    at = start + 1
                    continue
                end = self.source.line_at(start).end
                found.append(self.source.span(start, end))
                at = end
            at = max(at, token.end)
        return tuple(found)

    # -------------------------------------------------------------------------------------------- edits

    def set_value(self, entry: Entry, value: str) -> tuple[Edit, ...]:
        """Edits that give an entry another value; ``value`` is YAML text, see ``render``.

        Raises:
            CannotEdit: the old value is a mapping or a list, or its anchor is used where it cannot be written out.
        """
        if entry.alias is not None:
            return (Edit(entry.alias, value),)
        if not isinstance(entry.value, Scalar):
            line, _ = entry.value.span.start_position
            raise CannotEdit(f"the value of `{entry.name}` at line {line} is not a single value")
        moved = self._move_anchor(entry.value)
        body = entry.value.body
        if entry.value.style in ("|", ">"):
            header = body.text.split("\n", 1)[0].rstrip("\r")
            comment = re.search(r"[ \t]+#.*$", header)
            return (*moved, Edit(body, value + (comment[0] if comment else "")))
        if body.start < body.end:
            return (*moved, Edit(body, value))
        return (*moved, self._write_missing(entry, body, value))

    def _write_missing(self, entry: Entry, at: Span, value: str) -> Edit:
        """A key whose value is not written: ``key:``, ``key`` in a flow mapping, ``? key``."""
        text = self.source.text
        gap = text[entry.key.span.end : at.start]
        if ":" in gap:
            colon = entry.key.span.end + gap.index(":") + 1
            here = Span(self.source, colon, colon)
            behind = text[colon : colon + 1]
            return Edit(here, f" {value}" + ("" if behind in ("", " ", "\t", "\r", "\n", ",", "}") else " "))
        after = Span(self.source, entry.key.span.end, entry.key.span.end)
        if text[: entry.key.span.start].rstrip(" \t").endswith("?") and not self._inside_flow(entry):
            line = self.source.line_at(after.start)
            indent = text[line.start : entry.key.span.start].split("?")[0]
            return Edit(Span(self.source, line.end, line.end), f"{self.source.line_break_at(line.end)}{indent}: {value}")
        return Edit(after, f": {value}")

    def _inside_flow(self, entry: Entry) -> bool:
        return any(mapping.flow and mapping.owns(entry) for mapping in _mappings(self.documents))

    def _move_anchor(self, scalar: Scalar) -> tuple[Edit, ...]:
        """Before an anchored value changes: its first alias takes over the anchor and the old text."""
        if scalar.anchor is None:
            return ()
        uses = [span for span, node in self.aliases if node is scalar]
        if not uses:
            return ()
        if scalar.style in ("|", ">") or "\n" in scalar.span.text or "\r" in scalar.span.text:
            line, _ = uses[0].start_position
            raise CannotEdit(f"its anchor `&{scalar.anchor}` is used at line {line}; write that value out first")
        return (Edit(uses[0], scalar.span.text),)

    def insert_after(self, mapping: Mapping, entry: Entry, key: str, value: str) -> Edit:
        """An edit that adds ``key: value`` to a mapping, right behind one of its entries.

        Raises:
            CannotEdit: the place has no line of its own (a block mapping on one line with something else).
        """
        if not mapping.owns(entry):
            entry = mapping.entries[-1]
        text = self.source.text
        if mapping.flow:
            at = max(entry.span.end, entry.value_span.end)
            gap_end = re.compile(r"[ \t]*:?").match(text, at)
            at = gap_end.end() if gap_end and gap_end[0].endswith(":") else at
            return Edit(Span(self.source, at, at), f", {key}: {value}")
        first = mapping.entries[0].key.span.start
        line = self.source.line_at(first)
        indent = text[line.start : first].lstrip(BOM)
        indent = indent.split("?")[0] if indent.strip() == "?" else indent
        if indent.strip(" "):
            raise CannotEdit("the mapping does not start on a line of its own")
        keeps_breaks = isinstance(entry.value, Scalar) and entry.value.style in ("|", ">") and "+" in (
            entry.value.span.text.split("\n", 1)[0]
        )
        end = entry.value.span.end if keeps_breaks and entry.alias is None else _last_written(entry)
        if keeps_breaks and end and text[end - 1] in "\r\n":
            return Edit(Span(self.source, end, end), f"{indent}{key}: {value}{self.source.line_break_at(end - 1)}")
        at = self.source.line_at(max(end, entry.span.start)).end
        return Edit(Span(self.source, at, at), f"{self.source.line_break_at(at)}{indent}{key}: {value}")

    def remove(self, mapping: Mapping, entry: Entry) -> Edit:
        """An edit that takes an entry out: its lines in a block mapping, its piece and one comma in a flow mapping.

        Raises:
            CannotEdit: the entry is merged in from elsewhere, is anchored and used elsewhere, or shares its line.
        """
        if not mapping.owns(entry):
            raise CannotEdit(f"`{entry.name}` is merged in from elsewhere")
        anchored = {id(node) for _, node in self.aliases}
        if entry.alias is None and any(id(node) in anchored for node in _nodes(entry.value)):
            raise CannotEdit(f"an anchor inside `{entry.name}` is used elsewhere")
        text = self.source.text
        if mapping.flow:
            index = next(i for i, own in enumerate(mapping.entries) if own is entry)
            if index + 1 < len(mapping.entries):
                return Edit(Span(self.source, entry.span.start, mapping.entries[index + 1].key.span.start), "")
            start = mapping.entries[index - 1].span.end if index else entry.span.start
            return Edit(Span(self.source, start, entry.span.end), "")
        first = self.source.line_at(entry.span.start)
        if text[first.start : entry.span.start].lstrip(BOM).strip(" ?"):
            raise CannotEdit(f"`{entry.name}` shares its line")
        last = self.source.line_at(max(_last_written(entry), entry.span.start))
        start = first.start + (1 if text.startswith(BOM, first.start) else 0)
        end = last.end
        if text.startswith("\r\n", end):
            end += 2
        elif end < len(text):
            end += 1
        elif start:
            start = self.source.line_at(start - 1).end
        return Edit(Span(self.source, start, end), "")


def _last_written(entry: Entry) -> int:
    """The offset behind the last character of an entry; an open block collection ends with its last item."""
    return max(_end(entry.value, entry.alias), entry.key.span.end)


def _end(node: Node, alias: Span | None) -> int:
    if alias is not None:
        return alias.end
    if isinstance(node, Scalar):
        return node.body.end if node.span.start < node.span.end else 0
    if node.flow:
        return node.span.end
    if isinstance(node, Mapping):
        return _last_written(node.entries[-1])
    return _end(node.items[-1], node.aliases[-1])


def _nodes(node: Node) -> Iterator[Node]:
    yield node
    if isinstance(node, Mapping):
        for entry in node.entries:
            yield from _nodes(entry.key)
            if entry.alias is None:
                yield from _nodes(entry.value)
    elif isinstance(node, Sequence):
        for item, alias in zip(node.items, node.aliases, strict=True):
            if alias is None:
                yield from _nodes(item)


def _mappings(documents: tuple[Document, ...]) -> Iterator[Mapping]:
    for document in documents:
        for node in _nodes(document.root):
            if isinstance(node, Mapping):
                yield node


def render(value: object, *, flow: bool = False, quote: str | None = None) -> str:
    """A value as YAML text that every loader reads back as that very value.

    ``quote`` is the quote the author used before; it is kept where it can hold the text.
    """
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return str(value)
    text = str(value)
    if quote == '"' or any(ord(char) < 32 or char in "\x7f\x85\u2028\u2029\ufeff" for char in text):
        return _double_quoted(text)
    if quote == "'" or not _is_plain(text, flow):
        return "'" + text.replace("'", "''") + "'"
    return text


def _double_quoted(text: str) -> str:
    escapes = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}
    return '"' + "".join(escapes.get(c) or (c if c.isprintable() else _escape(c)) for c in text) + '"'


def _escape(char: str) -> str:
    return f"\\x{ord(char):02x}" if ord(char) < 256 else f"\\u{ord(char):04x}" if ord(char) < 0x10000 else f"\\U{ord(char):08x}"


def _is_plain(text: str, flow: bool) -> bool:
    if not text or text != text.strip() or text[0] in "-?:,[]{}#&*!|>'\"%@`=" or text.startswith(("---", "...")):
        return False
    if ": " in text or " #" in text or text.endswith(":") or "\t" in text:
        return False
    if flow and any(char in text for char in ",[]{}"):
        return False
    return SAFE_LOAD.tag(text) == _STRING == OMEGACONF.tag(text)


# ------------------------------------------------------------------------------------------------ reading


def parse(source: SourceText) -> YamlSource:
    """Read a YAML text, all its documents.

    Raises:
        SourceError: it is not YAML; with the place and the parser's words.
    """
    shift = 1 if source.text.startswith(BOM) else 0
    composer = _Composer(source, shift)
    try:
        return composer.compose()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        at = min((mark.index if mark else 0) + shift, len(source.text))
        raise SourceError(Span(source, at, at), f"not valid YAML: {_words(error)}") from None
    except yaml.reader.ReaderError as error:
        at = min((error.position if isinstance(error.position, int) else 0) + shift, len(source.text))
        raise SourceError(Span(source, at, at), f"not valid YAML: {error.reason}") from None
    except RecursionError:
        raise SourceError(Span(source, 0, 0), "not valid YAML: nested too deeply") from None


def _words(error: yaml.MarkedYAMLError) -> str:
    return " ".join(part.strip() for part in (error.context, error.problem) if part)


class _Composer:
    """Nodes from the parser's events. PyYAML's own composer forgets where aliases stand."""

    def __init__(self, source: SourceText, shift: int) -> None:
        self.source = source
        self.shift = shift
        self.anchors: dict[str, Node] = {}
        self.tokens: list[Span] = []
        self.aliases: list[tuple[Span, Node]] = []

    def compose(self) -> YamlSource:
        self.events = iter(yaml.parse(self.source.text[self.shift :], Loader=_Loader))
        documents = []
        start = None
        for event in self.events:
            if isinstance(event, yaml.DocumentStartEvent):
                start, self.anchors = event, {}
            elif isinstance(event, (yaml.ScalarEvent, yaml.CollectionStartEvent)):
                root, _ = self._node(event)
                documents.append(Document(root, self._span(start or event, event)))
        self.tokens.sort(key=lambda span: span.start)
        return YamlSource(self.source, tuple(documents), tuple(self.tokens), tuple(self.aliases))

    def _span(self, first: yaml.Event, last: yaml.Event) -> Span:
        return Span(self.source, first.start_mark.index + self.shift, last.end_mark.index + self.shift)

    def _node(self, event: yaml.Event) -> tuple[Node, Span | None]:
        """The node, and where it is written if that is an alias."""
        if isinstance(event, yaml.AliasEvent):
            span = self._span(event, event)
            self.tokens.append(span)
            if event.anchor not in self.anchors:
                raise yaml.composer.ComposerError(None, None, f"found undefined alias {event.anchor!r}", event.start_mark)
            node = self.anchors[event.anchor]
            self.aliases.append((span, node))
            return node, span
        if isinstance(event, yaml.ScalarEvent):
            return self._scalar(event), None
        return self._collection(event), None

    def _scalar(self, event: yaml.ScalarEvent) -> Scalar:
        span = self._span(event, event)
        plain = event.style in (None, "")
        node = Scalar(span, event.value, event.tag, None if plain else event.style, event.anchor)
        if span.start < span.end:
            self.tokens.append(node.body)
        self._remember(event.anchor, node)
        return node

    def _collection(self, start: yaml.CollectionStartEvent) -> Node:
        children: list[tuple[Node, Span | None]] = []
        for event in self.events:
            if isinstance(event, yaml.CollectionEndEvent):
                break
            children.append(self._node(event))
        span = self._span(start, event)
        node: Node
        if isinstance(start, yaml.SequenceStartEvent):
            items, aliases = zip(*children, strict=True) if children else ((), ())
            node = Sequence(span, items, aliases, bool(start.flow_style), start.anchor)
        else:
            pairs = zip(children[::2], children[1::2], strict=True)
            entries = tuple(Entry(key, value, alias) for (key, _), (value, alias) in pairs)
            node = Mapping(span, entries, bool(start.flow_style), start.anchor)
        self._remember(start.anchor, node)
        return node

    def _remember(self, anchor: str | None, node: Node) -> None:
        if anchor is not None:
            self.anchors[anchor] = node
