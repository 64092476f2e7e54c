"""The one timing loop. Runs in a child, on an open session.

Imported by foreign interpreters too, so: standard library, numpy and our own light rooms only.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from modelwright._dataclass import dataclass
from modelwright._lazy import lazy
from modelwright.errors import ExecutionError
from modelwright.measure.timing._sink import SampleSink
from modelwright.measure.timing._steady import Steadiness
from modelwright.targets import BoundSession

if TYPE_CHECKING:
    import numpy as np

    from modelwright.measure.timing._sink import Nanoseconds
else:
    np = lazy("numpy")

_NS = 1_000_000_000
_NEVER = 1 << 62
_WINDOW_RUNS = 5
_WINDOW_NS = 20_000_000
_TICKS_SEEN = 100
_LONGEST_TICK_NS = 100_000_000
_ROUNDING_NS = 2


@dataclass(frozen=True)
class LegPlan:
    """How long one session is measured. `warmup` is a number of runs; None warms up until steady.

    Exactly one of `iterations` and `duration_s` is given; a duration buys at least one run.
    """

    iterations: int | None = None
    duration_s: float | None = None
    warmup: int | None = None
    warmup_cap_s: float = 10.0


@dataclass(frozen=True)
class TimedLeg:
    """The samples of one session, in nanoseconds, in the order they were taken.

    `steady` is None when the number of warm-up runs was given.
    """

    warmup_ns: tuple[int, ...]
    samples_ns: tuple[int, ...]
    steady: bool | None


def measure_leg(
    session: BoundSession, feeds: Mapping[str, Any], plan: LegPlan, sink: SampleSink | None = None
) -> TimedLeg:
    """Warm up, then time every run. The inputs stay where they are; nothing is allocated or printed meanwhile."""
    sink = sink or SampleSink()
    loop = TimedLoop(session, feeds, sink)
    with _no_collection():
        if plan.warmup is None:
            steady = loop.until_steady(plan.warmup_cap_s)
        else:
            steady = None
            loop.exactly(plan.warmup)
        sink.warmed()
        if plan.iterations is not None:
            loop.exactly(plan.iterations)
        else:
            loop.at_least(1, round((plan.duration_s or 0.0) * _NS))
    warmup, samples = sink.samples()
    return TimedLeg(tuple(warmup.tolist()), tuple(samples.tolist()), steady)


def typical_ms(
    sessions: Sequence[BoundSession], feeds: Mapping[str, Any], *, warmup: int, runs: int
) -> tuple[float, ...]:
    """The median of each, taking turns run by run. An indication for a table, not a verdict."""
    sinks = [SampleSink() for _ in sessions]
    loops = [TimedLoop(session, feeds, sink) for session, sink in zip(sessions, sinks, strict=True)]
    with _no_collection():
        for turn in range(warmup + runs):
            for loop, sink in zip(loops, sinks, strict=True):
                if turn == warmup:
                    sink.warmed()
                loop.exactly(1)
    return tuple(float(np.median(sink.samples()[1])) / 1e6 for sink in sinks)


def tick_ns() -> int:
    """The step of the clock that can be seen, at most the time a reading takes."""
    clock = time.perf_counter_ns
    steps: list[int] = []
    end = clock() + _LONGEST_TICK_NS
    before = clock()
    while len(steps) < _TICKS_SEEN and before < end:
        now = clock()
        if now > before:
            steps.append(now - before)
        before = now
    return _tick(steps)


def _tick(steps: Sequence[int]) -> int:
    """Readings differ by whole ticks, so two different steps differ by one tick or more; less than 3 ns is rounding."""
    ordered = sorted(set(steps)) or [_LONGEST_TICK_NS]
    apart = [after - before for before, after in pairwise(ordered) if after - before > _ROUNDING_NS]
    return min((ordered[0], *apart))


class TimedLoop:
    """One session on one input; what every run took, or every so many together on average, goes to the sink."""

    def __init__(self, session: BoundSession, feeds: Mapping[str, Any], sink: SampleSink, batch: int = 1) -> None:
        self._session = session
        self._batch = batch
        self._run = session.native.run if batch == 1 else _repeated(session.native.run, batch)
        self._names = [spec.name for spec in session.outputs]
        self._feeds = dict(feeds)
        self._sink = sink
        self._checked = False

    def exactly(self, runs: int) -> None:
        while runs > 0:
            runs -= len(self._block(runs, _NEVER))

    def at_least(self, runs: int, ns: int) -> Nanoseconds:
        """So many runs, then on until so much time has passed; gives back what they took."""
        end = time.perf_counter_ns() + ns
        blocks = []
        while runs > 0:
            blocks.append(self._block(runs, _NEVER))
            runs -= len(blocks[-1])
        while time.perf_counter_ns() < end:
            blocks.append(self._block(_NEVER, end))
        return np.concatenate(blocks)

    def until_steady(self, cap_s: float) -> bool:
        """Warm up by the rule of `Steadiness`; False when the time is up before it holds."""
        deadline = time.perf_counter_ns() + round(cap_s * _NS)
        steadiness = Steadiness()
        self.exactly(1)  # the first run pays for what is set up lazily, and would hide all that follows
        while time.perf_counter_ns() < deadline:
            if steadiness.reached(float(np.median(self.at_least(_WINDOW_RUNS, _WINDOW_NS)))):
                return True
        return False

    def _block(self, most: int, until_ns: int) -> Nanoseconds:
        room = self._sink.room()
        if not self._checked:
            room = room[:1]
            self._first(room)
            self._sink.advance(1)
            return room
        room = room[:most]
        done = self._timed(room, until_ns)
        self._sink.advance(done)
        return room[:done]

    def _first(self, room: Nanoseconds) -> None:
        """The first run goes through the session's own checks, so bad inputs get their own error."""
        start = time.perf_counter_ns()
        self._session.run(self._feeds, self._names)
        room[0] = time.perf_counter_ns() - start
        self._checked = True

    def _timed(self, room: Nanoseconds, until_ns: int) -> int:
        run, names, feeds, clock = self._run, self._names, self._feeds, time.perf_counter_ns
        index, batch = 0, self._batch
        try:
            for index in range(len(room)):
                start = clock()
                run(names, feeds)
                end = clock()
                room[index] = (end - start) // batch
                if end >= until_ns:
                    break
        except Exception as error:  # noqa: BLE001 - onnxruntime raises its own C++ exception types here
            self._sink.advance(index)
            raise _failed(self._session, error) from None
        return index + 1


def _repeated(run: Callable[..., Any], batch: int) -> Callable[..., None]:
    def runs(names: list[str], feeds: Mapping[str, Any]) -> None:
        for _ in range(batch):
            run(names, feeds)

    return runs


@contextmanager
def _no_collection() -> Iterator[None]:
    """Python's garbage collector would show up as slow runs of the model."""
    was_on = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _failed(session: BoundSession, error: Exception) -> ExecutionError:
    return ExecutionError(
        f"{session.facts.target} failed while it was measured",
        cause=(str(error).strip() or type(error).__name__).splitlines()[0],
        fix="compare with `target` cpu; the worker's log has the EP's own words",
    )
