"""What the tests of the server know about editors, written apart from the server's own code."""

from __future__ import annotations

from collections.abc import Iterable

from lsprotocol import types

CODECS = {"utf-8": ("utf-8", 1), "utf-16": ("utf-16-le", 2), "utf-32": ("utf-32-le", 4)}


def character_offset(text: str, place: types.Position, encoding: str = "utf-16") -> int:
    """The index of an LSP position in a text whose lines end at line feeds."""
    codec, width = CODECS[encoding]
    lines = text.split("\n")
    before = lines[place.line].encode(codec)[: place.character * width].decode(codec)
    return sum(len(line) + 1 for line in lines[: place.line]) + len(before)


def text_at(text: str, place: types.Range, encoding: str = "utf-16") -> str:
    """The text of an LSP range."""
    return text[character_offset(text, place.start, encoding) : character_offset(text, place.end, encoding)]


def applied(text: str, edits: Iterable[types.TextEdit], encoding: str = "utf-16") -> str:
    """The text after an editor has carried out the edits; all of them speak of the text before."""
    places = [
        (character_offset(text, edit.range.start, encoding), character_offset(text, edit.range.end, encoding), edit.new_text)
        for edit in edits
    ]
    for start, end, new in sorted(places, reverse=True):
        text = text[:start] + new + text[end:]
    return text


def edits_of(action: types.CodeAction, uri: str) -> list[types.TextEdit]:
    """The edits of an action in one document."""
    assert action.edit is not None
    if action.edit.document_changes is not None:
        (change,) = action.edit.document_changes
        assert isinstance(change, types.TextDocumentEdit)
        assert change.text_document.uri == uri
        return [edit for edit in change.edits if isinstance(edit, types.TextEdit)]
    assert action.edit.changes is not None
    return list(action.edit.changes[uri])
