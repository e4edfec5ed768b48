"""Shell scripts: the commands they launch, with every argument traced to the place where it is written.

Nothing is run. What the script does not fix (the environment, its arguments, what other programs print) stays unknown; where a
condition hangs on that, both ways are followed.
"""

from __future__ import annotations

from ckptlint.source.shell import notices
from ckptlint.source.shell.command import (
    Command,
    Condition,
    Failure,
    Loss,
    Mask,
    Neighbour,
    Notice,
    Place,
    Redirection,
    ShellSource,
)
from ckptlint.source.shell.edits import Change, append, insert_line, quoted, remove, set_here, set_value
from ckptlint.source.shell.interpret import Interpreter, Record
from ckptlint.source.shell.values import Argument, Kind, Known, Piece, Quote, Unknown, Value
from ckptlint.source.text import SourceText

__all__ = [
    "Argument",
    "Change",
    "Command",
    "Condition",
    "Failure",
    "Kind",
    "Known",
    "Loss",
    "Mask",
    "Neighbour",
    "Notice",
    "Piece",
    "Place",
    "Quote",
    "Redirection",
    "ShellSource",
    "Unknown",
    "Value",
    "append",
    "insert_line",
    "quoted",
    "read",
    "remove",
    "set_here",
    "set_value",
]


def read(source: SourceText, neighbour: Neighbour | None = None) -> ShellSource:
    """What a script runs. Never raises and always ends; what is too large is read in part (``complete``).

    ``neighbour`` gives the text of another script by the path the script names it by (``./x.sh`` stands for a path beside this
    one), or None.
    """
    interpreter = Interpreter(source, neighbour)
    ends = interpreter.run()
    commands = tuple(finished(record, interpreter) for record in interpreter.records)
    return ShellSource(
        source,
        commands,
        (*interpreter.notices, *notices.found(source, interpreter.records, interpreter.comments)),
        interpreter.comments,
        tuple(end.trace for end in sorted(ends, key=lambda end: not end.shipped)),
        tuple(interpreter.reads),
        interpreter.complete,
        neighbour,
    )


def finished(record: Record, interpreter: Interpreter) -> Command:
    return Command(
        record.number,
        record.words,
        record.argv,
        record.assignments,
        record.exported,
        record.redirections,
        record.stdin,
        record.piped_into,
        record.directory,
        record.place,
        failure(record, interpreter),
        record.as_shipped,
        record.span,
        record.span.source in interpreter.composites,
    )


def failure(record: Record, interpreter: Interpreter) -> Failure:
    """Whether a failure of the command ends the script with another status than 0."""
    if record.number in interpreter.reaching:
        return Failure(True)
    masks = [Mask(mask) for mask in record.masks]
    pipefail = False
    if record.pipeline is not None and not record.last_stage:
        masks.insert(0, Mask.PIPE)
        pipefail = any(
            other.pipeline == record.pipeline and other.last_stage and other.number in interpreter.reaching
            for other in interpreter.records
        )
        if not pipefail and len(masks) == 1:
            masks.append(Mask.LATER)
    return Failure(False, tuple(masks) or (Mask.LATER,), pipefail)
