"""The quantizer finds tensors and readers by an index; what it writes is what onnxruntime's own lists lead to."""

from __future__ import annotations

import contextlib
from collections import Counter
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from ep.quantize.graphs import conv_net, saved, transformer
from modelwright.data import DataSource
from modelwright.stages.quantize import QuantizeParams, _indexed, _static, run_quantize
from support.models import model, value, weight


def shared_biases() -> onnx.ModelProto:
    """Two products with one bias, activations that take their input's range, and an output that is read inside."""
    nodes = [
        helper.make_node("Gemm", ["x", "w", "b"], ["p"], name="first"),
        helper.make_node("Relu", ["p"], ["q"], name="relu"),
        helper.make_node("Gemm", ["q", "v", "b"], ["r"], name="second"),
        helper.make_node("Clip", ["r", "low", "high"], ["s"], name="clip"),
        helper.make_node("Add", ["s", "q"], ["y"], name="join"),
    ]
    weights = [weight("w", 32, 32), weight("v", 32, 32, seed=1), weight("b", 32, seed=2)]
    weights += [numpy_helper.from_array(np.float32(number), name) for name, number in (("low", 0.0), ("high", 6.0))]
    outputs = [value("y", shape=[4, 32]), value("q", shape=[4, 32])]
    return model(nodes, [value("x", shape=[4, 32])], outputs, weights)


def quantized(folder: Path, proto: onnx.ModelProto, precision: str, pairs: str) -> bytes:
    folder.mkdir()
    params = QuantizeParams(precision, samples=2, pairs=pairs)
    run_quantize(saved(proto, folder.parent), str(folder), params, DataSource())
    return (folder / "model.onnx").read_bytes()


@pytest.mark.parametrize("precision", ["w8a8", "w8a16"])
@pytest.mark.parametrize("proto", [conv_net(), transformer(), shared_biases()], ids=["conv", "transformer", "shared"])
def test_the_same_bytes_as_without_the_index(tmp_path, monkeypatch, proto, precision):
    ways = ("all", "needed")
    with_index = [quantized(tmp_path / pairs, proto, precision, pairs) for pairs in ways]
    monkeypatch.setattr(_static._indexed, "indexed", contextlib.nullcontext)
    assert with_index == [quantized(tmp_path / f"{pairs} plain", proto, precision, pairs) for pairs in ways]


def test_a_tensor_that_was_removed_is_not_found_and_can_come_back():
    proto = shared_biases()
    made = _indexed.IndexedModel(proto)
    bias = made.get_initializer("b")
    made.remove_initializer(bias)
    assert _indexed.find_by_name("b", made.initializer()) is None
    assert "b" not in {tensor.name for tensor in made.initializer()}
    made.add_initializer(numpy_helper.from_array(np.ones(3, np.float32), "b"))
    assert Counter(tensor.name for tensor in proto.graph.initializer)["b"] == 1
    assert list(made.get_initializer("b").dims) == [3]


def test_tensors_that_somebody_else_added_are_found():
    proto = shared_biases()
    made = _indexed.IndexedModel(proto)
    assert made.get_initializer("new") is None
    proto.graph.initializer.append(numpy_helper.from_array(np.ones(2, np.float32), "new"))
    assert made.get_initializer("new") is not None


def test_a_reader_is_found_under_every_name_it_has_had():
    made = _indexed.IndexedModel(shared_biases())
    made.replace_input_of_all_nodes("q", "z")
    made.replace_node_input(made.nodes()[2], "z", "u")
    made.replace_input_of_all_nodes("u", "t")
    made.replace_input_of_all_nodes("z", "k")
    assert [list(node.input)[:2] for node in made.nodes()][2:] == [["t", "v"], ["r", "low"], ["s", "k"]]
