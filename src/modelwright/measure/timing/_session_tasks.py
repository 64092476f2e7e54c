"""One session held in a child between calls, so that parent and child can take turns. Runs in a child.

Imported by foreign interpreters too, so: standard library, numpy, onnxruntime and our own light rooms only.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from modelwright._dataclass import dataclass
from modelwright._lazy import lazy
from modelwright.errors import ExecutionError
from modelwright.measure.timing._leg import LegPlan, TimedLoop, measure_leg, tick_ns
from modelwright.measure.timing._sink import SampleSink
from modelwright.targets import (
    BoundSession,
    EnergyMeter,
    EnergyZone,
    SessionFacts,
    SessionSpec,
    Target,
    open_session,
)
from modelwright.worker import task

if TYPE_CHECKING:
    import numpy as np
    import onnxruntime as ort
else:
    np = lazy("numpy")
    ort = lazy("onnxruntime")

_NS = 1_000_000_000
# Of the fields of a stat file after the name.
_PROCESSOR = 36


@dataclass(frozen=True)
class Opened:
    """A session is open. `import_s` loaded onnxruntime (0 when it was there), `open_s` registered the EP and made
    the session; `facts.create_s` is the second part of that alone. `tick_ns` is the smallest step of the clock that
    can be seen."""

    pid: int
    facts: SessionFacts
    import_s: float
    open_s: float
    tick_ns: int


@dataclass(frozen=True)
class Bursts:
    """So many bursts, each of at least so many samples and so much time, after a guard that is not timed. A sample is
    the mean of `batch` runs. They are to stay on one CPU, where it is given. With `zones` the energy is read too."""

    count: int
    runs: int
    burst_s: float
    guard_s: float
    batch: int = 1
    cpu: int | None = None
    zones: tuple[EnergyZone, ...] = ()


@dataclass(frozen=True)
class BurstTaken:
    """What each run took, in ns, and one run on average of energy, in mJ, where that was asked for."""

    runs_ns: tuple[int, ...]
    mj: float | None = None


@dataclass(frozen=True)
class Warm:
    """What each run of the warm-up took, and the CPU it ended on, where the system tells."""

    runs_ns: tuple[int, ...]
    cpu: int | None


@dataclass
class _Held:
    session: BoundSession | None = None
    feeds: Mapping[str, Any] | None = None

    def leave(self) -> None:
        session, self.session, self.feeds = self.session, None, None
        if session is not None:
            session.close()

    def taken(self) -> tuple[BoundSession, Mapping[str, Any]]:
        if self.session is None or self.feeds is None:
            raise RuntimeError("no session is open in this process")
        return self.session, self.feeds


_held = _Held()


@task
def open_here(model: str, target: Target, spec: SessionSpec, feeds: Mapping[str, Any]) -> Opened:
    """Open a session here in place of the one before."""
    _held.leave()
    started = time.perf_counter()
    ort.__version__  # noqa: B018 the import is what is timed
    imported = time.perf_counter()
    session = open_session(model, target, spec)
    opened = time.perf_counter()
    _held.session = session
    # The parent's arrays are views of a mapped file; the model gets memory of its own.
    _held.feeds = {name: np.array(array) for name, array in feeds.items()}
    return Opened(os.getpid(), session.facts, imported - started, opened - imported, tick_ns())


@task
def measure_here(plan: LegPlan, samples: str) -> bool | None:
    """Measure into the file; whether the warm-up got steady."""
    session, feeds = _held.taken()
    return measure_leg(session, feeds, plan, SampleSink(samples)).steady


@task
def outputs_here() -> dict[str, np.ndarray]:
    """What the model answers."""
    session, feeds = _held.taken()
    return session.run(feeds)


@task
def warm_here(cap_s: float) -> Warm:
    """Warm up until steady."""
    session, feeds = _held.taken()
    sink = SampleSink()
    TimedLoop(session, feeds, sink).until_steady(cap_s)
    return Warm(tuple(sink.samples()[0].tolist()), _cpu())


@task
def burst_here(bursts: Bursts) -> tuple[BurstTaken, ...]:
    """The guard, then the bursts."""
    session, feeds = _held.taken()
    loop = TimedLoop(session, feeds, SampleSink(), bursts.batch)
    with _kept_on(bursts.cpu):
        loop.at_least(1, round(bursts.guard_s * _NS))
        return tuple(_burst(loop, bursts) for _ in range(bursts.count))


def _burst(loop: TimedLoop, bursts: Bursts) -> BurstTaken:
    meter = EnergyMeter(bursts.zones)
    meter.start()
    runs = tuple(loop.at_least(bursts.runs, round(bursts.burst_s * _NS)).tolist())
    if not bursts.zones:
        return BurstTaken(runs)
    taken = meter.taken_mj()
    if taken <= 0:
        raise ExecutionError(
            "the energy of the CPU cannot be measured",
            cause=f"{bursts.zones[0].counter} did not move during {sum(runs) * bursts.batch / _NS:.2g} s of runs",
            fix="measure on a machine whose counters count; those of a virtual machine often do not",
        )
    return BurstTaken(runs, taken / (len(runs) * bursts.batch))


@task
def close_here() -> None:
    """Close the session; the process stays."""
    _held.leave()


if sys.platform == "linux":

    def _cpu() -> int | None:
        """The CPU this thread runs on; the name before the fields may hold anything, blanks and brackets too."""
        try:
            return int(Path("/proc/thread-self/stat").read_text("utf-8").rpartition(")")[2].split()[_PROCESSOR])
        except (OSError, ValueError, IndexError):
            return None

    @contextmanager
    def _kept_on(cpu: int | None) -> Iterator[None]:
        """This thread stays on the CPU, unless the system does not allow it."""
        before = os.sched_getaffinity(0)
        with suppress(OSError):
            os.sched_setaffinity(0, before if cpu is None else {cpu})
        try:
            yield
        finally:
            with suppress(OSError):
                os.sched_setaffinity(0, before)

else:

    def _cpu() -> int | None:
        return None

    @contextmanager
    def _kept_on(cpu: int | None) -> Iterator[None]:
        yield
