"""Running a job again after it has failed, as long as it makes progress; signals and exit status stay the job's own."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from types import FrameType

# Failures in a row without a newer checkpoint, after which another try would do the same again.
STUCK_AFTER = 2

# Signals that platforms and people send to a job, handed on to it; the first ones ask it to end.
_ENDING = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT"))
_FORWARDED = (*_ENDING, *(getattr(signal, name) for name in ("SIGUSR1", "SIGUSR2", "SIGCONT", "SIGWINCH")))


@dataclass
class Progress:
    """The steps that the tries begin at: whether it is worth trying again."""

    steps: tuple[int, ...] = ()
    stuck: int = 0
    first: bool = True

    def after_failure(self, steps: tuple[int, ...]) -> None:
        """What the disk says after a try has failed; ``steps`` is what the next one would begin at."""
        moved = any(new > old for new, old in zip(steps, self.steps, strict=False))
        self.stuck = 0 if moved else self.stuck + 1
        self.steps = tuple(max(pair) for pair in zip(steps, self.steps, strict=False)) if self.steps else steps

    @property
    def hopeless(self) -> bool:
        return self.stuck >= STUCK_AFTER


@dataclass
class Job:
    """A child in a process group of its own that gets the signals sent to this process."""

    command: Sequence[str]
    ended_by_request: bool = False
    _child: subprocess.Popen[bytes] | None = field(default=None, repr=False)
    _early: list[int] = field(default_factory=list, repr=False)

    def run(self) -> int:
        """Wait for the job; its exit status, negative where a signal ended it.

        Raises:
            OSError: the program cannot be started.
        """
        with self._forwarding(), _in_foreground() as give:
            self._child = subprocess.Popen(self.command, preexec_fn=os.setpgrp)
            give(self._child.pid)
            for number in self._early:
                self._send(number)
            return self._child.wait()

    @contextlib.contextmanager
    def _forwarding(self) -> Iterator[None]:
        heard = [number for number in _FORWARDED if signal.getsignal(number) is not signal.SIG_IGN]  # nohup ignores SIGHUP
        before = {number: signal.signal(number, self._forward) for number in heard}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _forward(self, number: int, _frame: FrameType | None) -> None:
        if number in _ENDING:
            self.ended_by_request = True
        if self._child is None:
            self._early.append(number)
        else:
            self._send(number)

    def _send(self, number: int) -> None:
        """To the program itself, as if it had been started without us; whom it hands them on to is its own affair."""
        if self._child is not None and self._child.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._child.pid, number)


@contextlib.contextmanager
def _in_foreground() -> Iterator[Callable[[int], None]]:
    """Let the job read the terminal, where there is one."""
    try:
        terminal = os.open("/dev/tty", os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        yield lambda _pid: None
        return
    before = signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    mine = os.getpgrp()

    def give(group: int) -> None:
        with contextlib.suppress(OSError):
            if os.tcgetpgrp(terminal) == mine:
                os.tcsetpgrp(terminal, group)

    try:
        yield give
    finally:
        with contextlib.suppress(OSError):
            os.tcsetpgrp(terminal, mine)
        signal.signal(signal.SIGTTOU, before)
        os.close(terminal)


def end_like(status: int) -> int:
    """End as the job did: by the same signal, where one ended it. What comes back is the exit status for where that fails."""
    if status >= 0:
        return status
    number = -status
    with contextlib.suppress(OSError, ValueError):
        if number not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(number, signal.SIG_DFL)
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))  # the job has dumped its own
        os.kill(os.getpid(), number)
    return 128 + number  # the first process of a container is not ended by its own signals
