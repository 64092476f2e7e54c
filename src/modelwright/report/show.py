"""The answers of `wright show`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from modelwright.evidence import SHOWN, Record, RecordLine
from modelwright.report._tables import Col, fitted

if TYPE_CHECKING:
    import rich.console


def headline(record: Record[Any]) -> str:
    """Where an answer comes from, in one line."""
    call = f" by {' '.join(record.call)}" if record.call else ""
    return f"record {record.id[:SHOWN]}, {record.kind}, found {when(record.made_at)}{call}"


def render_records(lines: Sequence[RecordLine], console: rich.console.Console) -> None:
    if not lines:
        console.print("no such record")
        return
    columns = [Col("record"), Col("when"), Col("kind"), Col("model", "text"), Col("target", "text")]
    rows = [
        (
            line.id[:SHOWN],
            when(line.made_at),
            line.kind,
            ", ".join(dict.fromkeys(Path(name).name for name in line.models)),
            ", ".join(line.targets),
            line.verdict or "",
        )
        for line in lines
    ]
    console.print(fitted([*columns, Col("verdict", "text")], rows, console.width))


def when(moment: str) -> str:
    """In the time of whoever looks."""
    return datetime.fromisoformat(moment).astimezone().strftime("%Y-%m-%d %H:%M")
