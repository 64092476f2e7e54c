"""The page of a matrix: models and targets, what became of each, and failures by class."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from modelwright.farm import MODEL_PAGE, CellStatus, MatrixModel, MatrixResult
from modelwright.report._units import human_bytes
from modelwright.report.html._kit import Cell, Column, Row, number, table
from modelwright.report.html._page import NextStep, Page, Section
from modelwright.report.html._words import command
from modelwright.report.html.matrix_model import (
    TONES,
    VERDICTS,
    asked_accuracy,
    asked_perf,
    cell_columns,
    cell_values,
)
from modelwright.report.matrix import NEXT_STEPS, failures, summary
from modelwright.report.perf import milliseconds


def matrix_page(result: MatrixResult, *, linked: bool = False) -> Page:
    """`linked`: pages of its models stand beside it."""
    words, tone = VERDICTS[result.passed]
    return Page(
        kind="matrix",
        title=f"{len(result.models)} models for {len(result.targets)} targets",
        verdict=(words, tone),
        facts=(
            *((word, str(count)) for word, count in result.counts.items()),
            *((("feed", result.feed),) if result.feed is not None else ()),
        ),
        sections=tuple(section for section in _sections(result, linked) if section is not None),
        next_steps=_steps(result),
        footer=" ".join(summary(result)),
    )


def _sections(result: MatrixResult, linked: bool) -> tuple[Section | None, ...]:
    return (_grid(result, linked), _failures(result), _cells(result, linked=linked))


def _grid(result: MatrixResult, linked: bool) -> Section:
    """A row for each model: a click on a target sorts by it."""
    columns = [Column("model", long=True), Column("size", True), *(Column(target) for target in result.targets)]
    shown = [_model(model, result.targets, linked) for model in result.models]
    body = table(columns, shown, find="filter models and states")
    hint = "size is that of all its builds; click a heading to sort" + ("; a model leads to its page" if linked else "")
    measured = asked_perf(result.cells) or asked_accuracy(result.cells)
    under = "; under a state: precision, time of the typical run, score" if measured else ""
    return Section("Models and targets", body, hint + under)


def _model(model: MatrixModel, targets: Sequence[str], linked: bool) -> Row:
    cells = {status.cell.target: status for status in model.cells}
    size = sum(status.facts.bytes for status in model.cells if status.facts is not None)
    marks = (_mark(cells.get(target)) for target in targets)
    name = Cell(model.name, small=model.asked or "", link=_link(model) if linked else "")
    return Row((name, Cell(human_bytes(size) if size else "–", size or None), *marks))


def _mark(status: CellStatus | None) -> Cell:
    if status is None:
        return Cell("")
    word = status.failure.kind if status.failure is not None and status.state == "failed" else status.state
    small = "" if status.facts is None else " · ".join(_said(status))
    return Cell("unjudged" if word == "built" else word, tone=TONES.get(status.state, "soft"), small=small)


def _said(status: CellStatus) -> Iterator[str]:
    """The most important of it, under the state."""
    assert status.facts is not None
    yield f" {status.facts.precision}"
    if status.perf is not None and status.perf.p50_ms is not None:
        yield milliseconds(status.perf.p50_ms)
    if status.accuracy is not None and status.accuracy.value is not None:
        yield f"{status.accuracy.value:.4g}"


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


def _cells(result: MatrixResult, *, linked: bool) -> Section:
    perf, accuracy = asked_perf(result.cells), asked_accuracy(result.cells)
    columns = [Column("model", long=True), *cell_columns(perf=perf, accuracy=accuracy)]
    links = {one.cell.id: _link(model) for model in result.models for one in model.cells} if linked else {}
    rows = [
        Row(
            (
                Cell(status.cell.model, small=status.cell.asked or "", link=links.get(status.cell.id, "")),
                *cell_values(status, perf=perf, accuracy=accuracy),
            )
        )
        for status in result.cells
    ]
    body = table(columns, rows, find="filter by model, target, state or class")
    return Section("Every cell", body, "the cosine is that of the gate, against the model as it came")


def _link(model: MatrixModel) -> str:
    return f"{model.folder}/{MODEL_PAGE}"


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
