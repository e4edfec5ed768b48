"""The command line. One module a command, whose ``command`` it is named like; a command is imported when it is called.

Shell completion comes with click: ``eval "$(_CKPTLINT_COMPLETE=bash_source ckptlint)"`` (or ``zsh_source``, ``fish_source``).
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import click

from ckptlint.rule import BrokenPlugin

FOUND, ERROR = 1, 2  # exit codes; 0 is clean


class Failure(click.ClickException):
    """An error that ends the command; exit code 2."""

    exit_code = ERROR


class Commands(click.Group):
    """The modules beside this one, as commands."""

    def invoke(self, ctx: click.Context) -> object:
        """Like click; what nobody expected is an error (2) and never looks like findings (1), as a traceback would."""
        try:
            return super().invoke(ctx)
        except BrokenPlugin as error:
            raise Failure(str(error)) from None
        except (click.ClickException, click.Abort, click.exceptions.Exit, BrokenPipeError):
            raise
        except Exception as error:
            raise Failure(_internal_error(error)) from error

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Every command, by name."""
        return sorted(path.stem for path in Path(__file__).parent.glob("[a-z]*.py"))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command with this name; its module is named and spelt like it."""
        if cmd_name not in self.list_commands(ctx):
            return None
        command = getattr(importlib.import_module(f"ckptlint.cli.{cmd_name}"), cmd_name)
        assert isinstance(command, click.Command)
        return command

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        """Like click, with advice for a word that is no command."""
        known = self.list_commands(ctx)
        if args and args[0] not in known and not args[0].startswith("-"):
            ctx.fail(f"no command is called `{args[0]}`; {_advice(args[0], known)}")
        return super().resolve_command(ctx, args)


def _internal_error(error: Exception) -> str:
    from ckptlint.linter import internal_error

    message, detail = internal_error("this command", error)
    return f"{message}\n{detail}".rstrip()


def _advice(word: str, known: list[str]) -> str:
    import difflib

    if Path(word).exists():
        return f"to check that path: `ckptlint check {word}`"
    near = difflib.get_close_matches(word, known, 1)
    return f"did you mean `{near[0]}`?" if near else f"there are: {', '.join(known)}"


@click.command(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="ckptlint", prog_name="ckptlint", message="%(prog)s %(version)s")
def cli() -> None:
    """Lint, repair and pin the checkpoint settings of ML training runs, so that a killed job loses minutes, not days."""


def main() -> None:
    """The console script."""
    for stream in (sys.stdout, sys.stderr):
        # A name or a message that the terminal's encoding cannot hold is escaped, not a crash.
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")
    cli(prog_name="ckptlint")
