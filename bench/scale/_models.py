"""Models of any size, made from seeds."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from onnx import ModelProto, TensorProto, helper, numpy_helper, save


def heavy(path: Path, megabytes: int, *, external: bool = False, width: int = 2048, biases: bool = False) -> Path:
    """MatMuls of `width` × `width` weights until they weigh that much, each with a bias where asked; few nodes."""
    count = max(1, megabytes * 2**20 // (4 * width * width))
    matrix = np.random.default_rng(0).standard_normal((width, width), dtype=np.float32) / np.float32(width**0.5)
    nodes, weights = [], []
    with (path.with_suffix(".data") if external else Path(os.devnull)).open("wb") as data:
        for index in range(count):
            source, target = f"h{index}" if index else "x", f"h{index + 1}" if index + 1 < count else "y"
            weights.append(_outside(data, index, matrix) if external else numpy_helper.from_array(matrix, f"w{index}"))
            nodes.append(helper.make_node("MatMul", [source, f"w{index}"], [f"m{index}"], name=f"matmul{index}"))
            if biases:
                weights.append(numpy_helper.from_array(matrix[0], f"b{index}"))
                nodes.append(helper.make_node("Add", [f"m{index}", f"b{index}"], [f"a{index}"], name=f"add{index}"))
            made = f"a{index}" if biases else f"m{index}"
            nodes.append(helper.make_node("Tanh", [made], [target], name=f"tanh{index}"))
            matrix = np.roll(matrix, 1)
    save(_model(nodes, weights, [4, width]), str(path))
    return path


def _outside(data: BinaryIO, index: int, matrix: np.ndarray) -> TensorProto:
    """Written at once: a model of many gigabytes is never in memory."""
    tensor = TensorProto(name=f"w{index}", data_type=TensorProto.FLOAT, dims=matrix.shape)
    tensor.data_location = TensorProto.EXTERNAL
    location = Path(data.name).name
    for key, value in (("location", location), ("offset", data.tell()), ("length", matrix.nbytes)):
        tensor.external_data.add(key=key, value=str(value))
    data.write(matrix.tobytes())
    return tensor


def long(path: Path, nodes: int, width: int = 16) -> Path:
    """That many nodes in blocks of MatMul, Add, Relu, with a residual Add: small weights, so the graph is the work."""
    made, weights, value = [], [], "x"
    for index in range(nodes // 4):
        matrix = np.random.default_rng(index).standard_normal((width, width)).astype(np.float32) / (2 * width**0.5)
        weights.append(numpy_helper.from_array(matrix, f"w{index}"))
        weights.append(numpy_helper.from_array(np.full(width, 0.01, np.float32), f"b{index}"))
        made.append(helper.make_node("MatMul", [value, f"w{index}"], [f"m{index}"], name=f"matmul{index}"))
        made.append(helper.make_node("Add", [f"m{index}", f"b{index}"], [f"a{index}"], name=f"bias{index}"))
        made.append(helper.make_node("Tanh", [f"a{index}"], [f"t{index}"], name=f"tanh{index}"))
        target = "y" if index + 1 == nodes // 4 else f"r{index}"
        made.append(helper.make_node("Add", [f"t{index}", value], [target], name=f"add{index}"))
        value = target
    save(_model(made, weights, [4, width]), str(path))
    return path


def _model(nodes: list[Any], weights: list[TensorProto], shape: list[int]) -> ModelProto:
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in ("x", "y")]
    graph = helper.make_graph(nodes, "made", ends[:1], ends[1:], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def classifier(path: Path, seed: int) -> Path:
    """About a tenth of a millisecond for one image."""
    rng = np.random.default_rng(seed)
    sizes = {"w": (768, 1024), "v": (1024, 10)}
    weights = [numpy_helper.from_array((rng.standard_normal(size) / 32).astype("f"), n) for n, size in sizes.items()]
    nodes = [
        helper.make_node("Flatten", ["x"], ["f"], name="flatten"),
        helper.make_node("MatMul", ["f", "w"], ["h"], name="first"),
        helper.make_node("Relu", ["h"], ["r"], name="relu"),
        helper.make_node("MatMul", ["r", "v"], ["y"], name="second"),
    ]
    ends = {"x": [1, 3, 16, 16], "y": [1, 10]}
    taken, given = (helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in ends.items())
    graph = helper.make_graph(nodes, "made", [taken], [given], weights)
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), str(path))
    return path


def convolutions(path: Path, count: int = 24, channels: int = 64, size: int = 56) -> Path:
    """Convolutions of 3 × 3 with a Relu each, one behind the other: what a compiler for an NPU works on."""
    rng, nodes, weights, value = np.random.default_rng(0), [], [], "x"
    for index in range(count):
        kernel = rng.standard_normal((channels, channels, 3, 3), np.float32) / np.float32((9 * channels) ** 0.5)
        weights.append(numpy_helper.from_array(kernel, f"w{index}"))
        made, target = f"c{index}", "y" if index + 1 == count else f"r{index}"
        nodes.append(helper.make_node("Conv", [value, f"w{index}"], [made], name=f"conv{index}", pads=[1, 1, 1, 1]))
        nodes.append(helper.make_node("Relu", [made], [target], name=f"relu{index}"))
        value = target
    save(_model(nodes, weights, [1, channels, size, size]), str(path))
    return path
