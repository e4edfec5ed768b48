"""``ckptlint resume``."""

from __future__ import annotations

import os
import sys

import click

from ckptlint.cli import ERROR, FOUND
from ckptlint.fixing import CannotWrite
from ckptlint.reports import plans
from ckptlint.reports.terminal import Colours
from ckptlint.resume import CannotPlan, Plan, carry_out, plan
from ckptlint.source.text import SourceError


@click.command(short_help="Pin configurations to the newest complete checkpoint.")
@click.argument("targets", nargs=-1, required=True, metavar="TARGET...")
@click.option("--dry-run", is_flag=True, help="Print the plan; write nothing.")
@click.option("--diff", is_flag=True, help="Print the change as a patch; write nothing.")
@click.option("--save-dir", metavar="DIR", help="The directory the run saves into, instead of the one the file names.")
@click.option("--deep", is_flag=True, help="Verify checksums too (reads the checkpoints whole).")
@click.option(
    "--output-format", type=click.Choice(("text", "json")), default="text", show_default=True, help="How the plan is printed."
)
@click.pass_context
def resume(
    ctx: click.Context,
    /,
    targets: tuple[str, ...],
    dry_run: bool,
    diff: bool,
    save_dir: str | None,
    deep: bool,
    output_format: str,
) -> None:
    """Point each TARGET (a run's configuration) at the newest complete checkpoint, just before it is launched.

    Run it where the launch will run: relative paths are taken from the working directory. Variables in paths get the
    environment's values. Running it again changes nothing until there is a newer checkpoint.

    Exit status: 0 the launch can go on, 1 the framework will refuse to start as things lie, 2 an error; nothing is changed then.
    """
    done: list[Plan] = []
    failed = False
    for target in targets:

        def decide(target: str = target) -> Plan:
            return plan(target, os.environ, save_dir=save_dir, deep=deep)

        try:
            decided = decide()
            if not (dry_run or diff):
                _print(decided, output_format, written=True)
                decided = carry_out(decided, decide)
        except (CannotPlan, CannotWrite, SourceError) as error:
            click.echo(f"error: {error}{_remedy(error)}", err=True)
            failed = True
            continue
        done.append(decided)
        if diff:
            click.echo(plans.diff(decided), nl=False)
        elif dry_run:
            _print(decided, output_format, written=False)
    if output_format == "json" and not diff:
        click.echo(plans.as_json(done), nl=False)
    ctx.exit(ERROR if failed else FOUND if any(decided.refused for decided in done) else 0)


def _print(decided: Plan, output_format: str, *, written: bool) -> None:
    if output_format == "text":
        colours = Colours(sys.stdout.isatty() and not os.environ.get("NO_COLOR"))
        click.echo(plans.text(decided, colours, written=written), nl=False)


def _remedy(error: Exception) -> str:
    """Where the file cannot be written, the launch can still be pinned on its command line."""
    return "; or pass the setting on the launch's command line instead" if isinstance(error, CannotWrite) else ""
