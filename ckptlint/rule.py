"""What a rule is, and the registry of all that are installed.

A rule is one module in ``ckptlint.rules`` (or in a package that a plug-in names under the entry-point group ``ckptlint.rules``)
with one subclass of ``Rule``. Its docstring is its page.
"""

from __future__ import annotations

import importlib
import inspect
import os
import pkgutil
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from enum import Enum
from functools import lru_cache
from types import ModuleType
from typing import ClassVar, NamedTuple

from ckptlint.run import Run, Setting, shown
from ckptlint.source.text import CannotEdit, Edit, Span

ENTRY_POINTS = "ckptlint.rules"
BUILTIN = "ckptlint.rules"


class Severity(str, Enum):
    """error: progress will be lost. warning: it may be. info: worth knowing."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


class Applicability(str, Enum):
    """safe: an uninterrupted run computes the same, and the first launch works as before. unsafe: everything else."""

    SAFE = "safe"
    UNSAFE = "unsafe"


class Fix(NamedTuple):
    """What a finding offers to do about it; all of its edits, or none."""

    title: str
    edits: tuple[Edit, ...]
    applicability: Applicability


class Finding(NamedTuple):
    """What a rule reports. ``severity`` None: the rule's own."""

    span: Span
    message: str
    severity: Severity | None = None
    fix: Fix | None = None


class Diagnostic(NamedTuple):
    """A finding with the rule's name on it, as reports print it."""

    code: str
    name: str
    severity: Severity
    message: str
    span: Span
    framework: str
    fix: Fix | None = None

    @property
    def sort_key(self) -> tuple[str, int, int, str]:
        return (self.span.path, self.span.start, self.span.end, self.code)


class Rule(ABC):
    """A rule. The docstring is the page: what it does, why it matters, example, fix and its safety, references."""

    code: ClassVar[str]
    name: ClassVar[str]
    severity: ClassVar[Severity]
    fix: ClassVar[str] = ""  # "", "safe", "unsafe" or "safe or unsafe": what the page says of the fix

    @abstractmethod
    def check(self, run: Run) -> Iterator[Finding]:
        """The findings of one run."""

    @classmethod
    def page(cls) -> str:
        return inspect.cleandoc(cls.__doc__ or "")

    @classmethod
    def summary(cls) -> str:
        return cls.page().split("\n\n", 1)[0].replace("\n", " ")

    def diagnose(self, run: Run) -> Iterator[Diagnostic]:
        """The findings of one run with the rule's name on them; one setting that decides for two models is reported once."""
        said = set()
        for finding in self.check(run):
            if (finding.span, finding.message) in said:
                continue
            said.add((finding.span, finding.message))
            severity = finding.severity or self.severity
            yield Diagnostic(self.code, self.name, severity, finding.message, finding.span, run.framework, finding.fix)


class SourceRule(Rule):
    """A rule about the text itself; the linter reports it, because there is no run to look at."""

    def check(self, run: Run) -> Iterator[Finding]:
        """Nothing."""
        return iter(())

    def diagnostic(self, span: Span, message: str, framework: str = "", fix: Fix | None = None) -> Diagnostic:
        return Diagnostic(self.code, self.name, self.severity, message, span, framework, fix)


def setting_to(setting: Setting, value: object, *, safe: bool) -> Fix | None:
    """The fix that gives a setting another value (None takes it out); None where the text cannot be changed."""
    try:
        edits = setting.remove() if value is None else setting.set(value)
    except CannotEdit:
        return None
    if not edits:
        return None
    title = f"remove `{setting.name}`" if value is None else f"set `{setting.name}` to `{shown(value)}`"
    return Fix(title, edits, Applicability.SAFE if safe else Applicability.UNSAFE)


def settings_to(changes: Iterable[tuple[Setting, object]], *, safe: bool) -> Fix | None:
    """The fix that gives several settings other values; None where there is nothing to change, or one cannot be changed."""
    fixes = [setting_to(setting, value, safe=safe) for setting, value in changes]
    if not fixes or None in fixes:
        return None
    whole = [fix for fix in fixes if fix is not None]
    title = " and ".join(fix.title for fix in whole)
    return Fix(title, tuple(edit for fix in whole for edit in fix.edits), whole[0].applicability)


def advice(changes: Iterable[tuple[Setting, object]]) -> str:
    """``; write `save_steps: 500` `` for the end of a message; "" where there is nothing to write."""
    words = " and ".join(f"`{setting.spelled(value)}`" for setting, value in changes)
    return f"; write {words}" if words else ""


class UnknownRule(Exception):
    """Somebody named a rule that does not exist. Carries a suggestion."""

    def __init__(self, word: str, known: Iterable[str]) -> None:
        import difflib

        near = difflib.get_close_matches(word, list(known), 1)
        super().__init__(f"no rule is called `{word}`" + (f"; did you mean `{near[0]}`?" if near else ""))


class BrokenPlugin(Exception):
    """A rule pack that cannot be used; names it and says why."""


@lru_cache(maxsize=1)
def all_rules() -> tuple[Rule, ...]:
    """One instance of every installed rule, by code.

    Raises:
        BrokenPlugin: a plug-in cannot be imported, or takes the code or name of a rule that is there already.
    """
    found: dict[str, Rule] = {}
    for package in _packages():
        for module in _modules(package):
            for value in vars(module).values():
                if inspect.isclass(value) and issubclass(value, Rule) and value.__module__ == module.__name__:
                    _add(value(), found)
    return tuple(found[code] for code in sorted(found))


def _add(rule: Rule, found: dict[str, Rule]) -> None:
    for other in found.values():
        if rule.code == other.code or rule.name == other.name:
            mine = type(rule).__module__
            raise BrokenPlugin(f"{mine}: {rule.code} {rule.name} is already there as {other.code} {other.name}; choose others")
    found[rule.code] = rule


def _modules(package: ModuleType) -> Iterator[ModuleType]:
    for info in pkgutil.iter_modules(package.__path__, package.__name__ + "."):
        yield importlib.import_module(info.name)


def _packages() -> Iterator[ModuleType]:
    yield importlib.import_module(BUILTIN)
    if not _anyone_declares_rules():
        return
    from importlib.metadata import entry_points

    for point in entry_points(group=ENTRY_POINTS):
        if point.value != BUILTIN:
            yield _plugin(point.value)


def _plugin(name: str) -> ModuleType:
    try:
        package = importlib.import_module(name)
        list(_modules(package))
    except Exception as error:
        words = f"{type(error).__name__}: {error}"
        raise BrokenPlugin(f"the rule pack `{name}` cannot be imported ({words}); mend or uninstall it") from error
    return package


def _anyone_declares_rules() -> bool:
    """Whether a distribution besides ours may declare rules: reading all entry points properly takes ten times as long."""
    return any(
        _declares_rules(f"{directory}/entry_points.txt") for path in sys.path for directory in _distributions(path or ".")
    )


def _distributions(path: str) -> Iterator[str]:
    """The metadata directories of what is installed at one place of ``sys.path``, without ours; none in a ZIP archive."""
    try:
        names = os.listdir(path)  # noqa: PTH208 - strings: a site-packages directory has hundreds of them
    except OSError:
        return
    own = __name__.partition(".")[0]
    for name in names:
        if name.endswith((".dist-info", ".egg-info")) and name.split("-")[0].split(".")[0] != own:
            yield f"{path}/{name}"


def _declares_rules(path: str) -> bool:
    try:
        with open(path, "rb") as file:  # noqa: PTH123
            return ENTRY_POINTS.encode() in file.read()
    except OSError:
        return False


def rule_named(word: str) -> Rule:
    """The rule with this name or code.

    Raises:
        UnknownRule: there is none.
    """
    for rule in all_rules():
        if word in (rule.name, rule.code):
            return rule
    raise UnknownRule(word, [rule.name for rule in all_rules()] + [rule.code for rule in all_rules()])


def select(words: Iterable[str]) -> frozenset[str]:
    """The codes that names, codes and code prefixes (``CKP2``, ``ALL``) stand for.

    Raises:
        UnknownRule: a word stands for nothing.
    """
    codes: set[str] = set()
    for word in words:
        if word == "ALL":
            codes |= {rule.code for rule in all_rules()}
        elif word.startswith("CKP") and any(rule.code.startswith(word) for rule in all_rules()):
            codes |= {rule.code for rule in all_rules() if rule.code.startswith(word)}
        else:
            codes.add(rule_named(word).code)
    return frozenset(codes)
