"""Edits in, text out: which fixes go together, fixing until nothing changes, and replacing a file as one step."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import secrets
import stat
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ckptlint.rule import Applicability, Diagnostic, Fix
from ckptlint.source.file import SourceFile
from ckptlint.source.text import Edit, SourceError, SourceText, apply

# ------------------------------------------------------------------------------------------------ which fixes go together


def fixed_text(source: SourceText, fixes: Iterable[Fix]) -> str:
    """The text after all fixes that do not get into each other's way, in order of position; the first wins."""
    return apply(source, [edit for fix in compatible(source, fixes) for edit in fix.edits])


def compatible(source: SourceText, fixes: Iterable[Fix]) -> tuple[Fix, ...]:
    """The fixes that can be applied to this text together. A fix is taken whole or not at all."""
    chosen: list[Fix] = []
    taken: list[Edit] = []
    for fix in sorted(fixes, key=_position):
        if not fix.edits or any(edit.span.source is not source for edit in fix.edits):
            continue
        if not any(_collide(mine, other) for mine in fix.edits for other in taken):
            chosen.append(fix)
            taken.extend(fix.edits)
    return tuple(chosen)


def _position(fix: Fix) -> int:
    return min((edit.span.start for edit in fix.edits), default=0)


def _collide(one: Edit, other: Edit) -> bool:
    """Whether two edits change the same characters, or insert at the same place (it may be the same key, twice)."""
    a, b = one.span, other.span
    if a.start == a.end and b.start == b.end:
        return a.start == b.start
    return a.start < b.end and b.start < a.end


# ------------------------------------------------------------------------------------------------ until nothing changes


# A suppression that a fix makes needless is reported next, and taken out next; that is no reason to keep the fault.
MAY_APPEAR = frozenset({"unused-suppression"})


@dataclass(frozen=True)
class Repaired:
    """What became of a file. ``refused``: a fix that was rolled back, and why; ``remaining``: what the last check reports."""

    file: SourceFile
    applied: tuple[Diagnostic, ...]
    refused: tuple[tuple[Diagnostic, str], ...]
    remaining: tuple[Diagnostic, ...]


Check = Callable[[SourceFile], Sequence[Diagnostic]]


def repair(file: SourceFile, check: Check, unsafe: bool, limit: int = 10) -> Repaired:
    """Apply the fixes of a file until none is left, reading it again after each round.

    A round whose result cannot be read, raises a finding that was not there, or leaves its own finding standing is rolled back
    and its fixes are tried one by one; the guilty ones are refused with the reason. Nothing is written.

    Args:
        check: the findings of a file, without the suppressed ones.
        unsafe: apply unsafe fixes too.
        limit: the most rounds. Every round takes findings away, so that this only stops a check that contradicts itself.

    Raises:
        SourceError: the file as it is cannot be read.
    """
    found = tuple(check(file))
    applied: list[Diagnostic] = []
    refused: tuple[tuple[Diagnostic, str], ...] = ()
    for _ in range(limit):
        trial = _Round(file, found, check)
        candidates = [diagnostic for diagnostic in found if _applicable(diagnostic, file, unsafe)]
        kept, refused = trial.run(sorted(candidates, key=lambda diagnostic: _position(_fix(diagnostic))))
        if not kept:
            break
        applied += kept
        file, found = trial.result
    return Repaired(file, tuple(applied), refused, found)


def _applicable(diagnostic: Diagnostic, file: SourceFile, unsafe: bool) -> bool:
    fix = diagnostic.fix
    if fix is None or not fix.edits or not (unsafe or fix.applicability is Applicability.SAFE):
        return False
    return all(edit.span.source is file.text for edit in fix.edits)


def _fix(diagnostic: Diagnostic) -> Fix:
    assert diagnostic.fix is not None
    return diagnostic.fix


class _Round:
    """One round over one state of the file. ``result`` is the state after what ``run`` kept."""

    def __init__(self, file: SourceFile, found: tuple[Diagnostic, ...], check: Check) -> None:
        self.file = file
        self.before = Counter(diagnostic.name for diagnostic in found)
        self.check = check
        self.result = file, found

    def run(self, candidates: list[Diagnostic]) -> tuple[list[Diagnostic], tuple[tuple[Diagnostic, str], ...]]:
        """The diagnostics whose fixes were kept, and those that were refused with the reason."""
        together = self._compatible(candidates)
        if together and not self._objection(together):
            return together, ()
        kept: list[Diagnostic] = []
        refused = []
        for diagnostic in candidates:
            if len(self._compatible([*kept, diagnostic])) == len(kept):
                continue  # in the way of one that was kept: its turn comes with the next round
            objection = self._objection([*kept, diagnostic])
            if objection:
                refused.append((diagnostic, objection))
            else:
                kept.append(diagnostic)
        return kept, tuple(refused)

    def _compatible(self, diagnostics: list[Diagnostic]) -> list[Diagnostic]:
        chosen = compatible(self.file.text, [_fix(diagnostic) for diagnostic in diagnostics])
        return [diagnostic for diagnostic in diagnostics if any(diagnostic.fix is fix for fix in chosen)]

    def _objection(self, diagnostics: list[Diagnostic]) -> str:
        """Why these fixes must not be applied; empty where they may, and then ``result`` holds what comes of them."""
        try:
            text = fixed_text(self.file.text, [_fix(diagnostic) for diagnostic in diagnostics])
            file = SourceFile(self.file.path, text.encode("utf-8"))
            found = tuple(self.check(file))
        except (SourceError, UnicodeEncodeError) as error:
            return f"the file could not be read afterwards: {error}"
        after = Counter(diagnostic.name for diagnostic in found)
        for diagnostic in found:
            if after[diagnostic.name] > self.before[diagnostic.name] and diagnostic.name not in MAY_APPEAR:
                return f"it would raise {diagnostic.name}: {diagnostic.message}"
        for name, count in Counter(diagnostic.name for diagnostic in diagnostics).items():
            if after[name] > self.before[name] - count:
                return "the finding would still be there afterwards"
        self.result = file, found
        return ""


# ------------------------------------------------------------------------------------------------ replacing a file


class CannotWrite(Exception):
    """A file that could not be replaced; it is as it was. Names the file, the problem and what to do about it."""

    def __init__(self, path: Path, problem: str, remedy: str = "") -> None:
        super().__init__(f"{path}: {problem}" + (f"; {remedy}" if remedy else ""))
        self.path = path
        self.problem = problem
        self.remedy = remedy


class ChangedMeanwhile(Exception):
    """Somebody else changed the file since it was read; nothing was written. Read it again and start over."""

    def __init__(self, path: Path) -> None:
        super().__init__(f"{path}: the file was changed by somebody else meanwhile")
        self.path = path


def replace_file(path: Path, data: bytes, expected: bytes | None = None) -> bool:
    """Put ``data`` where a file is, as one step: whoever reads it, and whenever we are killed, it is the old or the new file.

    A symbolic link stays, its target is replaced. Mode, extended attributes and, where permitted, owner and group are kept;
    further hard links keep the old content. A file that is not there yet is created. A kill may leave a ``.ckptlint-*.tmp``.

    Args:
        expected: what was read before; with it two writers cannot lose each other's edit.

    Returns:
        False where the file held this very data already; it is not touched then.

    Raises:
        ChangedMeanwhile: the file no longer holds ``expected``.
        CannotWrite: anything that the operating system refuses.
    """
    try:
        target = path.resolve(strict=False)
        status = _status(path, target)
        if status is not None and not os.access(target, os.R_OK | os.W_OK):
            raise CannotWrite(path, "the file may not be read and written", "give yourself the permission")
        if status is not None and target.read_bytes() == data:
            return False
        with _directory(target.parent) as directory:
            return _replace(path, target, data, expected, status, directory)
    except (OSError, RuntimeError) as error:
        raise CannotWrite(path, *_in_words(error, path)) from error


def _status(path: Path, target: Path) -> os.stat_result | None:
    try:
        status = target.stat()
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(status.st_mode):
        raise CannotWrite(path, "is not a regular file", "give the path of a file")
    return status


def _replace(
    path: Path, target: Path, data: bytes, expected: bytes | None, status: os.stat_result | None, directory: int | None
) -> bool:
    temporary = target.parent / f".ckptlint-{os.getpid()}-{secrets.token_hex(8)}.tmp"
    try:
        _write_new(temporary, target, data, status)
        _lock(directory)
        if expected is not None and not _holds(target, expected):
            raise ChangedMeanwhile(path)
        os.replace(temporary, target)  # noqa: PTH105 - Python 3.10's Path.replace cannot be intercepted by a test
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
    # The new file stands. This adds that its name outlives a power cut; where the file system cannot, nothing is lost.
    if directory is not None:
        with contextlib.suppress(OSError):
            os.fsync(directory)
    return True


def _write_new(temporary: Path, target: Path, data: bytes, status: os.stat_result | None) -> None:
    mode = 0o666 if status is None else 0o600
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, mode)
    try:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(handle, rest) :]
        if status is not None:
            _copy_owner_and_mode(handle, target, status)
        _sync(handle)
    finally:
        os.close(handle)


def _copy_owner_and_mode(handle: int, target: Path, status: os.stat_result) -> None:
    for owner, group in ((status.st_uid, status.st_gid), (-1, status.st_gid)):
        with contextlib.suppress(OSError):
            os.fchown(handle, owner, group)
            break
    with contextlib.suppress(OSError):
        for name in os.listxattr(target):
            with contextlib.suppress(OSError):
                os.setxattr(handle, name, os.getxattr(target, name))
    os.fchmod(handle, stat.S_IMODE(status.st_mode))


def _sync(handle: int) -> None:
    try:
        os.fsync(handle)
    except OSError as error:
        # Some network and user-space file systems have no fsync; a failed one (EIO, ENOSPC) is a failed write.
        if error.errno not in (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP):
            raise


def _holds(target: Path, expected: bytes) -> bool:
    try:
        return target.read_bytes() == expected
    except FileNotFoundError:
        return False


@contextlib.contextmanager
def _directory(directory: Path) -> Iterator[int | None]:
    """The directory, opened to be locked and synced; None where it may not be read."""
    try:
        handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except PermissionError:
        yield None
        return
    try:
        yield handle
    finally:
        with contextlib.suppress(OSError):
            os.close(handle)


def _lock(directory: int | None) -> None:
    """Let one ckptlint at a time compare and replace in a directory; closing it unlocks.

    Only a courtesy between ckptlints: file systems without locks, and a lock that somebody keeps (``flock DIR command``), are
    passed over, the latter after two seconds, and the comparison just before the replacement remains.
    """
    until = time.monotonic() + 2
    with contextlib.suppress(OSError):
        while directory is not None and not _locked(directory) and time.monotonic() < until:
            time.sleep(0.005)


def _locked(directory: int) -> bool:
    try:
        fcntl.flock(directory, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _in_words(error: OSError | RuntimeError, path: Path) -> tuple[str, str]:
    """The problem and the remedy."""
    if not isinstance(error, OSError):
        return "the symbolic link leads round in a circle", "mend the link"
    directory = path.parent if error.errno == errno.ELOOP else path.resolve().parent
    closed = f"the directory {directory} does not let files be replaced", "make it writable, or work on a copy"
    words: dict[int | None, tuple[str, str]] = {
        errno.EACCES: closed,
        errno.EPERM: closed,
        errno.EROFS: ("the file system is read-only", "work on a copy"),
        errno.ENOSPC: ("no space is left on the file system", "free some and try again"),
        errno.EDQUOT: ("the disk quota is used up", "free some space and try again"),
        errno.EBUSY: ("the file is a mount of its own, which cannot be replaced", "mount its directory, or work on a copy"),
        errno.ELOOP: ("the symbolic link leads round in a circle", "mend the link"),
        errno.EISDIR: ("is a directory", "give the path of a file"),
        errno.ENOENT: (f"the directory {directory} does not exist", "make it first"),
        errno.ENOTDIR: ("a part of the path is not a directory", "mend the path"),
    }
    return words.get(error.errno, (os.strerror(error.errno) if error.errno else str(error), ""))
