"""`Telemetry`: a thread of this process that watches another one and the hardware under it."""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING

from modelwright._lazy import lazy
from modelwright.errors import UsageError
from modelwright.measure.telemetry._meters import find_meters
from modelwright.measure.telemetry._types import (
    Meter,
    NoMeter,
    TelemetryResult,
    TelemetrySample,
    TelemetrySeries,
)

if TYPE_CHECKING:
    import psutil
else:
    psutil = lazy("psutil")

SHORTEST_INTERVAL_S = 0.2
_FEW = 2
FindMeters = Callable[[int], Sequence[Meter | NoMeter]]


class _Gathered:
    """All samples of one meter as count, sum and max; the last ones whole."""

    def __init__(self, meter: Meter, capacity: int) -> None:
        self.meter = meter
        self._recent: deque[TelemetrySample] = deque(maxlen=capacity)
        self._count = 0
        self._sum = 0.0
        self._max = -math.inf

    def look(self, now: float, at_s: float) -> None:
        try:
            value = self.meter.read(now)
        except (OSError, ValueError, psutil.Error):
            # The process has ended, or the device is gone for the moment.
            return
        if value is None or not math.isfinite(value):
            return
        self._recent.append(TelemetrySample(round(at_s, 3), value))
        self._count += 1
        self._sum += value
        self._max = max(self._max, value)

    def series(self) -> TelemetrySeries:
        meter, enough = self.meter, self._count >= _FEW
        return TelemetrySeries(
            name=meter.name,
            unit=meter.unit,
            source=meter.source,
            reason=None if enough else f"only {self._count} samples: measure longer",
            samples=self._count,
            mean=self._sum / self._count if enough else None,
            max=self._max if enough else None,
            recent=tuple(self._recent),
        )


class Telemetry:
    """Samples every `interval_s` seconds between `start` and `stop`. Keeps `capacity` samples of each series.

    It lives in the parent of the measured process, so the timed loop never pays for it. Use it as a context manager:
    leaving the block stops the thread, also after an error.
    """

    def __init__(self, interval_s: float = 0.5, *, capacity: int = 1200, find: FindMeters = find_meters) -> None:
        if not math.isfinite(interval_s) or interval_s < SHORTEST_INTERVAL_S:
            raise UsageError(
                f"cannot sample every {interval_s:g} s",
                cause=f"more often than every {SHORTEST_INTERVAL_S:g} s would disturb what is measured",
                fix="use 0.5",
            )
        self._interval_s = interval_s
        self._capacity = capacity
        self._find = find
        self._lock = threading.Lock()
        self._end = threading.Event()
        self._thread: threading.Thread | None = None
        self._gathered: list[_Gathered] = []
        self._absent: list[NoMeter] = []
        self._pid = 0
        self._began = self._ended = 0.0

    def __enter__(self) -> Telemetry:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._halt()

    @property
    def running(self) -> bool:
        return self._thread is not None

    def start(self, pid: int) -> None:
        """Watch process `pid`, which must exist."""
        if self._thread is not None:
            raise RuntimeError("telemetry is running already")
        meters = self._find(pid)
        self._gathered = [_Gathered(meter, self._capacity) for meter in meters if isinstance(meter, Meter)]
        self._absent = [meter for meter in meters if isinstance(meter, NoMeter)]
        self._pid = pid
        self._began = self._ended = time.monotonic()
        self._end.clear()
        self._thread = threading.Thread(target=self._watch, name="telemetry", daemon=True)
        self._thread.start()

    def stop(self) -> TelemetryResult:
        """End the watch; what was seen. Starting again begins anew."""
        self._halt()
        return self.so_far()

    def so_far(self) -> TelemetryResult:
        """What was seen up to now; also while it runs, for a live display."""
        with self._lock:
            seen = [gathered.series() for gathered in self._gathered]
        none = [TelemetrySeries(one.name, one.unit, None, one.reason, 0, None, None, ()) for one in self._absent]
        end = time.monotonic() if self.running else self._ended
        return TelemetryResult(self._pid, self._interval_s, round(max(0.0, end - self._began), 3), (*seen, *none))

    def _halt(self) -> None:
        thread, self._thread = self._thread, None
        if thread is not None:
            self._end.set()
            thread.join()
            self._ended = time.monotonic()

    def _watch(self) -> None:
        due = time.monotonic()
        while True:
            now = time.monotonic()
            with self._lock:
                for gathered in self._gathered:
                    gathered.look(now, now - self._began)
            due = max(due + self._interval_s, now)
            if self._end.wait(max(0.0, due - time.monotonic())):
                return
