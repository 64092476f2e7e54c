"""The page of one model of a matrix, and the columns that it shares with the page of the whole."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from modelwright.farm import MATRIX_PAGE, CellStatus, MatrixModel
from modelwright.report._units import human_bytes
from modelwright.report.html._kit import Cell, Column, Row, Shade, number, table
from modelwright.report.html._page import NextStep, Page, Section
from modelwright.report.html._words import command
from modelwright.report.matrix import NEXT_STEPS, accuracy_words, cosine_words, evidence_of, perf_words, placement_words

TONES: dict[str, Shade] = {"published": "good", "validated": "good", "built": "fair", "failed": "bad"}
VERDICTS: dict[bool | None, tuple[str, Shade]] = {
    True: ("Every cell is good", "good"),
    False: ("Some cells failed", "bad"),
    None: ("Not every cell is known to be good", "fair"),
}
_SHORT, _FEW = 12, 3


def model_page(model: MatrixModel) -> Page:
    words, tone = VERDICTS[model.passed]
    sections = (_targets(model), _failures(model), _details(model))
    return Page(
        kind="model of a matrix",
        title=f"{model.name} in {model.asked}" if model.asked else model.name,
        verdict=(words, tone),
        facts=tuple(_facts(model)),
        sections=tuple(section for section in sections if section is not None),
        next_steps=_steps(model),
        back=("all models", f"../{MATRIX_PAGE}"),
    )


def asked_perf(cells: Sequence[CellStatus]) -> bool:
    return any(status.perf is not None for status in cells)


def asked_accuracy(cells: Sequence[CellStatus]) -> bool:
    return any(status.accuracy is not None for status in cells)


def cell_columns(*, perf: bool, accuracy: bool) -> list[Column]:
    """Of one cell, without its model."""
    return [
        Column("target"),
        Column("state"),
        Column("precision"),
        Column("size", True),
        Column("worst cosine", True),
        Column("on the target"),
        *([Column("p50 ms", True)] if perf else []),
        *([Column("accuracy", True), Column("reference", True)] if accuracy else []),
        Column("CPU s", True),
        Column("evidence"),
    ]


def cell_values(status: CellStatus, *, perf: bool, accuracy: bool) -> tuple[Cell, ...]:
    facts, where = status.facts, placement_words(status)
    return (
        Cell(status.cell.target),
        Cell(status.words, tone=TONES.get(status.state, "soft")),
        Cell(status.cell.precision or "–" if facts is None else facts.precision),
        Cell("–") if facts is None else Cell(human_bytes(facts.bytes), facts.bytes),
        number(None if facts is None else facts.cosine, 5),
        Cell(where if facts is not None and facts.nodes else "not asked" if where else "–"),
        *([_time(status)] if perf else []),
        *(_scores(status) if accuracy else ()),
        number(None if facts is None else facts.cpu_seconds, 1),
        _evidence(status),
    )


def _evidence(status: CellStatus) -> Cell:
    """One below the other: beside each other they would push the rest out of a narrow window."""
    first, *others = [key[:_SHORT] for key in evidence_of(status)] or ["–"]
    return Cell(first, small=" ".join(others))


def _time(status: CellStatus) -> Cell:
    found = status.perf
    if found is None:
        return Cell("–")
    if found.p50_ms is not None:
        return Cell(f"{found.p50_ms:,.4g}", found.p50_ms, small="" if found.machine is None else f"on {found.machine}")
    several = [f"{part.part} {part.p50_ms:,.4g}" for part in found.parts if part.p50_ms is not None]
    return Cell("–", small=", ".join(several))


def _scores(status: CellStatus) -> tuple[Cell, Cell]:
    found = status.accuracy
    if found is None or found.value is None:
        return Cell("–"), Cell("–")
    where = f"{found.metric} on {found.target}" + (", simulated" if found.simulated else "")
    known = Cell("–") if found.reference is None else Cell(f"{found.reference:.4g}", found.reference)
    return Cell(f"{found.value:.4g}", found.value, small=where), known


def _facts(model: MatrixModel) -> Iterator[tuple[str, str]]:
    cell = model.cells[0].cell
    size = sum(status.facts.bytes for status in model.cells if status.facts is not None)
    yield "targets", str(len(model.cells))
    if cell.task is not None:
        yield "task", cell.task
    if cell.group is not None:
        yield "group", cell.group
    if size:
        yield "size of all builds", human_bytes(size)


def _targets(model: MatrixModel) -> Section:
    perf, accuracy = asked_perf(model.cells), asked_accuracy(model.cells)
    columns = cell_columns(perf=perf, accuracy=accuracy)
    rows = [Row(cell_values(status, perf=perf, accuracy=accuracy)) for status in model.cells]
    return Section("Targets", table(columns, rows), "the cosine is that of the gate, against the model as it came")


def _failures(model: MatrixModel) -> Section | None:
    columns = [Column("target"), Column("class"), Column("why", long=True), Column("next", long=True)]
    rows = [
        Row(
            (
                Cell(status.cell.target),
                Cell(failure.kind, tone="bad"),
                Cell(f"{failure.problem} ({failure.cause})", small=f"log: {failure.log}" if failure.log else ""),
                Cell(failure.fix, small=NEXT_STEPS[failure.kind]),
            )
        )
        for status in model.cells
        if status.state == "failed" and (failure := status.failure) is not None
    ]
    return Section("Failures", table(columns, rows)) if rows else None


def _details(model: MatrixModel) -> Section:
    columns = [Column("target"), Column("what"), Column("is", long=True)]
    rows = [
        Row((Cell(status.cell.target), Cell(name), Cell(words)))
        for status in model.cells
        for name, words in details(status)
        if words
    ]
    return Section("Everything that is known", table(columns, rows, find="filter by target or word"))


def details(status: CellStatus) -> Iterator[tuple[str, str | None]]:
    """What has no column; null is not shown."""
    facts = status.facts
    yield "note", status.cell.note
    yield "cell", status.cell.id
    yield "folder", status.folder
    yield "feed", status.reference
    yield "attempts", str(status.attempt) if status.attempt else None
    if facts is not None:
        yield "gate", f"worst cosine {cosine_words(facts.cosine)}"
        yield "on the target", placement_words(status)
        yield "made in", f"{facts.seconds:.1f} s, {facts.cpu_seconds:.1f} s of CPU"
        yield "most memory", None if facts.peak_rss_bytes is None else human_bytes(facts.peak_rss_bytes)
        yield "machines", ", ".join(facts.machines)
        yield "build", facts.digest
    yield "latency", perf_words(status.perf)
    yield "accuracy", accuracy_words(status.accuracy)
    yield "evidence", " ".join(evidence_of(status))


def _steps(model: MatrixModel) -> tuple[NextStep, ...]:
    failed = [status for status in model.cells if status.state == "failed"][:_FEW]
    steps = [
        NextStep(f"Every event of {status.cell.target}.", command("matrix", "explain", model.name, status.cell.target))
        for status in failed or model.cells[:1]
    ]
    return tuple(steps)
