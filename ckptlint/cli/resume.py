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
@click.option("--step", type=click.IntRange(min=0), metavar="N", help="Take the checkpoint of this step, not the newest.")
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
    step: int | None,
    deep: bool,
    output_format: str,
) -> None:
    """Point each TARGET (a run's configuration) at the newest complete checkpoint, just before it is launched.

    Run it where the launch will run: relative paths are taken from the working directory. Variables in paths get the
    environment's values. Running it again changes nothing until there is a newer checkpoint.

    Exit status: 0 the launch can go on, 1 do not launch (the framework would stop, or lose what is there), 2 an error; the file
    it is about is not changed then.
    """
    if diff and output_format == "json":
        raise click.UsageError("--diff prints a patch, --output-format json a plan; choose one")
    done: list[Plan] = []
    failed = False
    for target in targets:
        try:
            done.append(_resume(target, save_dir=save_dir, step=step, deep=deep, write=not (dry_run or diff)))
        except (CannotPlan, CannotWrite, SourceError) as error:
            click.echo(f"error: {error}", err=True)
            failed = True
            continue
        if diff:
            click.echo(plans.diff(done[-1]), nl=False)
        elif output_format == "text":
            colours = Colours(sys.stdout.isatty() and not os.environ.get("NO_COLOR"))
            click.echo(plans.text(done[-1], colours, written=not dry_run), nl=False)
    if output_format == "json":
        click.echo(plans.as_json(done), nl=False)
    ctx.exit(ERROR if failed else FOUND if any(decided.refused for decided in done) else 0)


def _resume(target: str, *, save_dir: str | None, step: int | None, deep: bool, write: bool) -> Plan:
    """The plan for one target, carried out if it is to be written."""

    def decide() -> Plan:
        return plan(target, os.environ, save_dir=save_dir, deep=deep, step=step)

    decided = decide()
    if not write:
        return decided
    try:
        return carry_out(decided, decide)
    except CannotWrite as error:
        if decided.arguments:
            raise CannotPlan(f"{error}; or add to the launch's command line: {' '.join(decided.arguments)}") from None
        raise
