"""Resume plans, for people and for programs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

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
    for skipped in plan.skipped:
        yield f"  not {skipped.path}: {skipped.verdict.value}; {skipped.reason}"
    for change in plan.changes:
        yield from _change(change, colours)
    for notice in plan.notices:
        yield f"  {colours.yellow(notice.name)}: {notice.message}"
    if not plan.changes:
        yield "  nothing to change"
    elif not written:
        yield "  not written (dry run)"


def _choice(plan: Plan, colours: Colours) -> str:
    if plan.chosen is None or plan.chosen_path is None:
        return "no complete checkpoint"
    step = "" if plan.chosen.step is None else f", step {plan.chosen.step}"
    why = "the newest complete one" if plan.skipped else "the newest"
    return f"resume from {colours.green(plan.chosen_path)}{step} ({why})"


def _change(change: Change, colours: Colours) -> Iterator[str]:
    for sign, lines in (("-", change.before), ("+", change.after)):
        for line in lines.splitlines():
            yield f"  {change.line:>5} {colours.red(sign) if sign == '-' else colours.green(sign)} {line}"


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
        ],
        "command": None,
        "notices": [{"name": notice.name, "message": notice.message} for notice in plan.notices],
    }


def _skipped(skipped: Skipped) -> dict[str, object]:
    return {"path": skipped.path, "step": skipped.step, "verdict": skipped.verdict.value, "reason": skipped.reason}
