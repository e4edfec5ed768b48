"""Releases of frameworks: how they compare, from when to when a fact holds, and which one a project pins."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from ckptlint.source.text import SourceError, SourceText, Span, decode

# ------------------------------------------------------------------------------------------------ comparing


def number(release: str) -> tuple[int, ...]:
    """The numeric release part of a version: ``v1!2.10.0rc1`` is (2, 10). () where there is none.

    Epoch, pre-, post-, development and local parts are dropped and trailing zeros count for nothing (PEP 440 compares ``5.0`` and
    ``5.0.0`` as equal), so that 0.9.6.dev0 has the facts of 0.9.6.
    """
    match = re.match(r"\s*v?(?:\d+!)?v?(\d+(?:\.\d+)*)", release)
    parts = [int(part) for part in match[1].split(".")] if match else []
    while parts and parts[-1] == 0:
        parts.pop()
    return tuple(parts)


@dataclass(frozen=True)
class Lifetime:
    """The releases in which something exists: from ``since`` (None: the oldest read) up to, without, ``until`` (None: it still does)."""

    since: str | None = None
    until: str | None = None

    def holds(self, release: str) -> bool:
        return self.overlaps(release, release)

    def overlaps(self, oldest: str, newest: str | None) -> bool:
        """Whether it exists in some release of the range, both ends included; ``newest`` None: no upper end."""
        begun = self.since is None or newest is None or number(self.since) <= number(newest)
        return begun and (self.until is None or number(oldest) < number(self.until))


ALWAYS = Lifetime()


def by_name(groups: Mapping[Lifetime, str]) -> dict[str, Lifetime]:
    """Names written in groups, one after another, as a table from name to lifetime."""
    return {name: lifetime for lifetime, names in groups.items() for name in names.split()}
