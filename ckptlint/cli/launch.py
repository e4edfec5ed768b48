"""``ckptlint launch``."""

from __future__ import annotations

import os
import shlex
import signal
import sys
import time
from dataclasses import dataclass, replace

import click

from ckptlint.cli import ERROR, FOUND
from ckptlint.decision import Agreed, CannotPlan, NotThereYet, Wishes
from ckptlint.fixing import CannotWrite
from ckptlint.launch import Start, prepare, prepared
from ckptlint.meeting import Meeting, Nodes, nodes_of
from ckptlint.reports import plans
from ckptlint.reports.terminal import Colours
from ckptlint.source.text import SourceError

_NOT_FOUND, _NOT_EXECUTABLE = 127, 126  # as shells have it
_ERRORS = (CannotPlan, CannotWrite, SourceError)


@click.command(
    short_help="Run a training command from its newest complete checkpoint.",
    context_settings={"allow_interspersed_args": False},
)
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED, metavar="-- COMMAND...")
@click.option("--dry-run", is_flag=True, help="Print the plan and the command as it would be run; run and write nothing.")
@click.option("--save-dir", metavar="DIR", help="The directory the run saves into, instead of the one the command names.")
@click.option("--step", type=click.IntRange(min=0), metavar="N", help="Take the checkpoint of this step, not the newest.")
@click.option("--deep", is_flag=True, help="Verify checksums too (reads the checkpoints whole).")
@click.option("--retries", type=click.IntRange(min=0), metavar="N", help="Start a failed job again, at most N times.")
@click.option("--nodes", type=click.IntRange(min=1), metavar="N", help="How many nodes the job has.  [default: NNODES, ...]")
@click.option("--node-rank", type=click.IntRange(min=0), metavar="N", help="Which one this is.  [default: NODE_RANK, ...]")
@click.option("--attempt", metavar="ID", help="What tells this start of the job from the ones before, on all nodes alike.")
@click.option(
    "--decision-timeout",
    type=click.FloatRange(min=0),
    default=600.0,
    show_default=True,
    metavar="SECONDS",
    help="How long nodes wait for each other.",
)
@click.option(
    "--output-format", type=click.Choice(("text", "json")), default="text", show_default=True, help="How the plan is printed."
)
@click.pass_context
def launch(
    ctx: click.Context,
    /,
    command: tuple[str, ...],
    dry_run: bool,
    save_dir: str | None,
    step: int | None,
    deep: bool,
    retries: int | None,
    nodes: int | None,
    node_rank: int | None,
    attempt: str | None,
    decision_timeout: float,
    output_format: str,
) -> None:
    """Point COMMAND at the newest complete checkpoint, then become it.

    Arguments are added where the framework takes them; else a copy of the file that the command names is changed, or the file
    itself. The plan is printed on standard error. Signals and exit status are the job's own. A command that is no training of a
    known framework is run as it is.

    Exit status: the job's; 1 it was not started (the framework would stop, or lose what is there), 2 it cannot be planned.
    """
    wishes = Wishes(save_dir, deep, step)
    try:
        here = nodes_of(os.environ, node_rank, nodes, attempt)
        launcher = _Launcher(command, wishes, here, decision_timeout, output_format)
        if dry_run:
            ctx.exit(launcher.show(prepare(command, os.environ, wishes)))
        start = launcher.prepared()
    except _ERRORS as error:
        click.echo(f"error: {error}", err=True)
        ctx.exit(ERROR)
    if start.refused:
        ctx.exit(FOUND)
    ctx.exit(_become(start.command) if retries is None else launcher.retry(start, retries))


@dataclass
class _Launcher:
    """One command on one of the job's nodes, started once or again and again."""

    command: tuple[str, ...]
    wishes: Wishes
    nodes: Nodes
    timeout: float
    output_format: str

    def prepared(self, tried: int = 0) -> Start:
        """The plan, agreed on with the other nodes, written and printed."""
        start = self._alone() if not self.nodes.several else self._together(tried)
        self._print(start, written=True)
        return start

    def show(self, start: Start) -> int:
        self._print(start, written=False)
        return FOUND if start.refused else 0

    def _alone(self) -> Start:
        return prepared(self.command, os.environ, self.wishes)

    def _together(self, tried: int) -> Start:
        first = prepare(self.command, os.environ, self.wishes)
        if not first.plans:
            return first
        nodes = self.nodes
        if tried and nodes.attempt:
            nodes = replace(nodes, attempt=f"{nodes.attempt}.{tried}")
        meeting = Meeting(first.plans[0].directory, nodes, self.timeout)
        if nodes.rank == 0:
            return self._leading(meeting)
        return self._following(meeting.follow())

    def _leading(self, meeting: Meeting) -> Start:
        made: list[Start] = []

        def decide() -> Agreed:
            start = self._alone()
            made.append(start)
            if start.refused:
                raise CannotPlan("as things lie the framework would stop, or lose what is there")
            return start.agreed

        try:
            meeting.lead(decide)
        except CannotPlan:
            if not made or not made[-1].refused:
                raise
        return made[-1]

    def _following(self, agreed: Agreed) -> Start:
        """A checkpoint that this node does not see yet may come up: shared storage shows it late."""
        until = time.monotonic() + self.timeout
        wishes = Wishes(self.wishes.save_dir, agreed=agreed)
        while (start := self._as_agreed(wishes, time.monotonic() >= until)) is None:
            time.sleep(0.2)
        return start

    def _as_agreed(self, wishes: Wishes, last: bool) -> Start | None:
        try:
            return prepared(self.command, os.environ, wishes, leading=False)
        except NotThereYet:
            if last:
                raise
            return None

    def retry(self, start: Start, retries: int) -> int:
        """Run the job, and again where it fails and makes progress; the exit status is that of the last try."""
        from ckptlint.retries import Job, Progress, end_like

        progress = Progress(start.steps)
        for tried in range(retries + 1):
            job = Job(start.command)
            try:
                status = job.run()
            except OSError as error:
                return _cannot_run(start.command[0], error)
            if status == 0:
                return 0
            if job.ended_by_request or tried == retries:
                return end_like(status)
            try:
                start = self.prepared(tried + 1)
            except _ERRORS as error:
                click.echo(f"error: the job failed ({_status(status)}), and {error}", err=True)
                return end_like(status)
            progress.after_failure(start.steps)
            if start.refused or progress.hopeless:
                why = "as things lie it would not start" if start.refused else "two tries have brought no newer checkpoint"
                click.echo(f"the job failed ({_status(status)}); not started again: {why}", err=True)
                return end_like(status)
            click.echo(f"the job failed ({_status(status)}); try {tried + 1} of {retries}", err=True)
        return ERROR

    def _print(self, start: Start, *, written: bool) -> None:
        stream = sys.stderr if written else sys.stdout
        if self.output_format == "json":
            click.echo(plans.as_json(start.plans), nl=False, err=written)
            return
        if not start.plans:
            click.echo("no training of a known framework: the command is run as it is", err=True)
            if not written:
                click.echo(f"  would run: {shlex.join(start.command)}")
            return
        colours = Colours(stream.isatty() and not os.environ.get("NO_COLOR"))
        for plan in start.plans:
            click.echo(plans.text(plan, colours, written=written and not start.refused), nl=False, err=written)


def _status(status: int) -> str:
    if status >= 0:
        return f"exit status {status}"
    try:
        return signal.Signals(-status).name
    except ValueError:
        return f"signal {-status}"


def _become(command: tuple[str, ...]) -> int:
    """Replace this process by the job. What comes back is the exit status where that fails."""
    sys.stdout.flush()
    sys.stderr.flush()
    for name in ("SIGPIPE", "SIGXFSZ"):  # Python ignores them, and what is ignored stays so in the job
        signal.signal(getattr(signal, name), signal.SIG_DFL)
    try:
        os.execvp(command[0], command)
    except OSError as error:
        return _cannot_run(command[0], error)


def _cannot_run(program: str, error: OSError) -> int:
    click.echo(f"error: {program}: {(error.strerror or str(error)).lower()}", err=True)
    return _NOT_FOUND if isinstance(error, FileNotFoundError) else _NOT_EXECUTABLE
