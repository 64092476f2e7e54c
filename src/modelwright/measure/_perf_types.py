"""What `perf` is asked and what it answers. The answer with every sample is the data file."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import ClassVar, Literal, Protocol

from modelwright._dataclass import dataclass
from modelwright.errors import ExecutionError, UsageError
from modelwright.evidence import Environment
from modelwright.measure.telemetry._types import TelemetryResult
from modelwright.measure.timing._leg import LegPlan
from modelwright.measure.timing._stats import Latency
from modelwright.measure.timing._subject import InputChoice, InputFact
from modelwright.measure.traces._types import OpTrace, TraceLevel
from modelwright.models import FileDigest
from modelwright.targets import GraphOptimization, SessionFacts
from modelwright.vocabulary import Result

PROTOCOL = "perf-1"
"""Goes up when the same numbers would have to be read differently."""

DEFAULT_DURATION_S = 5.0
Status = Literal["complete", "interrupted", "failed"]


@dataclass(frozen=True)
class PerfOptions:
    """`iterations` or `duration_s`, for each of `sessions` fresh processes; neither means five seconds.

    `warmup` is a number of runs; None warms up until steady. `threads` None is what this process may use.
    `op_trace` adds a trace, taken afterwards in a window of its own; `trace_chrome` is a file for all its runs.
    """

    iterations: int | None = None
    duration_s: float | None = None
    warmup: int | None = None
    sessions: int = 1
    threads: int | None = None
    provider_options: Mapping[str, str] = field(default_factory=dict)
    level: GraphOptimization = "all"
    config: Mapping[str, str] = field(default_factory=dict)
    runtime: str | None = None
    inputs: InputChoice = field(default_factory=InputChoice)
    timeout_s: float = 1800.0
    wait: bool = True
    op_trace: TraceLevel | None = None
    trace_chrome: Path | None = None

    def leg_plan(self) -> LegPlan:
        """The plan of one session; impossible numbers are usage errors."""
        if self.iterations is not None and self.duration_s is not None:
            raise UsageError(
                "`iterations` and `duration_s` exclude each other",
                cause="each says when to stop",
                fix="keep one of them",
            )
        _positive("`duration_s`", self.duration_s)
        _positive("`timeout`", self.timeout_s)
        _at_least("`iterations`", self.iterations, 1)
        _at_least("`sessions`", self.sessions, 1)
        _at_least("`threads`", self.threads, 1)
        _at_least("`warmup`", self.warmup, 0)
        _at_least("`batch`", self.inputs.batch, 1)
        for name, size in self.inputs.dims.items():
            _at_least(f"`dims` {name}", size, 1)
        if self.iterations is not None:
            return LegPlan(iterations=self.iterations, warmup=self.warmup)
        return LegPlan(duration_s=self.duration_s or DEFAULT_DURATION_S, warmup=self.warmup)


@dataclass(frozen=True)
class Requested:
    target: str
    ep: str
    device: str
    threads: int | None
    runtime: str | None
    provider_options: Mapping[str, str]


@dataclass(frozen=True)
class Throughput:
    """From the mean time of a run and the batch really used."""

    runs_per_s: float
    items_per_s: float | None
    batch: int | None
    batch_reason: str | None


@dataclass(frozen=True)
class ColdLoad:
    """In a process that had nothing loaded; the file cache is as the system had it.

    `first_run_ms` is None with a reason where a simulator computed it: then it says nothing about the device.
    """

    import_s: float
    open_s: float
    create_s: float
    first_run_ms: float | None
    first_run_reason: str | None


@dataclass(frozen=True)
class SessionRecord:
    """One fresh process with one session: every sample it took, in ns and in order."""

    facts: SessionFacts | None
    load: ColdLoad | None
    warmup_ns: tuple[int, ...]
    samples_ns: tuple[int, ...]
    steady: bool | None
    p50_ms: float | None
    peak_rss_bytes: int | None
    telemetry: TelemetryResult | None = None


@dataclass(frozen=True)
class FailureFact:
    kind: str
    message: str
    problem: str
    fix: str


@dataclass(frozen=True)
class PerfResult(Result):
    """A measurement. `latency` is None with a reason where no speed may be claimed. `precision` is what the graph
    holds, measured, not a label."""

    kind: ClassVar[str] = "perf"

    status: Status
    protocol: str
    plan: LegPlan
    model: str
    fingerprint: str
    files: tuple[FileDigest, ...]
    requested: Requested
    bound: SessionFacts | None
    precision: str | None
    precision_reason: str | None
    timing_valid: bool | None
    latency: Latency | None
    latency_reason: str | None
    throughput: Throughput | None
    load: ColdLoad | None
    peak_rss_bytes: int | None
    inputs: tuple[InputFact, ...]
    inputs_from: str
    sessions: tuple[SessionRecord, ...]
    environment: Environment
    warnings: tuple[str, ...]
    failure: FailureFact | None = None
    op_trace: OpTrace | None = None


class ProcessWatch(Protocol):
    """Looks at the measured process from outside, while it is measured."""

    def start(self, pid: int, samples: Path) -> None:
        """The process is about to be measured; its timings will appear in `samples` (see `read_samples`)."""
        ...

    def stop(self) -> TelemetryResult:
        """The process is measured, or gone. What was seen."""
        ...


class MeasurementFailed(ExecutionError):
    """The model failed while it was measured; `partial` holds what was measured until then."""

    partial: PerfResult


class MeasurementInterrupted(KeyboardInterrupt):
    """Ctrl-C; `partial` holds what was measured until then."""

    partial: PerfResult


def _positive(name: str, value: float | None) -> None:
    if value is not None and not (math.isfinite(value) and value > 0):
        raise UsageError(
            f"{name} {value} is not possible", cause="it is a finite number of seconds above 0", fix=f"try {name} 5"
        )


def _at_least(name: str, value: int | None, least: int) -> None:
    if value is not None and value < least:
        raise UsageError(f"{name} {value} is not possible", cause=f"the smallest is {least}", fix=f"try {name} {least}")
