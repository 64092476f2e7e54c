"""An op trace for the terminal: the slowest operators, the types they add up to, and what the numbers are worth."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from modelwright._lazy import lazy
from modelwright.evidence import busy_words
from modelwright.measure import Operator, OpTrace, ShareSpread, TraceReason, TraceShare, TraceStatus
from modelwright.report._tables import Col, FittedTable, fitted
from modelwright.targets import parse_target

if TYPE_CHECKING:
    import rich.box
    import rich.console
    import rich.table
    import rich.text
else:
    rich = lazy("rich")

SIMULATED = "A simulator computed this: its times and cycles say nothing about a device."
TRACED = "Tracing slows a run down: these are shares of its time, not its latency."
DISTURBED = "Other work kept interrupting these runs: trace again on a quiet machine, or with fewer threads."
OPEN_RANKS = "Where the rank is a range, the runs do not tell which of those operators takes longer."
NO_SPREAD = "Fewer than five runs: how far the shares move from run to run is not known."
_QUIET, _ADDS_UP = 0.7, 0.1
_COLUMNS = (
    *(Col("node", "name"), Col("type", drop=3), Col("EP", drop=4), Col("calls", "number", drop=5)),
    *(Col("p50", "number", drop=2), Col("p90", "number", drop=6), Col("share", "number")),
    *(Col("in 9 of 10 runs", "number"), Col("rank", "number", drop=1), Col("sum", "number", drop=7)),
)
_TOP = 10
_STATUS_WORDS = {
    TraceStatus.NOT_RUN: "nothing was traced",
    TraceStatus.NO_DATA: "the trace holds no data",
    TraceStatus.PARSE_FAILED: "the trace cannot be trusted",
    TraceStatus.RUN_FAILED: "the traced run failed",
    TraceStatus.PARTIAL: "the trace is incomplete",
}
_ADVICE: Mapping[str, str] = {
    TraceReason.TRUNCATED: "trace fewer runs",
    TraceReason.EP_FAILED: "run it with --target cpu to see whether the model or the EP is at fault",
    TraceReason.CHILD_DIED: "the worker's log has the EP's last words; try fewer runs",
}


def render_trace(trace: OpTrace, console: rich.console.Console, top: int = _TOP) -> None:
    for label, text in trace_facts(trace):
        console.print(rich.text.Text(f"{label:<9}", style="bold").append(text, style="not bold"), soft_wrap=True)
    for note in trace_notes(trace):
        console.print(rich.text.Text(note, style="yellow"), soft_wrap=True)
    if not trace.has_data:
        return
    console.print(_operators(trace.operators[:top], len(trace.operators), console.width))
    console.print(_shares(trace.by_op_type[:top], len(trace.by_op_type), console.width))


def _advice(trace: OpTrace) -> str | None:
    """What to do about it: ours for onnxruntime, the adapter's for its EP."""
    known: dict[str, str] = {**parse_target(trace.requested.target).adapter.trace_advice, **_ADVICE}
    return known.get(trace.reason_code) if trace.reason_code else None


def trace_facts(trace: OpTrace) -> list[tuple[str, str]]:
    """What ran where, as (label, text)."""
    lines = [("Model", trace.model), ("Target", trace.requested.target)]
    bound = trace.bound
    if bound is not None:
        kind = "simulator" if bound.simulated else bound.hardware
        version = f" {bound.ep_version}" if bound.ep_version else ""
        lines[1] = (
            "Target",
            f"{trace.requested.target}: {bound.ep}{version} on {kind}, "
            f"onnxruntime {bound.onnxruntime}, {bound.threads} threads",
        )
    window = trace.window
    runs = f"{window.measured if window.measured is not None else 0} of {window.runs} runs after {window.warmup}"
    lines.append(("Trace", f"{trace.requested.level}, {runs} to warm up"))
    totals = trace.totals
    if totals.model_run_us is not None:
        inside, outside = human_us(totals.kernel_us), human_us(totals.overhead_us)
        lines.append(
            (
                "One run",
                f"{human_us(totals.model_run_us)} while traced; operators {inside}, around them {outside} (medians)",
            )
        )
    if trace.partitions:
        parts = ", ".join(f"{part.id}{_inside(part.operators)}" for part in trace.partitions)
        lines.append(("Compiled", f"{len(trace.partitions)} partitions: {parts}"))
    return lines


def trace_notes(trace: OpTrace) -> list[str]:
    """What to know before believing the numbers."""
    notes = []
    if trace.status is not TraceStatus.OK:
        reason = f": {trace.error}" if trace.error else ""
        advice = _advice(trace)
        notes.append(f"{_STATUS_WORDS[trace.status]}{reason}" + (f"; {advice}" if advice else ""))
    if trace.source.timing_valid is False:
        return [*notes, SIMULATED]
    if trace.has_data:
        notes.append(TRACED)
        notes += _about_spread(trace)
    if _disturbed(trace):
        notes.append(DISTURBED)
    return notes


def _about_spread(trace: OpTrace) -> Iterator[str]:
    load = trace.load
    busy = busy_words(load.foreign_cpus, load.usable_cpus) if load is not None else None
    if busy is not None:
        yield f"{busy}; shares move with it."
    totals = trace.totals
    if totals.model_run_us and totals.kernel_us is not None and totals.overhead_us is not None:
        together = totals.kernel_us + totals.overhead_us
        if abs(together - totals.model_run_us) > _ADDS_UP * totals.model_run_us:
            yield (
                f"The medians add up to {human_us(together)}, a run took {human_us(totals.model_run_us)}: the usual "
                "times of operators come from different runs, and shares are of their sum."
            )
    if any(item.spread is None for item in trace.operators):
        yield NO_SPREAD
    elif any(item.spread and item.spread.first_rank < item.spread.last_rank for item in trace.operators[:_TOP]):
        yield OPEN_RANKS


def _disturbed(trace: OpTrace) -> bool:
    """Whether most of a run was spent neither in an operator's usual time nor around operators."""
    totals = trace.totals
    if totals.model_run_us is None or totals.kernel_us is None or totals.overhead_us is None:
        return False
    return totals.kernel_us + totals.overhead_us < _QUIET * totals.model_run_us


def _inside(operators: int) -> str:
    return f" with {operators} operators" if operators else " (what is inside is not known)"


def operator_name(operator: Operator) -> str:
    """The model's name for it where there is one."""
    if operator.kind == "partition":
        return operator.id
    if operator.kind == "io":
        return f"{operator.partition}: {operator.node.lower()}"
    if not operator.onnx_nodes:
        return operator.node
    more = len(operator.onnx_nodes) - 1
    return f"{operator.onnx_nodes[0]} +{more}" if more else operator.onnx_nodes[0]


def _operators(shown: Sequence[Operator], count: int, width: int) -> FittedTable:
    return fitted(_COLUMNS, list(_cells(shown)), width, f"slowest {len(shown)} of {count} operators")


def _cells(shown: Sequence[Operator]) -> Iterator[tuple[str, ...]]:
    summed = 0.0
    for operator in shown:
        summed += operator.percent or 0.0
        yield (
            operator_name(operator),
            operator.op_type,
            operator.provider.removesuffix("ExecutionProvider"),
            f"{operator.calls_per_run:g}",
            human_us(operator.self_us.p50),
            human_us(operator.self_us.p90),
            _percent(operator.percent),
            _range(operator.spread),
            _ranks(operator.spread),
            f"{summed:.0f} %",
        )


def _shares(shown: Sequence[TraceShare], count: int, width: int) -> FittedTable:
    titles = ("operators", "time", "share", "in 9 of 10 runs")
    columns = [Col("type", "name"), *(Col(title, "number") for title in titles)]
    rows = [
        (share.name, str(share.operators), human_us(share.self_us), _percent(share.percent), _range(share.spread))
        for share in shown
    ]
    return fitted(columns, rows, width, f"by type, {len(shown)} of {count}")


def _range(spread: ShareSpread | None) -> str:
    return "unknown" if spread is None else f"{spread.low:.1f}–{spread.high:.1f} %"


def _ranks(spread: ShareSpread | None) -> str:
    if spread is None:
        return "unknown"
    one = spread.first_rank == spread.last_rank
    return str(spread.first_rank) if one else f"{spread.first_rank}–{spread.last_rank}"


def human_us(us: float | None) -> str:
    """`8.3 µs`, `1.25 ms`, `2.10 s`; None is `unknown`."""
    if us is None:
        return "unknown"
    if us < 1000:
        return f"{us:.1f} µs"
    return f"{us / 1000:.2f} ms" if us < 1_000_000 else f"{us / 1_000_000:.2f} s"


def _percent(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.1f} %"
