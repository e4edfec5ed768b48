"""From the commands of a script to launches: which program, with which arguments, on how many processes.

Sources: torch 2.8 ``distributed/run.py`` and ``distributed/launch.py``; MindSpore 2.6 ``msrun`` (``parallel/cluster/run.py``);
DeepSpeed 0.17 ``launcher/runner.py``; Accelerate 1.15 ``commands/launch.py``; LLaMA-Factory ff6d4d12 ``cli.py``,
``launcher.py``; ms-swift 4.6 ``cli/main.py``, ``cli/_megatron/main.py``; axolotl 0.18 ``cli/main.py``; TRL 1.10 ``cli.py``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from ckptlint.frameworks import flags
from ckptlint.source.shell.command import Command, ShellSource
from ckptlint.source.shell.values import Argument, Known, Value, default_text
from ckptlint.source.shell.values import Unknown as OpenPiece
from ckptlint.source.text import Span


class Tool(NamedTuple):
    """A command line tool of a framework, and which of its subcommands."""

    name: str
    subcommand: str


@dataclass(frozen=True)
class Launch:
    """One start of a program.

    ``argv`` is what is left of the command behind what only brings it there (``mpirun``, ``uv run``). ``program`` is the path
    of a script, or the name of a module; "" for a tool. ``world_size`` is the number of processes over all nodes, None where
    that is not known.
    """

    shell: ShellSource
    command: Command
    argv: tuple[Argument, ...]
    program: str
    arguments: tuple[Argument, ...]
    is_module: bool = False
    tool: Tool | None = None
    launcher: str = ""
    launcher_arguments: tuple[Argument, ...] = ()
    world_size: int | None = None

    @property
    def script(self) -> str:
        """The script's name without its folder; the whole name of a module."""
        return self.program if self.is_module else self.program.rpartition("/")[2]

    @property
    def place(self) -> Span:
        """Where the launch stands: the first word of its command."""
        return self.command.words[0].span if self.command.words else self.command.span

    def variable(self, name: str) -> Value | None:
        """The value of an environment variable by the script, None where the script does not set it."""
        own = self.command.assignments.get(name)
        return self.command.exported.get(name) if own is None else own

    def is_set(self, name: str) -> bool:
        """Whether a switch in the environment is on: ``USE_V1=1``."""
        value = self.variable(name)
        return value is not None and (default_text(value) or "").strip().lower() in ("1", "true", "y", "yes", "on")


# Tools whose first argument says what they do, and the subcommands that train.
TRAINING_SUBCOMMANDS: Mapping[str, frozenset[str]] = {
    "llamafactory-cli": frozenset({"train"}),
    "lmf": frozenset({"train"}),
    "swift": frozenset({"sft", "pt", "rlhf"}),
    "megatron": frozenset({"sft", "pt", "rlhf"}),
    "axolotl": frozenset({"train"}),
    "trl": frozenset({"sft", "dpo", "kto", "reward", "grpo", "rloo"}),
}
_SAME_TOOL = {"lmf": "llamafactory-cli"}

# Modules and scripts that are such a tool; the part in parentheses is the subcommand.
_TOOL_MODULES: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"llamafactory\.cli"), "llamafactory-cli"),
    (re.compile(r"(?:.*[./])?llamafactory[./]launcher(?:\.py)?"), "llamafactory-cli train"),
    (re.compile(r"(?:.*/)?swift/cli/_megatron/(sft|pt|rlhf)\.py|swift\.cli\._megatron\.(sft|pt|rlhf)"), "megatron"),
    (re.compile(r"(?:.*/)?swift/cli/(sft|pt|rlhf)\.py|swift\.cli\.(sft|pt|rlhf)"), "swift"),
    (re.compile(r"axolotl\.cli\.(train)|(?:.*/)?axolotl/cli/(train)\.py"), "axolotl"),
    (re.compile(r"axolotl\.cli\.main|axolotl\.cli"), "axolotl"),
    (re.compile(r"trl\.scripts\.(sft|dpo|kto|reward|grpo|rloo)|(?:.*/)?trl/scripts/(sft|dpo|kto|reward|grpo|rloo)\.py"), "trl"),
)

_MPI = ("mpirun", "mpiexec", "horovodrun", "orterun")
# Options of mpirun and horovodrun with values, as far as scripts of training use them (Open MPI 5 and Horovod 0.28 manuals).
_MPI_VALUES: Mapping[str, int] = {
    **dict.fromkeys(("-np", "-n", "--np", "-c", "-H", "--host", "-hostfile", "--hostfile", "--machinefile", "-x", "-wdir"), 1),
    **dict.fromkeys(("--map-by", "--bind-to", "--npernode", "-npernode", "-N", "--wdir", "-p", "--ssh-port", "-ppn"), 1),
    **dict.fromkeys(("-mca", "--mca", "-gmca", "--prtemca", "-genv"), 2),
}


# Programs that run another one in an environment of its own, or watch it; what stands between are their options.
_RUNNERS = frozenset(
    ["uv", "poetry", "pipenv", "pixi", "conda", "mamba", "micromamba", "nsys", "ncu", "singularity", "apptainer", "debugpy-run"]
)
_LAUNCHERS = re.compile(r"python[\d.]*|torchrun|msrun|deepspeed|accelerate|mpirun|mpiexec|horovodrun")


def _behind_runner(argv: Sequence[Argument]) -> Sequence[Argument]:
    """The words from the first launcher on; () where there is none."""
    for at, word in enumerate(argv[1:], 1):
        name = (flags.known_text(word) or "").rpartition("/")[2]
        if name in TRAINING_SUBCOMMANDS or _LAUNCHERS.fullmatch(name):
            return argv[at:]
    return ()


def launches(shell: ShellSource) -> Iterator[Launch]:
    """The starts of programs in a script, in the order in which it may run them; what starts none is passed over."""
    for command in shell.commands:
        if command.place.substitution or not command.argv:
            continue
        launch = _launch(shell, command, command.argv)
        if launch is not None:
            yield launch


def _launch(shell: ShellSource, command: Command, argv: Sequence[Argument]) -> Launch | None:
    name = flags.known_text(argv[0])
    if name is None:
        return None
    name = name.rpartition("/")[2]
    if name in _MPI:
        return _behind_mpi(shell, command, argv, name)
    if name in _RUNNERS:
        inner = _behind_runner(argv)
        return _launch(shell, command, inner) if inner else None
    if name in TRAINING_SUBCOMMANDS:
        return _tool(Launch(shell, command, tuple(argv), "", tuple(argv[1:]), launcher=name), name, "")
    found = flags.program(argv)
    if found is None:
        return None
    before = len(argv) - len(found.arguments)
    launcher, own = _launcher(name, argv[:before])
    launch = Launch(
        shell,
        command,
        tuple(argv),
        found.name,
        found.arguments,
        found.is_module,
        launcher=launcher,
        launcher_arguments=tuple(own),
        world_size=_world_size(launcher, own),
    )
    return _as_tool(launch)


def _behind_mpi(shell: ShellSource, command: Command, argv: Sequence[Argument], name: str) -> Launch | None:
    at, count = 1, None
    while at < len(argv):
        text = flags.known_text(argv[at]) or ""
        if not text.startswith("-"):
            break
        if text in ("-np", "-n", "--np", "-c") and at + 1 < len(argv):
            count = flags.known_text(argv[at + 1])
        at += 1 + _MPI_VALUES.get(text, 0)
    inner = _launch(shell, command, argv[at:]) if at < len(argv) else None
    if inner is None:
        return None
    size = int(count) if count is not None and count.isdigit() else None
    return replace(inner, launcher=name, launcher_arguments=tuple(argv[1:at]), world_size=size)


def _launcher(name: str, words: Sequence[Argument]) -> tuple[str, Sequence[Argument]]:
    """What starts the processes, and the words that are its own; ``python -m torch.distributed.run`` is torchrun."""
    texts = [flags.known_text(word) for word in words]
    for module, launcher in _LAUNCHER_MODULES.items():
        if "-m" in texts and texts.index("-m") + 1 < len(texts) and texts[texts.index("-m") + 1] == module:
            return launcher, words[texts.index("-m") + 2 :]
    return ("python" if re.fullmatch(r"(?:python|pypy)[\d.]*", name) else name), words[1:]


_LAUNCHER_MODULES = {
    "torch.distributed.run": "torchrun",
    "torch.distributed.launch": "torchrun",
    "accelerate.commands.launch": "accelerate",
}


class Counts(NamedTuple):
    """The options by which a launcher is told the number of processes: of a node, of nodes, of all."""

    of_node: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()
    all: tuple[str, ...] = ()
    default_of_node: str = ""


COUNTS: Mapping[str, Counts] = {
    # torch/distributed/run.py get_args_parser
    "torchrun": Counts(("--nproc-per-node", "--nproc_per_node"), ("--nnodes",), (), "1"),
    "msrun": Counts((), (), ("--worker_num",)),
    "deepspeed": Counts(("--num_gpus",), ("--num_nodes",)),
    "accelerate": Counts((), (), ("--num_processes", "--num-processes")),
    "python": Counts((), (), (), "1"),
}


def _world_size(launcher: str, words: Sequence[Argument]) -> int | None:
    counts = COUNTS.get(launcher, Counts())
    whole = _count(words, counts.all, "")
    if whole is not None:
        return whole
    of_node, nodes = _count(words, counts.of_node, counts.default_of_node), _count(words, counts.nodes, "1")
    return None if of_node is None or nodes is None else of_node * nodes


def _count(words: Sequence[Argument], names: Sequence[str], default: str) -> int | None:
    found: str | None = default
    for at, word in enumerate(words):
        head = flags.known_head(word)
        option, equals, _ = head.partition("=")
        if option not in names:
            continue
        if equals:
            text = flags.known_text(word)
            found = None if text is None else text.partition("=")[2]
        else:
            found = flags.known_text(words[at + 1]) if at + 1 < len(words) else None
    return int(found) if found is not None and found.isdigit() else None


# ------------------------------------------------------------------------------------------------ tools


def _as_tool(launch: Launch) -> Launch | None:
    for pattern, words in _TOOL_MODULES:
        match = pattern.fullmatch(launch.program)
        if match is not None:
            name, _, subcommand = words.partition(" ")
            return _tool(launch, name, subcommand or next((group for group in match.groups() if group), ""))
    return launch


def _tool(launch: Launch, name: str, subcommand: str) -> Launch | None:
    """A tool that trains; None where its subcommand does something else, or is not known."""
    arguments = launch.arguments
    if not subcommand:
        subcommand = (flags.known_text(arguments[0]) if arguments else None) or ""
        arguments = arguments[1:]
    if subcommand not in TRAINING_SUBCOMMANDS[name]:
        return None
    tool = Tool(_SAME_TOOL.get(name, name), subcommand)
    launch = replace(launch, tool=tool, arguments=arguments)
    if launch.launcher in ("", name, "python"):
        return replace(launch, world_size=_by_environment(launch))
    return launch


def _by_environment(launch: Launch) -> int | None:
    """LLaMA-Factory and ms-swift start torchrun themselves, as NPROC_PER_NODE and NNODES say."""
    of_node, nodes = launch.variable("NPROC_PER_NODE"), launch.variable("NNODES")
    counts = [_text_of(value, "1") for value in (of_node, nodes)]
    if of_node is None or not all(count.isdigit() for count in counts):
        return None
    return int(counts[0]) * int(counts[1])


def _text_of(value: Value | None, default: str) -> str:
    return default if value is None else default_text(value) or ""


# ------------------------------------------------------------------------------------------------ files it names


def named_file(launch: Launch, suffixes: tuple[str, ...]) -> Argument | None:
    """The first argument, where it names a file with one of these suffixes."""
    first = launch.arguments[0] if launch.arguments else None
    if first is None or not file_name(first).lower().endswith(suffixes):
        return None
    return first


def file_name(argument: Argument) -> str:
    """A file's name as far as it is known: of ``$ROOT/conf/a.yaml`` what stands behind the first slash."""
    text = flags.known_text(argument)
    if text is not None:
        return text
    pieces = list(argument.pieces)
    while pieces and isinstance(pieces[0], OpenPiece):
        pieces.pop(0)
    if not pieces or not all(isinstance(piece, Known) for piece in pieces):
        return ""
    return "".join(piece.text for piece in pieces if isinstance(piece, Known)).lstrip("/")


def option(launch: Launch, *names: str) -> Argument | None:
    """The value of the last of these options: ``--config x`` or ``--config=x``."""
    found = None
    for at, argument in enumerate(launch.arguments):
        name, equals, _ = flags.known_head(argument).partition("=")
        if name in names:
            following = launch.arguments[at + 1] if at + 1 < len(launch.arguments) else None
            found = flags.tail(argument, len(name) + 1) if equals else following
    return found


def passes_all_on(launch: Launch) -> bool:
    """Whether the caller of the script may add any arguments: ``"$@"``."""
    return any(argument.is_rest for argument in launch.arguments)
