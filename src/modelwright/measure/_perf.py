"""How fast one model runs on one target, and in what circumstances that was found."""

from __future__ import annotations

from dataclasses import field, replace
from pathlib import Path

from modelwright._dataclass import dataclass
from modelwright._scratch import scratch
from modelwright.errors import WrightError
from modelwright.evidence import Environment, EnvironmentProbe
from modelwright.graph import fingerprint
from modelwright.measure._perf_types import (
    PROTOCOL,
    ColdLoad,
    FailureFact,
    MeasurementFailed,
    MeasurementInterrupted,
    PerfOptions,
    PerfResult,
    ProcessWatch,
    Requested,
    SessionRecord,
    Status,
    Throughput,
)
from modelwright.measure._warnings import warnings_about
from modelwright.measure.timing._leg import LegPlan
from modelwright.measure.timing._lock import measurement_lock
from modelwright.measure.timing._session_process import SessionProcess
from modelwright.measure.timing._session_tasks import Opened
from modelwright.measure.timing._sink import read_samples
from modelwright.measure.timing._stats import Latency, latency
from modelwright.measure.timing._subject import Subject, make_subject
from modelwright.measure.traces._trace import TraceOptions, trace_subject
from modelwright.measure.traces._types import OpTrace
from modelwright.targets import SessionFacts, SessionSpec, Target, parse_target
from modelwright.vocabulary import OnProgress, Progress, silent
from modelwright.worker import CallResult, Failure, Runtime, find_runtime

_ADVICE = {"crash": "compare with `target` cpu; the worker's log has the last words of the process"}


def perf(
    model: str | Path,
    target: str | Target = "cpu",
    options: PerfOptions | None = None,
    *,
    on_progress: OnProgress | None = None,
    watch: ProcessWatch | None = None,
) -> PerfResult:
    """Measure `model`, with `watch` looking on.

    Raises MeasurementFailed or MeasurementInterrupted, with what was measured, when it ends early.
    """
    options = options or PerfOptions()
    plan = options.leg_plan()
    chosen = parse_target(target) if isinstance(target, str) else target
    runtime = find_runtime(options.runtime) if options.runtime else None
    subject = make_subject(model, options.inputs)
    run = _Run(subject, chosen, options, plan, runtime, watch)
    tell = on_progress or silent
    with measurement_lock("wright perf", wait=options.wait, on_progress=tell):
        result = run.measured(tell)
        if not options.op_trace:
            return result
        try:
            return replace(result, op_trace=run.traced(tell))
        except KeyboardInterrupt:
            raise _interrupted(replace(result, status="interrupted")) from None


@dataclass
class _Run:
    subject: Subject
    target: Target
    options: PerfOptions
    plan: LegPlan
    runtime: Runtime | None
    watch: ProcessWatch | None
    records: list[SessionRecord] = field(default_factory=list)
    cpu_s: float | None = 0.0

    def measured(self, tell: OnProgress) -> PerfResult:
        probe = EnvironmentProbe()
        try:
            for number in range(1, self.options.sessions + 1):
                tell(Progress(f"session {number} of {self.options.sessions}"))
                failure = self._session()
                if failure is not None:
                    raise self._failed(failure, probe)
        except KeyboardInterrupt:
            if not any(record.samples_ns for record in self.records):
                raise
            raise _interrupted(self._result("interrupted", probe.finish(self.cpu_s))) from None
        return self._result("complete", probe.finish(self.cpu_s))

    def traced(self, tell: OnProgress) -> OpTrace:
        """A trace of the same session options and inputs; what it costs is in no latency."""
        assert self.options.op_trace is not None
        tell(Progress("tracing"))
        options = self.options
        chosen = TraceOptions(self._spec(), self.runtime, options.timeout_s, options.trace_chrome)
        return trace_subject(self.subject, self.target, self.options.op_trace, options=chosen)

    def _spec(self) -> SessionSpec:
        options = self.options
        return SessionSpec(
            threads=options.threads,
            config=options.config,
            provider_options=options.provider_options,
            graph_optimization=options.level,
        )

    def _session(self) -> Failure | None:
        """One fresh process. What it measured is recorded however it ends."""
        with scratch("perf") as folder, SessionProcess(self.runtime) as process:
            file = Path(folder) / "samples"
            opened = process.open(self.subject.path, self.target, self._spec(), self.subject.feeds)
            result: CallResult[bool | None] | None = None
            if self.watch is not None:
                self.watch.start(opened.pid, file)
            try:
                result = process.measure(self.plan, file, self.options.timeout_s)
            finally:
                seen = self.watch.stop() if self.watch is not None else None
                self._add_cpu(process.cpu_s)
                record = _record(opened, file, result, process.peak_rss_bytes)
                self.records.append(replace(record, telemetry=seen))
        return result.failure

    def _add_cpu(self, cpu_s: float | None) -> None:
        self.cpu_s = None if self.cpu_s is None or cpu_s is None else self.cpu_s + cpu_s

    def _failed(self, failure: Failure, probe: EnvironmentProbe) -> WrightError:
        own = failure.error
        problem = own.problem if own else f"{self.target} failed while {self.subject.path.name} was measured"
        cause = own.cause if own else failure.message
        fix = own.fix if own else _ADVICE.get(failure.kind, failure.advice)
        error = MeasurementFailed(problem, cause=cause, fix=fix)
        fact = FailureFact(failure.kind, failure.message, problem, fix)
        if own is not None and not any(record.warmup_ns or record.samples_ns for record in self.records):
            return own
        error.partial = self._result("failed", probe.finish(self.cpu_s), fact)
        return error

    def _result(self, status: Status, environment: Environment, failure: FailureFact | None = None) -> PerfResult:
        samples = [sample for record in self.records for sample in record.samples_ns]
        facts = next((record.facts for record in self.records if record.facts), None)
        found = latency(samples) if samples and facts and facts.timing_valid else None
        peaks = [record.peak_rss_bytes for record in self.records if record.peak_rss_bytes is not None]
        precision = self.subject.model.precision
        draft = PerfResult(
            status=status,
            protocol=PROTOCOL,
            plan=self.plan,
            model=str(self.subject.path),
            fingerprint=fingerprint(self.subject.graph),
            files=self.subject.files,
            requested=self._requested(),
            bound=facts,
            precision=precision.label,
            precision_reason=precision.reason if precision.label is None else None,
            timing_valid=facts.timing_valid if facts else None,
            latency=found,
            latency_reason=_no_latency(samples, facts) if found is None else None,
            throughput=self._throughput(found) if found else None,
            load=self.records[0].load if self.records else None,
            peak_rss_bytes=max(peaks) if peaks else None,
            inputs=self.subject.inputs,
            inputs_from=self._inputs_from(),
            sessions=tuple(self.records),
            environment=environment,
            warnings=(),
            failure=failure,
        )
        return warnings_about(draft)

    def _requested(self) -> Requested:
        options, target = self.options, self.target
        return Requested(
            str(target),
            target.provider.name,
            target.device,
            options.threads,
            options.runtime,
            dict(options.provider_options),
        )

    def _throughput(self, found: Latency) -> Throughput:
        runs = 1000 / found.mean_ms
        batch = self.subject.counted
        return Throughput(runs, None if batch.size is None else runs * batch.size, batch.size, batch.reason)

    def _inputs_from(self) -> str:
        data = self.options.inputs.data
        return f"made up, seed {data.seed}" if data.random else data.source


def _interrupted(partial: PerfResult) -> MeasurementInterrupted:
    stop = MeasurementInterrupted()
    stop.partial = partial
    return stop


def _record(opened: Opened, file: Path, result: CallResult[bool | None] | None, peak: int | None) -> SessionRecord:
    warmup, samples = read_samples(file)
    load = _cold_load(opened, next(iter([*warmup[:1].tolist(), *samples[:1].tolist()]), None))
    return SessionRecord(
        facts=opened.facts,
        load=load,
        warmup_ns=tuple(warmup.tolist()),
        samples_ns=tuple(samples.tolist()),
        steady=result.value if result is not None and result.ok else None,
        p50_ms=latency(samples.tolist()).p50_ms if len(samples) and opened.facts.timing_valid else None,
        peak_rss_bytes=peak,
    )


def _cold_load(opened: Opened, first_ns: int | None) -> ColdLoad:
    valid = first_ns is not None and opened.facts.timing_valid
    reason = None if valid else _no_latency([] if first_ns is None else [first_ns], opened.facts)
    first_ms = first_ns / 1e6 if first_ns is not None and valid else None
    return ColdLoad(opened.import_s, opened.open_s, opened.facts.create_s, first_ms, reason)


def _no_latency(samples: list[int], facts: SessionFacts | None) -> str:
    if facts is not None and not facts.timing_valid:
        return f"{facts.target} is simulated on this machine: its timings say nothing about the device"
    return "no run was measured" if not samples else "the session is not known"
