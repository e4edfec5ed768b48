"""``ckptlint check``."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from ckptlint.cli import ERROR, FOUND, Failure
from ckptlint.discovery import Trouble
from ckptlint.linter import FileReport, Linter, Result
from ckptlint.reports import FORMATS, renderer
from ckptlint.reports import text as text_report
from ckptlint.reports.diff import unified
from ckptlint.reports.terminal import Colours
from ckptlint.rule import Diagnostic, UnknownRule
from ckptlint.rule import select as selected
from ckptlint.settings import Choice, Settings, SettingsError, SettingsFinder, read
from ckptlint.source.file import SourceFile
from ckptlint.source.text import SourceError

if TYPE_CHECKING:
    from ckptlint.fixing import Repaired

STDIN = "-"
_ATTEMPTS = 3
_LATER = ("gitlab", "junit")


def _rules(_ctx: click.Context, _param: click.Parameter, lists: tuple[str, ...]) -> tuple[str, ...]:
    """The words of comma lists; one that stands for no rule is refused."""
    words = tuple(word.strip() for text in lists for word in text.split(",") if word.strip())
    try:
        selected(words)
    except UnknownRule as error:
        raise click.BadParameter(str(error)) from None
    return words


def _format(_ctx: click.Context, _param: click.Parameter, name: str) -> str:
    """Formats that are only planned are told apart from words that mean nothing."""
    if name in _LATER:
        raise click.BadParameter(f"the format `{name}` is not built yet; there are {', '.join(FORMATS)}")
    return name


class Options(NamedTuple):
    """The options of one call."""

    fix: bool
    unsafe_fixes: bool
    diff: bool
    output_format: str
    output_file: Path | None
    stdin_filename: str | None
    stdin: bool
    exit_zero: bool
    show_unknown: bool
    statistics: bool


@click.command(short_help="Say how runs would lose progress, and repair their files.")
@click.argument("paths", nargs=-1, metavar="[PATH]...")
@click.option("--fix", is_flag=True, help="Apply safe fixes.")
@click.option("--unsafe-fixes", is_flag=True, help="With --fix or --diff: fixes that change the run or its first launch, too.")
@click.option("--diff", is_flag=True, help="Print what --fix would change; write nothing.")
@click.option(
    "--select",
    callback=_rules,
    multiple=True,
    metavar="RULES",
    help="Check only these rules (names, codes, prefixes as CKP2, ALL).",
)
@click.option("--ignore", callback=_rules, multiple=True, metavar="RULES", help="Leave these rules out.")
@click.option(
    "--extend-select", callback=_rules, multiple=True, metavar="RULES", help="Check these rules besides the configured ones."
)
@click.option(
    "--output-format",
    type=click.Choice((*FORMATS, *_LATER)),
    callback=_format,
    metavar="|".join(FORMATS),
    default="text",
    show_default=True,
    help="How findings are printed.",
)
@click.option("--output-file", type=click.Path(dir_okay=False, path_type=Path), help="Write the report there.")
@click.option("--stdin-filename", metavar="PATH", help="Read standard input (also: the path -) as this file.")
@click.option("--config", type=click.Path(path_type=str), help="Use this settings file for everything; its globs start here.")
@click.option("--exit-zero", is_flag=True, help="Exit 0 in spite of findings. Errors still exit 2.")
@click.option("--show-unknown", is_flag=True, help="List what could not be decided, and how to settle it.")
@click.option("--statistics", is_flag=True, help="Count the findings of each rule instead of listing them.")
@click.pass_context
def check(
    ctx: click.Context,
    /,
    paths: tuple[str, ...],
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    extend_select: tuple[str, ...],
    config: str | None,
    **rest: object,
) -> None:
    """Check files and directories (default: the working directory).

    Exit status: 0 nothing found, 1 findings, 2 an error (a file that cannot be read, a wrong setting or option).
    """
    paths = _paths(ctx, paths, rest)
    options = Options(**rest, stdin=STDIN in paths)  # type: ignore[arg-type]
    choice = Choice(select, ignore, extend_select)
    try:
        linter = Linter(SettingsFinder(_fixed_settings(config) if config else None), choice)
        result = _read_and_check(linter, paths, options)
        status = _act(linter, result, options)
    except SettingsError as error:
        raise Failure(str(error)) from None
    ctx.exit(status)


def _paths(ctx: click.Context, paths: tuple[str, ...], options: dict[str, object]) -> tuple[str, ...]:
    """What to check; combinations of options that mean nothing are refused."""
    named = options["stdin_filename"] is not None
    if options["statistics"] and options["output_format"] not in ("text", "concise"):
        ctx.fail("--statistics goes with the formats text and concise")
    if named and paths not in ((), (STDIN,)):
        ctx.fail("--stdin-filename names what standard input is; the only path beside it can be `-`")
    if STDIN in paths and len(paths) > 1 and options["fix"]:
        ctx.fail("with --fix, standard input cannot be checked together with files")
    return paths or ((STDIN,) if named else (".",))


def _fixed_settings(path: str) -> Settings:
    settings = read(path)
    if settings is None:
        raise SettingsError(path, None, "holds no [tool.ckptlint] table")
    return settings._replace(root=os.getcwd())  # noqa: PTH109


def _read_and_check(linter: Linter, paths: tuple[str, ...], options: Options) -> Result:
    given = []
    if options.stdin:
        given.append(SourceFile(options.stdin_filename or STDIN, sys.stdin.buffer.read()))
    return linter.check_paths([path for path in paths if path != STDIN], given)


def _act(linter: Linter, result: Result, options: Options) -> int:
    """Do what was asked for with the findings; the exit status."""
    if options.diff:
        _write(diff(linter, result, unsafe=options.unsafe_fixes), options)
        _notice(text_report.checked(result), *map(_error_line, result.troubles))
        return _status(result, options)
    fixed = text_report.Fixed()
    to_stderr = options.fix and options.stdin
    if options.fix:
        result, fixed = fix(linter, result, unsafe=options.unsafe_fixes, in_memory=options.stdin)
    if to_stderr:
        sys.stdout.buffer.write(result.reports[0].file.data)
        sys.stdout.buffer.flush()
    _report(result, fixed, options, to_stderr=to_stderr)
    return _status(result, options)


def _status(result: Result, options: Options) -> int:
    if result.troubles:
        return ERROR
    return FOUND if result.diagnostics and not options.exit_zero else 0


# ------------------------------------------------------------------------------------------------ printing


def _report(result: Result, fixed: text_report.Fixed, options: Options, *, to_stderr: bool) -> None:
    """The report where it belongs; errors, and what a machine's format has no place for, go to standard error."""
    if options.output_format == "text":
        style = text_report.Options(
            _colours(options.output_file, to_stderr=to_stderr), options.show_unknown, options.statistics, fixed
        )
        report = text_report.render(result, style)
    else:
        if options.statistics:
            report = "".join(line + "\n" for line in text_report.statistics(result.diagnostics))
        else:
            report = renderer(options.output_format)(result)
        unknown = text_report.unknown_lines(result) if options.show_unknown else []
        nothing = [] if result.runs else [text_report.checked(result)]
        _notice(*text_report.fix_lines(fixed), *unknown, *nothing)
    _notice(*map(_error_line, result.troubles))
    if to_stderr:
        click.echo(report, nl=False, err=True)
    else:
        _write(report, options)


def _colours(output_file: Path | None, *, to_stderr: bool) -> Colours:
    stream = sys.stderr if to_stderr else sys.stdout
    allowed = not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb" and output_file is None
    return Colours(on=allowed and stream.isatty())


def _error_line(trouble: Trouble) -> str:
    return f"error: {trouble}" + (f"\n{trouble.detail.rstrip()}" if trouble.detail else "")


def _notice(*lines: str) -> None:
    for line in lines:
        click.echo(line, err=True)


def _write(report: str, options: Options) -> None:
    if options.output_file is None:
        click.echo(report, nl=False)
        return
    from ckptlint.fixing import CannotWrite, replace_file

    try:
        replace_file(options.output_file, report.encode("utf-8", "backslashreplace"))
    except CannotWrite as error:
        raise Failure(str(error)) from None


# ------------------------------------------------------------------------------------------------ fixing


def fix(linter: Linter, result: Result, *, unsafe: bool, in_memory: bool) -> tuple[Result, text_report.Fixed]:
    """Repair the files of a check, on the disk unless ``in_memory``; the check of what they are now, and what was done."""
    files, troubles = [], [trouble for trouble in result.troubles if trouble not in _file_troubles(result)]
    done: list[Repaired] = []
    for report in result.reports:
        file = report.file
        outcome = (_repaired if in_memory else _repair_on_disk)(linter, report, unsafe=unsafe)
        if isinstance(outcome, Trouble):
            troubles.append(outcome)
        elif outcome is not None:
            file = outcome.file
            done.append(outcome)
        files.append((file, report.named))
    after = linter.check_files(files)
    fixed = text_report.Fixed(
        tuple(diagnostic for repaired in done for diagnostic in repaired.applied),
        tuple(refusal for repaired in done for refusal in repaired.refused),
    )
    return Result(after.reports, (*troubles, *after.troubles)), fixed


def _file_troubles(result: Result) -> list[Trouble]:
    return [trouble for report in result.reports for trouble in report.troubles]


def _repair_on_disk(linter: Linter, report: FileReport, *, unsafe: bool) -> Repaired | Trouble | None:
    """What became of one file; None where there is nothing to fix. A file that somebody changes meanwhile is read again."""
    from ckptlint.fixing import CannotWrite, ChangedMeanwhile, replace_file

    for _ in range(_ATTEMPTS):
        repaired = _repaired(linter, report, unsafe=unsafe)
        if repaired is None or repaired.file.data == report.file.data:
            return repaired
        path = Path(report.file.path)
        try:
            replace_file(path, repaired.file.data, expected=report.file.data)
            return repaired
        except ChangedMeanwhile:
            try:
                report = linter.check_file(SourceFile(report.file.path, path.read_bytes()))
            except OSError as error:
                return Trouble(report.file.path, f"cannot be read: {error.strerror}")
        except CannotWrite as error:
            return Trouble(report.file.path, f"not fixed: {error.problem}" + (f"; {error.remedy}" if error.remedy else ""))
    return Trouble(report.file.path, "not fixed: somebody keeps changing the file; run this again when it is at rest")


def _repaired(linter: Linter, report: FileReport, *, unsafe: bool) -> Repaired | None:
    if not any(diagnostic.fix for diagnostic in report.diagnostics):
        return None
    from ckptlint.fixing import repair

    def findings(file: SourceFile) -> tuple[Diagnostic, ...]:
        if file is report.file:
            return report.diagnostics
        again = linter.check_file(file)
        for trouble in again.troubles:
            raise SourceError(file.text.whole, trouble.message)
        return again.diagnostics

    return repair(report.file, findings, unsafe)


def diff(linter: Linter, result: Result, *, unsafe: bool) -> str:
    """What ``fix`` would change, as one patch."""
    pieces: list[str] = []
    for report in result.reports:
        repaired = _repaired(linter, report, unsafe=unsafe)
        if repaired is not None and repaired.file.data != report.file.data:
            pieces.append(unified(report.file.path, report.file.text.text, repaired.file.text.text))
    return "".join(pieces)
