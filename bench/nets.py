"""Models whose work is known by construction."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from onnx import TensorProto, helper, numpy_helper, save


def layers(path: Path, count: int, width: int = 128, rows: int = 16) -> Path:
    """`count` equal layers of MatMul and Tanh."""
    draw = np.random.default_rng(0)
    nodes, weights = [], []
    for index in range(count):
        source, target = f"h{index}" if index else "x", f"h{index + 1}" if index + 1 < count else "y"
        matrix = draw.standard_normal((width, width)).astype(np.float32) / width**0.5
        weights.append(numpy_helper.from_array(matrix, f"w{index}"))
        nodes.append(helper.make_node("MatMul", [source, f"w{index}"], [f"m{index}"]))
        nodes.append(helper.make_node("Tanh", [f"m{index}"], [target]))
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [rows, width]) for name in ("x", "y")]
    graph = helper.make_graph(nodes, "layers", values[:1], values[1:], weights)
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), str(path))
    return path


def residual(path: Path, count: int, width: int = 128, rows: int = 16) -> Path:
    """`count` equal layers that add nearly nothing to what they get: more layers are more work and the same answers."""
    nodes, weights = [], []
    for index in range(count):
        source, target = f"h{index}" if index else "x", f"h{index + 1}" if index + 1 < count else "y"
        matrix = 1e-6 * np.random.default_rng(index).standard_normal((width, width)).astype(np.float32)
        weights.append(numpy_helper.from_array(matrix, f"w{index}"))
        nodes.append(helper.make_node("MatMul", [source, f"w{index}"], [f"m{index}"]))
        nodes.append(helper.make_node("Add", [source, f"m{index}"], [target]))
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [rows, width]) for name in ("x", "y")]
    graph = helper.make_graph(nodes, "residual", values[:1], values[1:], weights)
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), str(path))
    return path
