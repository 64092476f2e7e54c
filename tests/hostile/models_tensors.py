"""Stored tensors that cannot be what they say."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from hostile.case import BAD, FINE, Case, model
from support import models

Change = Callable[[onnx.TensorProto], None]


def _first(change: Change) -> Callable[[], onnx.ModelProto]:
    """A small model whose first weight, float32 of 4 × 8, was changed."""

    def make() -> onnx.ModelProto:
        proto = models.mlp()
        change(proto.graph.initializer[0])
        return proto

    return make


def _set(**fields: object) -> Change:
    def change(tensor: onnx.TensorProto) -> None:
        for name, value in fields.items():
            if isinstance(value, list):
                del getattr(tensor, name)[:]
                getattr(tensor, name).extend(value)
            else:
                setattr(tensor, name, value)

    return change


def _typed(**fields: object) -> Change:
    """The same without the raw bytes."""

    def change(tensor: onnx.TensorProto) -> None:
        tensor.ClearField("raw_data")
        _set(**fields)(tensor)

    return change


def _weights(*tensors: Callable[[], onnx.TensorProto]) -> Callable[[], onnx.ModelProto]:
    """A model that carries tensors nothing reads."""

    def make() -> onnx.ModelProto:
        proto = models.mlp()
        proto.graph.initializer.extend(tensor() for tensor in tensors)
        return proto

    return make


def _tensor(name: str, code: int, dims: list[int], raw: bytes) -> Callable[[], onnx.TensorProto]:
    return lambda: TensorProto(name=name, data_type=code, dims=dims, raw_data=raw)


def _constant(change: Change) -> Callable[[], onnx.ModelProto]:
    """The tensor sits in the attribute of a node."""

    def make() -> onnx.ModelProto:
        tensor = models.weight("c", 4)
        change(tensor)
        nodes = [
            helper.make_node("Constant", [], ["c"], value=tensor),
            helper.make_node("Add", ["x", "c"], ["y"]),
        ]
        return models.model(nodes, [models.value("x", shape=[4])], [models.value("y", shape=[4])])

    return make


def _in_branch(change: Change) -> Callable[[], onnx.ModelProto]:
    def make() -> onnx.ModelProto:
        proto = models.branching()
        branch = proto.graph.node[1].attribute[0].g
        tensor = models.weight("inside", 4)
        change(tensor)
        branch.initializer.append(tensor)
        return proto

    return make


def _in_function(change: Change) -> Callable[[], onnx.ModelProto]:
    def make() -> onnx.ModelProto:
        proto = models.with_function()
        constant = proto.functions[0].node[0]
        tensor = numpy_helper.from_array(np.array(2.0, np.float32))
        change(tensor)
        constant.CopyFrom(helper.make_node("Constant", [], ["c"], value=tensor))
        return proto

    return make


def _sparse(values: int, indices: list[int], dims: list[int], index_dims: list[int] | None = None):
    def make() -> onnx.ModelProto:
        proto = models.mlp()
        sparse = proto.graph.sparse_initializer.add()
        sparse.values.CopyFrom(models.weight("sparse", values))
        sparse.indices.CopyFrom(numpy_helper.from_array(np.array(indices, np.int64), "sparse.indices"))
        if index_dims is not None:
            sparse.indices.dims[:] = index_dims
        sparse.dims.extend(dims)
        return proto

    return make


def _fill(value: float) -> Callable[[], onnx.ModelProto]:
    return _first(lambda tensor: tensor.CopyFrom(numpy_helper.from_array(np.full((4, 8), value, np.float32), "w1")))


def _twice() -> onnx.ModelProto:
    proto = models.mlp()
    proto.graph.initializer.append(proto.graph.initializer[0])
    return proto


def _dense_and_sparse() -> onnx.ModelProto:
    proto = _sparse(1, [0], [4])()
    proto.graph.sparse_initializer[0].values.name = "w1"
    return proto


def _huge_on_disk() -> onnx.ModelProto:
    """Large enough to stay on disk while the graph is read."""
    proto = models.mlp()
    proto.graph.initializer.append(
        TensorProto(name="big", data_type=1, dims=[1 << 20], raw_data=b"\0" * ((1 << 18) + 1))
    )
    return proto


_SHORT, _LONG = _set(raw_data=b"\0" * 7), _set(raw_data=b"\0" * 4096)
_NEGATIVE, _IMMENSE, _UNKNOWN = _set(dims=[-4, 8]), _set(dims=[2**62, 8]), _set(data_type=99)
_FLOATS = [0.5] * 32

CASES: tuple[Case, ...] = (
    model("7 bytes for 32 floats", _first(_SHORT), BAD, BAD),
    model("4,096 bytes for 32 floats", _first(_LONG), BAD, BAD),
    model("no bytes for 32 floats", _first(_typed()), BAD),
    model("large weight with too few bytes", _huge_on_disk, BAD, BAD),
    model("negative dimension", _first(_NEGATIVE), BAD, BAD),
    model("two negative dimensions", _first(_set(dims=[-4, -8])), BAD),
    model("dimension of 2^62", _first(_IMMENSE), BAD, BAD),
    model("dimensions that overflow to the right size", _first(_set(dims=[2**32, 2**32, 2**5])), BAD),
    model("no dimensions for 32 floats", _first(_set(dims=[])), BAD),
    model("a zero among the dimensions", _first(_set(dims=[4, 0])), BAD),
    model("unknown element type", _first(_UNKNOWN), BAD, BAD),
    model("no element type", _first(_set(data_type=0)), BAD, BAD),
    model("negative element type", _first(_set(data_type=-1)), BAD),
    model("weight without a name", _first(_set(name="")), BAD),
    model("weight of the same name twice", _twice, BAD, BAD),
    model("weight and sparse weight of the same name", _dense_and_sparse, BAD),
    model("raw bytes and a list of floats", _first(_set(float_data=_FLOATS)), BAD, BAD),
    model("too few floats in the list", _first(_typed(float_data=_FLOATS[:31])), BAD, BAD),
    model("too many floats in the list", _first(_typed(float_data=[0.5] * 33)), BAD),
    model("floats in the list of integers", _first(_typed(int64_data=[1] * 32)), BAD, BAD),
    model("integers in the list of floats", _first(_typed(data_type=7, float_data=_FLOATS)), BAD),
    model("floats in the list of doubles", _first(_typed(double_data=_FLOATS)), BAD),
    model("strings as raw bytes", _first(_set(data_type=8)), BAD),
    model("too few strings", _first(_typed(data_type=8, string_data=[b"a"] * 3)), BAD),
    model("bytes out of range in the list", _first(_typed(data_type=2, int32_data=[999] * 32)), FINE),
    model("half a segment", _first(lambda tensor: tensor.segment.MergeFrom(TensorProto.Segment(begin=0, end=1))), FINE),
    model("short constant", _constant(_SHORT), BAD, BAD),
    model("constant of unknown type", _constant(_UNKNOWN), BAD),
    model("constant with a negative dimension", _constant(_NEGATIVE), BAD),
    model("short weight in a branch", _in_branch(_SHORT), BAD, BAD),
    model("immense weight in a branch", _in_branch(_IMMENSE), BAD),
    model("short constant in a function", _in_function(_SHORT), BAD, BAD),
    model("unknown type in a function", _in_function(_UNKNOWN), BAD),
    model("sparse weight", _sparse(2, [1, 3], [5]), FINE),
    model("sparse weight with an index behind the end", _sparse(2, [1, 9], [5]), BAD),
    model("sparse weight with a negative index", _sparse(2, [-1, 3], [5]), BAD),
    model("sparse weight with indices out of order", _sparse(2, [3, 1], [5]), BAD),
    model("sparse weight with an index twice", _sparse(2, [3, 3], [5]), BAD),
    model("sparse weight with one index too many", _sparse(2, [1, 2, 3], [5]), BAD),
    model("sparse weight without dimensions", _sparse(2, [1, 3], []), BAD),
    model("sparse weight with a negative dimension", _sparse(2, [1, 3], [-5]), BAD),
    model("sparse weight with immense dimensions", _sparse(2, [1, 3], [2**62, 2**62]), BAD),
    model("NaN in all weights", _fill(float("nan")), FINE, FINE),
    model("infinity in all weights", _fill(float("inf")), FINE, FINE),
    model("the smallest floats", _fill(1e-45), FINE),
    model("weight without elements", _weights(_tensor("e", 1, [0, 7], b"")), FINE),
    model("bfloat16", _weights(_tensor("e", 16, [4], b"\0" * 8)), FINE),
    model("float8", _weights(_tensor("e", 17, [3], b"\0" * 3)), FINE),
    model("int4, an odd number", _weights(_tensor("e", 22, [3], b"\0" * 2)), FINE),
    model("int4, a byte short", _weights(_tensor("e", 22, [3], b"\0")), BAD),
    model("complex numbers", _weights(_tensor("e", 14, [1], b"\0" * 8)), FINE),
    model("truth values of 7", _weights(_tensor("e", 9, [2], b"\7\7")), FINE),
    model("strings", _weights(lambda: helper.make_tensor("e", 8, [2], [b"\xff", b"\0"])), FINE),
    model("65 dimensions", _weights(_tensor("e", 1, [1] * 65, b"\0" * 4)), FINE),
    model("10,000 dimensions", _weights(_tensor("e", 1, [1] * 10_000, b"\0" * 4)), FINE),
)
