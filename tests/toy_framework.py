"""A framework of a few lines, so that the engine is tested without any real one; its rules are the rule pack `toy_rules`."""

from __future__ import annotations

from dataclasses import dataclass

from ckptlint.run import (
    Amount,
    Choice,
    Fact,
    Interval,
    Location,
    PathExpr,
    Read,
    Release,
    Retention,
    Run,
    Setting,
    Unit,
    Unknown,
    Write,
)
from ckptlint.source.file import SourceFile
from ckptlint.source.text import Edit
from ckptlint.source.yaml import SAFE_LOAD, Entry, Mapping, YamlSource, render


@dataclass(frozen=True)
class _Editor:
    yaml: YamlSource
    mapping: Mapping
    entry: Entry

    def set(self, value: object) -> tuple[Edit, ...]:
        return self.yaml.set_value(self.entry, render(value))

    def remove(self) -> tuple[Edit, ...]:
        return (self.yaml.remove(self.mapping, self.entry),)


class ToyFramework:
    """A YAML mapping with `toy: true` is a run. `crash: true` makes the reader fail as faulty code does.

    Only the part of ``Framework`` that a check calls is there.
    """

    name = "toy"
    title = "Toy"
    suffixes = (".yaml", ".yml")

    def mentions(self, data: bytes) -> bool:
        return b"toy:" in data

    def read(self, file: SourceFile) -> tuple[Run, ...]:
        runs = []
        for document in file.yaml.documents:
            root = document.root
            if not isinstance(root, Mapping) or root.get("toy") is None:
                continue
            settings = {name: _setting(file.yaml, root, entry) for name, entry in root.items()}
            if "crash" in settings:
                raise KeyError("the reader is at fault")
            runs.append(_run(settings, root))
        return tuple(runs)


def _setting(yaml: YamlSource, mapping: Mapping, entry: Entry) -> Setting:
    value = entry.value.value(SAFE_LOAD)
    editor = _Editor(yaml, mapping, entry)
    return Setting(entry.name, value, entry.value_span, entry.key.span, editor=editor)


def _run(settings: dict[str, Setting], root: Mapping) -> Run:
    default = Setting("steps", None, source="default of Toy")
    path = str(settings["save_to"].value) if "save_to" in settings else "saves"
    steps = settings.get("steps", default)
    length: Fact[Amount] = Unknown("the number of steps is not given", "write `steps`")
    if isinstance(steps.value, int):
        length = Amount(steps.value, Unit.STEP)
    return Run(
        framework="toy",
        title="Toy",
        release=Release("1.0"),
        where=root.entries[0].key.span,
        length=length,
        length_setting=steps,
        writes=(
            Write(
                Location(PathExpr.of_text(path, expanded=False), settings.get("save_to", default)),
                Interval(Amount(100, Unit.STEP), True, default),
                Retention(None, default),
            ),
        ),
        reads=(Read(Choice.NEWEST, default),),
        settings=settings,
    )
