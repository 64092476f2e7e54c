"""Subgraphs, functions, quantized and compiled models, and small files that want to be large ones."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from hostile.case import BAD, FINE, NO, Case, field, file, model
from support import models

X, Y = models.value("x", shape=[4]), models.value("y", shape=[4])
FLAG = models.value("flag", TensorProto.BOOL, [])
OPSETS = {"": models.OPSET, "local": 1}


def _branch(name: str, reads: str = "h", writes: str = "inner") -> onnx.GraphProto:
    return helper.make_graph([helper.make_node("Relu", [reads], [writes])], name, [], [models.value(writes)])


def _if(then: onnx.GraphProto, other: onnx.GraphProto) -> onnx.ModelProto:
    nodes = [
        helper.make_node("Relu", ["x"], ["h"]),
        helper.make_node("If", ["flag"], ["y"], then_branch=then, else_branch=other),
    ]
    return models.model(nodes, [X, FLAG], [Y])


def _branch_input() -> onnx.ModelProto:
    branch = helper.make_graph([helper.make_node("Relu", ["p"], ["q"])], "b", [models.value("p")], [models.value("q")])
    return _if(branch, _branch("e"))


def _without_branches() -> onnx.ModelProto:
    return models.model([helper.make_node("If", ["flag"], ["y"])], [X, FLAG], [Y])


def _no_branch_output() -> onnx.ModelProto:
    return _if(helper.make_graph([helper.make_node("Relu", ["h"], ["i"])], "t", [], []), _branch("e"))


def _nested(depth: int) -> onnx.ModelProto:
    graph = _branch("leaf", "h", "v0")
    for level in range(1, depth):
        node = helper.make_node("If", ["flag"], [f"v{level}"], then_branch=graph, else_branch=_branch("e", "h", "o"))
        graph = helper.make_graph([node], f"g{level}", [], [models.value(f"v{level}")])
    return _if(graph, _branch("e"))


def _deep(depth: int) -> bytes:
    """By hand: protobuf's own classes stop at a hundred messages inside each other."""
    node, attribute, graph = 1, 5, 6
    content = b""
    for _ in range(depth):
        name = field(1, b"then_branch") + b"\xa0\x01\x05"
        content = field(node, field(4, b"If") + field(attribute, name + field(graph, content)))
    return b"\x08\x0a" + field(7, content) + field(8, b"\x10\x15")


def _loop(trips: int, body: onnx.GraphProto | None = None) -> onnx.ModelProto:
    """`trips` rounds of one addition; nothing ever asks it to stop."""
    inner = body or helper.make_graph(
        [helper.make_node("Identity", ["go"], ["again"]), helper.make_node("Add", ["v", "v"], ["w"])],
        "body",
        [models.value("i", 7, []), models.value("go", TensorProto.BOOL, []), models.value("v", shape=[4])],
        [models.value("again", TensorProto.BOOL, []), models.value("w", shape=[4])],
    )
    weights = [numpy_helper.from_array(np.array(trips, np.int64), "n"), numpy_helper.from_array(np.array(True), "c")]
    return models.model([helper.make_node("Loop", ["n", "c", "x"], ["y"], body=inner)], [X], [Y], weights)


def _function(name: str, calls: str, count: int = 1, domain: str = "local") -> onnx.FunctionProto:
    """A function that calls another one `count` times in a row."""
    values = ["a", *(f"t{i}" for i in range(1, count)), "b"]
    nodes = [
        helper.make_node(calls, [values[i]], [values[i + 1]], domain="" if calls == "Relu" else domain)
        for i in range(count)
    ]
    imports = [helper.make_opsetid(*item) for item in OPSETS.items()]
    return helper.make_function(domain, name, ["a"], ["b"], nodes, imports)


def _calling(name: str, *functions: onnx.FunctionProto) -> Callable[[], onnx.ModelProto]:
    node = helper.make_node(name, ["x"], ["y"], domain="local")
    return lambda: models.model([node], [X], [Y], opsets=OPSETS, functions=list(functions))


def _bomb(levels: int, calls: int) -> Callable[[], onnx.ModelProto]:
    """Each function calls the next one several times: a few kilobytes of file, `calls ** levels` nodes."""
    names = [f"f{i}" for i in range(levels)] + ["Relu"]
    return _calling("f0", *(_function(names[i], names[i + 1], calls) for i in range(levels)))


def _parameters_twice() -> onnx.ModelProto:
    function = _function("F", "Relu")
    function.input.append("a")
    return _calling("F", function)()


def _unmade_output() -> onnx.ModelProto:
    function = _function("F", "Relu")
    function.output.append("never")
    return _calling("F", function)()


def _constant_of_shape(size: int) -> onnx.ModelProto:
    """A tensor of `size` floats from a hundred bytes of file, folded by any optimizer that does not look."""
    nodes = [
        helper.make_node("ConstantOfShape", ["n"], ["big"]),
        helper.make_node("ReduceSum", ["big"], ["s"], keepdims=0),
        helper.make_node("Add", ["x", "s"], ["y"]),
    ]
    return models.model(nodes, [X], [Y], [numpy_helper.from_array(np.array([size], np.int64), "n")])


def _range(limit: float) -> onnx.ModelProto:
    weights = [models.scalar("a", 0.0), models.scalar("b", limit), models.scalar("c", 1.0)]
    nodes = [
        helper.make_node("Range", ["a", "b", "c"], ["r"]),
        helper.make_node("ReduceSum", ["r"], ["s"], keepdims=0),
        helper.make_node("Add", ["x", "s"], ["y"]),
    ]
    return models.model(nodes, [X], [Y], weights)


def _scale(value: float | list[float]) -> onnx.ModelProto:
    proto = models.qdq()
    scale = next(tensor for tensor in proto.graph.initializer if tensor.name == "s")
    scale.CopyFrom(numpy_helper.from_array(np.array(value, np.float32), "s"))
    return proto


def _zero_point() -> onnx.ModelProto:
    """Weights of int8 with a zero point of uint16."""
    proto = models.qdq()
    zero = next(tensor for tensor in proto.graph.initializer if tensor.name == "w_z")
    zero.CopyFrom(models.scalar("w_z", 0, "uint16"))
    return proto


def _axis() -> onnx.ModelProto:
    proto = models.qdq(axis=True)
    for node in proto.graph.node:
        for attribute in node.attribute:
            attribute.i = 77
    return proto


_SUBGRAPHS = (
    model("a branch that reads what nobody makes", lambda: _if(_branch("t", "gone"), _branch("e")), BAD, BAD),
    model("a branch that reads the other branch", lambda: _if(_branch("t", "other"), _branch("e", "h", "other")), BAD),
    model("a branch that reads what its own If makes", lambda: _if(_branch("t", "y"), _branch("e")), BAD),
    model("a branch that writes an outer name", lambda: _if(_branch("t", "x", "h"), _branch("e")), FINE, BAD),
    model("a branch with inputs", _branch_input, FINE, BAD),
    model("a branch without outputs", _no_branch_output, FINE, BAD),
    model("a branch whose output nobody makes", lambda: _if(helper.make_graph([], "t", [], [Y]), _branch("e")), BAD),
    model("an If without branches", _without_branches, FINE, BAD),
    model("twenty Ifs inside each other", lambda: _nested(20), FINE),
    file("a hundred Ifs inside each other", lambda: _deep(100), BAD, BAD),
    file("ten thousand Ifs inside each other", lambda: _deep(10_000), BAD),
    model("a Loop without a body", lambda: _loop(1, helper.make_graph([], "b", [], [])), FINE, BAD),
    model("a Loop that never ends", lambda: _loop(2**62), FINE),
)
_FUNCTIONS = (
    model("a function that calls itself", _calling("F", _function("F", "F")), BAD, BAD),
    model("functions that call each other", _calling("F", _function("F", "G"), _function("G", "F")), BAD, BAD),
    model("a function that is defined twice", _calling("F", _function("F", "Relu"), _function("F", "Relu")), BAD),
    model("a function nobody defines", _calling("Gone"), FINE, BAD),
    model("a function with a parameter twice", _parameters_twice, BAD),
    model("a function whose output nobody makes", _unmade_output, BAD),
    model("functions that grow to 4^20 nodes", _bomb(20, 4), BAD, BAD),
    model("functions that grow to 64 nodes", _bomb(3, 4), FINE),
    model("functions called by functions, 300 deep", _bomb(300, 1), FINE),
)
_QUANTIZED = (
    model("scale of zero", lambda: _scale(0.0), FINE),
    model("negative scale", lambda: _scale(-1.0), FINE),
    model("scale that is NaN", lambda: _scale(float("nan")), FINE),
    model("scales for channels that are not there", lambda: _scale([0.1] * 77), FINE, NO),
    model("zero point of another type", _zero_point, FINE, BAD),
    model("axis that is not there", _axis, FINE, NO),
    model("compiled: file outside", lambda: models.ep_context("/etc/passwd"), BAD, BAD),
    model("compiled: file above", lambda: models.ep_context("../../secret.bin"), BAD, BAD),
    model("compiled: no file", lambda: models.ep_context("gone.bin"), FINE),
    model("compiled: nonsense inside", models.ep_context, FINE),
)
_BOMBS = (
    model("8 GB from a hundred bytes", lambda: _constant_of_shape(2**31), FINE),
    model("2^62 elements from a hundred bytes", lambda: _constant_of_shape(2**62), FINE),
    model("a negative size", lambda: _constant_of_shape(-1), FINE, BAD),
    model("a range to 10^12", lambda: _range(1e12), FINE),
)
CASES: tuple[Case, ...] = _SUBGRAPHS + _FUNCTIONS + _QUANTIZED + _BOMBS
