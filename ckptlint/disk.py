"""Carrying out what a plan changes beside the checkpoints: trackers, and directories that show one checkpoint only.

Files are replaced atomically, what stood there is kept beside them, and nothing is ever deleted.
"""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterable
from pathlib import Path

from ckptlint.fixing import CannotWrite, replace_file
from ckptlint.frameworks.framework import DiskChange, ResumeView, TrackerChange


def carry_out_on_disk(wanted: Iterable[DiskChange]) -> None:
    """Make the changes. What is there already as it should be stays untouched, so doing it twice is doing it once.

    Raises:
        CannotWrite: a file cannot be written; names it.
    """
    for change in wanted:
        if isinstance(change, TrackerChange):
            _write_tracker(change)
        else:
            _make_view(change)


def _write_tracker(change: TrackerChange) -> None:
    path = Path(change.path)
    try:
        before: bytes | None = path.read_bytes()
    except FileNotFoundError:
        before = None
    except OSError as error:
        raise CannotWrite(path, f"cannot be read: {(error.strerror or str(error)).lower()}") from None
    after = None if change.after is None else change.after.encode()
    if before == after or (before is not None and after is not None and before.strip() == after.strip()):
        return
    if before is not None:
        _keep(path, before)
    if after is None:
        _aside(path)
    else:
        _write(path, after)


def _keep(path: Path, content: bytes) -> None:
    """A copy of what a file holds, beside it; one that is kept already is not kept twice."""
    for number in range(1000):
        kept = path.with_name(f"{path.name}.bak{number or ''}")
        try:
            handle = os.open(kept, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        except FileExistsError:
            with contextlib.suppress(OSError):
                if kept.read_bytes() == content:
                    return
            continue
        except OSError as error:
            raise CannotWrite(kept, f"cannot be written: {(error.strerror or str(error)).lower()}") from None
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        return
    raise CannotWrite(path, "has a thousand backups beside it", "move them away")


def _aside(path: Path) -> None:
    """Out of the way, where its copy is kept beside it already."""
    try:
        path.replace(path.with_name(f"{path.name}.aside"))
    except FileNotFoundError:
        return
    except OSError as error:
        raise CannotWrite(path, f"cannot be moved aside: {(error.strerror or str(error)).lower()}") from None


def _write(path: Path, content: bytes) -> None:
    if path.exists():
        replace_file(path, content)
        return
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        with temporary.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise CannotWrite(path, f"cannot be written: {(error.strerror or str(error)).lower()}") from None


def _make_view(view: ResumeView) -> None:
    """The directory with one link and its tracker. Another start may make the same one at the same time."""
    directory = Path(view.path)
    link = directory / view.name
    try:
        directory.mkdir(parents=True, exist_ok=True)
        if not (link.is_symlink() and link.readlink() == Path(view.target)):
            temporary = directory / f".{view.name}.{secrets.token_hex(4)}"
            temporary.symlink_to(view.target, target_is_directory=True)
            temporary.replace(link)
    except OSError as error:
        raise CannotWrite(directory, f"cannot be made: {(error.strerror or str(error)).lower()}") from None
    _write_tracker(TrackerChange(str(directory / view.tracker), view.text))
