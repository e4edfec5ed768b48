"""Files in, findings and outcomes out.

Each file goes its way alone (``read_file``, then ``examine``: the same file and rules give the same report), and only the runs'
``neighbours`` are set between the two, because for them all files must have been read.

What passes through here are named tuples: a frozen dataclass takes up to a millisecond to make, ten times as long, and a check
of one small file must not spend its time on that.
"""

from __future__ import annotations

import os
import posixpath
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, ParamSpec, TypeVar

from ckptlint import suppressions
from ckptlint.discovery import Target, Trouble, find
from ckptlint.outcome import Outcome, outcome
from ckptlint.rule import Diagnostic, Rule, SourceRule, all_rules
from ckptlint.run import Literal, Run, Storage, Unknown, Variable
from ckptlint.settings import Choice, SettingsFinder
from ckptlint.source.file import SourceFile
from ckptlint.source.text import SourceError, SourceText

if TYPE_CHECKING:
    from ckptlint.frameworks.framework import Framework

P = ParamSpec("P")
T = TypeVar("T")

SYNTAX_ERROR = "CKP900"
UNUSED_SUPPRESSION = "CKP901"
DEBUG = "CKPTLINT_DEBUG"
_YAML = (".yaml", ".yml")


class RunReport(NamedTuple):
    """One run and what becomes of it after a kill."""

    run: Run
    outcome: Outcome


class FileReport(NamedTuple):
    """One file: what was found, what runs it describes. ``named``: by the user. ``skipped``: it asks to be left alone."""

    file: SourceFile
    named: bool
    diagnostics: tuple[Diagnostic, ...] = ()
    runs: tuple[RunReport, ...] = ()
    troubles: tuple[Trouble, ...] = ()
    skipped: bool = False


class Result(NamedTuple):
    """A whole check. ``troubles`` are what could not be checked, those of single files included."""

    reports: tuple[FileReport, ...]
    troubles: tuple[Trouble, ...] = ()

    @property
    def diagnostics(self) -> list[Diagnostic]:
        """All findings, by place."""
        found = [diagnostic for report in self.reports for diagnostic in report.diagnostics]
        return sorted(found, key=lambda diagnostic: diagnostic.sort_key)

    @property
    def runs(self) -> list[RunReport]:
        return [run for report in self.reports for run in report.runs]

    @property
    def unknowns(self) -> list[tuple[Run, Unknown]]:
        """All that could not be decided, with the run it belongs to."""
        return [(entry.run, unknown) for entry in self.runs for unknown in entry.run.unknowns]

    @property
    def files_read(self) -> int:
        return len(self.reports)

    @property
    def files_recognised(self) -> int:
        """How many files describe a run."""
        return sum(1 for report in self.reports if report.runs)

    @property
    def files_skipped(self) -> int:
        return sum(1 for report in self.reports if report.skipped)


class Reading(NamedTuple):
    """What a file describes, before any rule has looked at it."""

    file: SourceFile
    named: bool
    runs: tuple[Run, ...] = ()
    unreadable: SourceError | None = None
    framework: str = ""
    troubles: tuple[Trouble, ...] = ()


class Linter:
    """The parts of a check put together: frameworks, rules, and the settings of each file."""

    def __init__(
        self,
        settings: SettingsFinder,
        choice: Choice | None = None,
        frameworks: Sequence[Framework] | None = None,
        rules: Sequence[Rule] | None = None,
    ) -> None:
        self.frameworks = _installed_frameworks() if frameworks is None else tuple(frameworks)
        self.rules = all_rules() if rules is None else tuple(rules)
        self._settings = settings
        self._choice = choice or Choice()
        self._labels: dict[str, tuple[str, ...]] = {}

    def check_paths(self, paths: Iterable[str], given: Iterable[SourceFile] = ()) -> Result:
        """Check files and directories together, and texts that are not on a disk.

        Raises:
            SettingsError: a settings file cannot be used.
            UnknownRule: the command line names a rule that does not exist.
        """
        suffixes = frozenset(suffix for framework in self.frameworks for suffix in framework.suffixes)
        found = find(paths, suffixes, self._settings)
        files, troubles = [(file, True) for file in given], list(found.troubles)
        for target in found.targets:
            file = _load(target)
            if isinstance(file, Trouble):
                troubles.append(file)
            else:
                files.append((file, target.named))
        result = self.check_files(files)
        return Result(result.reports, (*troubles, *result.troubles))

    def check_files(self, files: Iterable[tuple[SourceFile, bool]]) -> Result:
        """Check texts together; each comes with whether the user named it. Raises like ``check_paths``."""
        readings = [read_file(file, self.frameworks, named=named) for file, named in files]
        self._labels = _save_directories(run for reading in readings for run in reading.runs)
        reports = _each_once(tuple(self._report(reading) for reading in readings))
        return Result(reports, tuple(trouble for report in reports for trouble in report.troubles))

    def check_file(self, file: SourceFile, *, named: bool = True) -> FileReport:
        """Check one text again, beside the neighbours of the last check."""
        return self._report(read_file(file, self.frameworks, named=named))

    def _report(self, reading: Reading) -> FileReport:
        settings = self._settings.of(Path(reading.file.path).parent)
        runs = tuple(self._placed(run, settings.storage) for run in reading.runs)
        enabled = self._choice.apply(settings.enabled()) - settings.ignored_for(reading.file.path)
        return examine(reading._replace(runs=runs), self.rules, enabled)

    def _placed(self, run: Run, storage: Storage) -> Run:
        ways = tuple(self._placed(way, storage) for way in run.ways)
        return run._replace(neighbours=self._neighbours(run), storage=storage, ways=ways)

    def _neighbours(self, run: Run) -> tuple[str, ...]:
        own = _label(run)
        labels = [label for directory in _directories(run) for label in self._labels.get(directory, ()) if label != own]
        return tuple(dict.fromkeys(labels))


def _installed_frameworks() -> tuple[Framework, ...]:
    from ckptlint.frameworks import all_frameworks

    return all_frameworks()


def _load(target: Target) -> SourceFile | Trouble:
    try:
        return SourceFile(target.path, Path(target.path).read_bytes())
    except OSError as error:
        return Trouble(target.path, f"cannot be read: {error.strerror}")


# ------------------------------------------------------------------------------------------------ one file


def read_file(file: SourceFile, frameworks: Sequence[Framework], *, named: bool) -> Reading:
    """The runs that a file describes.

    A file that no framework mentions is not parsed, unless the user named it: then it must at least be what its suffix says.
    """
    runs: list[Run] = []
    troubles: list[Trouble] = []
    unreadable, claimed = None, ""
    for framework in _asked(file, frameworks):
        read = _attempt(file.path, f"reading it as {framework.title}", _read_as, framework, file)
        if isinstance(read, Trouble):
            troubles.append(read)
        elif isinstance(read, SourceError):
            unreadable, claimed = unreadable or read, claimed or framework.name
        else:
            runs += read
    if named and unreadable is None and not runs and not troubles:
        fault = _attempt(file.path, "reading it", _fault, file)
        if isinstance(fault, Trouble):
            troubles.append(fault)
        else:
            unreadable = fault
    return Reading(file, named, tuple(runs), unreadable, claimed, tuple(troubles))


def _read_as(framework: Framework, file: SourceFile) -> tuple[Run, ...] | SourceError:
    try:
        return framework.read(file) if framework.mentions(file.data) else ()
    except SourceError as error:
        return error


def _asked(file: SourceFile, frameworks: Sequence[Framework]) -> Sequence[Framework]:
    """The frameworks that read files with this suffix; all of them where none does (standard input, scripts without one)."""
    return [framework for framework in frameworks if file.suffix in framework.suffixes] or frameworks


def _fault(file: SourceFile) -> SourceError | None:
    try:
        if file.suffix in _YAML:
            _ = file.yaml
        elif file.suffix == ".json":
            _ = file.json
    except SourceError as error:
        return error
    return None


def examine(reading: Reading, rules: Sequence[Rule], enabled: frozenset[str]) -> FileReport:
    """What the rules that are on have to say about a file's runs, without what its comments silence."""
    file = reading.file
    troubles = list(reading.troubles)
    comments = _attempt(file.path, "reading its comments", suppressions.read, file)
    if isinstance(comments, Trouble):
        troubles.append(comments)
        comments = suppressions.NONE
    if comments.skips_file:
        return FileReport(file, reading.named, skipped=True)
    by_code = {rule.code: rule for rule in rules if rule.code in enabled}
    diagnostics: list[Diagnostic] = []
    if reading.unreadable is not None:
        diagnostics += _unreadable(reading, by_code.get(SYNTAX_ERROR))
    reports: list[RunReport] = []
    for run in reading.runs:
        for rule in by_code.values():
            doing = f"rule {rule.code} {rule.name}"
            _collect(diagnostics, _attempt(file.path, doing, _diagnose, rule, run), troubles)
        _collect(reports, _attempt(file.path, "the outcome of its run", _outcome, run), troubles)
    unused = by_code.get(UNUSED_SUPPRESSION)
    about = unused if isinstance(unused, SourceRule) and reading.runs and not troubles else None
    # two launches may hang on one setting
    diagnostics = list({(entry.code, entry.span, entry.message): entry for entry in diagnostics}.values())
    own = [diagnostic for diagnostic in diagnostics if diagnostic.span.path == file.path]
    left = suppressions.apply(own, comments, about, frozenset(by_code)) + _elsewhere(diagnostics, file.path)
    left.sort(key=lambda diagnostic: diagnostic.sort_key)
    return FileReport(file, reading.named, tuple(left), tuple(reports), tuple(troubles))


def _diagnose(rule: Rule, run: Run) -> list[Diagnostic]:
    """What a rule finds in a run; of a launch with several ways to it, what it finds in one form or another on each of them."""
    found = _diagnosed(rule, run)
    for way in run.ways if found else ():
        more = _diagnosed(rule, way)
        if not more:
            return []
        said = {(diagnostic.span, diagnostic.message) for diagnostic in found}
        found += [diagnostic for diagnostic in more if (diagnostic.span, diagnostic.message) not in said]
    return _one_a_place(found) if run.ways else found


def _diagnosed(rule: Rule, run: Run) -> list[Diagnostic]:
    return [_at_home(diagnostic) for diagnostic in rule.diagnose(run)]


def _at_home(diagnostic: Diagnostic) -> Diagnostic:
    """A finding in a command inside of a YAML stands in the YAML."""
    fix = diagnostic.fix
    spans = (diagnostic.span, *(edit.span for edit in (fix.edits if fix is not None else ())))
    if not any(hasattr(span.source, "home") for span in spans):
        return diagnostic
    from ckptlint.source.embedded import home, home_edits

    edits = () if fix is None else home_edits(fix.edits)
    return diagnostic._replace(span=home(diagnostic.span), fix=fix._replace(edits=edits) if fix is not None and edits else None)


def _one_a_place(found: list[Diagnostic]) -> list[Diagnostic]:
    """One finding a place, and of those that say the same on one line the first: a way may begin at a later word."""
    by_place = {diagnostic.span: diagnostic for diagnostic in reversed(found)}.values()
    said = {(one.span.path, one.span.line, one.message): one for one in by_place}
    return list(said.values())[::-1]


def _elsewhere(diagnostics: Iterable[Diagnostic], path: str) -> list[Diagnostic]:
    """Findings in other files that take part in this file's runs, without what the comments there silence."""
    others: dict[SourceText, list[Diagnostic]] = defaultdict(list)
    for diagnostic in diagnostics:
        if diagnostic.span.path != path:
            others[diagnostic.span.source].append(diagnostic)
    left: list[Diagnostic] = []
    for source, found in others.items():
        comments = suppressions.read(SourceFile(source.path, source.encode()))
        if not comments.skips_file:
            left += suppressions.apply(found, comments, None, frozenset())
    return left


def _each_once(reports: tuple[FileReport, ...]) -> tuple[FileReport, ...]:
    """A finding that the file itself and another one that names it lead to stays with the file itself."""
    known = {_key(one) for report in reports for one in report.diagnostics if one.span.path == report.file.path}
    left = []
    for report in reports:
        own = report.file.path
        kept = []
        for diagnostic in report.diagnostics:
            if diagnostic.span.path == own:
                kept.append(diagnostic)
            elif _key(diagnostic) not in known:
                known.add(_key(diagnostic))
                kept.append(diagnostic)
        left.append(report if len(kept) == len(report.diagnostics) else report._replace(diagnostics=tuple(kept)))
    return tuple(left)


def _key(diagnostic: Diagnostic) -> tuple[str, int, int, str]:
    path, start, end, code = diagnostic.sort_key
    return os.path.normpath(path), start, end, code


def _outcome(run: Run) -> list[RunReport]:
    return [] if run.partial else [RunReport(run, outcome(run))]


def _collect(found: list[T], more: list[T] | Trouble, troubles: list[Trouble]) -> None:
    if isinstance(more, Trouble):
        troubles.append(more)
    else:
        found += more


def _unreadable(reading: Reading, rule: Rule | None) -> list[Diagnostic]:
    error = reading.unreadable
    if error is None or not isinstance(rule, SourceRule):
        return []
    message = f"{error.problem}; {error.remedy}" if error.remedy else error.problem
    return [rule.diagnostic(error.span, message, reading.framework)]


def _attempt(path: str, doing: str, step: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T | Trouble:
    """What comes of one step with one file; a fault of ckptlint or of a plug-in in it ends neither the file nor the check."""
    try:
        return step(*args, **kwargs)
    except Exception as error:
        return Trouble(path, *internal_error(doing, error))


def internal_error(doing: str, error: Exception) -> tuple[str, str]:
    """What to tell the user of a fault of ours, and the traceback for whoever asks for it."""
    import traceback

    words = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    message = f"internal error in {doing}: {words}. This is a fault of ckptlint; please report it with the file"
    if os.environ.get(DEBUG):
        return message, "".join(traceback.format_exception(error))
    return f"{message} and what {DEBUG}=1 prints", ""


# ------------------------------------------------------------------------------------------------ neighbours


def _save_directories(runs: Iterable[Run]) -> dict[str, tuple[str, ...]]:
    """Save directory to the labels of the runs that write there."""
    found: dict[str, list[str]] = defaultdict(list)
    for run in runs:
        for directory in _directories(run):
            found[directory].append(_label(run))
    return {directory: tuple(labels) for directory, labels in found.items()}


def _directories(run: Run) -> set[str]:
    """The save directories that can be compared by their text; relative ones start from the same place in one project."""
    found = set()
    for write in run.writes:
        path = write.directory.path
        if isinstance(path, Unknown) or not all(isinstance(part, (Literal, Variable)) for part in path.parts):
            continue
        if path.written:
            found.add(posixpath.normpath(path.written))
    return found


def _label(run: Run) -> str:
    """The file that names the directory: a script that launches a YAML and the YAML itself are one run."""
    places = (write.directory.setting.span for write in run.writes)
    path = next((span.path for span in places if span is not None), run.where.path)
    return f"{path} ({run.name})" if run.name else path
