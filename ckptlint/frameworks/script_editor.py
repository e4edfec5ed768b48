"""Edits of one command of a script, for the settings on its command line."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ckptlint.frameworks.flags import known_head
from ckptlint.source.shell import Argument, Change, Command, ShellSource, append, remove, set_value
from ckptlint.source.text import CannotEdit, Edit

# Programs that only look at a value or make its directory: a variable that they use too may change with the launch's.
HARMLESS = frozenset(["echo", "mkdir", "ls", "printf", "tee", "export", "cat", "chmod", "cd", "[", "[[", "test", "find"])


class ScriptEditor:
    """Changes the arguments of one command where the script writes them.

    An edit is refused where it would change another argument of the same command, or what another program is given.
    """

    def __init__(self, shell: ShellSource, command: Command) -> None:
        self._shell = shell
        self._command = command

    def replace(self, argument: Argument, start: int, text: str) -> tuple[Edit, ...]:
        whole = self._whole(argument)
        key = known_head(whole)[:start]
        return self._alone(lambda: set_value(self._shell, self._command, whole, text, key))

    def remove(self, arguments: Sequence[Argument]) -> tuple[Edit, ...]:
        return self._alone(lambda: remove(self._shell, self._command, [self._whole(argument) for argument in arguments]))

    def append(self, texts: Sequence[str]) -> tuple[Edit, ...]:
        return self._alone(lambda: append(self._shell, self._command, list(texts)))

    def _whole(self, argument: Argument) -> Argument:
        """The word of the command itself; a reader may hold a part of it."""
        if argument in self._command.words:
            return argument
        raise CannotEdit(f"`{argument.template()}` is no word of its command")

    def _alone(self, change: Callable[[], Change]) -> tuple[Edit, ...]:
        try:
            made = change()
        except ValueError as error:
            raise CannotEdit(str(error)) from None
        for command, argument in made.uses:
            if command.span == self._command.span or command.name not in HARMLESS:
                raise CannotEdit(f"line {command.span.line} uses the same text: `{argument.template()}`")
        return made.edits
