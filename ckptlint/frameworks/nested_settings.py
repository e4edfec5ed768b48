"""Settings of a run that stand in nested mappings of a YAML file, under dotted names: ``trainer.save_freq``."""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Mapping as MappingOf
from dataclasses import dataclass, field

from ckptlint.frameworks.yaml_settings import YamlSettings
from ckptlint.run import Editor, Setting
from ckptlint.source.text import CannotEdit, Edit, Span
from ckptlint.source.yaml import Entry, Mapping, Schema, Sequence, YamlSource, render


@dataclass(frozen=True, eq=False)
class NestedSettings:
    """The keys of a mapping and of the mappings in it.

    ``defaults`` holds what the framework takes for a name that is not written, ``default_source`` whose default that is.
    ``insert_after`` names keys behind which a new key of the same mapping belongs, the best place first. ``hyphens``: the
    loader takes ``save-interval`` for ``save_interval``.
    """

    yaml: YamlSource
    root: Mapping
    schema: Schema
    defaults: MappingOf[str, object] = field(default_factory=dict)
    default_source: str = ""
    insert_after: tuple[str, ...] = ()
    hyphens: bool = False

    def __contains__(self, name: str) -> bool:
        return self.entry(name) is not None

    @property
    def where(self) -> Span:
        return self.root.entries[0].key.span if self.root.entries else self.root.span

    def names(self) -> Iterator[str]:
        """Every written name that holds no mapping with keys of its own."""
        return (name for name, _ in _leaves(self.root, "", self.hyphens))

    def entry(self, name: str) -> Entry | None:
        """The entry that decides a name; None where it is not written."""
        mapping: Mapping = self.root
        *sections, key = name.split(".")
        for section in sections:
            inner = self._get(mapping, section)
            if inner is None or not isinstance(inner.value, Mapping):
                return None
            mapping = inner.value
        return self._get(mapping, key)

    def value(self, name: str) -> object:
        """The written value, or the default; None for a name without either."""
        entry = self.entry(name)
        return self.defaults.get(name) if entry is None else entry.value.value(self.schema)

    def setting(self, name: str) -> Setting:
        """One setting, named as the file nests it: by its key where it is written, else by the whole dotted name."""
        section, _, key = name.rpartition(".")
        mapping = self.section(section)
        if mapping is None:
            return Setting(name, self.defaults.get(name), source=self.default_source, editor=_NoPlace(name))
        inner = self._inner(mapping, section)
        setting = inner.setting(self._spelling(mapping, key))
        entry = self._get(mapping, key)
        if entry is not None and entry.alias is None and isinstance(entry.value, Sequence) and setting.editor is not None:
            setting = setting._replace(editor=_ListEditor(self.yaml, entry.value, setting.editor))
        return setting if setting.written or not section else setting._replace(name=name)

    def rename(self, name: str, to: str) -> tuple[Edit, ...]:
        """Edits that call a key by another name of the same section; () where that cannot be done."""
        section, _, key = name.rpartition(".")
        mapping = self.section(section)
        if mapping is None or to in self or to.rpartition(".")[0] != section:
            return ()
        return self._inner(mapping, section).rename(self._spelling(mapping, key), to.rpartition(".")[2])

    def section(self, name: str) -> Mapping | None:
        """The mapping under a dotted name, "" being the root; None where there is none."""
        if not name:
            return self.root
        entry = self.entry(name)
        return entry.value if entry is not None and isinstance(entry.value, Mapping) else None

    def _inner(self, mapping: Mapping, section: str) -> YamlSettings:
        start = f"{section}." if section else ""
        defaults = {name[len(start) :]: value for name, value in self.defaults.items() if name.startswith(start)}
        after = tuple(name[len(start) :] for name in self.insert_after if name.startswith(start))
        return YamlSettings(self.yaml, mapping, self.schema, defaults, self.default_source, after)

    def _get(self, mapping: Mapping, key: str) -> Entry | None:
        return mapping.get(self._spelling(mapping, key))

    def _spelling(self, mapping: Mapping, key: str) -> str:
        if not self.hyphens or mapping.get(key) is not None:
            return key
        hyphened = key.replace("_", "-")
        return hyphened if mapping.get(hyphened) is not None else key


def _leaves(mapping: Mapping, start: str, hyphens: bool) -> Iterator[tuple[str, Entry]]:
    for key, entry in mapping.items():
        name = start + (key.replace("-", "_") if hyphens else key)
        if isinstance(entry.value, Mapping) and entry.value.entries:
            yield from _leaves(entry.value, f"{name}.", hyphens)
        else:
            yield name, entry


@dataclass(frozen=True)
class _NoPlace:
    """A setting whose section is not in the file."""

    name: str

    def set(self, value: object) -> tuple[Edit, ...]:
        raise CannotEdit(f"the file has no section for `{self.name}`")

    def remove(self) -> tuple[Edit, ...]:
        return ()


@dataclass(frozen=True, eq=False)
class _ListEditor:
    """A key whose value is a list: in brackets on one line it can be written anew."""

    yaml: YamlSource
    list: Sequence
    key: Editor

    def set(self, value: object) -> tuple[Edit, ...]:
        span = self.list.span
        shared = any(node.span.start <= span.start < node.span.end for _, node in self.yaml.aliases)
        if not self.list.flow or shared or self.list.anchor is not None or any(char in span.text for char in "#\r\n"):
            raise CannotEdit("the list stands on several lines, or is used elsewhere too")
        return (Edit(span, render(value, flow=True)),)

    def remove(self) -> tuple[Edit, ...]:
        return self.key.remove()
