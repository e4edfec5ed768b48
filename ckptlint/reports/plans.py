"""Resume plans, for people and for programs."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path

from ckptlint.checkpoints.checkpoint import Verdict
from ckptlint.frameworks.framework import DiskChange, ResumeView
from ckptlint.reports.diff import unified
from ckptlint.reports.terminal import PLAIN, Colours
from ckptlint.resume import Change, Plan, Skipped


def text(plan: Plan, colours: Colours = PLAIN, *, written: bool) -> str:
    """What will happen, in the order in which somebody asks: which checkpoint, why not a newer one, which lines, what to know.

    ``written``: whether the changes are being made.
    """
    return "".join(line + "\n" for line in _lines(plan, colours, written))


def _lines(plan: Plan, colours: Colours, written: bool) -> Iterator[str]:
    yield f"{colours.bold(plan.target)} ({plan.title}): {_choice(plan, colours)}"
    for why, group in groupby(plan.skipped, _why_skipped):
        yield f"  not {', '.join(skipped.path for skipped in group)}: {why}"
    for change in plan.changes:
        yield from _change(change, colours)
    for notice in plan.notices:
        if not (plan.skipped and notice.name in _SAID_OF_SKIPPED):
            yield f"  {colours.yellow(notice.name)}: {notice.message}"
    for disk in plan.disk:
        yield f"  on disk: {_disk_change(disk)}"
    if plan.command is not None:
        yield f"  {'run' if written else 'would run'}: {shlex.join(plan.command)}"
    elif not plan.changes and not plan.disk:
        yield "  nothing to change"
    elif not written:
        yield "  not written (dry run)"


# Why a whole one was not taken with --step.
_ASKED = re.compile(r"step \d+ is asked for")

# What the lines about skipped checkpoints say already, with the reasons.
_SAID_OF_SKIPPED = ("newer-damaged", "weights-only-skipped")


def _choice(plan: Plan, colours: Colours) -> str:
    if plan.chosen is None or plan.chosen_path is None:
        return _without_choice(plan, colours)
    step = "" if plan.chosen.step is None else f", step {plan.chosen.step}"
    why = "the newest that can be resumed" if plan.skipped else "the newest"
    if any(_ASKED.fullmatch(skipped.reason) for skipped in plan.skipped):
        why = "as asked for"
    return f"resume from {colours.green(plan.chosen_path)}{step} ({why})"


def _without_choice(plan: Plan, colours: Colours) -> str:
    if plan.refused:
        return colours.red("do not launch it as things are")
    return "nothing complete to resume" if plan.skipped else "nothing to resume"


def _why_skipped(skipped: Skipped) -> str:
    """A whole one was skipped for what this launch is; that says it all."""
    if skipped.verdict is Verdict.COMPLETE:
        return skipped.reason
    more = len(skipped.reasons) - 1
    return f"{skipped.verdict.value}; {skipped.reasons[0]}" + (f" (and {more} more)" if more else "")


def _change(change: Change, colours: Colours) -> Iterator[str]:
    for sign, lines in ((colours.red("-"), change.before), (colours.green("+"), change.after)):
        for number, line in enumerate(lines.splitlines(), change.line):
            yield f"  {number:>5} {sign} {line}"


def _disk_change(change: DiskChange) -> str:
    if isinstance(change, ResumeView):
        return f"{change.path} shows {change.name} alone"
    if change.after is None:
        return f"{change.path} is moved aside; a copy is kept beside it"
    return f"{change.path} says {change.after}; what it said is kept beside it"


def diff(plan: Plan) -> str:
    """The change as a unified diff; "" where there is none."""
    return unified(plan.target, plan.before.decode("utf-8"), plan.after.decode("utf-8"))


def as_json(plans: Iterable[Plan]) -> str:
    """A list of plans, as the design fixes it."""
    return json.dumps([_object(plan) for plan in plans], indent=2, ensure_ascii=False) + "\n"


def _object(plan: Plan) -> dict[str, object]:
    chosen = None if plan.chosen is None else {"path": plan.chosen_path, "step": plan.chosen.step}
    return {
        "target": plan.target,
        "framework": plan.framework,
        "chosen": chosen,
        "skipped": [_skipped(skipped) for skipped in plan.skipped],
        "edits": [
            {"path": change.path, "line": change.line, "before": change.before, "after": change.after}
            for change in plan.changes
        ]
        + [_edit_of(change) for change in plan.disk],
        "command": None if plan.command is None else list(plan.command),
        "notices": [{"name": notice.name, "message": notice.message} for notice in plan.notices],
    }


def _edit_of(change: DiskChange) -> dict[str, object]:
    """A change beside the checkpoints as an edit of a file of one line."""
    path = f"{change.path}/{change.tracker}" if isinstance(change, ResumeView) else change.path
    text = change.text if isinstance(change, ResumeView) else change.after or ""
    try:
        before = Path(path).read_text(errors="replace").strip()
    except OSError:
        before = ""
    return {"path": path, "line": 1, "before": before, "after": text}


def _skipped(skipped: Skipped) -> dict[str, object]:
    return {"path": skipped.path, "step": skipped.step, "verdict": skipped.verdict.value, "reason": skipped.reason}
