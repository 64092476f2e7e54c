"""The answer of `wright debug --fix`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from modelwright._lazy import lazy
from modelwright.diagnosis import INPUT, operator_words
from modelwright.judge import SAID, VerdictKind
from modelwright.repairs import FixResult, FixRow, FixScore, Promotion, Repaired
from modelwright.report._tables import Col, FittedTable, fitted
from modelwright.report._tones import verdict_style
from modelwright.report._units import human_bytes
from modelwright.report.debug import decibels

if TYPE_CHECKING:
    import rich.console
    import rich.table
    import rich.text
else:
    rich = lazy("rich")

_SHOWN = 10
FRONT = "Accuracy against size: what was tried and is beaten by nothing in both"
_SETTINGS: dict[tuple[str, object], str] = {
    ("reduce_range", True): "nothing, but keep the weights to what cannot saturate",
    ("per_channel", True): "the weights from one scale for each tensor to one for each channel",
}


def render_fix(found: Repaired, console: rich.console.Console) -> None:
    result, folder = found.result, found.folder
    style = verdict_style(result.status)
    console.print()
    console.print(rich.text.Text.assemble((repair_word(result), style), f": {result.wanted}"), soft_wrap=True)
    if result.reason is not None:
        console.print(rich.text.Text(result.reason, style=style), soft_wrap=True)
    console.print(_table(result, console.width))
    for item in result.raised[:_SHOWN]:
        console.print(rich.text.Text(f"  raise {raised_words(item)}"), soft_wrap=True)
    if len(result.raised) > _SHOWN:
        console.print(f"  and {len(result.raised) - _SHOWN} more (--json lists all)")
    if result.raised and all(item.what != "setting" for item in result.raised):
        console.print(f"  these made {result.covered_share:.0%} of the noise")
    if len(result.front) > 1:
        console.print(rich.text.Text(FRONT, style="bold"), soft_wrap=True)
        console.print(_table(result, console.width, result.front))
    if result.note is not None:
        console.print(rich.text.Text(f"note: {result.note}", style="yellow"), soft_wrap=True)
    data = "made-up samples: real data can look different" if result.random_data else "samples"
    builds = "1 build" if result.builds == 1 else f"{result.builds} builds"
    builds += f", {result.from_store} of them in the store" if result.from_store else ""
    tail = f"{builds}; {result.choose_samples} {data} chose, {result.check_samples} others checked"
    console.print(rich.text.Text(tail, style="yellow" if result.random_data else "dim"), soft_wrap=True)
    if folder is not None:
        console.print(rich.text.Text(f"written to {folder}", style="dim"), soft_wrap=True)


def repair_word(result: FixResult) -> str:
    if result.status is VerdictKind.INCONCLUSIVE:
        return "repaired, not proven" if result.raised else "perhaps nothing to repair, not proven"
    return SAID[result.status].words


def raised_words(item: Promotion) -> str:
    """What it means for the quantizer."""
    if item.what == "setting":
        return _SETTINGS.get((item.tensor, item.value), f"nothing, but set {item.tensor} to {item.value}")
    if item.what == "operator":
        count = len(item.excludes) or len(item.overrides)
        return f"all {count} {item.tensor} to {'float' if item.level == 'float' else '16 bits'}"
    widened = "16 bits: " + ", ".join(f"{one.tensor} = {one.dtype}" for one in item.overrides)
    how = f"float: {', '.join(item.excludes)}" if item.level == "float" else widened
    return f"{_whose(item)} to {how}"


def _whose(item: Promotion) -> str:
    if item.op_type == INPUT:
        return f"the input {item.tensor}"
    operator = operator_words(item.op_type, item.node)
    parts = {"weight": "the weights of ", "activation": f"the output {item.tensor} of "}
    return f"{parts.get(item.what, '')}{operator}"


def _table(result: FixResult, width: int, rows: Sequence[FixRow] = ()) -> FittedTable:
    placed = any(row.partitions is not None for row in result.rows)
    titles = ["raised", "size", "SQNR dB", "held out"]
    titles += ["metric", "held out"] if result.metric else []
    titles += ["CPU p50"] + ([f"pieces on {result.target}", "left"] if placed else [])
    columns = [Col("model"), *(Col(title, "number") for title in titles)]
    return fitted(columns, [_cells(row, result, placed) for row in rows or result.rows], width)


def _cells(row: FixRow, result: FixResult, placed: bool) -> list[str | rich.text.Text]:
    cells: list[str | rich.text.Text] = [row.name, str(row.raised), human_bytes(row.file_bytes)]
    cells += [_sqnr(row, row.choose), _sqnr(row, row.check)]
    if result.metric:
        cells += [_metric(row.choose), _metric(row.check)]
    cells.append(f"{row.p50_ms:.3g} ms" if row.p50_ms is not None else "-")
    if placed:
        cells += [str(item) if item is not None else "-" for item in (row.partitions, row.left_nodes)]
    return cells


def _sqnr(row: FixRow, score: FixScore | None) -> str | rich.text.Text:
    if score is None or row.name == "float":
        return "-"
    return decibels(score.sqnr_db, score.problem or "identical")


def _metric(score: FixScore | None) -> str:
    return f"{score.metric:.4f}" if score is not None and score.metric is not None else "-"
