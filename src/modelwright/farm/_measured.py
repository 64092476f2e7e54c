"""What was measured of a finished cell: how fast it is, and how accurate. Each number has a record behind it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from modelwright._dataclass import dataclass

if TYPE_CHECKING:
    from modelwright.evaluation import EvalResult
    from modelwright.measure import PerfResult


@dataclass(frozen=True)
class PartTime:
    """One graph of a build on its device. Milliseconds; null with a `reason` where no speed may be claimed."""

    part: str
    p50_ms: float | None
    p90_ms: float | None
    record: str | None
    reason: str | None = None


@dataclass(frozen=True)
class CellPerf:
    """Of the build with this `digest`. `machine` is that of a cluster, null for the one that built. `reason` is why
    nothing was measured."""

    digest: str
    machine: str | None = None
    parts: tuple[PartTime, ...] = ()
    reason: str | None = None

    @property
    def records(self) -> tuple[str, ...]:
        return tuple(part.record for part in self.parts if part.record is not None)

    @property
    def p50_ms(self) -> float | None:
        """Of a build of one graph; several have no time in common."""
        return self.parts[0].p50_ms if len(self.parts) == 1 else None

    @property
    def why(self) -> str | None:
        """Why there is no time."""
        return self.reason or next((part.reason for part in self.parts if part.reason is not None), None)


@dataclass(frozen=True)
class CellAccuracy:
    """Of the build with this `digest`, beside the model as it came, on the same rows. `target` is what it ran on: the
    CPU, where nobody has the target itself. `reason` is why nothing is known."""

    digest: str
    metric: str | None = None
    value: float | None = None
    reference: float | None = None
    samples: int | None = None
    target: str | None = None
    simulated: bool = False
    machine: str | None = None
    record: str | None = None
    reason: str | None = None


def time_of(part: str, found: PerfResult) -> PartTime:
    speed = found.latency
    if speed is None:
        return PartTime(part, None, None, found.record_id, found.latency_reason)
    return PartTime(part, speed.p50_ms, speed.p90_ms, found.record_id)


def accuracy_of(digest: str, found: EvalResult) -> CellAccuracy:
    values = found.values
    return CellAccuracy(
        digest,
        metric=None if found.metric is None else found.metric.name,
        value=None if values is None else values.candidate,
        reference=None if values is None else values.reference,
        samples=found.data.selected,
        target=found.candidate.target,
        simulated=found.candidate.simulated,
        machine=found.measured_on,
        record=found.record_id,
        reason=None if values is None else values.reason,
    )
