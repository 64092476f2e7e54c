"""Waiting for one call: its result, its end, its time limit or its standstill, whichever comes first."""

from __future__ import annotations

import selectors
import signal
import sys
import time
from typing import Literal

from modelwright._dataclass import dataclass
from modelwright.vocabulary import OnProgress, Progress
from modelwright.worker._launch import Child
from modelwright.worker._limits import Limits
from modelwright.worker._messages import Activity, Advance, Died, Done, End, Ended, Inside, Kill, Look

# Waiting loops use a little CPU too; less than this share of one core counts as standing still.
_IDLE_SHARE = 0.01
_LOOKS_PER_STALL = 5
_ANSWER_S = 8.0
_SILENCE_S = 8.0


@dataclass(frozen=True)
class CallOutcome:
    """How the wait ended: with `done`, with `died`, or because a limit was `reached`; `inside` whose code."""

    done: Done | None = None
    died: Died | None = None
    reached: Literal["timeout", "stalled"] | None = None
    log_bytes: int = 0
    inside: Inside | None = None


class _Standstill:
    """Decides when nothing has moved for `stall` seconds: no progress, no output, no CPU time."""

    def __init__(self, stall: float, now: float) -> None:
        self.reached = False
        self.next_look = now + stall / _LOOKS_PER_STALL
        self._stall = stall
        self._since = now
        self._asked: float | None = None
        self._cpu_s = 0.0
        self._log_bytes = 0

    def moved(self, now: float) -> None:
        self._since = now

    def look_due(self, now: float) -> bool:
        if now < self.next_look:
            return False
        self.next_look = now + self._stall / _LOOKS_PER_STALL
        if self._asked is None:
            self._asked = now
        # A supervisor that was stopped too gives no answer; one that has only begun, on a busy machine, gives it late.
        self.reached |= now - self._asked >= self._stall + _SILENCE_S
        return True

    def observe(self, activity: Activity, now: float) -> None:
        self._asked = None
        worked = activity.cpu_s - self._cpu_s > _IDLE_SHARE * self._stall
        if worked or activity.waits_for_cpu or activity.log_bytes != self._log_bytes:
            self._since = now
            self._cpu_s, self._log_bytes = activity.cpu_s, activity.log_bytes
        self.reached = now - self._since >= self._stall


class CallWatch:
    """One call on one child."""

    def __init__(self, child: Child, number: int, limits: Limits, on_progress: OnProgress | None) -> None:
        now = time.monotonic()
        self._child = child
        self._number = number
        self._on_progress = on_progress
        self._limits = limits
        self._deadline = now + limits.timeout
        self._standstill = _Standstill(limits.stall, now) if limits.stall is not None else None
        self._done: Done | None = None
        self._died: Died | None = None
        self._inside: Inside | None = None

    def wait(self) -> CallOutcome:
        with selectors.DefaultSelector() as selector:
            selector.register(self._child.control, selectors.EVENT_READ)
            selector.register(self._child.data, selectors.EVENT_READ)
            while True:
                now = time.monotonic()
                selector.select(max(0.0, self._next_event() - now))
                self._listen(selector)
                if outcome := self._outcome(time.monotonic()):
                    return outcome

    def _next_event(self) -> float:
        if self._standstill is None:
            return self._deadline
        return min(self._deadline, self._standstill.next_look)

    def _listen(self, selector: selectors.BaseSelector) -> None:
        # The supervisor first: when it reports the end, all the runner ever said has arrived.
        for message in self._child.control.drain():
            self._hear(message)
        for message in self._child.data.drain():
            self._hear(message)
        if self._child.data.closed and self._child.data in selector.get_map():
            selector.unregister(self._child.data)

    def _hear(self, message: object) -> None:
        now = time.monotonic()
        match message:
            case Advance(number) if number == self._number:
                if not self._limits.whole:
                    self._deadline = now + self._limits.timeout
                if self._standstill is not None:
                    self._standstill.moved(now)
                if self._on_progress is not None:
                    self._on_progress(Progress(message.message, message.fraction))
            case Inside(number) if number == self._number:
                self._inside = message
            case Done(number) if number == self._number:
                self._done = message
            case Activity() if self._standstill is not None:
                self._standstill.observe(message, now)
            case Died():
                self._died = message

    def _outcome(self, now: float) -> CallOutcome | None:
        if self._done is not None:
            return self._finished(self._done)
        if self._died is not None or self._child.control.closed:
            return CallOutcome(died=self._died, inside=self._inside)
        if now >= self._deadline:
            return self._killed("timeout")
        if self._standstill is not None:
            if self._standstill.look_due(now):
                self._child.control.send(Look())
            if self._standstill.reached:
                return self._killed("stalled")
        return None

    def _finished(self, done: Done) -> CallOutcome:
        self._child.control.send(End())
        answer: Ended | Died | None = self._died or self._answer(Ended, Died)
        died = answer if isinstance(answer, Died) else None
        return CallOutcome(done=done, died=died, log_bytes=answer.log_bytes if answer else 0)

    def _killed(self, limit: Literal["timeout", "stalled"]) -> CallOutcome:
        self._child.control.send(Kill())
        if sys.platform != "win32":
            # A supervisor that was stopped could not obey.
            self._child.process.send_signal(signal.SIGCONT)
        died = self._answer(Died)
        return CallOutcome(died=died if isinstance(died, Died) else None, reached=limit, inside=self._inside)

    def _answer(self, *kinds: type[Ended] | type[Died]) -> Ended | Died | None:
        """The supervisor's answer to an order, or None when it has none in time."""
        patience = time.monotonic() + _ANSWER_S
        while (left := patience - time.monotonic()) > 0 and not self._child.control.closed:
            message = self._child.control.receive(left)
            if isinstance(message, kinds):
                return message
        return None
