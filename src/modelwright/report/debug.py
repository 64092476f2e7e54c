"""The answer of `wright debug`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from modelwright._lazy import lazy
from modelwright.diagnosis import Activation, DebugReport, NoiseShare, OutputScore, WeightScore
from modelwright.report._tables import Col, FittedTable, fitted

if TYPE_CHECKING:
    import rich.console
    import rich.table
    import rich.text
else:
    rich = lazy("rich")

T = TypeVar("T")
WORST = 10
GOOD_DB, BAD_DB = 40.0, 20.0
_STATUS = {
    "ok": "",
    "partial": "yellow",
    "no_match": "bold red",
    "failed": "bold red",
    "interrupted": "bold red",
    "crashed": "bold red",
}


def render_debug(report: DebugReport, console: rich.console.Console) -> None:
    _headline(report, console)
    if report.model_outputs:
        _show("Outputs", _outputs(report.model_outputs, console.width), console)
    if report.originators:
        _show(
            f"Where the noise is made (by operator: {_shares(report.by_op_type)})",
            _originators(report, console.width),
            console,
        )
    _worst_activations(report, console)
    if report.weights:
        _worst_weights(report, console)
    _closing(report, console)


def decibels(number: float | None, reason: str | None) -> rich.text.Text:
    """Green above 40 dB, yellow from 20, red below; without a number the reason, green when it is good news."""
    if number is None:
        word = reason or "unknown"
        return rich.text.Text(word, style="green" if word == "identical" else "dim")
    return rich.text.Text(f"{number:.1f}", style=color(number))


def color(number: float) -> str:
    return "green" if number > GOOD_DB else "yellow" if number >= BAD_DB else "red"


def worst(rows: Sequence[T], key: Callable[[T], float | None], count: int = WORST) -> list[T]:
    """The lowest numbers first; rows without a number are not among them."""
    known = [(number, place, row) for place, row in enumerate(rows) if (number := key(row)) is not None]
    return [row for _, _, row in sorted(known, key=lambda item: item[:2])[:count]]


def status_word(report: DebugReport) -> str:
    """`ok` only means that everything was compared; how good it is, the numbers say."""
    return "compared" if report.status == "ok" else report.status


def _headline(report: DebugReport, console: rich.console.Console) -> None:
    line = rich.text.Text()
    line.append(status_word(report), style=_STATUS[report.status])
    line.append(f"  {report.quant_model} against {report.float_model}, {report.mode}")
    console.print(line)
    if report.reason is not None:
        console.print(rich.text.Text(report.reason, style=_STATUS[report.status]), soft_wrap=True)
    if report.samples:
        console.print(
            rich.text.Text(_fed(report), style="bold yellow" if report.data.random else "dim"), soft_wrap=True
        )
    if report.runtimes is not None:
        told = "  SIMULATED: numbers are the EP's, times would not be" if report.runtimes.simulated else ""
        shown = f"{report.runtimes.candidate}, onnxruntime {report.runtimes.onnxruntime}{told}"
        console.print(rich.text.Text(shown, style="dim"), soft_wrap=True)


def _fed(report: DebugReport) -> str:
    noun = "sample" if report.samples == 1 else "samples"
    if report.data.random:
        return f"{report.samples} made-up {noun}: real data can look different, give it with --data"
    scaled = f", pixels times {report.data.scale:.6g}" if report.data.scale is not None else ""
    return f"{report.samples} {noun} from {report.data.kind}{scaled}"


def _show(title: str, table: FittedTable, console: rich.console.Console) -> None:
    """The title as a line of its own: a table's title is broken at the table's width."""
    console.print()
    console.print(rich.text.Text(title, style="bold"), soft_wrap=True)
    console.print(table)


def _outputs(rows: Sequence[OutputScore], width: int) -> FittedTable:
    columns = [Col("SQNR dB", "number"), Col("as executed", "number"), Col("worst sample", "number", drop=1)]
    columns += [Col("cosine", "number"), Col("top-1", "number", drop=2), Col("output", "name")]
    cells = [
        (
            decibels(row.cumulative_sqnr_db, row.cumulative_reason),
            decibels(row.executed_sqnr_db, row.executed_reason),
            decibels(row.cumulative_worst_db, "-"),
            f"{row.cosine:.5f}" if row.cosine is not None else "-",
            f"{row.top1:.1%}" if row.top1 is not None else "-",
            row.output_name,
        )
        for row in rows
    ]
    return fitted(columns, cells, width)


def _originators(report: DebugReport, width: int) -> FittedTable:
    columns = [Col("share", "number"), Col("adds dB", "number"), Col("local", "number", drop=2)]
    columns += [Col("cumulative", "number"), Col("clipped", "number", drop=1), Col("node", "name")]
    columns += [Col("tensor", "name", drop=3)]
    cells = [
        (
            f"{row.origin_share:.1%}",
            decibels(row.introduced_sqnr_db, row.introduced_reason),
            decibels(row.local_sqnr_db, "-"),
            decibels(row.cumulative_sqnr_db, row.cumulative_reason),
            _percent(row.clip_fraction),
            row.operator,
            row.tensor_name,
        )
        for row in report.originators[:WORST]
    ]
    return fitted(columns, cells, width)


def _percent(fraction: float | None) -> str:
    if fraction is None:
        return "-"
    return f"{fraction:.2%}" if fraction else "0 %"


def _worst_activations(report: DebugReport, console: rich.console.Console) -> None:
    views: tuple[tuple[str, Callable[[Activation], float | None], Any], ...] = (
        ("local", lambda row: row.local_sqnr_db, report.summary.local),
        ("cumulative", lambda row: row.cumulative_sqnr_db, report.summary.cumulative),
    )
    for name, key, spread in views:
        rows = worst(report.activations, key)
        if rows:
            columns = [Col("SQNR dB", "number"), Col("node", "name"), Col("tensor", "name", drop=1)]
            cells = [(decibels(key(row), None), _node(row), row.tensor_name) for row in rows]
            _show(f"Worst {name} ({_spread(spread)})", fitted(columns, cells, console.width), console)


def _node(row: Activation) -> str:
    return f"{row.operator} + {row.absorbed}" if row.absorbed else row.operator


def _worst_weights(report: DebugReport, console: rich.console.Console) -> None:
    columns = [Col("SQNR dB", "number"), Col("weight", "name"), Col("stored as"), Col("node", "name", drop=1)]
    rows: list[WeightScore] = worst(report.weights, lambda row: row.weight_sqnr_db)
    cells = [
        (decibels(row.weight_sqnr_db, None), row.weight_name, f"{row.dtype} per {row.granularity}", row.node)
        for row in rows
    ]
    _show(f"Worst weights ({_spread(report.summary.weight)})", fitted(columns, cells, console.width), console)


def _spread(found: Any) -> str:
    return f"{found.count} tensors, mean {found.mean:.1f}, min {found.min:.1f}, max {found.max:.1f}"


def _shares(groups: Sequence[NoiseShare]) -> str:
    return ", ".join(f"{group.name} {group.share:.0%}" for group in groups[:5] if group.share > 0)


def _closing(report: DebugReport, console: rich.console.Console) -> None:
    for title, items in (("float", report.unmatched_float), ("quantized", report.unmatched_quant)):
        if items:
            first = "; ".join(f"{item.name}: {item.reason}" for item in items[:3])
            more = f"; and {len(items) - 3} more (--json lists all)" if len(items) > 3 else ""
            console.print(rich.text.Text(f"only in the {title} model, {len(items)}: {first}{more}", style="dim"))
    for note in report.notes:
        console.print(rich.text.Text(f"note: {note}", style="yellow"))
