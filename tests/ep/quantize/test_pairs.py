"""On the CPU a pair stands only where an integer kernel needs it; elsewhere floats stay floats."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import helper

from ep.quantize.graphs import conv_net, saved, transformer
from modelwright.data import DataSource, samples
from modelwright.graph import load
from modelwright.stages.quantize import QuantizeParams, run_quantize
from support.models import model, scalar, value, weight


def made(folder: Path, proto: onnx.ModelProto, **params) -> Path:
    name = params.get("pairs", "all")
    (folder / name).mkdir(exist_ok=True)
    chosen = QuantizeParams("w8a8", samples=4, **params)
    run_quantize(saved(proto, folder), str(folder / name), chosen, DataSource())
    return folder / name / "model.onnx"


def kernels(path: Path, folder: Path) -> Counter[str]:
    """The operators onnxruntime really runs."""
    options = ort.SessionOptions()
    options.optimized_model_filepath = str(folder / "optimized.onnx")
    ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return Counter(node.op_type for node in onnx.load(folder / "optimized.onnx").graph.node)


def sqnr(path: Path, folder: Path) -> float:
    reference = folder / "float.onnx"
    signal = noise = 0.0
    float_run, run = (ort.InferenceSession(str(item), providers=["CPUExecutionProvider"]) for item in (reference, path))
    for sample in samples(DataSource(), load(reference), 4):
        expected, found = (session.run(None, sample)[0].astype(np.float64) for session in (float_run, run))
        signal, noise = signal + np.square(expected).sum(), noise + np.square(expected - found).sum()
    return float(10 * np.log10(signal / noise))


def small(nodes: list[onnx.NodeProto], out: str = "y") -> onnx.ModelProto:
    for index, node in enumerate(nodes):
        node.name = f"{node.op_type}_{index}"
    weights = [weight("w", 32, 32), weight("v", 32, 32, seed=1), weight("b", 32, seed=2)]
    weights += [scalar("zero", 0.0), scalar("six", 6.0), scalar("three", 3.0)]
    return model(nodes, [value("x", shape=[4, 32])], [value(out, shape=[4, 32])], weights)


@pytest.mark.parametrize("proto", [conv_net(), transformer()], ids=["convolutions", "transformer"])
def test_as_many_integer_kernels_run_and_less_is_lost(tmp_path, proto):
    every, needed = made(tmp_path, proto), made(tmp_path, proto, pairs="needed")
    whole = ("Conv", "FusedConv", "FusedGemm", "FusedMatMul", "Gemm", "MatMul")
    floats = [sum(kernels(path, tmp_path)[name] for name in whole) for path in (every, needed)]
    assert floats[1] <= floats[0]
    assert sqnr(needed, tmp_path) >= sqnr(every, tmp_path) - 1


def test_a_residual_reads_the_floats_that_a_product_reads_as_integers(tmp_path):
    nodes = [
        helper.make_node("Sigmoid", ["x"], ["s"]),
        helper.make_node("MatMul", ["s", "w"], ["p"]),
        helper.make_node("Add", ["p", "b"], ["q"]),
        helper.make_node("Add", ["q", "s"], ["y"]),
    ]
    path = made(tmp_path, small(nodes), pairs="needed")
    result = {node.name: node for node in onnx.load(path).graph.node}
    assert list(result["Add_3"].input) == ["q", "s"]
    # The MatMul and the Add behind it are one integer Gemm.
    assert kernels(path, tmp_path)["QGemm"] == 1


@pytest.mark.parametrize("clamp", [("Relu",), ("Clip", "zero", "six"), ("Max", "zero"), ("Min", "three")])
@pytest.mark.parametrize("reader", ["Sigmoid", "MatMul", "both"])
def test_a_clamp_is_never_lost_with_the_pair_that_did_its_work(tmp_path, clamp, reader):
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["p"]),
        helper.make_node(clamp[0], ["p", *clamp[1:]], ["r"]),
        helper.make_node("MatMul", ["r", "v"], ["m"]),
        helper.make_node("Sigmoid", ["r"], ["s"]),
        helper.make_node("Add", ["m", "s"], ["y"]),
    ]
    kept = {"Sigmoid": [0, 1, 3], "MatMul": [0, 1, 2], "both": [0, 1, 2, 3, 4]}[reader]
    proto = small([nodes[index] for index in kept], {"Sigmoid": "s", "MatMul": "m", "both": "y"}[reader])
    assert sqnr(made(tmp_path, proto, pairs="needed"), tmp_path) > 25


def test_an_activation_function_made_of_small_parts_stays_float(tmp_path):
    """Hard-swish as exporters write it: no pair comes between its parts."""
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["p"]),
        helper.make_node("Add", ["p", "three"], ["a"]),
        helper.make_node("Clip", ["a", "zero", "six"], ["c"]),
        helper.make_node("Mul", ["p", "c"], ["h"]),
        helper.make_node("MatMul", ["h", "v"], ["y"]),
    ]
    path = made(tmp_path, small(nodes), pairs="needed")
    result = onnx.load(path).graph
    assert Counter(node.op_type for node in result.node)["QuantizeLinear"] == 2
    assert next(node for node in result.node if node.op_type == "Clip").input[0] == "a"
    assert sqnr(path, tmp_path) > 25


def test_an_output_that_a_product_writes_is_float(tmp_path):
    path = made(tmp_path, small([helper.make_node("MatMul", ["x", "w"], ["y"])]), pairs="needed")
    result = onnx.load(path).graph
    assert [node.op_type for node in result.node if "y" in node.output] == ["MatMul"]
    assert kernels(path, tmp_path)["MatMulIntegerToFloat"] == 1


def leaky(*between: onnx.NodeProto, last: str = "Conv") -> onnx.ModelProto:
    """A convolution, a LeakyRelu, what comes `between`, and a convolution or another last operator."""
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"]),
        helper.make_node("LeakyRelu", ["c"], ["l"], alpha=0.2),
        *between,
        helper.make_node(last, [between[-1].output[0] if between else "l", *(["v"] if last == "Conv" else [])], ["y"]),
    ]
    for index, node in enumerate(nodes):
        node.name = f"{node.op_type}_{index}"
    weights = [weight("w", 16, 16, 1, 1), weight("v", 16, 16, 1, 1, seed=1)]
    weights += [weight("floor", 1, 1, 1, 1, seed=4), weight("deep", 1, 1, 1, 1, 1, seed=4)]
    rows = [1, 16, 6, 6]
    shown = value("y", shape=None if "deep" in str(between) else rows)
    return model(nodes, [value("x", shape=rows)], [shown], weights)


@pytest.mark.parametrize("floor", [False, True], ids=["alone", "with a floor"])
def test_a_leaky_relu_between_convolutions_is_a_table_and_no_pair(tmp_path, floor):
    between = [helper.make_node("Max", ["l", "floor"], ["m"])] if floor else []
    path = made(tmp_path, leaky(*between), pairs="needed")
    ran = kernels(path, tmp_path)
    assert (ran["QLinearConv"], ran["QLinearLeakyRelu"]) == (2, 1)
    assert (ran["QuantizeLinear"], ran["DequantizeLinear"], ran["Clip"], ran["Max"]) == (1, 1, 0, 0)
    assert sqnr(path, tmp_path) > 25


def test_a_leaky_relu_before_floats_reads_and_writes_floats(tmp_path):
    path = made(tmp_path, leaky(last="Exp"), pairs="needed")
    assert kernels(path, tmp_path)["QLinearLeakyRelu"] == 0
    assert Counter(node.op_type for node in onnx.load(path).graph.node)["QuantizeLinear"] == 2


def test_a_constant_that_gives_its_other_side_a_dimension_is_no_clip(tmp_path):
    path = made(tmp_path, leaky(helper.make_node("Max", ["l", "deep"], ["m"]), last="Exp"), pairs="needed")
    assert Counter(node.op_type for node in onnx.load(path).graph.node)["Max"] == 1
