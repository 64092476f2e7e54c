"""`trace`: where the time of a model goes, operator by operator, in a child and a window of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from pathlib import Path

from modelwright._dataclass import dataclass
from modelwright._scratch import scratch
from modelwright.errors import ExecutionError, UsageError
from modelwright.evidence import Environment, EnvironmentProbe
from modelwright.measure.timing._subject import InputChoice, Subject, make_subject
from modelwright.measure.traces._build import build, operator_ids, trusted_layout
from modelwright.measure.traces._chrome import write_chrome
from modelwright.measure.traces._monitor import Recorded
from modelwright.measure.traces._monitor_contract import Runs
from modelwright.measure.traces._names import ModelNodes, Named
from modelwright.measure.traces._record import record, write_made_graph
from modelwright.measure.traces._regions import read_regions
from modelwright.measure.traces._spans import is_partition
from modelwright.measure.traces._types import (
    LEVELS,
    OpTrace,
    TraceLevel,
    TraceLoad,
    TraceReason,
    TraceRequested,
    TraceStatus,
    empty_trace,
)
from modelwright.targets import SessionSpec, Target
from modelwright.vocabulary import OnProgress
from modelwright.worker import CallResult, Runtime, run

# onnxruntime's limit is 1,000,000; a run also has events that are no nodes.
_MOST_NODE_EVENTS = 900_000
# Above this, writing the graph again to learn its names costs more than the names are worth.
_LARGEST_REWRITTEN = 1 << 30


@dataclass(frozen=True)
class TraceOptions:
    """What a trace rarely needs to be told. `chrome` is a file for the Chrome trace of all runs."""

    session: SessionSpec = field(default_factory=SessionSpec)
    runtime: Runtime | None = None
    timeout_s: float = 1800.0
    chrome: Path | None = None
    on_progress: OnProgress | None = None


def trace(
    model: str | Path,
    target: Target,
    level: TraceLevel = "basic",
    *,
    runs: int = 20,
    warmup: int = 3,
    inputs: InputChoice | None = None,
    options: TraceOptions | None = None,
) -> OpTrace:
    """Run the model `warmup + runs` times under the profiler. Tracing slows a model down: these are shares of its
    time, not its latency. A run that fails is a status; a bad model, input or argument raises."""
    subject = make_subject(model, inputs or InputChoice())
    return trace_subject(subject, target, level, runs=runs, warmup=warmup, options=options)


def trace_subject(
    subject: Subject,
    target: Target,
    level: TraceLevel = "basic",
    *,
    runs: int = 20,
    warmup: int = 3,
    options: TraceOptions | None = None,
) -> OpTrace:
    """The same for a model whose inputs are already there."""
    options = options or TraceOptions()
    _check(subject, level, runs, warmup)
    empty = empty_trace(
        str(subject.path), TraceRequested(str(target), target.provider.name, target.device, level), runs, warmup
    )
    with scratch("trace") as folder:
        probe = EnvironmentProbe()
        call = record.call(str(subject.path), target, options.session, subject.feeds, Runs(warmup, runs), str(folder))
        result = run(
            call,
            runtime=options.runtime,
            timeout=options.timeout_s,
            size=subject.model.total_bytes,
            on_progress=options.on_progress,
        )
        if not result.ok:
            return _failed(empty, result)
        empty = replace(empty, load=_load(probe.finish(result.cpu_s)))
        return _finished(empty, subject, target, options, result.unwrap(), Path(folder))


def _load(found: Environment) -> TraceLoad:
    load = found.foreign_load
    return TraceLoad(load.value if isinstance(load.value, float) else None, found.host.cpu.usable, load.reason)


def _finished(
    empty: OpTrace, subject: Subject, target: Target, options: TraceOptions, recorded: Recorded, folder: Path
) -> OpTrace:
    nodes = ModelNodes(subject.graph)
    regions = _regions(subject, target, options, recorded, nodes, folder)
    found = build(empty, recorded, nodes, regions)
    if options.chrome is not None and found.has_data:
        layout, _ = trusted_layout(recorded)
        rows = (span.row for number in range(len(layout.profile.runs)) for span in layout.spans(number))
        write_chrome(found, layout, operator_ids(layout, dict.fromkeys(rows)), options.chrome)
    lacks = target.adapter.lacks_detail
    if lacks is not None and empty.requested.level == "detail" and found.status is TraceStatus.OK:
        return replace(found, status=TraceStatus.PARTIAL, reason_code=lacks.reason, error=lacks.words)
    return found


def _check(subject: Subject, level: str, runs: int, warmup: int) -> None:
    if level not in LEVELS:
        raise UsageError(f"no trace level '{level}'", cause="levels are basic and detail", fix="use basic")
    if runs < 1 or warmup < 0:
        raise UsageError(
            f"cannot trace {runs} runs after {warmup} to warm up",
            cause="at least one run is needed, and no less than none to warm up",
            fix="use for example 20 runs after 3",
        )
    events = subject.model.node_count * (runs + warmup)
    if events > _MOST_NODE_EVENTS:
        most = _MOST_NODE_EVENTS // subject.model.node_count - warmup
        raise UsageError(
            f"{runs} runs are too many to trace",
            cause=f"{events:,} events; onnxruntime drops what comes after the millionth",
            fix=f"trace at most {max(1, most)} runs",
        )


def _failed(empty: OpTrace, result: CallResult[Recorded]) -> OpTrace:
    """Bad input raises; an EP that fails or a child that dies is an answer."""
    assert result.failure is not None
    error = result.failure.error
    if error is not None and not isinstance(error, ExecutionError):
        raise error
    reason = TraceReason.EP_FAILED if error is not None else TraceReason.CHILD_DIED
    words = f"{error.problem}: {error.cause}" if error is not None else result.failure.message
    return replace(empty, status=TraceStatus.RUN_FAILED, reason_code=reason, error=words)


def _regions(
    subject: Subject,
    target: Target,
    options: TraceOptions,
    recorded: Recorded,
    nodes: ModelNodes,
    folder: Path,
) -> Mapping[tuple[str, str], Named]:
    """What fused nodes stand for, where a name is not the model's own and onnxruntime can write its graph."""
    profile = recorded.profile
    if profile is None or any(is_partition(kernel) for kernel in profile.kernels):
        return {}
    strange = [one for one in profile.kernels if not nodes.exact(one.name, one.op_type, one.index)]
    if not strange or subject.model.total_bytes > _LARGEST_REWRITTEN:
        return {}
    made = folder / "made.onnx"
    call = write_made_graph.call(str(subject.path), target, options.session, str(made))
    result = run(call, runtime=options.runtime, timeout=options.timeout_s, size=subject.model.total_bytes)
    return read_regions(made, nodes) if result.ok and result.value else {}
