"""The answer of `wright inspect`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from modelwright._lazy import lazy
from modelwright.graph import Inspection, ModelSummary, ValueSpec
from modelwright.report._units import human_bytes, human_count

if TYPE_CHECKING:
    import rich.console
    import rich.table
    import rich.text
else:
    rich = lazy("rich")

_TOP_OPS = 12


def render_model(found: Inspection, console: rich.console.Console) -> None:
    model = found.model
    for label, text in _facts(model, found.fingerprint):
        line = rich.text.Text(f"{label:<13}", style="bold").append(text, style="not bold")
        console.print(line, soft_wrap=True)
    console.print(_values(model))
    console.print(_ops(model))
    for warning in model.warnings:
        console.print(rich.text.Text(f"warning: {warning}", style="yellow"), soft_wrap=True)


def _facts(model: ModelSummary, fingerprint: str) -> list[tuple[str, str]]:
    extra = [f"{file.name} {human_bytes(file.size_bytes)}" for file in model.files[1:]]
    producer = " ".join(filter(None, (model.producer, model.producer_version))) or "unknown"
    opsets = ", ".join(f"{item.domain or 'ai.onnx'} {item.version}" for item in model.opsets)
    weights = ", ".join(f"{human_count(item.elements)} {item.dtype}" for item in model.weights) or "none"
    lines = [
        ("Model", f"{model.path}  {human_bytes(model.total_bytes)}"),
        ("Opset", f"{opsets}  (IR {model.ir_version}, made by {producer})"),
        ("Precision", _precision(model)),
        ("Weights", weights),
        ("Shapes", "dynamic" if model.dynamic else "static"),
        ("Fingerprint", fingerprint),
    ]
    if extra:
        lines.insert(1, ("Beside it", ", ".join(extra)))
    for node in model.ep_context:
        lines.append(("Compiled for", node.source or "an unnamed EP"))
    return lines


def _precision(model: ModelSummary) -> str:
    measured = model.precision
    if measured.label is None:
        return f"unknown: {measured.reason}"
    share = measured.quantized_share
    return f"{measured.label}  ({share:.0%} of weights quantized)" if measured.quantized and share else measured.label


def _values(model: ModelSummary) -> rich.table.Table:
    table = rich.table.Table(box=rich.box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("")
    table.add_column("name")
    table.add_column("type")
    table.add_column("shape")
    for kind, values in (("in", model.inputs), ("out", model.outputs)):
        for value in values:
            table.add_row(kind, value.name, value.dtype or "unknown", _shape(value))
    return table


def _shape(value: ValueSpec) -> str:
    if value.shape is None:
        return "unknown"
    return " × ".join("?" if dim is None else str(dim) for dim in value.shape) or "scalar"


def _ops(model: ModelSummary) -> str:
    shown = [f"{op.domain + '::' if op.domain else ''}{op.op_type} {op.count}" for op in model.ops[:_TOP_OPS]]
    more = len(model.ops) - _TOP_OPS
    tail = f", and {more} more kinds" if more > 0 else ""
    inside = f" in {model.subgraphs} subgraphs too" if model.subgraphs else ""
    return f"{model.node_count} nodes{inside}: {', '.join(shown)}{tail}"
