"""The precision label is measured on the graph, for every way models are quantized."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from modelwright import graph
from modelwright.graph import Precision
from support import models


def precision_of(proto: onnx.ModelProto, folder: Path) -> Precision:
    return graph.summary(graph.load(models.save(proto, folder))).precision


LABELS = {
    "fp32": models.mlp(),
    "fp16": models.mlp(dtype="float16"),
    "w8a8": models.qdq(),
    "w8a16": models.qdq("uint8", "uint16"),
    "w16a16": models.qdq("int16", "uint16"),
    "w16a8": models.qdq("int16", "uint8"),
    "w4a16": models.weight_only_qdq("float16"),
    "w4a32": models.weight_only_qdq("float32"),
    "dynamic int8": models.dynamic_int8(),
}


@pytest.mark.parametrize("label", LABELS)
def test_label(label: str, tmp_path: Path) -> None:
    found = precision_of(LABELS[label], tmp_path)
    assert found.label == label
    assert found.reason is None
    assert found.quantized is not label.startswith("fp")


@pytest.mark.parametrize(("float_type", "bits", "label"), [("float16", 4, "w4a16"), ("float32", 8, "w8a32")])
def test_matmul_nbits(float_type: str, bits: int, label: str, tmp_path: Path) -> None:
    found = precision_of(models.matmul_nbits(float_type, bits), tmp_path)
    assert (found.label, found.weight_bits, found.granularity) == (label, bits, ("blocked",))
    assert found.weights[0].elements == 32 * 8


def test_operator_oriented_quantization(tmp_path: Path) -> None:
    assert precision_of(models.qlinear(), tmp_path).label == "w8a8"


def test_qgemm(tmp_path: Path) -> None:
    proto = models.qlinear()
    node = proto.graph.node[1]
    node.op_type, node.domain = "QGemm", "com.microsoft"
    proto.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    assert precision_of(proto, tmp_path).label == "w8a8"


def test_contrib_q_and_dq_count_like_the_standard_ones(tmp_path: Path) -> None:
    assert precision_of(models.qdq("uint8", "uint16", domain="com.microsoft"), tmp_path).label == "w8a16"


@pytest.mark.parametrize(
    ("proto", "expected"),
    [
        (models.qdq(), "per-tensor"),
        (models.qdq(axis=True), "per-axis"),
        (models.weight_only_qdq(blocked=True), "blocked"),
        (models.weight_only_qdq(blocked=False), "per-axis"),
    ],
)
def test_granularity_of_the_scales(proto: onnx.ModelProto, expected: str, tmp_path: Path) -> None:
    assert precision_of(proto, tmp_path).granularity == (expected,)


def test_a_32_bit_bias_is_no_weight(tmp_path: Path) -> None:
    found = precision_of(models.qdq(), tmp_path)
    assert [(share.dtype, share.elements) for share in found.weights] == [("int8", 32)]
    assert found.quantized_share == 1.0


def test_activations_are_counted_once_per_tensor(tmp_path: Path) -> None:
    found = precision_of(models.qdq(), tmp_path)
    assert [(share.dtype, share.tensors) for share in found.activations] == [("uint8", 2)]


def test_a_compiled_model_has_no_label(tmp_path: Path) -> None:
    """Its 16-bit border would read as w16a16; the weights are in the blob."""
    found = precision_of(models.ep_context(), tmp_path)
    assert (found.label, found.weight_bits, found.activation_bits, found.quantized) == (
        None,
        None,
        None,
        None,
    )
    assert "compiled blob" in (found.reason or "")


def test_weights_fake_quantized_in_float_are_weights(tmp_path: Path) -> None:
    """Some exporters store float weights behind a Q/DQ pair."""
    weights = [models.weight("w", 4, 8), models.scalar("s", 0.1), models.scalar("z", 0, "int8")]
    nodes = [
        helper.make_node("QuantizeLinear", ["w", "s", "z"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["d"]),
        helper.make_node("MatMul", ["x", "d"], ["y"]),
    ]
    proto = models.model(nodes, [models.value("x")], [models.value("y")], weights)
    found = precision_of(proto, tmp_path)
    assert [(share.dtype, share.elements) for share in found.weights] == [("int8", 32)]
    assert found.label == "w8a32"


def test_weights_in_constant_nodes_and_behind_a_transpose_are_weights(tmp_path: Path) -> None:
    proto = models.qdq()
    kept = [item for item in proto.graph.initializer if item.name != "w_q"]
    constant = helper.make_node("Constant", [], ["c"], value=models.weight("w_q", 8, 4, dtype="int8"))
    transpose = helper.make_node("Transpose", ["c"], ["w_q"])
    nodes = [constant, transpose, *proto.graph.node]
    changed = models.model(nodes, list(proto.graph.input), list(proto.graph.output), kept)
    assert precision_of(changed, tmp_path).label == "w8a8"


def test_a_lookup_in_a_float_table_makes_an_activation(tmp_path: Path) -> None:
    weights = [models.weight("table", 16, 4), models.scalar("s", 0.1), models.scalar("z", 0, "uint16")]
    nodes = [
        helper.make_node("Gather", ["table", "ids"], ["e"]),
        helper.make_node("QuantizeLinear", ["e", "s", "z"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["y"]),
    ]
    proto = models.model(nodes, [models.value("ids", TensorProto.INT64)], [models.value("y")], weights)
    found = precision_of(proto, tmp_path)
    assert found.label == "mixed(fp32, a16)"
    assert [share.dtype for share in found.weights] == ["float32"]


def test_a_missing_zero_point_means_uint8_or_the_written_type(tmp_path: Path) -> None:
    proto = models.qdq()
    for node in proto.graph.node:
        if node.op_type == "QuantizeLinear":
            del node.input[2]
    assert precision_of(proto, tmp_path).label == "w8a8"
    for node in proto.graph.node:
        if node.op_type == "QuantizeLinear":
            node.attribute.append(helper.make_attribute("output_dtype", TensorProto.INT16))
    assert precision_of(proto, tmp_path).label == "w8a16"


def test_two_float_types_are_mixed(tmp_path: Path) -> None:
    proto = models.mlp()
    half = models.weight("w1", 4, 8, dtype="float16")
    proto.graph.initializer[0].CopyFrom(half)
    assert precision_of(proto, tmp_path).label == "mixed(fp16 57% + fp32 43%)"


def test_a_vector_at_the_width_of_the_activations_is_no_weight(tmp_path: Path) -> None:
    """Quantizers give the constant of an Add the activations' type."""
    proto = models.qdq("uint8", "uint16")
    bias = next(item for item in proto.graph.initializer if item.name == "b_q")
    bias.CopyFrom(models.weight("b_q", 8, dtype="uint16"))
    found = precision_of(proto, tmp_path)
    assert found.label == "w8a16"
    assert [share.dtype for share in found.weights] == ["uint8"]


@pytest.mark.parametrize(
    ("operator", "other", "is_weight"),
    [("Add", "a", False), ("Sub", "a", False), ("Mul", "a", True), ("Add", "w_d", True)],
)
def test_a_matrix_that_is_only_added_to_activations_is_a_bias_of_another_shape(
    operator: str, other: str, is_weight: bool, tmp_path: Path
) -> None:
    """Positions and attention biases are stored at the width of the activations. What is multiplied, or added to a
    weight, is a weight."""
    proto = models.qdq("uint8", "uint16")
    proto.graph.initializer.append(models.weight("p_q", 4, 8, dtype="uint16"))
    added = [
        helper.make_node("DequantizeLinear", ["p_q", "s", "z"], ["p_d"]),
        helper.make_node(operator, [other, "p_d"], ["sum"]),
    ]
    proto.graph.node.extend(added)
    proto.graph.output.append(models.value("sum"))
    found = precision_of(proto, tmp_path)
    assert [share.dtype for share in found.weights] == (["uint16", "uint8"] if is_weight else ["uint8"])
    assert (found.label == "w8a16") is not is_weight


def test_a_matrix_that_is_added_here_and_multiplied_there_is_a_weight(tmp_path: Path) -> None:
    weights = [models.weight("both", 4, 4), models.weight("w", 4, 4, dtype="float16")]
    nodes = [helper.make_node("Add", ["x", "both"], ["a"]), helper.make_node("MatMul", ["a", "both"], ["y"])]
    proto = models.model(nodes, [models.value("x")], [models.value("y")], weights)
    assert precision_of(proto, tmp_path).label == "mixed(fp16 50% + fp32 50%)"


def test_a_model_that_only_adds_a_matrix_is_labelled_by_it(tmp_path: Path) -> None:
    nodes = [helper.make_node("Add", ["x", "p"], ["y"])]
    proto = models.model(nodes, [models.value("x")], [models.value("y")], [models.weight("p", 4, 4)])
    assert precision_of(proto, tmp_path).label == "fp32"


def test_two_activation_widths_are_mixed(tmp_path: Path) -> None:
    proto = models.qdq()
    proto.graph.initializer.append(models.scalar("z16", 0, "uint16"))
    for node in proto.graph.node[6:]:
        node.input[2] = "z16"
    assert precision_of(proto, tmp_path).label == "mixed(w8, a16 50% + a8 50%)"


def test_a_mostly_float_model_is_not_called_quantized_by_its_label(tmp_path: Path) -> None:
    proto = models.qdq()
    proto.graph.initializer.append(models.weight("rest", 32, 7))
    found = precision_of(proto, tmp_path)
    assert found.label == "mixed(fp32 88% + w8 12%, a8)"
    assert found.quantized is True
    assert found.quantized_share == pytest.approx(32 / 256)


def test_bfloat16_weights(tmp_path: Path) -> None:
    proto = models.mlp()
    for tensor in proto.graph.initializer:
        array = numpy_helper.to_array(tensor).astype(np.float32)
        bits = (array.view(np.uint32) >> 16).astype(np.uint16)
        tensor.data_type, tensor.raw_data = TensorProto.BFLOAT16, bits.tobytes()
    assert precision_of(proto, tmp_path).label == "bf16"


def test_a_model_without_weights_has_no_label(tmp_path: Path) -> None:
    found = precision_of(models.chain(3), tmp_path)
    assert found.label is None
    assert "no float or quantized weights" in (found.reason or "")


def test_scales_computed_at_run_time_leave_the_activations_unknown(tmp_path: Path) -> None:
    proto = models.weight_only_qdq()
    node = helper.make_node("Abs", ["w_s"], ["w_s2"])
    proto.graph.node[0].input[1] = "w_s2"
    proto.graph.node.insert(0, node)
    found = precision_of(proto, tmp_path)
    assert found.label is None
    assert "does not tell how wide" in (found.reason or "")


TABLE = (("table", (50, 8)), ("w", (8, 8)))


def test_rows_of_a_quantized_table_that_are_multiplied_as_they_are_have_stored_scales(tmp_path: Path) -> None:
    """As onnxruntime's dynamic quantization writes a product right behind a table; a computed scale was told."""
    nodes = [
        helper.make_node("Gather", ["table", "i"], ["rows"]),
        helper.make_node("MatMulInteger", ["rows", "w"], ["y"]),
    ]
    weights = [numpy_helper.from_array(np.ones(shape, np.uint8), name) for name, shape in TABLE]
    proto = models.model(
        nodes, [models.value("i", TensorProto.INT64, [3])], [models.value("y", TensorProto.INT32)], weights
    )
    found = precision_of(proto, tmp_path)
    assert found.label is None
    assert "does not tell how wide" in (found.reason or "")
