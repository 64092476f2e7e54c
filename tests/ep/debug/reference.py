"""A second opinion that shares no code with the product: the handful of operators in plain numpy float64."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import numpy_helper

_RANGES = {
    "int4": (-8, 7),
    "uint4": (0, 15),
    "int8": (-128, 127),
    "uint8": (0, 255),
    "int16": (-32768, 32767),
    "uint16": (0, 65535),
}


def execute(model: onnx.ModelProto, feeds: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Every tensor of the graph, by name."""
    values: dict[str, np.ndarray] = {k: v.astype(np.float64) for k, v in feeds.items()}
    types: dict[str, str] = {}
    for tensor in model.graph.initializer:
        array = numpy_helper.to_array(tensor)
        types[tensor.name] = onnx.TensorProto.DataType.Name(tensor.data_type).lower()
        values[tensor.name] = array.astype(np.float64)
    for node in model.graph.node:
        inputs = [values.get(name) for name in node.input]
        attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
        kind = types.get(node.input[2], "uint8") if len(node.input) > 2 else "uint8"
        values[node.output[0]] = _run(node.op_type, inputs, attributes, kind)
    return values


def sqnr(reference: np.ndarray, candidate: np.ndarray) -> float:
    error = candidate - reference
    return float(10 * np.log10((reference**2).sum() / (error**2).sum()))


def pass_through(values: np.ndarray, scale: np.ndarray, zero: np.ndarray, dtype: str) -> np.ndarray:
    low, high = _RANGES[dtype]
    return (np.clip(np.round(values / scale) + zero, low, high) - zero) * scale


def _run(op: str, x: list, attributes: dict, kind: str) -> np.ndarray:
    if op == "QuantizeLinear":
        scale, zero = _along(x[1], x[0], attributes), _along(x[2], x[0], attributes)
        return np.clip(np.round(x[0] / scale) + zero, *_RANGES[kind])
    if op == "DequantizeLinear":
        zero = _along(x[2], x[0], attributes) if len(x) > 2 else 0.0
        return (x[0] - zero) * _along(x[1], x[0], attributes)
    if op == "Gemm":
        a = x[0].T if attributes.get("transA") else x[0]
        b = x[1].T if attributes.get("transB") else x[1]
        return a @ b + (x[2] if len(x) > 2 else 0.0)
    if op == "Clip":
        return np.clip(x[0], x[1] if len(x) > 1 and x[1] is not None else -np.inf, x[2] if len(x) > 2 else np.inf)
    plain = {
        "MatMul": lambda: x[0] @ x[1],
        "Add": lambda: x[0] + x[1],
        "Mul": lambda: x[0] * x[1],
        "Relu": lambda: np.maximum(x[0], 0.0),
        "Identity": lambda: x[0],
    }
    return plain[op]()


def _along(part: np.ndarray, data: np.ndarray, attributes: dict) -> np.ndarray:
    if part.size == 1:
        return part.reshape(())
    axis = attributes.get("axis", 1) % data.ndim
    if part.ndim == 1:
        shape = [1] * data.ndim
        shape[axis] = -1
        return part.reshape(shape)
    return np.repeat(part, attributes["block_size"], axis=axis)
