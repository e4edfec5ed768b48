"""Settings of a run that stand on a command line beside, or over, those of a file it names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ckptlint.frameworks.flags import CommandEditor, FlagEditor, FlagSettings, Occurrence, place_of
from ckptlint.frameworks.hydra import Written
from ckptlint.frameworks.megatron_keys import Flag, Kind
from ckptlint.frameworks.trainer_keys import Key, NoDefault
from ckptlint.run import Editor, Setting, Unknown
from ckptlint.source.shell import Argument
from ckptlint.source.text import Edit, Span

# ------------------------------------------------------------------------------------------------ `key=value`


@dataclass(frozen=True, eq=False)
class Overrides:
    """``key=value`` arguments alone. The last of two wins."""

    written: Sequence[Written]
    place: Span

    @property
    def where(self) -> Span:
        return self.place

    def names(self) -> Iterator[str]:
        return iter(dict.fromkeys(written.override.key for written in self.written))

    def __contains__(self, name: str) -> bool:
        return any(written.override.key == name for written in self.written)

    def value(self, name: str) -> object:
        return self.setting(name).value

    def setting(self, name: str) -> Setting:
        for written in reversed(self.written):
            if written.override.key == name:
                return written.setting(name, written.override.value)
        return Setting(name, None)


# ------------------------------------------------------------------------------------------------ options of dataclasses


def flags_of(keys: Iterable[Key], *, texts: bool) -> tuple[Flag, ...]:
    """Options as HfArgumentParser and its kin make them of fields, with ``_`` and ``-``.

    ``texts``: the reader converts what is written itself.
    """
    return tuple(
        Flag(
            key.name,
            tuple(dict.fromkeys((f"--{key.name}", f"--{key.name.replace('_', '-')}"))),
            _kind(key, texts=texts),
            None if isinstance(key.default, NoDefault) else key.default,
        )
        for key in keys
    )


def _kind(key: Key, *, texts: bool) -> Kind:
    if "str" in key.kinds and "float" not in key.kinds:
        return "str"
    if "bool" in key.kinds:
        return "bool"
    if texts:
        return "str"
    return "float" if "float" in key.kinds else "int" if "int" in key.kinds else "str"


@dataclass(frozen=True, eq=False)
class FieldFlags(FlagSettings):
    """Options of a dataclass's fields: a truth value may stand alone (``nargs="?"``), and is written out where it is not."""

    extra: Mapping[str, object] | None = None

    def setting(self, name: str) -> Setting:
        setting = super().setting(name)
        if self.extra is not None and not setting.written and name in self.extra and not isinstance(setting.value, Unknown):
            setting = setting._replace(value=self.extra[name])
        return setting if setting.editor is None else setting._replace(editor=_WrittenOut(setting.editor))

    def _valued(self, flag: Flag, last: Occurrence, shown: str, editor: FlagEditor) -> Setting:
        if flag.kind == "bool" and not last.values and not last.start:
            place = place_of(last.option)
            return Setting(shown, True, place, place, editor=editor, joint=" ")
        return super()._valued(flag, last, shown, editor)


@dataclass(frozen=True)
class _WrittenOut:
    """``--add_version false``: an option that is on by default is not switched off by leaving it out."""

    inner: Editor

    def set(self, value: object) -> tuple[Edit, ...]:
        return self.inner.set(str(value).lower() if isinstance(value, bool) else value)

    def remove(self) -> tuple[Edit, ...]:
        return self.inner.remove()


def field_flags(
    arguments: Sequence[Argument],
    flags: tuple[Flag, ...],
    default_source: str,
    place: Span,
    editor: CommandEditor | None,
    defaults: Mapping[str, object] | None = None,
) -> FieldFlags:
    """The options of a command line; ``defaults`` replaces the defaults of single fields."""
    return FieldFlags(arguments, flags, default_source, place, editor, True, extra=defaults)
