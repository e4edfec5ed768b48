"""``ckptlint checkpoints``."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import click

from ckptlint.checkpoints.listing import LocalListing, Unreachable
from ckptlint.checkpoints.scan import Scan, scan
from ckptlint.cli import ERROR
from ckptlint.reports import checkpoints as report
from ckptlint.reports.terminal import Colours

# How far below a named directory runs are looked for: saves/<model>/<method>/<stage> is three.
_DEPTH = 4


@click.command(short_help="List what lies in checkpoint directories, and what a restart would take.")
@click.argument("directories", nargs=-1, required=True, metavar="DIR...")
@click.option("--deep", is_flag=True, help="Verify checksums too (reads the checkpoints whole).")
@click.option(
    "--output-format", type=click.Choice(("text", "json")), default="text", show_default=True, help="How the list is printed."
)
@click.pass_context
def checkpoints(ctx: click.Context, /, directories: tuple[str, ...], deep: bool, output_format: str) -> None:
    """List the checkpoints in each DIR: a run's save directory, one checkpoint, or a directory that holds several runs.

    Says of each whether it is complete, and why not. Nothing is loaded or unpickled, nothing is changed.

    Exit status: 0 listed (also where nothing was found), 2 a directory that cannot be read.
    """
    scans: list[Scan] = []
    failed = False
    for directory in directories:
        try:
            found = list(_runs(directory, deep))
        except Unreachable as error:
            click.echo(f"error: {error}", err=True)
            failed = True
            continue
        if not found:
            click.echo(f"{directory}: no checkpoints of a layout that ckptlint knows", err=output_format == "json")
        scans += found
    if output_format == "json":
        click.echo(report.as_json(scans), nl=False)
    else:
        colours = Colours(sys.stdout.isatty() and not os.environ.get("NO_COLOR"))
        click.echo("\n".join(report.text(one, time.time(), colours) for one in scans), nl=False)
    ctx.exit(ERROR if failed else 0)


def _runs(directory: str, deep: bool, depth: int = _DEPTH) -> Iterator[Scan]:
    """The directory's own checkpoints, else those of the runs below it."""
    if not Path(directory).expanduser().exists():
        raise Unreachable(f"{directory}: no such directory")
    listing = LocalListing(directory)
    found = scan(listing, deep=deep)
    yield from found
    if found or depth == 0:
        return
    for name in listing.directories():
        if not name.startswith("."):
            yield from _runs(os.path.join(directory, name), deep, depth - 1)  # noqa: PTH118
