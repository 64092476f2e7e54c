"""ctrl-C, SIGTERM and SIGHUP end a command the same way: a KeyboardInterrupt, which saves and cleans up on its way."""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections.abc import Iterator
from types import FrameType
from typing import Any

# `timeout`, a closing terminal and service managers send the same signal twice at once, or two different ones.
_SAME_REQUEST_S = 0.5


class Ending:
    """While entered, a signal to end interrupts the main thread; the first one names the exit code.

    A later signal interrupts again, so a second ctrl-C cuts the tidying short. What was ignored from the start, as
    under `nohup`, stays ignored. While an answer is delivered the first one waits.
    """

    def __init__(self) -> None:
        self.number: int | None = None
        self.delivering = False
        self._last = 0.0
        self._before: dict[int, Any] = {}

    @property
    def exit_code(self) -> int:
        return 128 + (self.number or signal.SIGINT)

    def __enter__(self) -> Ending:
        _entered.append(self)
        if threading.current_thread() is threading.main_thread():
            for number in _ending_signals():
                if signal.getsignal(number) is not signal.SIG_IGN:
                    self._before[number] = signal.signal(number, self._interrupt)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        _entered.pop()

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        again, self._last = self.number is not None and now - self._last < _SAME_REQUEST_S, now
        if again:
            return
        waits, self.number = self.delivering and self.number is None, self.number or number
        if not waits:
            raise KeyboardInterrupt


_entered: list[Ending] = []


@contextlib.contextmanager
def delivered() -> Iterator[None]:
    """What was measured gets saved and printed, also when a signal comes meanwhile; then the signal is obeyed."""
    ending = _entered[-1] if _entered else Ending()
    before, ending.delivering = ending.number, True
    try:
        yield
    finally:
        ending.delivering = False
    if ending.number != before:
        raise KeyboardInterrupt


def _ending_signals() -> tuple[int, ...]:
    names = ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK")
    return tuple(getattr(signal, name) for name in names if hasattr(signal, name))
