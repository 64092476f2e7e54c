"""What the hardware did during a measurement. A series that cannot be read is None with a reason, never 0."""

from __future__ import annotations

from collections.abc import Callable

from modelwright._dataclass import dataclass


@dataclass(frozen=True)
class Meter:
    """One number that can be read again and again. `read` gets the time in seconds since any fixed moment and gives
    None when there is nothing to say: a counter read for the first time, a process that has ended."""

    name: str
    unit: str
    source: str
    read: Callable[[float], float | None]


@dataclass(frozen=True)
class NoMeter:
    """Something this machine does not tell, and why."""

    name: str
    unit: str
    reason: str


@dataclass(frozen=True)
class TelemetrySample:
    at_s: float
    value: float


@dataclass(frozen=True)
class TelemetrySeries:
    """Mean and max of all samples; `recent` holds the last ones. Fewer than two samples say nothing."""

    name: str
    unit: str
    source: str | None
    reason: str | None
    samples: int
    mean: float | None
    max: float | None
    recent: tuple[TelemetrySample, ...]

    @property
    def latest(self) -> float | None:
        return self.recent[-1].value if self.recent else None


@dataclass(frozen=True)
class TelemetryResult:
    """`pid` is the process that ran the model. Taken from outside it, every `interval_s` seconds."""

    pid: int
    interval_s: float
    duration_s: float
    series: tuple[TelemetrySeries, ...]

    def find(self, name: str) -> TelemetrySeries | None:
        return next((series for series in self.series if series.name == name), None)
