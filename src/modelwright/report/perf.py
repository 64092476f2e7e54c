"""The answer of `wright perf`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from modelwright._lazy import lazy
from modelwright.evidence import Environment, Reading
from modelwright.measure import Latency, PerfResult
from modelwright.report._units import human_bytes
from modelwright.report.telemetry import render_telemetry
from modelwright.report.trace import render_trace

if TYPE_CHECKING:
    import rich.console
    import rich.text
else:
    rich = lazy("rich")


def render_perf(result: PerfResult, console: rich.console.Console) -> None:
    for label, text in perf_facts(result):
        line = rich.text.Text(f"{label:<12}", style="bold").append(text, style="not bold")
        console.print(line, soft_wrap=True)
    if result.timing_valid is False:
        console.print(rich.text.Text(f"NO LATENCY: {result.latency_reason}", style="bold red"), soft_wrap=True)
    elif result.latency is None:
        console.print(rich.text.Text(f"no latency: {result.latency_reason}", style="yellow"), soft_wrap=True)
    for number, record in enumerate(result.sessions, start=1):
        if record.telemetry is not None:
            console.print(rich.text.Text(f"Session {number}, as seen from outside:", style="bold"))
            render_telemetry(record.telemetry, console)
    for warning in result.warnings if result.timing_valid is not False else ():
        console.print(rich.text.Text(f"warning: {warning}", style="yellow"), soft_wrap=True)
    if result.status != "complete":
        console.print(rich.text.Text(f"{result.status}: these numbers are partial", style="bold red"))
    if result.op_trace is not None:
        console.print()
        render_trace(result.op_trace, console)


def perf_facts(result: PerfResult) -> list[tuple[str, str]]:
    lines = [("Model", f"{Path(result.model).name}  {_shapes(result)}")]
    lines += [("Target", _target(result))]
    if result.latency is not None:
        lines += [("Latency", _latency(result.latency)), ("", _range(result.latency))]
    if result.throughput is not None:
        lines.append(("Throughput", _throughput(result)))
    if result.load is not None:
        lines.append(("Cold load", _load(result)))
    lines.append(("Memory", f"peak {human_bytes(result.peak_rss_bytes)} resident in the measured process"))
    lines.append(("Samples", _samples(result)))
    lines.append(("Machine", machine_words(result.environment)))
    return lines


def _shapes(result: PerfResult) -> str:
    shown = ", ".join(f"{item.name} {item.dtype}{list(item.shape)}" for item in result.inputs)
    return f"{shown}  ({result.inputs_from})"


def _target(result: PerfResult) -> str:
    bound = result.bound
    if bound is None:
        return f"asked for {result.requested.target}; no session was bound"
    total = sum(bound.nodes_per_ep.values())
    placed = f"{bound.nodes_per_ep.get(bound.ep, 0)} of {total} nodes" if total else "placement not told"
    kind = "a simulator" if bound.simulated else bound.hardware
    threads = f"{bound.threads} thread{'s' if bound.threads != 1 else ''}"
    version = "" if bound.ep_version in (None, bound.onnxruntime) else f", EP {bound.ep_version}"
    return (
        f"asked {result.requested.target}, bound {bound.ep} on {kind}: {placed}, "
        f"{result.precision or 'precision unknown'}, {threads}, onnxruntime {bound.onnxruntime}{version}"
    )


def _latency(found: Latency) -> str:
    points = (("p50", found.p50_ms), ("p90", found.p90_ms), ("p95", found.p95_ms), ("p99", found.p99_ms))
    return "  ".join(f"{name} {milliseconds(value)}" for name, value in points)


def _range(found: Latency) -> str:
    return (
        f"mean {milliseconds(found.mean_ms)}, min {milliseconds(found.min_ms)}, max {milliseconds(found.max_ms)}, "
        f"spread {found.spread:.1%}"
    )


def milliseconds(value: float) -> str:
    """Four significant digits, so that a microsecond model is not 0.01 ms."""
    return f"{value:.4g} ms" if value < 1000 else f"{value:,.0f} ms"


def _throughput(result: PerfResult) -> str:
    found = result.throughput
    assert found is not None
    if found.items_per_s is None:
        return f"{found.runs_per_s:,.1f} runs/s (batch unknown: {found.batch_reason})"
    return f"{found.items_per_s:,.1f} items/s (batch {found.batch})"


def _load(result: PerfResult) -> str:
    load = result.load
    assert load is not None
    parts = f"onnxruntime {load.import_s:.2f} s, EP and session {load.open_s:.2f} s"
    first = "" if load.first_run_ms is None else f"; first run {milliseconds(load.first_run_ms)}"
    return f"{load.import_s + load.open_s:.2f} s ({parts}){first}"


def _samples(result: PerfResult) -> str:
    measured = sum(len(record.samples_ns) for record in result.sessions)
    warmup = sum(len(record.warmup_ns) for record in result.sessions)
    count = len(result.sessions)
    how = "until steady" if result.plan.warmup is None else "as asked"
    return (
        f"{measured:,} runs in {count} fresh session{'s' if count != 1 else ''}, after {warmup:,} warm-up runs ({how})"
    )


def machine_words(environment: Environment) -> str:
    cpu = environment.host.cpu
    return ", ".join(
        (
            cpu.model or "unknown CPU",
            f"{cpu.usable:g} usable CPUs",
            f"clock {_reading(environment.clock)}",
            f"governor {_reading(environment.governor)}",
            f"{_reading(environment.temperature)}",
            f"foreign load {_load_words(environment.foreign_load)}",
        )
    )


def _reading(reading: Reading) -> str:
    if reading.value is None:
        return f"unknown{' ' + reading.unit if reading.unit else ''}"
    return f"{reading.value}{' ' + reading.unit if reading.unit else ''}"


def _load_words(reading: Reading) -> str:
    return "unknown" if reading.value is None else f"{reading.value} CPUs"
