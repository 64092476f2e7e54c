"""The page of `wright debug`: noise from input to output, who makes it, every tensor and weight; and the repair."""

from __future__ import annotations

from modelwright.diagnosis import Activation, DebugReport, OutputScore, WeightScore
from modelwright.repairs import FixResult
from modelwright.report.debug import BAD_DB, GOOD_DB, status_word
from modelwright.report.html._kit import (
    Band,
    Bar,
    Cell,
    Chart,
    Column,
    Row,
    Series,
    Shade,
    bars,
    chart,
    number,
    paragraph,
    table,
)
from modelwright.report.html._page import NextStep, Note, Page, Section
from modelwright.report.html._words import command
from modelwright.report.html.repair import repair_notes, repair_sections

_LOUDEST, _LOUD_SHARE, _GROUPS = 5, 0.01, 8
_TONES: dict[str, Shade] = {"ok": "", "partial": "fair"}


def debug_page(report: DebugReport, fixed: FixResult | None = None) -> Page:
    sections = [*repair_sections(fixed)] if fixed is not None else []
    if report.activations:
        sections.append(_curves(report))
    sections += [_outputs(report), _groups(report)]
    if report.activations:
        sections.append(_tensors(report))
    if report.weights:
        sections.append(_weights(report))
    return Page(
        kind="quantization report",
        title=f"{report.quant_model} against {report.float_model}",
        verdict=_verdict(report),
        facts=_facts(report),
        notes=(*map(Note, _notes(report)), *(repair_notes(fixed) if fixed is not None else ())),
        sections=tuple(sections),
        next_steps=_steps(report) if fixed is None else (),
    )


def tone_of(decibels: float | None) -> Shade:
    if decibels is None:
        return "soft"
    return "good" if decibels > GOOD_DB else "fair" if decibels >= BAD_DB else "bad"


def decibels(value: float | None, reason: str | None = None) -> Cell:
    if value is None:
        return Cell(reason or "–", None, "good" if reason == "identical" else "soft")
    return number(value, tone=tone_of(value))


def _verdict(report: DebugReport) -> tuple[str, Shade]:
    if report.reason is not None:
        return f"{report.status}: {report.reason}", _TONES.get(report.status, "bad")
    worst = report.worst_output_db
    if worst is None:
        return f"{status_word(report)}: no output has a number", _TONES.get(report.status, "bad")
    return f"worst output {worst:.1f} dB", tone_of(worst)


def _facts(report: DebugReport) -> tuple[tuple[str, str], ...]:
    runtimes = report.runtimes
    data = "made up" if report.data.random else report.data.kind
    return (
        ("status", status_word(report)),
        ("quantization", report.mode),
        ("samples", f"{report.samples}, {data}"),
        ("computed by", f"{runtimes.candidate}, onnxruntime {runtimes.onnxruntime}" if runtimes else "nothing was run"),
    )


def _notes(report: DebugReport) -> list[str]:
    notes = list(report.notes)
    if report.data.random and report.samples:
        notes.insert(0, "The samples are made up: real data can look different.")
    if report.runtimes is not None and report.runtimes.simulated:
        notes.insert(0, "A simulator computed the quantized side: the numbers are the EP's own.")
    return notes


def _loudest(report: DebugReport) -> frozenset[int]:
    loud = [row for row in report.originators if (row.origin_share or 0.0) >= _LOUD_SHARE]
    return frozenset(row.order for row in loud[:_LOUDEST])


def _curves(report: DebugReport) -> Section:
    rows, loudest = report.activations, _loudest(report)
    hint = "SQNR in decibels; higher is better; tensors in graph order; drag to zoom, double click for all"
    shown = Chart(
        x=tuple(float(place) for place in range(1, len(rows) + 1)),
        x_title="tensor",
        series=(
            Series("local: its own rounding", tuple(row.local_sqnr_db for row in rows), "c0"),
            Series("cumulative: against the float run", tuple(row.cumulative_sqnr_db for row in rows), "c1"),
            Series(
                "adds the most noise",
                tuple(row.cumulative_sqnr_db if row.order in loudest else None for row in rows),
                tone="bad",
                points=True,
                hollow=True,
                size=13,
            ),
        ),
        unit="dB",
        names=tuple(_told(row) for row in rows),
        bands=(Band(GOOD_DB, None, "good"), Band(BAD_DB, GOOD_DB, "fair"), Band(None, BAD_DB, "bad")),
        low=0.0,
        high=50.0,
        height=320,
    )
    return Section("From input to output", chart(shown), hint)


def _told(row: Activation) -> str:
    folded = f" with {row.absorbed} folded in" if row.absorbed else ""
    share = "" if row.origin_share is None else f"; adds {row.origin_share:.1%} of all noise"
    return f"{row.tensor_name}: {row.operator}{folded}{share}"


def _outputs(report: DebugReport) -> Section:
    titles = ("as written", "as executed", "worst sample", "cosine", "top-1")
    columns = [Column("output", long=True), *(Column(title, True) for title in titles)]
    rows = sorted(report.model_outputs, key=lambda row: (row.executed_sqnr_db is None, row.executed_sqnr_db or 0.0))
    return Section("Outputs", table(columns, [Row(_output(row)) for row in rows], by=2, down=False), "SQNR in dB")


def _output(row: OutputScore) -> tuple[Cell, ...]:
    return (
        Cell(row.output_name),
        decibels(row.cumulative_sqnr_db, row.cumulative_reason),
        decibels(row.executed_sqnr_db, row.executed_reason),
        decibels(row.cumulative_worst_db),
        number(row.cosine, 5),
        Cell("–" if row.top1 is None else f"{row.top1:.1%}", row.top1),
    )


def _groups(report: DebugReport) -> Section:
    shown = [
        Bar(group.name, group.share, f"{group.share:.1%}", small=f"{group.tensors} tensors", tone="c7")
        for group in report.by_op_type[:_GROUPS]
        if group.share > 0
    ]
    body = bars(shown) if shown else paragraph("No noise was traced.", "soft")
    return Section("Noise by operator", body, "share of all noise added")


def _tensors(report: DebugReport) -> Section:
    titles = ("local dB", "cumulative dB", "adds dB", "noise share", "clipped", "#")
    columns = [Column("tensor", long=True), Column("node", long=True), Column("operator"), Column("type")]
    columns += [Column(title, True) for title in titles]
    loudest = _loudest(report)
    quiet = [row for row in report.activations if not row.origin_share]
    rows = [Row(_tensor(row), lit=row.order in loudest) for row in (*report.originators, *quiet)]
    hint = f"{len(rows)} compared; the ones that add the most noise come first"
    return Section("Tensors", table(columns, rows, by=7, find="filter by tensor, node or operator"), hint)


def _tensor(row: Activation) -> tuple[Cell, ...]:
    return (
        Cell(row.tensor_name),
        Cell(row.node, small=f"with {row.absorbed} folded in" if row.absorbed else ""),
        Cell(row.op_type),
        Cell(row.dtype or "–"),
        decibels(row.local_sqnr_db),
        decibels(row.cumulative_sqnr_db, row.cumulative_reason),
        decibels(row.introduced_sqnr_db),
        Cell("–" if row.origin_share is None else f"{row.origin_share:.1%}", row.origin_share),
        Cell("–" if row.clip_fraction is None else f"{row.clip_fraction:.2%}", row.clip_fraction),
        number(row.order + 1, 0),
    )


def _weights(report: DebugReport) -> Section:
    columns = [Column("weight", long=True), Column("node", long=True), Column("type"), Column("scale per")]
    columns += [Column("elements", True), Column("SQNR dB", True)]
    rows = sorted(report.weights, key=lambda row: (row.weight_sqnr_db is None, row.weight_sqnr_db or 0.0))
    return Section("Weights", table(columns, [Row(_weight(row)) for row in rows], by=5, down=False), str(len(rows)))


def _weight(row: WeightScore) -> tuple[Cell, ...]:
    names = (row.weight_name, row.node, row.dtype, row.granularity)
    return (*map(Cell, names), number(row.elements, 0), decibels(row.weight_sqnr_db, row.weight_reason))


def _steps(report: DebugReport) -> tuple[NextStep, ...]:
    models = report.quant_model, "--reference", report.float_model
    if not report.activations:
        return (
            NextStep(
                "Look at what the two models consist of.", command("inspect", report.float_model, report.quant_model)
            ),
        )
    wanted = command(
        "debug", *models, "--fix", "--target-sqnr", f"{max(BAD_DB, (report.worst_output_db or 0) + 6):.0f}"
    )
    return (NextStep("Find the fewest nodes that need more bits, and build that.", wanted),)
