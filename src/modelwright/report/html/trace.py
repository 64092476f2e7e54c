"""The page of an op trace: the slowest operators, what they add up to by type, one run, all operators."""

from __future__ import annotations

from pathlib import PurePath

from modelwright.measure import Operator, OpTrace, ShareSpread, TraceStatus
from modelwright.report.html._kit import (
    Bar,
    Cell,
    Column,
    Row,
    Span,
    bars,
    colour,
    number,
    paragraph,
    table,
    timeline,
)
from modelwright.report.html._page import NextStep, Note, Page, Section
from modelwright.report.html._words import command
from modelwright.report.trace import NO_SPREAD, OPEN_RANKS, TRACED, human_us, operator_name, trace_facts, trace_notes

_TOP, _TICKS = 15, 5
_FOOTER = (
    "Own time leaves out what ran inside an operator. Shares are of the sum of all medians and add up to 100 %; "
    "5 % and 95 % are where the share of a run lies in nine runs of ten."
)


def trace_page(trace: OpTrace) -> Page:
    return Page(
        kind="op trace",
        title=f"{PurePath(trace.model).name} on {trace.requested.target}",
        facts=tuple(trace_facts(trace)[1:]),
        notes=trace_page_notes(trace),
        sections=trace_sections(trace),
        next_steps=trace_steps(trace),
        footer=_FOOTER,
    )


def trace_sections(trace: OpTrace) -> tuple[Section, ...]:
    """Empty where there is nothing to show: the notes say why."""
    if not trace.operators:
        return (Section("Operators", paragraph("There is nothing to show: see the note above.")),)
    tones = {share.name: colour(place) for place, share in enumerate(trace.by_op_type)}
    return (_slowest(trace, tones), _by_type(trace, tones), _one_run(trace, tones), _all(trace))


def trace_steps(trace: OpTrace) -> tuple[NextStep, ...]:
    model, target = trace.model, trace.requested.target
    if not trace.has_data:
        return (NextStep("See whether the target can be used here.", "wright sys"),)
    if trace.requested.level == "basic":
        asked = command("perf", model, "--target", target, "--op-trace", "detail", "--trace-html", "trace.html")
        return (NextStep("See shapes and bytes of every operator too.", asked),)
    return (NextStep("See which nodes the target does not take.", command("analyze", model, "--target", target)),)


def trace_page_notes(trace: OpTrace) -> tuple[Note, ...]:
    return tuple(_note(trace, words) for words in trace_notes(trace))


def _note(trace: OpTrace, words: str) -> Note:
    harmless = trace.status is TraceStatus.OK and words in (TRACED, OPEN_RANKS, NO_SPREAD)
    return Note(words, "" if harmless else "fair")


def _slowest(trace: OpTrace, tones: dict[str, str]) -> Section:
    shown = trace.operators[:_TOP]
    hint = "median of their own time per run; the line is where nine runs in ten have the share, # the ranks it leaves"
    return Section("Slowest operators", bars([_bar(item, tones[item.op_type]) for item in shown]), hint)


def _bar(item: Operator, tone: str) -> Bar:
    spread, share = item.spread, item.percent
    return Bar(
        name=operator_name(item),
        share=share or 0.0,
        value="unknown" if share is None else f"{share:.1f} %",
        small=item.op_type,
        detail=f"{_range(spread)}{human_us(item.self_us.p50)}",
        low=spread.low if spread else None,
        high=spread.high if spread else None,
        tone=tone,
    )


def _range(spread: ShareSpread | None) -> str:
    if spread is None:
        return ""
    one = spread.first_rank == spread.last_rank
    ranks = str(spread.first_rank) if one else f"{spread.first_rank}–{spread.last_rank}"
    return f"{spread.low:.1f}–{spread.high:.1f} #{ranks}, "


def _by_type(trace: OpTrace, tones: dict[str, str]) -> Section:
    shown = [
        Bar(
            name=share.name,
            share=share.percent or 0.0,
            value="unknown" if share.percent is None else f"{share.percent:.1f} %",
            small=f"{share.operators} ×",
            detail=human_us(share.self_us),
            tone=tones[share.name],
        )
        for share in trace.by_op_type[:_TOP]
    ]
    providers = ", ".join(
        f"{_short(share.name)} {share.operators} operators{'' if share.percent is None else f', {share.percent:.1f} %'}"
        for share in trace.by_provider
    )
    return Section("By type", bars(shown), providers)


def _one_run(trace: OpTrace, tones: dict[str, str]) -> Section:
    names = {item.id: item for item in trace.operators}
    spans = []
    for span in trace.timeline:
        item = names[span.operator]
        name = operator_name(item)
        words = f"{item.op_type} on {_short(item.provider)}, {human_us(span.duration_us)} at {human_us(span.start_us)}"
        spans.append(Span(name, f"{name}: {words}", span.start_us, span.duration_us, span.depth, tones[item.op_type]))
    end = max((span.start_us + span.duration_us for span in trace.timeline), default=0.0)
    ticks = [(end * step / _TICKS, human_us(end * step / _TICKS)) for step in range(_TICKS)]
    return Section("One run", timeline(spans, ticks), f"{human_us(end)}, the run nearest the typical one")


def _all(trace: OpTrace) -> Section:
    names = ("calls", "p50 µs", "p90 µs", "max µs", "share %", "5 %", "95 %", "best rank", "worst rank", "cycles")
    columns = [
        Column("node", long=True),
        Column("type"),
        Column("EP"),
        Column("in"),
        *(Column(name, True) for name in names),
    ]
    columns.append(Column("shapes", long=True))
    rows = [_cells(item) for item in trace.operators]
    kept = [place for place in range(len(columns)) if place < 3 or any(row[place].text != "–" for row in rows)]
    by = next(place for place, column in enumerate(kept) if columns[column].title == "share %")
    shown = [Row(tuple(row[place] for place in kept)) for row in rows]
    body = table([columns[place] for place in kept], shown, by=by, find="filter by node, type or EP")
    return Section("All operators", body, str(len(rows)))


def _cells(item: Operator) -> tuple[Cell, ...]:
    spread = item.spread
    shapes = "–" if item.inputs is None else f"{', '.join(item.inputs)} → {', '.join(item.outputs or ())}"
    return (
        Cell(operator_name(item), small=_origin(item)),
        Cell(item.op_type),
        Cell(_short(item.provider)),
        Cell(item.partition or "–"),
        Cell(f"{item.calls_per_run:g}", item.calls_per_run),
        *(number(value) for value in (item.self_us.p50, item.self_us.p90, item.self_us.max)),
        number(item.percent, 2),
        *(number(value) for value in ((spread.low, spread.high) if spread else (None, None))),
        *(number(value, 0) for value in ((spread.first_rank, spread.last_rank) if spread else (None, None))),
        number(item.cycles, 0),
        Cell(shapes, tone="soft"),
    )


def _origin(item: Operator) -> str:
    if len(item.onnx_nodes) > 1:
        return f"does the work of {', '.join(item.onnx_nodes)}"
    if item.origin == "inserted":
        return "added by the runtime"
    if item.origin == "unresolved":
        return "not found in the model"
    return "" if item.node == operator_name(item) else item.node


def _short(provider: str) -> str:
    return provider.removesuffix("ExecutionProvider")
