"""The answers of `wright inspect`: one model, or what two do not share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal, TypeVar

from modelwright._lazy import lazy
from modelwright.graph import Macs, ModelChange, ModelSummary, StoredWeight, ValueSpec
from modelwright.models import Inspection, PairInspection
from modelwright.report._tables import Col, FittedTable, fitted
from modelwright.report._units import human_bytes, human_count

if TYPE_CHECKING:
    import rich.console
    import rich.table
    import rich.text
else:
    rich = lazy("rich")

T = TypeVar("T")
_TOP_OPS, _TOP_WEIGHTS, _TOP_CHANGES, _REASONS = 12, 5, 20, 3


def render_model(found: Inspection, console: rich.console.Console) -> None:
    model = found.model
    for label, text in _facts(found):
        line = rich.text.Text(f"{label:<13}", style="bold").append(text, style="not bold")
        console.print(line, soft_wrap=True)
    console.print(_values(model, console.width))
    if found.biggest:
        console.print(_weights(found.biggest[:_TOP_WEIGHTS], console.width))
    console.print(_ops(model))
    for warning in model.warnings:
        console.print(rich.text.Text(f"warning: {warning}", style="yellow"), soft_wrap=True)


def render_pair(found: PairInspection, console: rich.console.Console) -> None:
    """What differs; facts that both have alike stand once, in front."""
    first, second = (
        dict([*_facts(side), ("Nodes", str(side.model.node_count))]) for side in (found.first, found.second)
    )
    word = ("the same graph and weights", "green") if found.same else ("not the same", "yellow")
    console.print(rich.text.Text.assemble((f"{first['Model']} and {second['Model']}: ", "bold"), word), soft_wrap=True)
    for label in dict.fromkeys((*first, *second)):
        if label not in ("Model", "Fingerprint"):
            mine, theirs = first.get(label, "none"), second.get(label, "none")
            shown = mine if mine == theirs else f"{mine} → {theirs}"
            style = "dim" if mine == theirs else "not bold"
            console.print(rich.text.Text(f"{label:<13}", style="bold").append(shown, style=style), soft_wrap=True)
    changed = found.difference
    _changes("operator", changed.ops, str, console)
    _changes("input", changed.inputs, _value, console)
    _changes("output", changed.outputs, _value, console)
    _changes("opset", changed.opsets, str, console)
    _changes("weight", changed.weights, _stored, console)
    console.print(f"{changed.same_weights} weights have the same name, type and shape in both")


def _changes(
    title: str, items: Sequence[ModelChange[T]], words: Callable[[T], str], console: rich.console.Console
) -> None:
    if not items:
        return
    kind: Literal["number", "word"] = "number" if words is str else "word"
    rows = [
        (item.name, *("-" if side is None else words(side) for side in (item.first, item.second)))
        for item in items[:_TOP_CHANGES]
    ]
    columns = [Col(title, "name"), Col("first", kind), Col("second", kind)]
    console.print(fitted(columns, rows, console.width))
    if len(items) > _TOP_CHANGES:
        console.print(f"and {len(items) - _TOP_CHANGES} more (--json lists all)")


def _facts(found: Inspection) -> list[tuple[str, str]]:
    model = found.model
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
        ("MACs", macs_words(found.macs)),
        ("Fingerprint", found.fingerprint),
    ]
    if extra:
        lines.insert(1, ("Beside it", ", ".join(extra)))
    for node in model.ep_context:
        lines.append(("Compiled for", node.source or "an unnamed EP"))
    return lines


def macs_words(macs: Macs) -> str:
    """`1.82 G a run (Conv 98 %, Gemm 2 %)`; what could not be counted comes with the reason."""
    shares = ", ".join(f"{share.op_type} {share.macs / (macs.counted or 1):.0%}" for share in macs.by_op[:3])
    if macs.total is not None:
        return f"{human_count(macs.total)} a run" + (f" ({shares})" if shares else "")
    why = "; ".join(f"{item.nodes} × {item.op_type}: {item.reason}" for item in macs.uncounted[:_REASONS])
    more = len(macs.uncounted) - _REASONS
    known = f"at least {human_count(macs.counted)} a run ({shares})" if macs.counted else "unknown"
    hint = " (give sizes with --dim)" if "is not fixed" in why else ""
    return f"{known}; not counted: {why}{f'; and {more} more' if more > 0 else ''}{hint}"


def _precision(model: ModelSummary) -> str:
    measured = model.precision
    if measured.label is None:
        return f"unknown: {measured.reason}"
    share = measured.quantized_share
    if not measured.quantized or not share:
        return measured.label
    # Rounded down: what is nearly all is not all. Biases and tables that are only added are no matrices.
    shown = "all matrices" if share == 1 else f"{int(100 * share)}% of the matrices"
    return f"{measured.label}  ({shown} quantized)"


def _values(model: ModelSummary, width: int) -> FittedTable:
    rows = [
        (value.name, kind, value.dtype or "unknown", _shape(value.shape))
        for kind, values in (("in", model.inputs), ("out", model.outputs))
        for value in values
    ]
    return fitted([Col("name", "name"), Col(""), Col("type"), Col("shape", "text")], rows, width)


def _weights(weights: Sequence[StoredWeight], width: int) -> FittedTable:
    rows = [(item.name, item.dtype, _shape(item.shape), human_bytes(item.size_bytes)) for item in weights]
    return fitted([Col("biggest weights", "name"), Col("type"), Col("shape"), Col("size", "number")], rows, width)


def _value(value: ValueSpec) -> str:
    return f"{value.dtype or 'unknown'} {_shape(value.shape)}"


def _stored(weight: StoredWeight) -> str:
    return f"{weight.dtype} {_shape(weight.shape)}"


def _shape(shape: Sequence[int | str | None] | None) -> str:
    if shape is None:
        return "unknown"
    return "×".join("?" if dim is None else str(dim) for dim in shape) or "scalar"


def _ops(model: ModelSummary) -> str:
    shown = [f"{op.domain + '::' if op.domain else ''}{op.op_type} {op.count}" for op in model.ops[:_TOP_OPS]]
    more = len(model.ops) - _TOP_OPS
    tail = f", and {more} more kinds" if more > 0 else ""
    inside = f" in {model.subgraphs} subgraphs too" if model.subgraphs else ""
    return f"{model.node_count} nodes{inside}: {', '.join(shown)}{tail}"
