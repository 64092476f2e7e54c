"""Graphs that are wired, typed, versioned or nested as no graph should be."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from hostile.case import BAD, FINE, Case, model
from support import models

Make = Callable[[], onnx.ModelProto]
X, Y = models.value("x", shape=[4]), models.value("y", shape=[4])


def _nodes(*nodes: onnx.NodeProto) -> Make:
    """A model from x to y, both four floats."""
    return lambda: models.model(list(nodes), [X], [Y])


def _changed(change: Callable[[onnx.ModelProto], object], base: Make = models.mlp) -> Make:
    def make() -> onnx.ModelProto:
        proto = base()
        change(proto)
        return proto

    return make


def _opsets(*pairs: tuple[str, int]) -> Make:
    def change(proto: onnx.ModelProto) -> None:
        del proto.opset_import[:]
        proto.opset_import.extend(helper.make_opsetid(*pair) for pair in pairs)

    return _changed(change)


def _input(**fields: object) -> Make:
    """The input's type is changed."""

    def change(proto: onnx.ModelProto) -> None:
        tensor = proto.graph.input[0].type.tensor_type
        for name, value in fields.items():
            if name == "dim":
                tensor.shape.dim[1].dim_value = value
            else:
                setattr(tensor, name, value)

    return _changed(change)


def _typed_input(declared: onnx.TypeProto) -> Make:
    return lambda: models.model(
        [helper.make_node("Identity", ["x"], ["y"])],
        [helper.make_value_info("x", declared)],
        [helper.make_value_info("y", declared)],
    )


def _repeat(field: str) -> Make:
    return _changed(lambda proto: getattr(proto.graph, field).append(getattr(proto.graph, field)[0]))


def _training(proto: onnx.ModelProto) -> None:
    info = proto.training_info.add()
    info.initialization.CopyFrom(proto.graph)
    info.algorithm.CopyFrom(proto.graph)


def _node_attribute(**fields: object) -> Make:
    """A Softmax with one attribute made by hand."""

    def make() -> onnx.ModelProto:
        node = helper.make_node("Softmax", ["x"], ["y"])
        node.attribute.add(**fields)
        return models.model([node], [X], [Y])

    return make


def _attribute_twice() -> onnx.ModelProto:
    node = helper.make_node("Softmax", ["x"], ["y"], axis=0)
    node.attribute.append(node.attribute[0])
    return models.model([node], [X], [Y])


def _relu(read: str, write: str) -> onnx.NodeProto:
    return helper.make_node("Relu", [read], [write])


def _one_relu(read: onnx.ValueInfoProto, write: onnx.ValueInfoProto) -> Make:
    return lambda: models.model([_relu("x", "y")], [read], [write])


def _wide(count: int) -> onnx.ModelProto:
    nodes = [_relu("x", f"v{i}") for i in range(count)]
    return models.model([*nodes, helper.make_node("Sum", [f"v{i}" for i in range(count)], ["y"])], [X], [Y])


_WIRING = (
    model("no nodes and no outputs", _changed(lambda p: p.ClearField("graph") or p.graph.SetInParent()), BAD, BAD),
    model("no outputs", _changed(lambda p: p.graph.ClearField("output")), FINE),
    model("no nodes, an output that is the input", lambda: models.model([], [X], [X]), FINE),
    model("a node that reads itself", _nodes(_relu("y", "y")), BAD, BAD),
    model("two nodes that wait for each other", _nodes(_relu("y", "h"), _relu("h", "y")), BAD, BAD),
    model("nodes in the wrong order", _nodes(_relu("h", "y"), _relu("x", "h")), FINE, FINE),
    model("a value nobody makes", _nodes(_relu("gone", "y")), BAD, BAD),
    model("an output nobody makes", _nodes(_relu("x", "h")), BAD, BAD),
    model("two writers of one value", _nodes(_relu("x", "y"), _relu("x", "y")), BAD, BAD),
    model("one node that writes a value twice", _nodes(helper.make_node("Split", ["x"], ["y", "y"])), BAD),
    model("a node that writes the input", _nodes(_relu("x", "x"), _relu("x", "y")), BAD, BAD),
    model("a node that writes a weight", _changed(lambda p: p.graph.node.append(_relu("x", "w1"))), BAD, BAD),
    model("an input twice", _repeat("input"), BAD, BAD),
    model("an output twice", _repeat("output"), FINE),
    model("an input without a name", _changed(lambda p: p.graph.input.add().type.CopyFrom(X.type)), BAD),
    model("an output without a name", _changed(lambda p: p.graph.output.add().type.CopyFrom(X.type)), BAD),
    model("a node without outputs", _changed(lambda p: p.graph.node.append(helper.make_node("Relu", ["x"], []))), FINE),
    model("a node without an operator", _nodes(helper.make_node("", ["x"], ["y"])), BAD, BAD),
    model("ten thousand nodes in a row", lambda: models.chain(10_000), FINE),
    model("ten thousand nodes side by side", lambda: _wide(10_000), FINE),
)
_OPERATORS = (
    model("unknown operator", _nodes(helper.make_node("Frobnicate", ["x"], ["y"])), FINE, BAD),
    model("operator of an unknown domain", lambda: _custom({"": 21, "evil": 1}), FINE, BAD),
    model("operator of a domain that is not imported", lambda: _custom({"": 21}), FINE, BAD),
    model("too many inputs", _nodes(helper.make_node("Relu", ["x", "x", "x"], ["y"])), FINE, BAD),
    model("too few inputs", _nodes(helper.make_node("Add", ["x"], ["y"])), FINE, BAD),
    model("missing attribute", _nodes(helper.make_node("Cast", ["x"], ["y"])), FINE, BAD),
    model("attribute of the wrong type", _nodes(helper.make_node("Softmax", ["x"], ["y"], axis="zero")), FINE, BAD),
    model("attribute nobody knows", _nodes(helper.make_node("Relu", ["x"], ["y"], colour=1)), FINE, BAD),
    model("attribute twice", _attribute_twice, BAD, BAD),
    model("attribute without a name", _node_attribute(i=1, type=2), BAD),
    model("attribute without a type", _node_attribute(name="axis", i=0), BAD),
    model("attribute of type 99", lambda: _attribute_of_type(99), BAD, BAD),
    model("attribute that says float and holds an integer", _node_attribute(name="axis", i=0, type=1), FINE, BAD),
    model(
        "reference to an attribute outside a function", _node_attribute(name="axis", ref_attr_name="a", type=2), FINE
    ),
    model("types that do not fit", lambda: _mixed_types(), FINE, BAD),
    model("shapes that do not fit", lambda: _wrong_shapes(), FINE, BAD),
)
_VERSIONS = (
    model("opset 0", _opsets(("", 0)), BAD, BAD),
    model("opset -1", _opsets(("", -1)), BAD),
    model("opset 9999", _opsets(("", 9999)), FINE, BAD),
    model("opset of 63 bits", _opsets(("", 2**63 - 1)), FINE, BAD),
    model("opset twice, not the same", _opsets(("", 13), ("", 21)), BAD, BAD),
    model("opset twice under two names", _opsets(("", 13), ("ai.onnx", 21)), BAD),
    model("no opset", _opsets(), BAD, BAD),
    model("only the opset of another domain", _opsets(("com.microsoft", 1)), FINE, FINE),
    model("IR version 0", _changed(lambda p: setattr(p, "ir_version", 0)), BAD),
    model("IR version -1", _changed(lambda p: setattr(p, "ir_version", -1)), BAD, BAD),
    model("IR version 9999", _changed(lambda p: setattr(p, "ir_version", 9999)), FINE, BAD),
    model("training info", _changed(_training), FINE, BAD),
)
_TYPES = (
    model("input without a type", _changed(lambda p: p.graph.input[0].ClearField("type")), FINE, BAD),
    model("input of type 0", _input(elem_type=0), FINE, BAD),
    model("input of type 99", _input(elem_type=99), BAD, BAD),
    model("input of type -1", _input(elem_type=-1), BAD),
    model("input with a negative dimension", _input(dim=-5), FINE),
    model("input with a dimension of 2^62", _input(dim=2**62), FINE, BAD),
    model("input without elements", _one_relu(*(models.value(n, shape=[0]) for n in "xy")), FINE),
    model("output that contradicts the graph", _one_relu(X, models.value("y", shape=[9, 9])), FINE, FINE),
    model("output of another type", _one_relu(X, models.value("y", 7, [4])), FINE, BAD),
    model("strings in and out", _typed_input(helper.make_tensor_type_proto(TensorProto.STRING, [2])), FINE, FINE),
    model("a sequence", _typed_input(helper.make_sequence_type_proto(X.type)), FINE, FINE),
    model("an optional", _typed_input(helper.make_optional_type_proto(X.type)), FINE, FINE),
    model("a map", _typed_input(helper.make_map_type_proto(7, X.type)), FINE, BAD),
    model("a sparse input", _typed_input(helper.make_sparse_tensor_type_proto(1, [4])), FINE, BAD),
    model("sequences of sequences, thirty deep", lambda: _deep_type(30), FINE),
)  # fmt: skip


def _custom(opsets: dict[str, int]) -> onnx.ModelProto:
    node = helper.make_node("Run", ["x"], ["y"], domain="evil")
    return models.model([node], [X], [Y], opsets=opsets)


def _attribute_of_type(kind: int) -> onnx.ModelProto:
    """Protobuf's own class refuses the number, a file does not."""
    node = helper.make_node("Relu", ["x"], ["y"], name="N", colour=1)
    data = models.model([node], [X], [Y]).SerializeToString()
    assert b"\xa0\x01\x02" in data
    return onnx.ModelProto.FromString(data.replace(b"\xa0\x01\x02", bytes([0xA0, 0x01, kind])))


def _mixed_types() -> onnx.ModelProto:
    other = numpy_helper.from_array(np.ones(4, np.int64), "w")
    return models.model([helper.make_node("Add", ["x", "w"], ["y"])], [X], [Y], [other])


def _wrong_shapes() -> onnx.ModelProto:
    return models.model([helper.make_node("MatMul", ["x", "w"], ["y"])], [X], [Y], [models.weight("w", 5, 5)])


def _deep_type(depth: int) -> onnx.ModelProto:
    declared = X.type
    for _ in range(depth):
        declared = helper.make_sequence_type_proto(declared)
    return _typed_input(declared)()


CASES: tuple[Case, ...] = _WIRING + _OPERATORS + _VERSIONS + _TYPES
