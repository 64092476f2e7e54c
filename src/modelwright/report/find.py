"""What `wright find` answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from modelwright._lazy import lazy
from modelwright.overview import Found, FoundModel, Sourced
from modelwright.report._tables import Col, fitted
from modelwright.report._units import human_bytes

if TYPE_CHECKING:
    import rich.console
    import rich.text
else:
    rich = lazy("rich")

_SHORT, _HUB_ROWS = 12, 10


def render_found(found: Found, console: rich.console.Console) -> None:
    columns = [Col("model", "name"), Col("level"), Col("accuracy", "number"), Col("p50 ms", "number", drop=2)]
    columns += [Col("on the target", drop=1), Col("size", "number", drop=3), Col("licence", drop=4)]
    if found.rows:
        console.print(fitted(columns, [_cells(row) for row in found.rows[:_HUB_ROWS]], console.width))
    more = len(found.rows) - _HUB_ROWS
    if more > 0:
        console.print(f"and {more} more", soft_wrap=True)
    for row in found.rows[:_HUB_ROWS]:
        _commands(row, console)
    for left in found.left_out:
        console.print(rich.text.Text(f"left out: {left.model}: {left.why}", style="dim"), soft_wrap=True)
    if found.hub is not None:
        console.print(rich.text.Text(found.hub, style="dim"), soft_wrap=True)
    console.print(f"{len(found.rows)} for {found.task} on {found.target}", soft_wrap=True)


def _cells(row: FoundModel) -> tuple[str | rich.text.Text, ...]:
    level = rich.text.Text(row.level or "not shown", style="green" if row.level else "dim")
    placed = "-" if row.placed.value is None else f"{row.placed.value:.0f} of {row.nodes.value:.0f} nodes"
    size = "-" if row.size.value is None else human_bytes(int(row.size.value))
    return row.model, level, _number(row.accuracy), _number(row.latency), placed, size, row.licence or "-"


def _number(value: Sourced) -> str:
    return "-" if value.value is None else f"{value.value:.4g}"


def _commands(row: FoundModel, console: rich.console.Console) -> None:
    console.print(rich.text.Text.assemble(("  ", ""), (row.command, "bold")), soft_wrap=True)
    if row.needs is not None:
        console.print(rich.text.Text(f"    first get {row.needs}", style="dim"), soft_wrap=True)
    ids = {name: value.record for name, value in (("accuracy", row.accuracy), ("latency", row.latency))}
    said = [f"{name} by {one[:_SHORT]}" for name, one in (*ids.items(), ("placement", row.placed.record)) if one]
    if said:
        console.print(rich.text.Text(f"    {', '.join(said)}", style="dim"), soft_wrap=True)
