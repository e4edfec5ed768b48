"""``ckptlint server``."""

from __future__ import annotations

import sys

import click

from ckptlint.cli import ERROR

_EXTRA = ("pygls", "lsprotocol", "cattrs", "attrs", "attr")


@click.command(short_help="The language server, for editors.")
@click.option("--stdio", is_flag=True, help="Speak over standard input and output. It always does; some editors say it anyway.")
@click.pass_context
def server(ctx: click.Context, /, stdio: bool) -> None:  # noqa: ARG001
    """Check files in an editor as they are written. An editor starts this and speaks to it on standard input and output.

    How to set up an editor: docs/editors.md.
    """
    try:
        from ckptlint.server.language_server import serve
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] not in _EXTRA:
            raise
        click.echo(f"error: the language server needs {error.name}: pip install 'ckptlint[server]'", err=True)
        ctx.exit(ERROR)
    if sys.stdin.isatty():
        click.echo("The language server waits for an editor on standard input; to check files: ckptlint check", err=True)
    serve()
