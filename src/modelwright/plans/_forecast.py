"""What a stage will take, told by what it took before. A forecast, and none where nothing is known."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from modelwright._dataclass import dataclass
from modelwright._lazy import lazy
from modelwright.store import Artifact, Store

if TYPE_CHECKING:
    import statistics
else:
    statistics = lazy("statistics")

_RUNS = 50
_NEAREST = 5


@dataclass(frozen=True)
class StageForecast:
    """Seconds, peak memory and bytes kept, from `runs` earlier runs of the stage on inputs of about this size."""

    seconds: float
    peak_rss_bytes: int | None
    output_bytes: int
    runs: int


@dataclass(frozen=True)
class _EarlierRun:
    seconds: float
    peak: int | None
    read: int
    written: int


class History:
    """Earlier runs in a store, read once for each stage."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._runs: dict[str, list[_EarlierRun]] = {}

    def forecast(self, stage: str, size: int | None) -> StageForecast | None:
        """None when the stage never ran here, or when nobody knows how much there is to do."""
        if stage not in self._runs:
            found = (_run(artifact) for artifact in self._store.recent(stage, _RUNS))
            self._runs[stage] = [run for run in found if run is not None]
        runs = self._runs[stage]
        if not runs or size is None:
            return None
        near = sorted(runs, key=lambda run: abs(math.log((run.read + 1) / (size + 1))))[:_NEAREST]
        return _foretold(near, size)


def _foretold(near: list[_EarlierRun], size: int) -> StageForecast:
    """Longer and larger in proportion for more bytes; for fewer not shorter, since starting takes its time too."""
    more = [max(1.0, (size + 1) / (run.read + 1)) for run in near]
    peaks = [run.peak * scale for run, scale in zip(near, more, strict=True) if run.peak is not None]
    written = [run.written * (size + 1) / (run.read + 1) for run in near]
    return StageForecast(
        seconds=statistics.median(run.seconds * scale for run, scale in zip(near, more, strict=True)),
        peak_rss_bytes=int(max(peaks)) if peaks else None,
        output_bytes=int(statistics.median(written)),
        runs=len(near),
    )


def _run(artifact: Artifact) -> _EarlierRun | None:
    notes: Mapping[str, Any] = artifact.meta
    seconds, read = notes.get("seconds"), notes.get("input_bytes")
    if seconds is None or read is None:
        return None
    return _EarlierRun(seconds, notes.get("peak_rss_bytes"), read, artifact.size)
