"""Reading what QNN writes beside onnxruntime's profile: the CSV of cycles and the list of operator types.

One execution of one partition is one block of the CSV. Cycles are summed over threads, so an operator's time is its
share of the block's own cycles and µs; a ratio taken from another block would be wrong. Standard library only.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from modelwright.measure._trace_types import TraceProblem, TraceReason

_BLOCK_CYCLES = "Accelerator (execute) time (cycles)"
_BLOCK_US = "Accelerator (execute) time"
_HVX_THREADS = "Number of HVX threads used"
_COLUMNS = ("Message", "Time", "Unit of Measurement", "Event Level", "Event Identifier")
_SOURCES = "ONNX Source Ops"
_NODE = re.compile(r"^(?P<name>.*?)[ :]OpId_(?P<id>\d+)(?: \(cycles\))?$")
_IO = ("Input", "Output")
# Σ operators = block holds exactly where it was looked at; this is room for rounding only.
_TOLERANCE = 0.001


@dataclass(frozen=True)
class QnnOp:
    """One operator in one block. `sources` are the nodes onnxruntime handed to QNN for it."""

    name: str
    op_id: int
    cycles: int
    sources: tuple[str, ...]

    @property
    def is_io(self) -> bool:
        return self.name in _IO


@dataclass(frozen=True)
class QnnBlock:
    """One execution of one partition."""

    cycles: int
    accelerator_us: float
    hvx_threads: int | None
    ops: tuple[QnnOp, ...]

    def op_us(self, op: QnnOp) -> float:
        return self.accelerator_us * op.cycles / self.cycles if self.cycles else 0.0


@dataclass(frozen=True)
class QnnTrace:
    """All blocks in the order they ran; QNN operator types by (partition, operator)."""

    blocks: tuple[QnnBlock, ...]
    op_types: Mapping[tuple[str, str], str]


def read_qnn(csv_file: Path, mapping_file: Path) -> QnnTrace:
    """Raise `TraceProblem` when the CSV is missing, is not as expected, or its cycles do not add up."""
    try:
        with csv_file.open(encoding="utf-8", newline="") as file:
            blocks = tuple(parse_blocks(file))
    except FileNotFoundError:
        words = "QNN wrote no profile; on Windows an active ETW trace of onnxruntime keeps it from writing"
        raise TraceProblem(TraceReason.QNN_CSV_MISSING, words) from None
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise TraceProblem(TraceReason.QNN_CSV_DAMAGED, f"QNN's profile cannot be read: {error}") from None
    if not any(block.ops for block in blocks):
        raise TraceProblem(TraceReason.QNN_NO_OPERATORS, "QNN's profile holds totals but no operators")
    for block in blocks:
        _require_conserved(block)
    return QnnTrace(blocks, _op_types(mapping_file))


def parse_blocks(lines: Iterable[str]) -> Iterator[QnnBlock]:
    """Columns are found by name: their order and number differ between versions."""
    rows = csv.DictReader(lines)
    missing = [name for name in _COLUMNS if name not in (rows.fieldnames or ())]
    if missing:
        raise TraceProblem(TraceReason.QNN_CSV_DAMAGED, f"QNN's profile has no column {missing[0]!r}")
    totals: dict[str, float] = {}
    ops: list[QnnOp] = []
    for row in rows:
        message, level, unit = row["Message"], row["Event Level"], row["Unit of Measurement"]
        if message == "NODE" and unit == "CYCLES":
            ops.extend(_op(row))
        elif level == "ROOT" and message == "BACKEND":
            totals.update(_total(row))
        elif level == "ROOT" and message == "EXECUTE":
            yield _block(totals, ops)
            totals, ops = {}, []


def _op(row: Mapping[str, str | None]) -> Iterator[QnnOp]:
    found = _NODE.match(row["Event Identifier"] or "")
    cycles = _number(row["Time"])
    if found is None or cycles is None:
        words = f"QNN's profile has an operator that cannot be read: {row['Event Identifier']!r}"
        raise TraceProblem(TraceReason.QNN_CSV_DAMAGED, words)
    sources = tuple(name.strip() for name in (row.get(_SOURCES) or "").split(";") if name.strip())
    yield QnnOp(found["name"], int(found["id"]), int(cycles), sources)


def _total(row: Mapping[str, str | None]) -> dict[str, float]:
    """A number by its name; QNN writes UNKNOWN where it has none."""
    number = _number(row["Time"])
    return {} if number is None else {row["Event Identifier"] or "": number}


def _number(text: str | None) -> float | None:
    try:
        return float(text or "")
    except ValueError:
        return None


def _block(totals: Mapping[str, float], ops: list[QnnOp]) -> QnnBlock:
    if _BLOCK_CYCLES not in totals or _BLOCK_US not in totals:
        lost = _BLOCK_CYCLES if _BLOCK_CYCLES not in totals else _BLOCK_US
        raise TraceProblem(TraceReason.QNN_CSV_DAMAGED, f"an execution in QNN's profile has no {lost!r}")
    threads = totals.get(_HVX_THREADS)
    return QnnBlock(
        int(totals[_BLOCK_CYCLES]), totals[_BLOCK_US], None if threads is None else int(threads), tuple(ops)
    )


def _require_conserved(block: QnnBlock) -> None:
    total = sum(op.cycles for op in block.ops)
    if abs(total - block.cycles) > _TOLERANCE * max(block.cycles, 1):
        words = f"QNN's operators took {total:,} cycles where the whole took {block.cycles:,}"
        raise TraceProblem(TraceReason.QNN_CYCLES_NOT_CONSERVED, words)


def _op_types(path: Path) -> dict[tuple[str, str], str]:
    """Empty for a model that was compiled before: then QNN composes nothing and writes no such file."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        return {
            (graph["graph_name"], op["dst_name"]): op["dst_qnn_op_type"]
            for graph in document["subgraph_traces"]
            for op in graph["op_mappings"]
        }
    except FileNotFoundError:
        return {}
    except (ValueError, KeyError, TypeError) as error:
        raise TraceProblem(TraceReason.QNN_CSV_DAMAGED, f"QNN's operator list cannot be read: {error}") from None
