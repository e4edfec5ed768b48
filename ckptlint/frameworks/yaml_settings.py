"""Settings of a run that stand as keys of one YAML mapping or JSON object."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from collections.abc import Mapping as MappingOf
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ckptlint.run import Setting
from ckptlint.source.file import SourceFile
from ckptlint.source.text import CannotEdit, Edit, SourceError, Span
from ckptlint.source.yaml import Document, Entry, Mapping, Scalar, Schema, YamlSource, render

if TYPE_CHECKING:
    from ckptlint.source.json import JsonSource

# Jinja and Helm: a file with one of these outside of quotes is made into YAML before anybody loads it.
_TEMPLATE = re.compile(rb"\{\{|\{%")


def documents_of(file: SourceFile, marks: Iterable[re.Pattern[bytes]]) -> tuple[Document, ...]:
    """The documents of a file; () for text that is no YAML and bears not all of these marks, or is a template of YAML.

    Raises:
        SourceError: it bears the marks and cannot be parsed.
    """
    try:
        return file.yaml.documents
    except SourceError:
        if _TEMPLATE.search(file.data) or not all(mark.search(file.data) for mark in marks):
            return ()
        raise


@dataclass(frozen=True, eq=False)
class YamlSettings:
    """The keys of one mapping, read as the framework's loader reads them.

    ``defaults`` holds what the framework takes for a key that is not written, ``default_source`` whose default that is.
    ``insert_after`` names keys behind which a new key belongs, the best place first. ``write`` spells a value as the text does.
    """

    yaml: YamlSource | JsonSource
    mapping: Mapping
    schema: Schema
    defaults: MappingOf[str, object]
    default_source: str
    insert_after: tuple[str, ...] = ()
    write: Callable[..., str] = render

    def __contains__(self, name: str) -> bool:
        return self.mapping.get(name) is not None

    @property
    def where(self) -> Span:
        return self.mapping.entries[0].key.span if self.mapping.entries else self.mapping.span

    def names(self) -> Iterator[str]:
        return (name for name, _ in self.mapping.items())

    def entry(self, name: str) -> Entry | None:
        return self.mapping.get(name)

    def value(self, name: str) -> object:
        """The written value, or the default; None for a key without either."""
        entry = self.mapping.get(name)
        return self.defaults.get(name) if entry is None else entry.value.value(self.schema)

    def setting(self, name: str) -> Setting:
        entry = self.mapping.get(name)
        editor = _KeyEditor(self, name)
        if entry is None:
            return Setting(name, self.defaults.get(name), source=self.default_source, editor=editor)
        value = entry.value.value(self.schema)
        return Setting(name, value, _value_span(entry), entry.key.span, editor=editor)

    def settings(self, names: Iterable[str]) -> dict[str, Setting]:
        return {name: self.setting(name) for name in names}

    def rename(self, name: str, to: str) -> tuple[Edit, ...]:
        """Edits that call a key by another name; () where the new name is already there."""
        entry = self.mapping.get(name)
        if entry is None or to in self or not self.mapping.owns(entry) or not isinstance(entry.key, Scalar):
            return ()
        return (Edit(entry.key.span, self.write(to, flow=self.mapping.flow, quote=entry.key.style)),)


def _value_span(entry: Entry) -> Span:
    if entry.alias is not None:
        return entry.alias
    return entry.value.body if isinstance(entry.value, Scalar) else entry.value.span


@dataclass(frozen=True)
class _KeyEditor:
    """Sets or removes one key of a mapping."""

    settings: YamlSettings
    name: str

    def set(self, value: object) -> tuple[Edit, ...]:
        settings, mapping = self.settings, self.settings.mapping
        entry = mapping.get(self.name)
        if entry is not None and mapping.owns(entry):
            style = entry.value.style if isinstance(entry.value, Scalar) and entry.alias is None else None
            quote = style if style in ("'", '"') and isinstance(value, str) else None
            return settings.yaml.set_value(entry, settings.write(value, flow=mapping.flow, quote=quote))
        neighbour = next((own for name in settings.insert_after if (own := mapping.get(name)) and mapping.owns(own)), None)
        after = neighbour or next((own for own in reversed(mapping.entries) if not own.is_merge), None)
        if after is None:
            raise CannotEdit(f"there is no place to add `{self.name}`")
        return (settings.yaml.insert_after(mapping, after, self.name, settings.write(value, flow=mapping.flow)),)

    def remove(self) -> tuple[Edit, ...]:
        entry = self.settings.mapping.get(self.name)
        return () if entry is None else (self.settings.yaml.remove(self.settings.mapping, entry),)
