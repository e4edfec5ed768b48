"""A command line in, the same command pointed at the newest complete checkpoint out.

The command is read as a shell would: behind ``torchrun``, ``bash -c`` or a start script stands a program, and behind that its
arguments and the file it names. What has to change is said on the command line where the framework allows that; else in a copy
of the file, which the command names instead; else in the file itself.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path

from ckptlint.checkpoints.listing import Unreachable
from ckptlint.decision import Agreed, CannotPlan, Decision, Wishes, decide, with_repairs
from ckptlint.disk import carry_out_on_disk
from ckptlint.fixing import CannotWrite, ChangedMeanwhile, replace_file
from ckptlint.frameworks.flags import known_text
from ckptlint.frameworks.framework import DiskChange, Framework
from ckptlint.frameworks.launch_readers import Asked
from ckptlint.frameworks.launch_readers import read as read_launch
from ckptlint.frameworks.launches import Launch, launches
from ckptlint.frameworks.pinners import pinner
from ckptlint.frameworks.project import Project
from ckptlint.frameworks.script_editor import ScriptEditor
from ckptlint.resume import Plan, changes
from ckptlint.run import Run, UnsetVariable
from ckptlint.source.file import SourceFile
from ckptlint.source.shell import Change, Command, ShellSource, quoted, set_value
from ckptlint.source.shell import read as read_shell
from ckptlint.source.shell.values import Argument, text_of
from ckptlint.source.text import CannotEdit, Edit, EditConflict, SourceError, SourceText, Span, apply

COMMAND_LINE = "command line"  # how messages name the place of its arguments

_ATTEMPTS = 50
_SHOWN = 100  # characters of a command in the heading of its plan


@dataclass(frozen=True)
class Copy:
    """A file as the job is to read it: a copy at ``path``; or the file itself, where ``before`` is what it holds now."""

    path: str
    after: bytes = field(repr=False)
    before: bytes | None = field(default=None, repr=False)


@dataclass(frozen=True)
class Start:
    """A command as it is to be run, and what must be written before. ``plans``: one for each training that it starts."""

    command: tuple[str, ...]
    plans: tuple[Plan, ...] = ()
    copies: tuple[Copy, ...] = ()
    disk: tuple[DiskChange, ...] = ()

    @property
    def refused(self) -> bool:
        """The framework will not start as things lie."""
        return any(plan.refused for plan in self.plans)

    @property
    def agreed(self) -> Agreed:
        """The choices, for the other nodes of the job."""
        return Agreed({plan.directory: plan.place for plan in self.plans})

    @property
    def steps(self) -> tuple[int, ...]:
        """How far each training is: the step it goes on from, 0 at its beginning."""
        return tuple(plan.chosen.step or 0 if plan.chosen is not None else 0 for plan in self.plans)


def prepare(command: Sequence[str], environment: Mapping[str, str], wishes: Wishes | None = None) -> Start:
    """The plan for a command; nothing is written.

    Raises:
        CannotPlan: it trains with a known framework, and cannot be pointed at a checkpoint: says why.
        SourceError: a file it names is not what it should be.
    """
    wishes = wishes or Wishes()
    given = _Given(tuple(command), environment, wishes)
    trainings = given.trainings()
    if not trainings:
        if wishes.step is not None:
            raise CannotPlan(f"--step {wishes.step}: the command is no training of a known framework")
        return Start(given.command)
    by_arguments = _with_arguments(given, trainings)
    return by_arguments or _with_edits(given, trainings)


def carry_out(start: Start) -> None:
    """Write what the command needs before it is run.

    Raises:
        CannotWrite: a file cannot be written; names it.
        ChangedMeanwhile: a file was changed since it was read; prepare again.
    """
    carry_out_on_disk(start.disk)
    for copy in start.copies:
        if copy.before is not None:
            replace_file(Path(copy.path), copy.after, expected=copy.before)
        else:
            _write_copy(Path(copy.path), copy.after)


def prepared(
    command: Sequence[str], environment: Mapping[str, str], wishes: Wishes | None = None, *, leading: bool = True
) -> Start:
    """The plan, carried out; made anew where a file changes in between. What changes beside the checkpoints is the leader's.

    Raises:
        CannotPlan, SourceError, CannotWrite: as above.
    """
    for _ in range(_ATTEMPTS):
        start = prepare(command, environment, wishes)
        if start.refused:
            return start
        try:
            carry_out(start if leading else replace(start, disk=()))
        except ChangedMeanwhile:
            continue
        return start
    raise CannotPlan("other processes keep changing the files that the command names; run again when they are done")


# ------------------------------------------------------------------------------------------------ reading a command


@dataclass(frozen=True)
class _Training:
    """One training that the command starts, and what was decided for it."""

    launch: Launch
    run: Run
    framework: Framework
    decision: Decision
    editor: ScriptEditor

    @property
    def command(self) -> Command:
        return self.launch.command


class _Editor(ScriptEditor):
    """Edits of one command of the line; that the word changes too in which ``bash -c`` carries it is what is wanted."""

    def __init__(self, shell: ShellSource, command: Command) -> None:
        super().__init__(shell, command)
        self._carriers = tuple(_carriers(shell, command))

    def _alone(self, change: Callable[[], Change]) -> tuple[Edit, ...]:
        def without_carriers() -> Change:
            made = change()
            return replace(made, uses=tuple(use for use in made.uses if use[0].span not in self._carriers))

        return super()._alone(without_carriers)


def _carriers(shell: ShellSource, command: Command) -> Iterator[Span]:
    by_number = {one.number: one for one in shell.commands}
    while command.place.carrier is not None and command.place.carrier in by_number:
        command = by_number[command.place.carrier]
        yield command.span


class _Given:
    """A command line as a script of one line, where every argument has a place."""

    def __init__(self, command: tuple[str, ...], environment: Mapping[str, str], wishes: Wishes) -> None:
        self.command = command
        self.environment = environment
        self.wishes = wishes
        self.source = SourceText(COMMAND_LINE, _as_script(command))
        self.project = Project(COMMAND_LINE)
        self.shell: ShellSource = read_shell(self.source, self.project.neighbour)

    def trainings(self) -> tuple[_Training, ...]:
        """Those that run as the command is given; those on other ways where none does."""
        found = list(launches(self.shell))
        shipped = [launch for launch in found if launch.command.as_shipped] or found
        return tuple(training for launch in shipped for training in self._training(launch))

    def _training(self, launch: Launch) -> Iterator[_Training]:
        editor = _Editor(self.shell, launch.command)
        source = launch.command.span.source
        file = SourceFile(source.path, source.text.encode("utf-8", "surrogateescape"))
        with _inside(launch.command):
            run = read_launch(Asked(launch, file, self.project, editor))
            if run is None:
                return
            framework = pinner(run)
            if framework is None:
                raise CannotPlan(f"a {run.title} run cannot be pinned yet; `ckptlint check` says how it would resume")
            environment = _environment(launch, self.environment)
            yield _Training(launch, run, framework, _decided(framework, run, environment, self.wishes), editor)

    def text_after(self, edits: Iterable[Edit]) -> tuple[str, ...]:
        """The command with edits in its own line."""
        own = {(edit.span.start, edit.span.end, edit.replacement): edit for edit in edits if edit.span.source is self.source}
        return _words(apply(self.source, own.values()))  # two ways to one launch ask for the same


def _decided(framework: Framework, run: Run, environment: Mapping[str, str], wishes: Wishes) -> Decision:
    where = run.where.path
    try:
        return decide(framework, run, environment, wishes)
    except UnsetVariable as error:
        raise CannotPlan(f"{where}: {error}; set it (export {error.name}=...), or name the directory with --save-dir") from None
    except (CannotEdit, EditConflict) as error:
        raise CannotPlan(f"{where}: {error}; write that setting out by hand") from None
    except (Unreachable, ValueError) as error:
        raise CannotPlan(f"{where}: {error}") from None


# Words that a shell would not take for the name of a program.
_RESERVED = frozenset(
    ["if", "then", "else", "elif", "fi", "for", "while", "until", "do", "done", "case", "esac", "function", "select", "time"]
) | frozenset(["in", "{", "}", "!", "[[", "]]", "coproc"])


def _as_script(command: Sequence[str]) -> str:
    words = [quoted(word) for word in command]
    if words and (command[0] in _RESERVED or "=" in command[0]):
        words[0] = f"'{command[0]}'"
    return " ".join(words)


def _words(script: str) -> tuple[str, ...]:
    """The words of such a script."""
    import shlex

    return tuple(shlex.split(script))


def _environment(launch: Launch, environment: Mapping[str, str]) -> dict[str, str]:
    """What the program finds: the environment, what the script puts into it, and the processes that a launcher starts."""
    found = dict(environment)
    for values in (launch.command.exported, launch.command.assignments):
        for name, value in values.items():
            text = text_of(value)
            if text is not None:
                found[name] = text
    if launch.world_size is not None and launch.launcher != "python":
        found.update(NPROC_PER_NODE=str(launch.world_size), NNODES="1")
    return found


@contextlib.contextmanager
def _inside(command: Command) -> Iterator[None]:
    """The directory that a command runs in, from which its relative paths count."""
    directory = text_of(command.directory) or "."
    if directory in (".", ""):
        yield
        return
    before = Path.cwd()
    try:
        os.chdir(directory)
    except OSError:
        yield  # the script makes it, or the command fails there by itself
        return
    try:
        yield
    finally:
        os.chdir(before)


# ------------------------------------------------------------------------------------------------ by arguments


def _with_arguments(given: _Given, trainings: tuple[_Training, ...]) -> Start | None:
    """The command with more arguments, where the framework takes them and they say all; proved by planning for that command."""
    edits: list[Edit] = []
    disk: list[tuple[DiskChange, ...]] = []
    for training in trainings:
        pin, own = training.decision.pin, training.decision.edits
        if not pin.arguments or (own and _on_command_line(given, own)):
            edits += own
            disk.append(pin.disk)
            continue
        try:
            edits += training.editor.append(pin.arguments)
        except CannotEdit:
            return None
        disk.append(())
    if not _on_command_line(given, edits):
        return None
    after = _Given(given.text_after(edits), given.environment, given.wishes)
    again = after.trainings() if edits else trainings
    if not _same_choice(trainings, again):
        return None
    plans = tuple(_plan(given, one, after.command, (), own) for one, own in zip(trainings, disk, strict=True))
    return Start(after.command, plans, disk=tuple(change for own in disk for change in own))


def _same_choice(before: Sequence[_Training], after: Sequence[_Training]) -> bool:
    """Whether the command as it is now is one with which nothing is left to do but what is written beside the checkpoints."""
    if [_chosen(one) for one in before] != [_chosen(one) for one in after]:
        return False
    return all(not one.decision.edits or _says(one.launch, one.decision.pin.arguments) for one in after)


def _says(launch: Launch, arguments: Sequence[str]) -> bool:
    """Whether a program is given these arguments, and so needs none of the edits that would do the same."""
    given = [argument.text for argument in launch.arguments]
    return bool(arguments) and all(argument in given for argument in arguments)


def _on_command_line(given: _Given, edits: Iterable[Edit]) -> bool:
    return all(edit.span.source is given.source for edit in edits)


def _chosen(training: _Training) -> str | None:
    return training.decision.request.chosen_path


# ------------------------------------------------------------------------------------------------ by edits


def _with_edits(given: _Given, trainings: tuple[_Training, ...]) -> Start:
    """The command with its own words changed, and copies of the files that say the rest."""
    try:
        return _edited(given, trainings)
    except (CannotEdit, EditConflict) as error:
        raise CannotPlan(f"{error}; write that setting out by hand") from None


def _edited(given: _Given, trainings: tuple[_Training, ...]) -> Start:
    own: list[Edit] = []
    copies: dict[str, Copy] = {}
    plans = []
    for training in trainings:
        edits = training.decision.edits
        own += (edit for edit in edits if edit.span.source is given.source)
        files = _by_file(edit for edit in edits if edit.span.source is not given.source)
        for path, parts in files.items():
            source = parts[0].span.source
            after = apply(source, parts).encode("utf-8")
            copy, renaming = _copy(given, training, path, source, after)
            if path in copies and copies[path] != copy:
                raise CannotPlan(f"{path}: two trainings of this command need it changed in different ways; start them apart")
            if path not in copies:
                own += renaming
            copies[path] = copy
        plans.append((training, files))
    command = given.text_after(own)
    made = []
    for training, files in plans:
        places = [(copies[path].path, parts) for path, parts in files.items()]
        made.append(_plan(given, training, command, places, training.decision.pin.disk))
    return Start(command, tuple(made), tuple(copies.values()), tuple(change for plan in made for change in plan.disk))


def _by_file(edits: Iterable[Edit]) -> dict[str, list[Edit]]:
    found: dict[str, list[Edit]] = {}
    for edit in edits:
        parts = found.setdefault(edit.span.path, [])
        if parts and parts[0].span.source is not edit.span.source:
            if parts[0].span.source.text != edit.span.source.text:
                raise CannotPlan(f"{edit.span.path}: it was changed while it was read; run again")
            span = replace(edit.span, source=parts[0].span.source)
            edit = replace(edit, span=span)
        if edit not in parts:
            parts.append(edit)
    return found


def _copy(given: _Given, training: _Training, path: str, source: SourceText, after: bytes) -> tuple[Copy, tuple[Edit, ...]]:
    """A copy with the edit of the command line that names it; the file in place where no word can name the copy."""
    place = _copy_path(path, after)
    word = _naming(given, path) if _may_be_elsewhere(training, source) else None
    if word is not None:
        command, argument, key = word
        if not command.in_text:  # a word of the command line; a script that is a copy cannot be proved before it is there
            return Copy(place, after), (Edit(argument.span, quoted(key + place)),)
        with contextlib.suppress(CannotEdit):
            return Copy(place, after), set_value(given.shell, command, argument, place, key).edits
    return Copy(path, after, Path(path).read_bytes()), ()


# A script that looks for what lies beside it must stay where it is.
_LOOKS_AROUND = re.compile(r"\$\{?0\b|BASH_SOURCE|\$_\b")
# What starts programs on other machines, which do not see this one's temporary directory.
_ELSEWHERE = frozenset(
    ["srun", "sbatch", "ssh", "pdsh", "mpirun", "mpiexec", "orterun", "horovodrun", "deepspeed", "ray", "docker"]
)


def _may_be_elsewhere(training: _Training, source: SourceText) -> bool:
    names = {(known_text(word) or "").rpartition("/")[2] for word in training.command.words}
    if names & _ELSEWHERE or training.launch.launcher in _ELSEWHERE:
        return False
    return not (source.path.endswith((".sh", ".bash")) and _LOOKS_AROUND.search(source.text))


def _naming(given: _Given, path: str) -> tuple[Command, Argument, str] | None:
    """The word of the command line by which the job finds a file, and what stands before the name in it (``--config=``)."""
    for command in given.shell.commands:
        if command.span.source is not given.source:
            continue
        for argument in command.words[1:]:
            text = argument.text
            key = "" if text is None or not text.startswith("--") else text[: text.find("=") + 1]
            if text is not None and _same_file(text[len(key) :], path):
                return command, argument, key
    return None


def _same_file(name: str, path: str) -> bool:
    try:
        return bool(name) and Path(name).exists() and Path(name).samefile(path)
    except (OSError, ValueError):
        return False


def _copy_path(path: str, after: bytes) -> str:
    """A place of one's own for what a file is to be; the same at every start with the same outcome."""
    import tempfile

    mark = sha256(os.fsencode(Path(path).absolute()) + b"\0" + after).hexdigest()[:12]
    return str(Path(tempfile.gettempdir(), f"ckptlint-{os.getuid()}", mark, Path(path).name))


def _write_copy(path: Path, content: bytes) -> None:
    top = path.parent.parent
    try:
        top.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = top.lstat()
        if status.st_uid != os.getuid() or top.is_symlink() or status.st_mode & 0o022:
            raise CannotWrite(top, "belongs to somebody else", "set TMPDIR to a directory of your own")
        path.parent.mkdir(mode=0o700, exist_ok=True)
        temporary = path.with_name(f".{path.name}.{os.getpid()}")
        temporary.write_bytes(content)
        temporary.replace(path)
    except OSError as error:
        raise CannotWrite(path, f"cannot be written: {(error.strerror or str(error)).lower()}", "set TMPDIR") from None


# ------------------------------------------------------------------------------------------------ plans


def _plan(
    given: _Given,
    training: _Training,
    command: tuple[str, ...],
    files: Iterable[tuple[str, list[Edit]]],
    disk: tuple[DiskChange, ...],
) -> Plan:
    decision, request = training.decision, training.decision.request
    made = [replace(change, path=path) for path, edits in files for change in changes(edits[0].span.source, edits)]
    return Plan(
        target=_shortened(" ".join(given.command)),
        title=training.run.title,
        framework=training.run.framework,
        directory=request.save.root.directory,
        chosen=request.chosen,
        chosen_path=request.chosen_path,
        skipped=decision.skipped,
        changes=tuple(made),
        notices=with_repairs(decision.notices, disk),
        arguments=decision.pin.arguments,
        before=b"",
        after=b"",
        disk=disk,
        command=command,
        place=None if request.chosen is None else (request.searched[-1].root.directory, request.chosen.path),
    )


def _shortened(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


__all__ = ["COMMAND_LINE", "CannotPlan", "Copy", "SourceError", "Start", "carry_out", "prepare", "prepared"]
