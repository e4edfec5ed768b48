"""Launch scripts: every start of a training in a shell script, read as its framework reads its command line."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from ckptlint.frameworks import launch_readers
from ckptlint.frameworks.framework import NotPinned
from ckptlint.frameworks.launch_facts import with_facts
from ckptlint.frameworks.launches import Launch, launches
from ckptlint.frameworks.project import Project
from ckptlint.frameworks.script_editor import ScriptEditor
from ckptlint.run import Run
from ckptlint.source.file import SourceFile
from ckptlint.source.shell import Command, Loss, ShellSource
from ckptlint.source.shell import read as read_shell
from ckptlint.source.text import SourceError, Span

SUFFIXES = (".sh", ".bash", ".slurm", ".sbatch", ".zsh")

# More ways through a script than these are not told apart.
MOST_WAYS = 24

_LAUNCHER = re.compile(
    rb"python|torchrun|msrun|deepspeed|accelerate|mpirun|horovodrun|llamafactory-cli|\blmf\b|\bswift\b|\bmegatron\b|axolotl|\btrl\b"
    rb"|\$\{?(?:[A-Z]+_)*(?:PYTHON|CMD|COMMAND|LAUNCHER|ENTRYPOINT)"
)
# What the command line of a training holds, or the name of what is started.
_TRAINING = re.compile(
    rb"train|sft|dpo|ppo|grpo|verl|finetune|--output_dir|--save[ =-]|rlhf|swift|megatron|axolotl|recipe|\bpt\b", re.I
)


class LaunchScripts(NotPinned):
    """A shell script. Its runs bear the names of the frameworks they are of."""

    name = "launch-script"
    title = "launch script"
    suffixes = SUFFIXES

    def mentions(self, data: bytes) -> bool:
        return _LAUNCHER.search(data) is not None and _TRAINING.search(data) is not None

    def read(self, file: SourceFile) -> tuple[Run, ...]:
        project = Project(file.path)
        shell = read_shell(file.text, project.neighbour)
        runs = tuple(runs_of(shell, file, project))
        if not runs:
            _refuse_what_bash_refuses(shell)
        return runs


# A launch of a training, as one sees it without reading the script.
_SURE = re.compile(
    r"^[^#\n]*(?:\bverl\.trainer\.main_ppo|\bllamafactory-cli train|\b(?:swift|megatron) (?:sft|pt|rlhf)\b|\baxolotl train"
    r"|(?:torchrun|msrun|deepspeed|python3?)\b.*\b(?:pretrain|posttrain|finetune|train)\w*\.py)",
    re.M,
)


def _refuse_what_bash_refuses(shell: ShellSource) -> None:
    """A script that bash does not read up to its launch.

    Raises:
        SourceError: names the place where bash stops.
    """
    for notice in shell.notices:
        if notice.loss is Loss.SYNTAX and _SURE.search(shell.source.text, notice.span.start):
            raise SourceError(notice.span, f"bash stops reading here: {notice.detail}", "mend it, or fill the placeholder in")


def runs_of(shell: ShellSource, file: SourceFile, project: Project) -> Iterator[Run]:
    """The runs that a script's launches describe, one for each launch; its other ways are the same on other ways."""
    sites: dict[tuple[Span, ...], list[Launch]] = {}
    commands = {command.number: command for command in shell.commands}
    for launch in launches(shell):
        sites.setdefault(tuple(_carried(launch.command, commands)), []).append(launch)
    for site in sites.values():
        ways = [run for launch in _sorted(site) if (run := _read(launch, file, project)) is not None]
        if ways:
            yield ways[0]._replace(ways=tuple(ways[1:]))


def _carried(command: Command, commands: Mapping[int, Command]) -> Iterator[Span]:
    """Where a command stands, where the one stands that runs it, and so on."""
    yield command.span
    while command.place.carrier is not None:
        command = commands[command.place.carrier]
        yield command.span


def _sorted(site: list[Launch]) -> list[Launch]:
    """The way taken in an empty environment first."""
    return sorted(site, key=lambda launch: not launch.command.as_shipped)[:MOST_WAYS]


def _read(launch: Launch, file: SourceFile, project: Project) -> Run | None:
    if launch_readers.NO_TRAINING.search(launch.script):
        return None
    run = launch_readers.read(launch_readers.Asked(launch, file, project, ScriptEditor(launch.shell, launch.command)))
    return None if run is None else with_facts(run._replace(where=launch.place), launch)
