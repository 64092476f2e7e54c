"""Whether a model still says what it said."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from modelwright._lazy import lazy
from modelwright.stages.optimize._message import content, is_plain, tidy

if TYPE_CHECKING:
    import onnx
else:
    onnx = lazy("onnx")


def say_the_same(model: onnx.ModelProto, other: onnx.ModelProto, data: Path) -> bool:
    """Field by field, when both are tidy; whether `other` was, but for the order of its weights, is asked first. Uses
    `other` up. The external data of both is in `data`."""
    if not is_plain(other) or _has_remarks(other) or not is_plain(model):
        return False
    one = onnx.ModelProto()
    one.CopyFrom(model)
    if not (tidy(one) and tidy(other)) or len(one.graph.initializer) != len(other.graph.initializer):
        return False
    pairs = zip(one.graph.initializer, other.graph.initializer, strict=True)
    if not all(_is_the_same(tensor, twin, data) for tensor, twin in pairs):
        return False
    for tidied in (one, other):
        del tidied.graph.initializer[:]
    return one == other


def _has_remarks(model: onnx.ModelProto) -> bool:
    """Such as a tidy one is without."""
    graph = model.graph
    return any(item.doc_string or item.metadata_props for item in (graph, *graph.node))


def _is_the_same(tensor: onnx.TensorProto, other: onnx.TensorProto, data: Path) -> bool:
    if tensor == other:
        return True
    if (tensor.name, tensor.data_type, list(tensor.dims)) != (other.name, other.data_type, list(other.dims)):
        return False
    return tensor.data_type != onnx.TensorProto.STRING and content(tensor, data) == content(other, data)
