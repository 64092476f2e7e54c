"""The page of `wright perf`: the latency, run by run, what the machine did meanwhile, and the trace."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import PurePath
from statistics import median

from modelwright.measure import Latency, PerfResult, SessionRecord, TelemetrySeries
from modelwright.report.html._kit import Cell, Chart, Column, Html, Row, Series, Shade, chart, join, number, table, text
from modelwright.report.html._page import NextStep, Note, Page, Section
from modelwright.report.html._words import command
from modelwright.report.html.trace import trace_page_notes, trace_sections
from modelwright.report.perf import milliseconds, perf_facts

_MOST_POINTS = 1500
_MIB = 1 << 20


def perf_page(result: PerfResult) -> Page:
    timed = [record for record in result.sessions if record.samples_ns]
    sections = (
        [_latency(result.latency), *(_runs(record, place) for place, record in enumerate(timed, 1))]
        if (result.latency is not None)
        else []
    )
    if len(timed) > 1 and result.latency is not None:
        sections.append(_sessions(timed))
    sections += [
        _telemetry(record, place) for place, record in enumerate(result.sessions, 1) if record.telemetry is not None
    ]
    sections += trace_sections(result.op_trace) if result.op_trace is not None else ()
    return Page(
        kind="speed",
        title=f"{PurePath(result.model).name} on {result.requested.target}",
        verdict=_verdict(result),
        facts=tuple((label, words) for label, words in perf_facts(result) if label not in ("Latency", "")),
        notes=(*map(Note, result.warnings), *(trace_page_notes(result.op_trace) if result.op_trace else ())),
        sections=tuple(sections),
        next_steps=_steps(result),
    )


def _verdict(result: PerfResult) -> tuple[str, Shade]:
    if result.status != "complete":
        why = f": {result.failure.problem}" if result.failure is not None else ""
        return f"{result.status}{why}; these numbers are partial", "bad"
    if result.latency is None:
        return f"no latency: {result.latency_reason}", "fair"
    items = result.throughput
    rate = "" if items is None or items.items_per_s is None else f", {items.items_per_s:,.1f} items/s"
    return f"{milliseconds(result.latency.p50_ms)} in the typical run (p50){rate}", ""


def _latency(found: Latency) -> Section:
    points = (
        *(("min", found.min_ms), ("p50", found.p50_ms), ("p90", found.p90_ms), ("p95", found.p95_ms)),
        *(("p99", found.p99_ms), ("max", found.max_ms), ("mean", found.mean_ms)),
    )
    columns = [Column(name, True) for name, _ in points]
    row = Row(tuple(Cell(milliseconds(value), value) for _, value in points))
    return Section("Latency", table(columns, [row]), f"{found.count:,} runs, spread {found.spread:.1%}")


def _runs(record: SessionRecord, place: int) -> Section:
    times = [sample / 1e6 for sample in record.samples_ns]
    x, low, middle, high = zip(*_buckets(times), strict=True)
    one_each = len(times) <= _MOST_POINTS
    series = (
        (Series("this run", middle, "c0", points=True),)
        if one_each
        else (Series("slowest", high, "c1"), Series("median", middle, "c0"), Series("fastest", low, "c2"))
    )
    shown = Chart(x=x, x_title="run", series=series, unit="ms", low=0.0)
    hint = f"{len(times):,} runs" + ("" if one_each else ", a few at a time")
    return Section(f"Run by run, session {place}", chart(shown), hint)


def _buckets(times: Sequence[float]) -> Iterator[tuple[float, float, float, float]]:
    """(place, fastest, median, slowest) of at most so many pieces as can be seen."""
    size = -(-len(times) // _MOST_POINTS)
    for start in range(0, len(times), size):
        piece = times[start : start + size]
        yield start + 1, min(piece), median(piece), max(piece)


def _sessions(records: Sequence[SessionRecord]) -> Section:
    columns = [Column("session", True), Column("p50 ms", True), Column("runs", True), Column("warm-up runs", True)]
    rows = [
        Row(
            (
                number(place, 0),
                number(record.p50_ms, 4),
                number(len(record.samples_ns), 0),
                number(len(record.warmup_ns), 0),
            )
        )
        for place, record in enumerate(records, 1)
    ]
    return Section("Sessions", table(columns, rows), "each in a fresh process")


def _telemetry(record: SessionRecord, place: int) -> Section:
    assert record.telemetry is not None
    known = [one for one in record.telemetry.series if one.recent]
    silent = [f"{one.name}: {one.reason}" for one in record.telemetry.series if not one.recent]
    body = join(_meter(one) for one in known)
    rest = Html(f'<p class="more">{text("not known: " + "; ".join(silent))}</p>') if silent else Html("")
    hint = f"as seen from outside, every {record.telemetry.interval_s:g} s"
    return Section(f"The machine, session {place}", join((body, rest)), hint)


def _meter(series: TelemetrySeries) -> Html:
    scale, unit = (_MIB, "MiB") if series.unit == "bytes" else (1, series.unit)
    values = tuple(sample.value / scale for sample in series.recent)
    line = Series(series.name, values, "c0")
    times = tuple(sample.at_s for sample in series.recent)
    top = 100.0 if unit == "%" else None
    shown = Chart(x=times, x_title="s", series=(line,), unit=unit, low=0.0, high=top, height=150)
    return Html(f"<h3>{text(series.name)}</h3>{chart(shown)}")


def _steps(result: PerfResult) -> tuple[NextStep, ...]:
    model, target = result.model, result.requested.target
    if result.timing_valid is False:
        return (NextStep("See which nodes the target takes.", command("analyze", model, "--target", target)),)
    steps = [
        NextStep(
            "Compare with another model or setting, with proof.",
            command("compare", f"{model}@target={target}", "OTHER.onnx"),
        )
    ]
    if result.op_trace is None:
        asked = command("perf", model, "--target", target, "--op-trace", "--html", "perf.html")
        steps.insert(0, NextStep("See where the time goes.", asked))
    return tuple(steps)
