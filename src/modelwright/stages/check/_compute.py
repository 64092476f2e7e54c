"""A few samples computed by the target, as many as a simulator can do in the time it gets."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from modelwright.errors import WrightError
from modelwright.stages.check._types import TOO_LONG
from modelwright.targets import BoundSession

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Outputs = Mapping[str, NDArray[Any]]


class Computed:
    """What the target answered; `problem` is its error, `unfinished` why answers lack, `fix` what would get them.

    A simulator stops where `enough` says so of a sample and its answer; used again, it goes on with the rest. It is
    `cut_short` where the others would not fit into the time.
    """

    def __init__(
        self,
        feeds: Sequence[Mapping[str, Any]],
        limit_s: float,
        too_slow: str | None,
        enough: Callable[[Mapping[str, Any], Outputs], bool] = lambda feed, answer: False,
    ) -> None:
        self.answers: list[Outputs] = []
        self.problem: WrightError | None = None
        self.unfinished: str | None = None
        self.fix = "ask a machine that has the device"
        self.seconds: float | None = None
        self.spared = self.cut_short = False
        self._feeds, self._limit_s, self._too_slow, self._enough = feeds, limit_s, too_slow, enough

    def use(self, session: BoundSession) -> None:
        """In a thread: a native call cannot be stopped, only left behind; it dies with the process."""
        if session.facts.ep not in session.facts.nodes_per_ep:
            return
        if not self._feeds:
            self.unfinished, self.fix = "not computed: its inputs cannot be made up", "give real samples"
        simulated = session.facts.simulated
        if simulated and self._too_slow is not None:
            self.unfinished = self._too_slow
            return
        again, self.spared = self.spared, False
        started = time.perf_counter() - (self.seconds or 0.0)
        for feed in self._feeds[len(self.answers) :]:
            run = _RunBeside(session, feed)
            run.start()
            run.join(self._limit_s - (time.perf_counter() - started) if simulated else None)
            if run.is_alive() or run.problem is not None:
                self.problem = run.problem
                self._give_up()
                return
            self.answers.append(run.outputs)
            self.seconds = time.perf_counter() - started
            if simulated and not again and len(self.answers) < len(self._feeds) and self._enough(feed, run.outputs):
                self.spared = True
                return
            # One more of these would not fit into the time.
            if simulated and self.seconds * (len(self.answers) + 1) / len(self.answers) > self._limit_s:
                self.cut_short = len(self.answers) < len(self._feeds)
                return

    def _give_up(self) -> None:
        if self.problem is None:
            self.cut_short = bool(self.answers)
            self.unfinished = None if self.answers else f"{TOO_LONG} {self._limit_s:g} s"


class _RunBeside(threading.Thread):
    """One run beside the caller, who may stop waiting for it."""

    def __init__(self, session: BoundSession, feed: Mapping[str, Any]) -> None:
        super().__init__(daemon=True)
        self.outputs: Outputs = {}
        self.problem: WrightError | None = None
        self._session, self._feed = session, feed

    def run(self) -> None:
        try:
            self.outputs = self._session.run(self._feed)
        except WrightError as error:
            self.problem = error
