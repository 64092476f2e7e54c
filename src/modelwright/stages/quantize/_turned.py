"""Weights behind a Transpose: only stored ones are recognised as weights."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from modelwright._lazy import lazy
from modelwright.graph import StreamedWeight
from modelwright.stages.quantize._weights import leave_outside

if TYPE_CHECKING:
    import numpy as np
    import onnx
else:
    np = lazy("numpy")
    onnx = lazy("onnx")


def store_turned(model: onnx.ModelProto, outside: dict[str, StreamedWeight]) -> None:
    """What reads a stored tensor through a Transpose gets it stored as it wants it.

    A tied one is then there twice: as integers for the product, and as the table of the other reader. `outside` are
    those that are not in memory; they stay where they are.
    """
    stored = {tensor.name: tensor for tensor in model.graph.initializer}
    shown = {value.name for value in (*model.graph.output, *model.graph.input)}
    done = [n for n in _transposes(model) if n.input[0] in stored and not shown & {n.input[0], n.output[0]}]
    for node in done:
        perm = next((list(item.ints) for item in node.attribute if item.name == "perm"), None)
        if node.input[0] in outside:
            weight = outside[node.output[0]] = outside[node.input[0]].turned(perm)
            tensor = model.graph.initializer.add(name=node.output[0], data_type=weight.data_type, dims=weight.shape)
            leave_outside(tensor)
            continue
        values = onnx.numpy_helper.to_array(stored[node.input[0]])
        turned = onnx.numpy_helper.from_array(np.ascontiguousarray(values.transpose(perm)), node.output[0])
        model.graph.initializer.append(turned)
    for node in done:
        model.graph.node.remove(node)
    for name in {node.input[0] for node in done} - names_in_use(model.graph):
        model.graph.initializer.remove(stored[name])
        outside.pop(name, None)


def _transposes(model: onnx.ModelProto) -> Iterator[onnx.NodeProto]:
    return (node for node in model.graph.node if node.op_type == "Transpose" and node.domain in ("", "ai.onnx"))


def names_in_use(graph: onnx.GraphProto) -> set[str]:
    """Names that nodes read, also from within the graphs inside of them."""
    inner = [item.g for node in graph.node for item in node.attribute if item.HasField("g")]
    own = {name for node in graph.node for name in node.input} | {value.name for value in graph.output}
    return own.union(*map(names_in_use, inner))
