"""The page of a matrix: models and targets, what became of each, and failures by class."""

from __future__ import annotations

from collections.abc import Sequence

from modelwright.farm import CellStatus, MatrixResult
from modelwright.report._units import human_bytes
from modelwright.report.html._kit import Cell, Column, Row, Shade, number, table
from modelwright.report.html._page import NextStep, Page, Section
from modelwright.report.html._words import command
from modelwright.report.matrix import NEXT_STEPS, failures, placement_words, summary

_TONES: dict[str, Shade] = {"published": "good", "validated": "good", "built": "fair", "failed": "bad"}
_SHORT = 12
_VERDICTS: dict[bool | None, tuple[str, Shade]] = {
    True: ("Every cell is good", "good"),
    False: ("Some cells failed", "bad"),
    None: ("Not every cell is known to be good", "fair"),
}


def matrix_page(result: MatrixResult) -> Page:
    words, tone = _VERDICTS[result.passed]
    models = len({(status.cell.model, status.cell.asked) for status in result.cells})
    return Page(
        kind="matrix",
        title=f"{models} models for {len(result.targets)} targets",
        verdict=(words, tone),
        facts=(
            *((word, str(count)) for word, count in result.counts.items()),
            *((("feed", result.feed),) if result.feed is not None else ()),
        ),
        sections=tuple(section for section in _sections(result) if section is not None),
        next_steps=_steps(result),
        footer=" ".join(summary(result)),
    )


def _sections(result: MatrixResult) -> tuple[Section | None, ...]:
    return (_grid(result), _failures(result), _cells(result))


def _grid(result: MatrixResult) -> Section:
    """A row for each model: a click on a target sorts by it."""
    columns = [Column("model", long=True), Column("size", True), *(Column(target) for target in result.targets)]
    rows: dict[tuple[str, str | None], dict[str, CellStatus]] = {}
    for status in result.cells:
        rows.setdefault((status.cell.model, status.cell.asked), {})[status.cell.target] = status
    shown = [_model(model, precision, cells, result.targets) for (model, precision), cells in rows.items()]
    body = table(columns, shown, find="filter models and states")
    return Section("Models and targets", body, "size is that of all its builds; click a heading to sort")


def _model(model: str, precision: str | None, cells: dict[str, CellStatus], targets: Sequence[str]) -> Row:
    size = sum(status.facts.bytes for status in cells.values() if status.facts is not None)
    marks = (_mark(cells.get(target)) for target in targets)
    return Row((Cell(model, small=precision or ""), Cell(human_bytes(size) if size else "–", size or None), *marks))


def _mark(status: CellStatus | None) -> Cell:
    if status is None:
        return Cell("")
    word = status.failure.kind if status.failure is not None and status.state == "failed" else status.state
    small = "" if status.facts is None else f" {status.facts.precision}"
    return Cell("unjudged" if word == "built" else word, tone=_TONES.get(status.state, "soft"), small=small)


def _failures(result: MatrixResult) -> Section | None:
    found = failures(result)
    if not found:
        return None
    columns = [
        Column("class"),
        Column("cells", True),
        Column("the first of them", long=True),
        Column("next", long=True),
    ]
    rows = []
    for kind, cells in found.items():
        first = cells[0].failure
        assert first is not None
        why = f"{cells[0].cell.model} for {cells[0].cell.target}: {first.problem} ({first.cause})"
        rows.append(Row((Cell(kind, tone="bad"), number(len(cells), 0), Cell(why), Cell(NEXT_STEPS[kind]))))
    return Section("Failures by class", table(columns, rows, by=1))


def _cells(result: MatrixResult) -> Section:
    columns = [
        Column("model", long=True),
        Column("target"),
        Column("state"),
        Column("precision"),
        Column("size", True),
        Column("worst cosine", True),
        Column("on the target"),
        Column("CPU s", True),
        Column("evidence"),
    ]
    body = table(columns, [_cell(status) for status in result.cells], find="filter by model, target, state or class")
    return Section("Every cell", body, "accuracy is that of the gate, against the model as it came")


def _cell(status: CellStatus) -> Row:
    facts = status.facts
    where = placement_words(status)
    return Row(
        (
            Cell(status.cell.model),
            Cell(status.cell.target),
            Cell(status.words, tone=_TONES.get(status.state, "soft")),
            Cell(status.cell.precision or "–" if facts is None else facts.precision),
            Cell("–") if facts is None else Cell(human_bytes(facts.bytes), facts.bytes),
            number(None if facts is None else facts.cosine, 5),
            Cell(where if facts is not None and facts.nodes else "not asked" if where else "–"),
            number(None if facts is None else facts.cpu_seconds, 1),
            Cell("–" if facts is None or not facts.evidence else " ".join(key[:_SHORT] for key in facts.evidence)),
        )
    )


def _steps(result: MatrixResult) -> tuple[NextStep, ...]:
    steps = [
        NextStep(f"Everything about the first failure of class {kind}.", _explain(cells[0]))
        for kind, cells in list(failures(result).items())[:3]
    ]
    if any(status.state == "built" for status in result.cells):
        again = command("matrix", "run", "models.json", "--data", "samples.npz")
        steps.append(NextStep("Judge what is unjudged: name real data.", again))
    return tuple(steps)


def _explain(status: CellStatus) -> str:
    return command("matrix", "explain", status.cell.model, status.cell.target)
