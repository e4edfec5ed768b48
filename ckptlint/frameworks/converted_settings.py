"""Settings whose written values a framework converts once they are loaded: pydantic's coercions, argparse's types."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ckptlint.frameworks.settings import Renames, Settings
from ckptlint.run import Setting, Unknown
from ckptlint.source.text import Edit, Span

Convert = Callable[[str, object], object]  # name and loaded value to what the framework works with


@dataclass(frozen=True, eq=False)
class ConvertedSettings:
    """Other settings, with each written value as the framework sees it. Defaults and what is unknown stay as they are."""

    inner: Settings
    convert: Convert

    @property
    def where(self) -> Span:
        return self.inner.where

    def __contains__(self, name: str) -> bool:
        return name in self.inner

    def names(self) -> Iterator[str]:
        return self.inner.names()

    def setting(self, name: str) -> Setting:
        setting = self.inner.setting(name)
        if not setting.written or isinstance(setting.value, Unknown):
            return setting
        value = self.convert(name, setting.value)
        return setting if value is setting.value else setting._replace(value=value)

    def value(self, name: str) -> object:
        return self.setting(name).value

    def rename(self, name: str, to: str) -> tuple[Edit, ...]:
        return self.inner.rename(name, to) if isinstance(self.inner, Renames) else ()
