"""How this machine's onnxruntime adds up products of 8-bit numbers: asked of its kernels, not of the CPU's flags."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from modelwright._lazy import lazy
from modelwright.targets._binding import SessionSpec
from modelwright.targets._session import ModelBytes, open_session
from modelwright.targets._target import parse_target

if TYPE_CHECKING:
    import numpy as np
    import onnx
else:
    np = lazy("numpy")
    onnx = lazy("onnx")

_SIZE = 16


@functools.cache
def products_saturate() -> bool:
    """Multiply the largest 8-bit numbers and look at the sum. Runs in a child, like every session."""
    most = np.full((_SIZE, _SIZE), 255, np.uint8)
    with open_session(ModelBytes(_largest_products()), parse_target("cpu"), SessionSpec(threads=1)) as session:
        (found,) = session.run({"a": most}).values()
    return bool((found != 255 * 127 * _SIZE).any())


def _largest_products() -> bytes:
    """Unsigned activations times signed weights, which is what 8-bit precisions are made of."""
    shape = [_SIZE, _SIZE]
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node("MatMulInteger", ["a", "b"], ["y"])],
        "products",
        [onnx.helper.make_tensor_value_info("a", onnx.TensorProto.UINT8, shape)],
        [onnx.helper.make_tensor_value_info("y", onnx.TensorProto.INT32, shape)],
        [onnx.numpy_helper.from_array(np.full(shape, 127, np.int8), "b")],
    )
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 13)], ir_version=8)
    data: bytes = model.SerializeToString()
    return data
