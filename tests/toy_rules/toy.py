"""Rules about settings of the toy framework."""

from __future__ import annotations

from collections.abc import Iterator

from ckptlint.rule import Finding, Rule, Severity, setting_to
from ckptlint.run import Run


class NoFoo(Rule):
    """`foo` must not be true."""

    code = "TOY101"
    name = "no-foo"
    severity = Severity.ERROR
    fix = "safe"

    def check(self, run: Run) -> Iterator[Finding]:
        foo = run.settings.get("foo")
        if foo is not None and foo.value is True and foo.place is not None:
            yield Finding(foo.place, "foo is true", fix=setting_to(foo, False, safe=True))


class NoBar(Rule):
    """`bar` must not be there."""

    code = "TOY102"
    name = "no-bar"
    severity = Severity.WARNING
    fix = "unsafe"

    def check(self, run: Run) -> Iterator[Finding]:
        bar = run.settings.get("bar")
        if bar is not None and bar.place is not None:
            yield Finding(bar.place, "bar is there", fix=setting_to(bar, None, safe=False))


class Crashing(Rule):
    """A rule at fault."""

    code = "TOY103"
    name = "crashing"
    severity = Severity.INFO

    def check(self, run: Run) -> Iterator[Finding]:
        if "crash_rule" in run.settings:
            raise ZeroDivisionError("the rule is at fault")
        return iter(())


class Remembering(Rule):
    """Keeps the runs that it was given."""

    code = "TOY104"
    name = "remembering"
    severity = Severity.INFO

    def __init__(self) -> None:
        self.seen: list[Run] = []

    def check(self, run: Run) -> Iterator[Finding]:
        self.seen.append(run)
        return iter(())
