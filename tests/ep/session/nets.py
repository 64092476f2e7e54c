"""Tiny models whose fate on an EP is known."""

from __future__ import annotations

from pathlib import Path

import onnx
from onnx import helper

from support.models import model, save, scalar, value, weight

SHAPE = [1, 3, 8, 8]
_OPSETS = {"": 17}


def conv_relu(folder: Path, *, batch: int | str = 1, named: bool = True, name: str = "model.onnx") -> Path:
    """Conv and Relu, twice: QNN takes all of it, unless the batch is symbolic."""
    nodes = [
        _node("Conv", ["x", "w0"], "a", named, pads=[1] * 4),
        _node("Relu", ["a"], "b", named),
        _node("Conv", ["b", "w1"], "c", named, pads=[1] * 4),
        _node("Relu", ["c"], "y", named),
    ]
    return _saved(nodes, folder, name, batch)


def conv_between(folder: Path, op_type: str, *, opset: int = 17, name: str = "model.onnx") -> Path:
    """Conv, an operator of choice, Conv."""
    nodes = [
        _node("Conv", ["x", "w0"], "a", pads=[1] * 4),
        _node(op_type, ["a"], "b"),
        _node("Conv", ["b", "w1"], "y", pads=[1] * 4),
    ]
    return _saved(nodes, folder, name, 1, opset)


def not_a_number(folder: Path) -> Path:
    """Acosh is NaN below 1, where half of what comes out of the Conv is. QNN leaves it to the CPU."""
    nodes = [_node("Conv", ["x", "w0"], "a", pads=[1] * 4), _node("Acosh", ["a"], "y")]
    return _saved(nodes, folder, "model.onnx", 1)


def branching(folder: Path) -> Path:
    """An If whose branches read the outer scope."""
    then = helper.make_graph([_node("Relu", ["x"], "t")], "then", [], [value("t", shape=SHAPE)])
    other = helper.make_graph([_node("Neg", ["x"], "e")], "else", [], [value("e", shape=SHAPE)])
    choose = helper.make_node("If", ["flag"], ["b"], name="choose", then_branch=then, else_branch=other)
    flag = value("flag", onnx.TensorProto.BOOL, [])
    last = _node("Sigmoid", ["b"], "y")
    proto = model([choose, last], [value("x", shape=SHAPE), flag], [value("y", shape=SHAPE)], opsets=_OPSETS)
    return save(proto, folder)


def shared_zero_point(folder: Path) -> Path:
    """Two MatMuls of pairs; their int8 weights have one zero point between them."""
    nodes, last = [], "x"
    for layer in "ab":
        nodes += [
            _node("QuantizeLinear", [last, "step", "middle"], f"q_{layer}"),
            _node("DequantizeLinear", [f"q_{layer}", "step", "middle"], f"x_{layer}"),
            _node("DequantizeLinear", [f"w_{layer}", "width", "zero"], f"m_{layer}"),
            _node("MatMul", [f"x_{layer}", f"m_{layer}"], f"y_{layer}"),
        ]
        last = f"y_{layer}"
    nodes += [
        _node("QuantizeLinear", [last, "step", "middle"], "q"),
        _node("DequantizeLinear", ["q", "step", "middle"], "y"),
    ]
    weights = [weight("w_a", 8, 8, dtype="int8"), weight("w_b", 8, 8, dtype="int8"), scalar("width", 0.01)]
    weights += [scalar("step", 0.02), scalar("middle", 128, "uint8"), scalar("zero", 0, "int8")]
    sides = [value("x", shape=[1, 8])], [value("y", shape=[1, 8])]
    return save(model(nodes, *sides, weights, opsets=_OPSETS), folder)


def _node(op_type: str, inputs: list[str], output: str, named: bool = True, **attributes: object) -> onnx.NodeProto:
    name = f"{op_type.lower()}_{output}" if named else None
    return helper.make_node(op_type, inputs, [output], name=name, **attributes)


def _saved(nodes: list[onnx.NodeProto], folder: Path, name: str, batch: int | str, opset: int = 17) -> Path:
    weights = [weight("w0", 4, 3, 3, 3), weight("w1", 4, 4, 3, 3)]
    inputs, outputs = [value("x", shape=[batch, *SHAPE[1:]])], [value("y", shape=[batch, 4, 8, 8])]
    return save(model(nodes, inputs, outputs, weights, {"": opset}), folder, name)
