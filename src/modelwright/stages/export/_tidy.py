"""From an exporter's model to one that is the same every time and says nothing about this machine."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from modelwright._lazy import lazy

if TYPE_CHECKING:
    import onnx_ir as ir
else:
    ir = lazy("onnx_ir")


def tidy(model: ir.Model) -> None:
    """Drop stack traces, doc strings and exporter notes, in place."""
    for item in _noted(model):
        item.metadata_props.clear()
        item.doc_string = None
    model.graph.name = "model"


def check_interface(model: ir.Model, inputs: tuple[str, ...], outputs: tuple[str, ...], opset: int) -> str | None:
    """Why the model is not what was asked for; None when it is."""
    produced = model.opset_imports.get("")
    if produced != opset:
        return f"produced opset {produced}, not {opset}"
    got = tuple(value.name for value in model.graph.inputs)
    if set(got) - set(inputs):
        return f"the graph takes {', '.join(str(name) for name in got)}"
    lost = [name for name in inputs if name not in got]
    if lost:
        return f"the graph lost the inputs {', '.join(lost)}"
    made = tuple(value.name for value in model.graph.outputs)
    return None if made == outputs else f"the graph returns {', '.join(str(name) for name in made)}"


def node_count(model: ir.Model) -> int:
    return sum(1 for _ in ir.traversal.RecursiveGraphIterator(model.graph))


def _noted(model: ir.Model) -> Iterator[Any]:
    yield model
    graphs: list[ir.Graph | ir.Function] = [model.graph, *model.functions.values()]
    for graph in graphs:
        yield graph
        yield from graph.inputs
        for node in ir.traversal.RecursiveGraphIterator(graph):
            yield node
            yield from node.outputs
    yield from model.graph.initializers.values()
