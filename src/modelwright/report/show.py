"""The answers of `wright show`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from modelwright._lazy import lazy
from modelwright.evidence import SHOWN, Record, RecordLine

if TYPE_CHECKING:
    import rich.console
    import rich.table
    import rich.text
else:
    rich = lazy("rich")


def headline(record: Record[Any]) -> str:
    """Where an answer comes from, in one line."""
    call = f" by {' '.join(record.call)}" if record.call else ""
    return f"record {record.id[:SHOWN]}, {record.kind}, found {when(record.made_at)}{call}"


def render_records(lines: Sequence[RecordLine], console: rich.console.Console) -> None:
    if not lines:
        console.print("no such record")
        return
    table = rich.table.Table(box=rich.box.SIMPLE_HEAD, pad_edge=False)
    for title in ("record", "when", "kind", "model", "target", "verdict"):
        table.add_column(title, overflow="fold", no_wrap=title in ("record", "when", "kind"))
    for line in lines:
        models = ", ".join(dict.fromkeys(Path(name).name for name in line.models))
        cells = (models, ", ".join(line.targets), line.verdict or "")
        table.add_row(line.id[:SHOWN], when(line.made_at), line.kind, *map(rich.text.Text, cells))
    console.print(table)


def when(moment: str) -> str:
    """In the time of whoever looks."""
    return datetime.fromisoformat(moment).astimezone().strftime("%Y-%m-%d %H:%M")
