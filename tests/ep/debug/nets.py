"""Small float models and their quantized forms, made with onnxruntime's own quantizer."""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np
import onnx
import onnxruntime.quantization as q
from onnx import TensorProto, helper, numpy_helper

SHAPE = (16, 64)


def _weight(name: str, *shape: int, seed: int = 0) -> onnx.TensorProto:
    values = np.random.default_rng([seed, len(name), *name.encode()]).standard_normal(shape) / 8
    return numpy_helper.from_array(values.astype(np.float32), name)


def chain(activation: str = "Relu", opset: int = 17) -> onnx.ModelProto:
    """Gemm, an activation, Mul by a scalar, MatMul."""
    clip = ["low", "high"] if activation == "Clip" else []
    nodes = [
        helper.make_node("Gemm", ["x", "w1", "b1"], ["g"], name="block/gemm"),
        helper.make_node(activation, ["g", *clip], ["a"], name="block/act"),
        helper.make_node("Mul", ["a", "gain"], ["m"], name="block/gain"),
        helper.make_node("MatMul", ["m", "w2"], ["y"], name="head/matmul"),
    ]
    weights = [
        _weight("w1", 64, 48),
        _weight("b1", 48),
        _weight("w2", 48, 10),
        numpy_helper.from_array(np.array(0.731, np.float32), "gain"),
        numpy_helper.from_array(np.array(0.0, np.float32), "low"),
        numpy_helper.from_array(np.array(1.5, np.float32), "high"),
    ]
    used = {name for node in nodes for name in node.input}
    return _model(nodes, [item for item in weights if item.name in used], "y", [SHAPE[0], 10], opset)


def deep(layers: int = 6) -> onnx.ModelProto:
    """A column of Gemm and Relu, for planting a bad node in the middle of."""
    nodes, weights, x = [], [], "x"
    for index in range(layers):
        last = index == layers - 1
        weights += [_weight(f"w{index}", 64, 64, seed=index), _weight(f"b{index}", 64, seed=index)]
        gemm = "y" if last else f"g{index}"
        nodes.append(helper.make_node("Gemm", [x, f"w{index}", f"b{index}"], [gemm], name=f"layer{index}/gemm"))
        if not last:
            nodes.append(helper.make_node("Relu", [gemm], [f"r{index}"], name=f"layer{index}/relu"))
            x = f"r{index}"
    return _model(nodes, weights, "y", list(SHAPE), 17)


def planted_outlier(model: onnx.ModelProto) -> onnx.ModelProto:
    """One huge weight in layer 3, on an input that is always zero: it changes no answer, only the weight's range."""
    weights = {item.name: item for item in model.graph.initializer}

    def change(name: str, place: object, value: float) -> None:
        values = numpy_helper.to_array(weights[name]).copy()
        values[place] = value
        weights[name].CopyFrom(numpy_helper.from_array(values, name))

    change("w2", (slice(None), 0), 0.0)
    change("b2", 0, -1.0)
    change("w3", (0, 0), 40.0)
    return model


def _model(nodes: list, weights: list, output: str, shape: list[int], opset: int) -> onnx.ModelProto:
    graph = helper.make_graph(
        nodes,
        "net",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, list(SHAPE))],
        [helper.make_tensor_value_info(output, TensorProto.FLOAT, shape)],
        weights,
    )
    imports = [helper.make_opsetid("", opset)]
    return helper.make_model(graph, opset_imports=imports, ir_version=10 if opset > 20 else 8)


def batch(index: int, scale: float = 1.0) -> dict[str, np.ndarray]:
    return {"x": (np.random.default_rng(index).standard_normal(SHAPE) * scale).astype(np.float32)}


class Reader(q.CalibrationDataReader):
    def __init__(self, count: int = 4, scale: float = 1.0) -> None:
        self._drawn = iter([batch(index, scale) for index in range(count)])

    def get_next(self):
        return next(self._drawn, None)


def quantized(model: onnx.ModelProto, folder: Path, *, scale: float = 1.0, **options) -> onnx.ModelProto:
    """Static QDQ; calibrated on other samples than the ones that are compared."""
    before, after = folder / "before.onnx", folder / "after.onnx"
    onnx.save(model, before)
    logging.disable(logging.CRITICAL)
    q.quantize_static(before, after, Reader(scale=scale), **options)
    logging.disable(logging.NOTSET)
    return onnx.load(after)


def write_samples(folder: Path, count: int, name: str = "data.npz", first: int = 100) -> Path:
    path = folder / name
    np.savez(path, x=np.stack([batch(first + index)["x"] for index in range(count)]))
    return path
