"""What lies in checkpoint directories, for people and for programs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from ckptlint.checkpoints.checkpoint import Checkpoint, Verdict
from ckptlint.checkpoints.scan import Scan
from ckptlint.reports.terminal import PLAIN, Colours, width

_HEADINGS = ("checkpoint", "step", "size", "age", "processes", "verdict")
_RIGHT = (False, True, True, True, True, False)  # columns that are aligned at their right edge
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")
_AGES = ((86400.0 * 2, 86400.0, "days"), (3600.0 * 2, 3600.0, "h"), (60.0 * 2, 60.0, "min"), (0.0, 1.0, "s"))


def text(scan: Scan, now: float, colours: Colours = PLAIN) -> str:
    """A table, newest first; what there is to say about each; and last, what a restart would take."""
    return "".join(line + "\n" for line in _lines(scan, now, colours))


def _lines(scan: Scan, now: float, colours: Colours) -> Iterator[str]:
    yield f"{colours.bold(scan.directory)} ({scan.title})"
    rows = [_HEADINGS, *(_row(checkpoint, now) for checkpoint in scan.checkpoints)]
    widths = [max(width(row[column]) for row in rows) for column in range(len(_HEADINGS))]
    for row, checkpoint in zip(rows, (None, *scan.checkpoints), strict=True):
        cells = [_aligned(cell, widths[column], _RIGHT[column]) for column, cell in enumerate(row)]
        line = "  " + "  ".join(cells).rstrip()
        yield line if checkpoint is None else _painted(line, row[-1], checkpoint, colours)
        if checkpoint is not None:
            yield from (f"      {reason}" for reason in checkpoint.reasons)
    for notice in scan.notices:
        yield f"  {colours.yellow(notice.name)}: {notice.message}"
    yield _restart(scan, colours)


def _row(checkpoint: Checkpoint, now: float) -> tuple[str, ...]:
    return (
        checkpoint.path or ".",
        "?" if checkpoint.step is None else str(checkpoint.step),
        size(checkpoint.bytes),
        "?" if checkpoint.modified is None else age(now - checkpoint.modified),
        "?" if checkpoint.world_size is None else str(checkpoint.world_size),
        checkpoint.verdict.value,
    )


def _aligned(cell: str, columns: int, right: bool) -> str:
    blanks = " " * (columns - width(cell))
    return blanks + cell if right else cell + blanks


def _painted(line: str, verdict: str, checkpoint: Checkpoint, colours: Colours) -> str:
    paint = {Verdict.COMPLETE: colours.green, Verdict.DAMAGED: colours.red}.get(checkpoint.verdict, colours.yellow)
    return line[: -len(verdict)] + paint(verdict)


def _restart(scan: Scan, colours: Colours) -> str:
    if scan.restart is None:
        return "A restart has nothing complete to take: it would begin at step 0."
    step = "" if scan.restart.step is None else f" (step {scan.restart.step})"
    return f"A restart should take {colours.green(scan.restart.path or scan.directory)}{step}."


def size(count: int) -> str:
    """Bytes as people read them: ``1.2 GiB``."""
    value, unit = float(count), 0
    while value >= 1024 and unit < len(_UNITS) - 1:
        value, unit = value / 1024, unit + 1
    return f"{count} B" if unit == 0 else f"{value:.1f} {_UNITS[unit]}"


def age(seconds: float) -> str:
    """How long ago: ``3 h``; a time in the future is ``0 s``."""
    seconds = max(0.0, seconds)
    return next(f"{seconds / divisor:.0f} {unit}" for least, divisor, unit in _AGES if seconds >= least)


def as_json(scans: Iterable[Scan]) -> str:
    """A list of directories, as the design fixes it."""
    return json.dumps([_object(scan) for scan in scans], indent=2, ensure_ascii=False) + "\n"


def _object(scan: Scan) -> dict[str, object]:
    return {
        "directory": scan.directory,
        "framework": scan.layout.name,
        "restart": None if scan.restart is None else scan.restart.path or ".",
        "checkpoints": [_checkpoint(checkpoint) for checkpoint in scan.checkpoints],
        "notices": [{"name": notice.name, "message": notice.message} for notice in scan.notices],
    }


def _checkpoint(checkpoint: Checkpoint) -> dict[str, object]:
    return {
        "path": checkpoint.path or ".",
        "step": checkpoint.step,
        "verdict": checkpoint.verdict.value,
        "reasons": list(checkpoint.reasons),
        "world_size": checkpoint.world_size,
        "bytes": checkpoint.bytes,
        "modified": checkpoint.modified,
        "state": sorted(state.name.lower() for state in checkpoint.state),
    }
