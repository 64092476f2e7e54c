"""A ResNet-18-size network with random weights, and its W8A16 form."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import onnx
from onnx import helper, numpy_helper
from onnxruntime.quantization import CalibrationDataReader, QuantType, quantize_static

SHAPE = (1, 3, 224, 224)


class Samples(CalibrationDataReader):
    def __init__(self, count: int = 2) -> None:
        rng = np.random.default_rng(3)
        self._feeds = iter([{"x": rng.standard_normal(SHAPE, dtype=np.float32)} for _ in range(count)])

    def get_next(self) -> dict[str, np.ndarray] | None:
        return next(self._feeds, None)


class _Net:
    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []
        self._rng = np.random.default_rng(0)

    def add(self, op_type: str, inputs: list[str], **attributes: object) -> str:
        name = f"{op_type.lower()}{len(self.nodes)}"
        self.nodes.append(helper.make_node(op_type, inputs, [name], name=f"node_{name}", **attributes))
        return name

    def conv(self, source: str, channels: tuple[int, int], size: int, stride: int = 1) -> str:
        scale = np.sqrt(2 / (channels[0] * size * size))
        kernel = self.weight(scale * self._rng.standard_normal((channels[1], channels[0], size, size)))
        bias = self.weight(0.1 * self._rng.standard_normal(channels[1]))
        return self.add("Conv", [source, kernel, bias], pads=[size // 2] * 4, strides=[stride] * 2)

    def block(self, source: str, channels: tuple[int, int], stride: int) -> str:
        inner = self.add("Relu", [self.conv(source, channels, 3, stride)])
        inner = self.conv(inner, (channels[1], channels[1]), 3)
        short = source if channels[0] == channels[1] else self.conv(source, channels, 1, stride)
        return self.add("Relu", [self.add("Add", [inner, short])])

    def weight(self, values: np.ndarray) -> str:
        name = f"weight{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(values.astype("float32"), name))
        return name


def resnet18(path: Path) -> Path:
    """11.7 million parameters in 21 convolutions, as ResNet-18 has them with batch norms folded."""
    net = _Net()
    value = net.add("Relu", [net.conv("x", (3, 64), 7, 2)])
    value = net.add("MaxPool", [value], kernel_shape=[3, 3], pads=[1] * 4, strides=[2, 2])
    width = 64
    for stage in range(4):
        for block in range(2):
            wider = 64 * 2**stage
            value = net.block(value, (width, wider), 2 if stage and not block else 1)
            width = wider
    value = net.add("Flatten", [net.add("GlobalAveragePool", [value])])
    last = net.weight(0.05 * np.random.default_rng(1).standard_normal((512, 1000)))
    net.add("Gemm", [value, last])
    net.nodes[-1].output[0] = "y"
    inputs = [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, SHAPE)]
    outputs = [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [1, 1000])]
    graph = helper.make_graph(net.nodes, "resnet18", inputs, outputs, net.weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), path)
    return path


def w8a16(model: Path, path: Path) -> Path:
    work = path.with_suffix(".work")
    work.mkdir()
    quantize_static(model, work / "q.onnx", Samples(), activation_type=QuantType.QUInt16, weight_type=QuantType.QUInt8)
    shutil.move(work / "q.onnx", path)
    return path
