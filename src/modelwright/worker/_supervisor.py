"""The half of the child that watches (POSIX): drains output, counts, reaps, kills, and goes with the parent.

It holds no user code, so nothing a task does can stop it. Its life is that of one runner.
"""

from __future__ import annotations

import contextlib
import os
import resource
import selectors
import signal
import sys
import time
from typing import Literal

from modelwright.worker import _tree
from modelwright.worker._channel import Channel
from modelwright.worker._log import BoundedLog
from modelwright.worker._messages import Activity, Begin, Died, End, Ended, Kill, Look
from modelwright.worker._oom import OomCounter
from modelwright.worker._payload import Scratch
from modelwright.worker._usage import maxrss_bytes

# Windows has its own (`_windows`); a checker for it looks no further.
assert sys.platform != "win32"

_CHUNK = 1 << 16
_CHUNKS_PER_TURN = 64
# How often memory is looked at: the nearer to the limit the more often, so that looking costs a measurement nothing.
# Where there is no /proc, looking means starting a program.
_MEMORY_CHECK_S = (0.02, 0.5 if sys.platform == "linux" else 2.0)
_FASTEST_GROWTH = 8 << 30
_PARENT_CHECK_S = 1.0
_STACK_DUMP_S = 0.05
_KILL_PATIENCE_S = 5.0


class Supervisor:
    """Watches `runner`, which is our child, for the process `parent`."""

    def __init__(self, control: Channel, output: int, runner: int, parent: int) -> None:
        self._control = control
        self._output = output
        self._runner = runner
        self._parent = parent
        self._log = BoundedLog()
        self._limit: int | None = None
        self._held: int | None = None
        self._next_check = 0.0
        self._oom = OomCounter.read()
        self._code: int | None = None
        self._usage: resource.struct_rusage | None = None
        self._orphans_cpu_s = 0.0
        self._killed_for: Literal["request", "memory_limit"] | None = None
        self._over = False
        self._selector = selectors.DefaultSelector()

    def watch(self, scratch: Scratch) -> None:
        """Return when the runner, and everything below it, is gone."""
        self._listen()
        try:
            self._reap()
            while self._code is None and not self._over:
                self._selector.select(self._patience())
                self._turn()
        finally:
            self._end_tree()
            scratch.remove()
            self._say_goodbye()

    def _listen(self) -> None:
        os.set_blocking(self._output, False)
        wake, waker = os.pipe()
        for end in (wake, waker):
            os.set_blocking(end, False)
        self._wake = wake
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
        for number in (signal.SIGINT, signal.SIGHUP, signal.SIGPIPE):
            signal.signal(number, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
        for source in (self._control.fileno(), self._output, wake):
            self._selector.register(source, selectors.EVENT_READ)
        self._watch_parent()

    def _watch_parent(self) -> None:
        """The end of the control socket is not enough: another child of the parent may hold a copy of it."""
        self._parent_watched = False
        if sys.platform == "linux":
            with contextlib.suppress(OSError):
                self._selector.register(os.pidfd_open(self._parent), selectors.EVENT_READ)
                self._parent_watched = True

    def _patience(self) -> float | None:
        if self._limit is not None:
            return max(0.0, self._next_check - time.monotonic())
        return None if self._parent_watched else _PARENT_CHECK_S

    def _turn(self) -> None:
        # Orders first: a call has begun before its output and its end are looked at.
        self._obey()
        self._drain()
        with contextlib.suppress(BlockingIOError):
            os.read(self._wake, _CHUNK)
        self._reap()
        self._check_memory()
        self._over |= self._control.closed or os.getppid() != self._parent

    def _obey(self) -> None:
        for order in self._control.drain():
            match order:
                case Begin(log, memory_limit):
                    self._log.begin(log)
                    self._limit, self._next_check = memory_limit, time.monotonic() + _MEMORY_CHECK_S[0]
                    self._oom = OomCounter.read()
                case End():
                    self._drain()
                    self._limit = None
                    self._control.send(Ended(self._log.finish()))
                case Look():
                    waits = _tree.waits_for_cpu(self._runner)
                    self._control.send(Activity(self._log.total, self._cpu_now(), waits))
                case Kill():
                    self._dump_stacks()
                    self._kill("request")

    def _drain(self) -> None:
        """Read what was printed, more than the pipe holds; a flood comes in turns, so orders are heard."""
        for _ in range(_CHUNKS_PER_TURN):
            try:
                chunk = os.read(self._output, _CHUNK)
            except BlockingIOError:
                return
            if not chunk:
                with contextlib.suppress(KeyError):
                    self._selector.unregister(self._output)
                return
            self._log.write(chunk)

    def _reap(self) -> bool:
        """Collect the dead. False when no child is left."""
        while True:
            try:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            if pid == self._runner:
                self._code, self._usage = os.waitstatus_to_exitcode(status), usage
            else:
                self._orphans_cpu_s += usage.ru_utime + usage.ru_stime

    def _cpu_now(self) -> float:
        return _tree.usage(self._runner).cpu_s + self._orphans_cpu_s

    def _check_memory(self) -> None:
        if self._limit is None or self._code is not None or time.monotonic() < self._next_check:
            return
        self._held = _tree.usage(self._runner).rss_bytes
        if self._held > self._limit:
            self._held = _tree.held_bytes(self._runner)
        if self._held > self._limit:
            self._kill("memory_limit")
        shortest, longest = _MEMORY_CHECK_S
        pause = min(longest, max(shortest, (self._limit - self._held) / _FASTEST_GROWTH))
        self._next_check = time.monotonic() + pause

    def _dump_stacks(self) -> None:
        """The runner prints where it stands, also from inside native code."""
        if self._code is None:
            # One that was stopped prints when it goes on.
            for number in (signal.SIGUSR1, signal.SIGCONT):
                _tree.kill_all([self._runner], number)
            time.sleep(_STACK_DUMP_S)
            self._drain()

    def _kill(self, reason: Literal["request", "memory_limit"]) -> None:
        if self._code is None:
            self._killed_for = reason
            self._end_tree()

    def _end_tree(self) -> None:
        """Orphans become our children, so walking again finds whoever slipped away. A stuck one is left."""
        patience = time.monotonic() + _KILL_PATIENCE_S
        while time.monotonic() < patience:
            _tree.kill_all(_tree.descendants(self._runner), signal.SIGKILL)
            self._drain()
            if not self._reap():
                return
            time.sleep(0.001)
        self._over = True

    def _say_goodbye(self) -> None:
        # A runner that died at once may be gone before its call was heard of: its last words belong to that call.
        self._obey()
        self._drain()
        usage = self._usage
        self._control.send(
            Died(
                code=self._code,
                killed_for=self._killed_for,
                cpu_s=None if usage is None else usage.ru_utime + usage.ru_stime + self._orphans_cpu_s,
                peak_rss_bytes=None if usage is None else maxrss_bytes(usage.ru_maxrss),
                oom_evidence=self._oom_evidence(),
                log_bytes=self._log.finish(),
                survivors=len(_tree.descendants(self._runner)),
                held_bytes=self._held,
            )
        )

    def _oom_evidence(self) -> str | None:
        if self._code != -signal.SIGKILL or self._killed_for or self._oom is None or self._oom.increase() < 1:
            return None
        return f"{self._oom.file} counts a kill by the kernel for lack of memory"
