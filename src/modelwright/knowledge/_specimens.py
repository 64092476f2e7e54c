"""Small models on which findings are verified: made on the spot, seeded, of fixed sizes and the shapes of real ones.

Their weights are random, so they say where nodes go and what the work takes, and nothing about accuracy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from modelwright._lazy import lazy
from modelwright.errors import UsageError, did_you_mean

if TYPE_CHECKING:
    import numpy as np
    import onnx
    import onnx.helper as helper
    import onnx.numpy_helper as numpy_helper
else:
    np = lazy("numpy")
    onnx = lazy("onnx")
    helper = lazy("onnx.helper")
    numpy_helper = lazy("onnx.numpy_helper")

_OPSET, _IR = 17, 8


class _Net:
    """A graph that grows from its input to its output."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape, self.last = shape, "x"
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []

    def node(self, op: str, *more: str, on: str | None = None, **attributes: Any) -> str:
        name = f"{op.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, [on or self.last, *more], [name], name=name, **attributes))
        self.last = name
        return name

    def weight(self, *shape: int) -> str:
        """Scaled so that values neither vanish nor grow."""
        name = f"w{len(self.weights)}"
        fan_in = max(1, int(np.prod(shape[1:]))) if len(shape) != 2 else shape[0]
        values = np.random.default_rng(len(self.weights)).standard_normal(shape) / np.sqrt(fan_in)
        self.weights.append(numpy_helper.from_array(values.astype(np.float32), name))
        return name

    def constant(self, *values: float, dtype: str = "float32", scalar: bool = False) -> str:
        name = f"k{len(self.weights)}"
        array = np.array(values[0] if scalar else values, dtype=dtype)
        self.weights.append(numpy_helper.from_array(array, name))
        return name

    def conv(self, inside: int, out: int, size: int = 3, stride: int = 1, group: int = 1) -> str:
        pad = size // 2
        return self.node(
            "Conv",
            self.weight(out, inside // group, size, size),
            self.weight(out),
            kernel_shape=[size, size],
            pads=[pad] * 4,
            strides=[stride] * 2,
            group=group,
        )

    def linear(self, inside: int, out: int, on: str | None = None) -> str:
        self.node("MatMul", self.weight(inside, out), on=on)
        return self.node("Add", self.weight(out))

    def save(self, path: Path, out: list[int]) -> None:
        kind = onnx.TensorProto.FLOAT
        graph = helper.make_graph(
            self.nodes,
            path.stem,
            [helper.make_tensor_value_info("x", kind, list(self.shape))],
            [helper.make_tensor_value_info(self.last, kind, out)],
            self.weights,
        )
        made = helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", _OPSET)], ir_version=_IR, producer_name="modelwright"
        )
        path.write_bytes(made.SerializeToString())


def _plain_convolutions(path: Path) -> None:
    """Conv and Relu, as in VGG."""
    net, channels = _Net((1, 3, 56, 56)), 3
    for out in (32, 64, 64, 64):
        net.conv(channels, out, stride=2 if channels == 3 else 1)
        net.node("Relu")
        channels = out
    net.node("GlobalAveragePool")
    net.save(path, [1, channels, 1, 1])


def _residual(path: Path) -> None:
    """Blocks of a ResNet: Conv, Relu, Conv, Add, Relu."""
    net = _Net((1, 3, 56, 56))
    net.conv(3, 48, size=7, stride=2)
    last = net.node("Relu")
    for _ in range(3):
        net.conv(48, 48)
        net.node("Relu")
        net.conv(48, 48)
        net.node("Add", last)
        last = net.node("Relu")
    net.node("GlobalAveragePool")
    net.save(path, [1, 48, 1, 1])


def _separable(path: Path) -> None:
    """Depthwise and pointwise convolutions with Clip, as in MobileNet."""
    net = _Net((1, 3, 64, 64))
    low, high = net.constant(0.0, scalar=True), net.constant(6.0, scalar=True)
    net.conv(3, 32, stride=2)
    net.node("Clip", low, high)
    channels = 32
    for out in (64, 96, 96):
        net.conv(channels, channels, group=channels)
        net.node("Clip", low, high)
        net.conv(channels, out, size=1)
        net.node("Clip", low, high)
        channels = out
    net.node("GlobalAveragePool")
    net.save(path, [1, channels, 1, 1])


def _gated_convolutions(path: Path) -> None:
    """Convolutions with x * Sigmoid(x), as in YOLO and EfficientNet."""
    net, channels = _Net((1, 3, 56, 56)), 3
    for out in (32, 48, 48):
        came = net.conv(channels, out, stride=2 if channels == 3 else 1)
        net.node("Sigmoid")
        net.node("Mul", came)
        channels = out
    net.node("GlobalAveragePool")
    net.save(path, [1, channels, 1, 1])


def _rectified_perceptron(path: Path) -> None:
    """Gemm and Relu, as in the head of a classifier."""
    net = _Net((16, 256))
    for _ in range(3):
        net.node("Gemm", net.weight(256, 256), net.weight(256))
        net.node("Relu")
    net.node("Gemm", net.weight(256, 64), net.weight(64))
    net.save(path, [16, 64])


def _heads(net: _Net, on: str, tokens: int, width: int, heads: int, order: list[int]) -> str:
    """(tokens, width) as (heads, tokens, width / heads), in the order that is asked for."""
    net.linear(width, width, on=on)
    net.node("Reshape", net.constant(1, tokens, heads, width // heads, dtype="int64"))
    return net.node("Transpose", perm=order)


def _layer(net: _Net, tokens: int, width: int, heads: int) -> None:
    """One layer of an encoder: attention, GELU by Erf, layer normalization behind each residual."""
    came = net.last
    query = _heads(net, came, tokens, width, heads, [0, 2, 1, 3])
    key = _heads(net, came, tokens, width, heads, [0, 2, 3, 1])
    value = _heads(net, came, tokens, width, heads, [0, 2, 1, 3])
    net.node("MatMul", key, on=query)
    net.node("Div", net.constant(float(np.sqrt(width // heads)), scalar=True))
    net.node("Softmax", axis=-1)
    net.node("MatMul", value)
    net.node("Transpose", perm=[0, 2, 1, 3])
    net.node("Reshape", net.constant(1, tokens, width, dtype="int64"))
    net.linear(width, width)
    net.node("Add", came)
    middle = net.node("LayerNormalization", net.weight(width), net.weight(width), axis=-1)
    wide = net.linear(width, 4 * width)
    net.node("Div", net.constant(float(np.sqrt(2)), scalar=True))
    net.node("Erf")
    net.node("Add", net.constant(1.0, scalar=True))
    net.node("Mul", wide)
    net.node("Mul", net.constant(0.5, scalar=True))
    net.linear(4 * width, width)
    net.node("Add", middle)
    net.node("LayerNormalization", net.weight(width), net.weight(width), axis=-1)


def _encoder(tokens: int, width: int, heads: int, layers: int) -> Callable[[Path], None]:
    def make(path: Path) -> None:
        net = _Net((1, tokens, width))
        for _ in range(layers):
            _layer(net, tokens, width, heads)
        net.save(path, [1, tokens, width])

    return make


def _patches(path: Path) -> None:
    """A vision transformer: patches by a convolution, then an encoder."""
    width, patches = 96, 16
    net = _Net((1, 3, 64, 64))
    net.node("Conv", net.weight(width, 3, 16, 16), net.weight(width), kernel_shape=[16, 16], strides=[16, 16])
    net.node("Reshape", net.constant(1, width, patches, dtype="int64"))
    net.node("Transpose", perm=[0, 2, 1])
    for _ in range(2):
        _layer(net, patches, width, 4)
    net.save(path, [1, patches, width])


def _perceptron(path: Path) -> None:
    """Dense layers with GELU by Erf, as in the head of a model."""
    net = _Net((16, 256))
    for _ in range(3):
        wide = net.linear(256, 256)
        net.node("Div", net.constant(float(np.sqrt(2)), scalar=True))
        net.node("Erf")
        net.node("Add", net.constant(1.0, scalar=True))
        net.node("Mul", wide)
        net.node("Mul", net.constant(0.5, scalar=True))
    net.linear(256, 64)
    net.save(path, [16, 64])


_MAKERS: Mapping[str, Callable[[Path], None]] = {
    "plain_convolutions": _plain_convolutions,
    "residual": _residual,
    "separable": _separable,
    "gated_convolutions": _gated_convolutions,
    "encoder": _encoder(64, 128, 4, 2),
    "wide_encoder": _encoder(32, 256, 8, 1),
    "patches": _patches,
    "perceptron": _perceptron,
    "rectified_perceptron": _rectified_perceptron,
}
SPECIMENS = tuple(_MAKERS)


def make_specimen(name: str, folder: Path) -> Path:
    """The specimen as a file in `folder`; the same bytes every time."""
    if name not in _MAKERS:
        raise UsageError(
            f"there is no specimen '{name}'",
            cause=f"there are {', '.join(_MAKERS)}",
            fix=did_you_mean(name, _MAKERS) or "give the file of a model instead",
        )
    path = folder / f"{name}.onnx"
    _MAKERS[name](path)
    return path
