"""Commands of a script, as the readers of frameworks take them, for tests."""

from __future__ import annotations

from collections.abc import Sequence

from ckptlint.source.shell import Argument, Command, read
from ckptlint.source.text import CannotEdit, Edit, SourceText


def last_command(script: str) -> Command:
    """The last command of a script."""
    return read(SourceText("run.sh", script)).commands[-1]


class TextEditor:
    """Edits arguments that are written on the command line itself, in one stretch; enough to see which edits are asked for."""

    def __init__(self, command: Command) -> None:
        self.command = command

    def replace(self, argument: Argument, start: int, text: str) -> tuple[Edit, ...]:
        place = argument.written
        if place is None:
            raise CannotEdit("it is not written in one stretch")
        return (Edit(place.source.span(place.start + start, place.end), text),)

    def remove(self, arguments: Sequence[Argument]) -> tuple[Edit, ...]:
        return tuple(Edit(argument.written, "") for argument in arguments if argument.written is not None)

    def append(self, texts: Sequence[str]) -> tuple[Edit, ...]:
        end = self.command.span.end
        return (Edit(self.command.span.source.span(end, end), " " + " ".join(texts)),)


def edited(command: Command, edits: Sequence[Edit]) -> str:
    """The script's text after edits, blanks folded."""
    from ckptlint.source.text import apply

    return " ".join(apply(command.span.source, edits).split())
