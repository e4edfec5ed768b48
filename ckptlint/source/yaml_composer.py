"""The nodes of a YAML text from its parser's events. PyYAML's own composer forgets where aliases stand."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, cast

import yaml

from ckptlint.source.text import SourceText, Span
from ckptlint.source.yaml_scalars import STRING
from ckptlint.source.yaml_tree import Document, Entry, Mapping, Node, Scalar, Sequence, written_end

if TYPE_CHECKING:
    from yaml._yaml import Mark as CMark
    from yaml.error import Mark

LOADER: type[yaml.SafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

# Deeper than any configuration, and shallow enough for recursion.
MAX_DEPTH = 150


def index(mark: Mark | CMark | None) -> int:
    """The offset in characters that libyaml's or PyYAML's mark stands for."""
    assert mark is not None
    return int(mark.index)


class Composer:
    """Reads one text; ``shift`` characters in front (a byte order mark) are not the parser's."""

    def __init__(self, source: SourceText, shift: int) -> None:
        self.source = source
        self.shift = shift
        self.anchors: dict[str, Node] = {}
        self.open: set[str] = set()
        self.heights: dict[Node, int] = {}
        self.aliases: list[tuple[Span, Node]] = []

    def compose(self) -> tuple[tuple[Document, ...], tuple[tuple[Span, Node], ...]]:
        """The documents, and every alias with the node it names."""
        loader = LOADER(self.source.text[self.shift :])
        self.next_event = cast("Callable[[], yaml.Event]", loader.get_event)
        documents = []
        while not isinstance(event := self.next_event(), yaml.StreamEndEvent):
            if isinstance(event, yaml.DocumentStartEvent):
                self.anchors = {}
                root, _, _ = self._node(self.next_event(), 0)
                documents.append(Document(root, self._span(event, self.next_event())))
        return tuple(documents), tuple(self.aliases)

    def _span(self, first: yaml.Event, last: yaml.Event) -> Span:
        return Span(self.source, index(first.start_mark) + self.shift, index(last.end_mark) + self.shift)

    def _node(self, event: yaml.Event, depth: int) -> tuple[Node, Span | None, int]:
        """The node, where it is written if that is an alias, and how many levels are in it, aliases followed."""
        if isinstance(event, yaml.AliasEvent):
            return self._alias(event)
        if isinstance(event, yaml.ScalarEvent):
            return self._scalar(event), None, 0
        assert isinstance(event, yaml.CollectionStartEvent)
        return self._collection(event, depth)

    def _alias(self, event: yaml.AliasEvent) -> tuple[Node, Span, int]:
        span = self._span(event, event)
        if event.anchor in self.open:
            raise _error(event, f"found alias {event.anchor!r} inside its own anchor")
        if event.anchor not in self.anchors:
            raise _error(event, f"found undefined alias {event.anchor!r}")
        node = self.anchors[event.anchor]
        self.aliases.append((span, node))
        return node, span, self.heights.get(node, 0)

    def _scalar(self, event: yaml.ScalarEvent) -> Scalar:
        tag = STRING if event.tag == "!" and not event.implicit[0] else event.tag
        start, end = index(event.start_mark), index(event.end_mark)
        node = Scalar(self.source, start + self.shift, end + self.shift, event.value, tag, event.style or None, event.anchor)
        if event.anchor is not None:
            self._open(event)
            self._remember(event.anchor, node, 0)
        return node

    def _collection(self, start: yaml.CollectionStartEvent, depth: int) -> tuple[Node, None, int]:
        if depth > MAX_DEPTH:
            raise _error(start, f"found more than {MAX_DEPTH} levels")
        if start.anchor is not None:
            self._open(start)
        children: list[tuple[Node, Span | None]] = []
        height = 0
        while not isinstance(event := self.next_event(), yaml.CollectionEndEvent):
            child, alias, levels = self._node(event, depth + 1)
            children.append((child, alias))
            height = max(height, levels + 1)
        if depth + height > MAX_DEPTH:
            raise _error(start, f"found more than {MAX_DEPTH} levels")
        node = (
            self._sequence(start, event, children)
            if isinstance(start, yaml.SequenceStartEvent)
            else (self._mapping(start, event, children))
        )
        if start.anchor is not None:
            self._remember(start.anchor, node, height)
        return node, None, height

    def _sequence(self, start: yaml.Event, end: yaml.Event, children: list[tuple[Node, Span | None]]) -> Sequence:
        assert isinstance(start, yaml.SequenceStartEvent)
        flow = bool(start.flow_style)
        span = self._span(start, end)
        if not flow:
            span = Span(self.source, span.start, max(_end_of(*children[-1]), span.start))
        return Sequence(span, tuple(node for node, _ in children), tuple(alias for _, alias in children), flow, start.anchor)

    def _mapping(self, start: yaml.Event, end: yaml.Event, children: list[tuple[Node, Span | None]]) -> Mapping:
        assert isinstance(start, yaml.MappingStartEvent)
        pairs = zip(children[::2], children[1::2], strict=True)
        entries = tuple(Entry(key, value, alias, key_alias) for (key, key_alias), (value, alias) in pairs)
        flow = bool(start.flow_style)
        span = self._span(start, end)
        if not flow:
            span = Span(self.source, span.start, max(written_end(entries[-1]), span.start))
        opening = self._span(start, start).text
        mapping = Mapping(span, entries, flow, start.anchor, flow and opening.endswith("{"))
        if any(entry.is_merge for entry in entries):
            _ = mapping.effective  # now, while what it merges is ready, so that no chain of merges is ever followed at once
        return mapping

    def _open(self, event: yaml.NodeEvent) -> None:
        """PyYAML refuses an anchor that is defined twice in one document."""
        anchor = event.anchor or ""
        if anchor in self.anchors or anchor in self.open:
            raise _error(event, f"found duplicate anchor {anchor!r}")
        self.open.add(anchor)

    def _remember(self, anchor: str, node: Node, height: int) -> None:
        self.open.discard(anchor)
        self.anchors[anchor] = node
        self.heights[node] = height


def _end_of(node: Node, alias: Span | None) -> int:
    return (alias or (node.body if isinstance(node, Scalar) else node.span)).end


def _error(event: yaml.Event, problem: str) -> yaml.MarkedYAMLError:
    return yaml.composer.ComposerError(None, None, problem, event.start_mark)  # type: ignore[arg-type]  # libyaml's mark does too
