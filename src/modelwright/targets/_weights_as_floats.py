"""Weights behind a DequantizeLinear as the floats that it makes of them.

Each time onnxruntime looks at a graph it puts all nodes that read no other into a sorted list, one after the other,
and walks the list for each: of thousands of weights that is most of what it takes to open a model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from modelwright._lazy import lazy
from modelwright.graph import is_external

if TYPE_CHECKING:
    import numpy as np
    import onnx
    from numpy.typing import NDArray
    from onnx import numpy_helper
else:
    np = lazy("numpy")
    onnx = lazy("onnx")
    numpy_helper = lazy("onnx.numpy_helper")

WORTH = 1000
_TO_FLOAT, _DEFAULT_AXIS = "DequantizeLinear", 1
_BODIES = (5, 10)  # AttributeProto.GRAPH and GRAPHS


def weights_as_floats(model: onnx.ModelProto) -> None:
    """Where there are so many; the same bits as onnxruntime's, which computes them in every run. Changes the model."""
    integers = (onnx.TensorProto.INT8, onnx.TensorProto.UINT8, onnx.TensorProto.INT32)
    kinds = (*integers, onnx.TensorProto.FLOAT)
    graph = model.graph
    # A weight that is an input too may be fed.
    taken, given = ({value.name for value in values} for values in (graph.input, graph.output))
    inside = (item for item in graph.initializer if item.data_type in kinds and not is_external(item))
    stored = {item.name: item for item in inside if item.name not in taken}
    turned, left = [], []
    for node in graph.node:
        if node.op_type == _TO_FLOAT and _is_stored(node, stored, integers) and node.output[0] not in given:
            turned.append(node)
        else:
            left.append(node)
    # Branches may read what their nodes do not name.
    branches = any(item.type in _BODIES for node in left for item in node.attribute)
    if len(turned) < WORTH or branches or graph.sparse_initializer:
        return
    floats = [numpy_helper.from_array(_floats(node, stored), node.output[0]) for node in turned]
    read = taken.union(given, *(node.input for node in left))
    others = [item for item in graph.initializer if item.name in read]
    made = onnx.GraphProto(
        name=graph.name, input=graph.input, output=graph.output, value_info=graph.value_info, node=left
    )
    made.initializer.extend((*others, *floats))
    graph.CopyFrom(made)


def _is_stored(node: onnx.NodeProto, stored: dict[str, onnx.TensorProto], integers: tuple[int, ...]) -> bool:
    """One scale for all, or one for each place along an axis, in float32; not blocks."""
    names = [name for name in node.input if name]
    if node.domain or not all(name in stored for name in names) or stored[names[0]].data_type not in integers:
        return False
    scale = stored[names[1]]
    others = any(item.name != "axis" for item in node.attribute)
    return scale.data_type == onnx.TensorProto.FLOAT and len(scale.dims) <= 1 and not others


def _floats(node: onnx.NodeProto, stored: dict[str, onnx.TensorProto]) -> NDArray[Any]:
    values, scale, *zero = (numpy_helper.to_array(stored[name]) for name in node.input if name)
    axis = next((item.i for item in node.attribute), _DEFAULT_AXIS)
    wide = values.astype(np.int64)
    if zero:
        wide -= _along(zero[0].astype(np.int64), values.ndim, axis)
    floats: NDArray[Any] = wide.astype(np.float32) * _along(scale, values.ndim, axis)
    return floats


def _along(part: NDArray[Any], rank: int, axis: int) -> NDArray[Any]:
    """Ready to be broadcast over a tensor of this rank."""
    if part.size == 1:
        return part.reshape(())
    shape = [1] * rank
    shape[axis] = part.size
    return part.reshape(shape)
