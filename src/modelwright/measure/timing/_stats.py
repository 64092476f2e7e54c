"""Many samples in a few numbers. Percentiles by numpy's linear rule."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from modelwright._dataclass import dataclass
from modelwright._lazy import lazy

if TYPE_CHECKING:
    import numpy as np
else:
    np = lazy("numpy")

_NS_PER_MS = 1e6


@dataclass(frozen=True)
class Latency:
    """Of one run, in milliseconds. `spread` is the scaled median absolute deviation as a share of the median.

    `std_ms` is None for a single sample.
    """

    count: int
    mean_ms: float
    p50_ms: float
    p90_ms: float
    p95_ms: float
    p99_ms: float
    min_ms: float
    max_ms: float
    std_ms: float | None
    spread: float


def latency(samples_ns: Sequence[int]) -> Latency:
    """The numbers of one or more samples."""
    times = np.asarray(samples_ns, dtype=np.float64) / _NS_PER_MS
    p50, p90, p95, p99 = (float(value) for value in np.percentile(times, (50, 90, 95, 99)))
    return Latency(
        count=times.size,
        mean_ms=float(times.mean()),
        p50_ms=p50,
        p90_ms=p90,
        p95_ms=p95,
        p99_ms=p99,
        min_ms=float(times.min()),
        max_ms=float(times.max()),
        std_ms=float(times.std(ddof=1)) if times.size > 1 else None,
        spread=1.4826 * float(np.median(np.abs(times - p50))) / p50,
    )


def drift(samples_ns: Sequence[int]) -> float | None:
    """How much slower the last third is than the first, as a share; None with fewer than 30 samples."""
    if len(samples_ns) < 30:
        return None
    third = len(samples_ns) // 3
    first, last = np.median(samples_ns[:third]), np.median(samples_ns[-third:])
    return float(last / first) - 1
