"""Sizes of the tensors between nodes, where the model's shapes tell them."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING

from modelwright._lazy import lazy
from modelwright.graph import Graph

if TYPE_CHECKING:
    import onnx
else:
    onnx = lazy("onnx")


_PAIRS = ("QuantizeLinear", "DequantizeLinear")
_WIDE_PAIRS = 21


def tensor_bytes(graph: Graph, names: Iterable[str]) -> dict[str, int | None]:
    """Bytes by tensor name; None where the shape is dynamic or unknown even after shape inference."""
    wanted = set(names)
    if not wanted:
        return {}
    sizes = _declared(graph.model.graph, wanted)
    if any(sizes.get(name) is None for name in wanted):
        sizes |= {name: size for name, size in _inferred(graph, wanted).items() if size is not None}
    return {name: sizes.get(name) for name in wanted}


def _inferred(graph: Graph, wanted: set[str]) -> dict[str, int | None]:
    try:
        return _declared(onnx.shape_inference.infer_shapes(_standard(graph.model)).graph, wanted)
    except (onnx.shape_inference.InferenceError, ValueError):
        # Inference is a bonus here: a model over 2 GiB or with odd operators keeps its unknown sizes.
        return {}


def _standard(model: onnx.ModelProto) -> onnx.ModelProto:
    """With onnxruntime's own Q and DQ (16 bits before opset 21) under the names that inference knows."""
    ours = [node for node in model.graph.node if node.op_type in _PAIRS and node.domain == "com.microsoft"]
    if not ours:
        return model
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    for node in copy.graph.node:
        if node.op_type in _PAIRS:
            node.domain = ""
    for opset in copy.opset_import:
        opset.version = max(opset.version, _WIDE_PAIRS) if opset.domain == "" else opset.version
    return copy


def _declared(graph: onnx.GraphProto, wanted: set[str]) -> dict[str, int | None]:
    values = (*graph.value_info, *graph.input, *graph.output)
    return {value.name: _bytes(value) for value in values if value.name in wanted}


def _bytes(value: onnx.ValueInfoProto) -> int | None:
    tensor = value.type.tensor_type
    if not tensor.elem_type or not tensor.HasField("shape"):
        return None
    dims = tensor.shape.dim
    if not all(dim.HasField("dim_value") and dim.dim_value >= 0 for dim in dims):
        return None
    element = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type).itemsize
    return int(element * math.prod(dim.dim_value for dim in dims))
