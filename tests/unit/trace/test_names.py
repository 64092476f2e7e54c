"""Names of the graph that ran, back to the nodes of the model."""

import pytest

from modelwright.graph import load
from modelwright.measure.traces._names import ModelNodes, type_in_name
from modelwright.measure.traces._regions import _Made, regions
from support.models import branching, conv_net, mlp, qdq, save


@pytest.fixture
def nodes(tmp_path):
    return ModelNodes(load(save(mlp(), tmp_path)))


def nodes_of(proto, folder) -> ModelNodes:
    return ModelNodes(load(save(proto, folder)))


@pytest.mark.parametrize(
    ("name", "op_type", "expected", "origin"),
    [
        ("first", "MatMul", ("first",), "model"),
        ("first_token_3", "MatMul", ("first",), "model"),
        ("fused first", "FusedGemm", ("first",), "fused"),
        ("fused first/MatMulAddFusion", "FusedGemm", ("first",), "fused"),
        ("second/MatMulScaleFusion/", "FusedMatMul", ("second",), "fused"),
        ("h3_nchwc", "Conv", ("act",), "fused"),
        ("first", "QLinearMatMul", ("first",), "fused"),
        ("Transpose_token_4", "Transpose", (), "inserted"),
        ("ReorderOutput", "ReorderOutput", (), "inserted"),
        ("gemm_input_reshape_token_7", "Reshape", (), "inserted"),
        ("SkipLayerNormalization", "SkipLayerNormalization", (), "unresolved"),
    ],
)
def test_known_decorations_come_off(nodes, name, op_type, expected, origin):
    found = nodes.named(name, op_type)
    assert (found.onnx_nodes, found.origin) == (expected, origin)


def test_nameless_nodes_are_found_by_their_place(tmp_path):
    nodes = nodes_of(branching(), tmp_path)
    assert nodes.named("If_1", "If", 1).onnx_nodes == ("If(y)",)
    assert nodes.named("Relu_0", "Relu", 0).onnx_nodes == ("Relu(inner)",)
    assert nodes.named("Neg_5", "Neg", 5).origin == "unresolved"


def test_two_nodes_that_look_the_same_are_not_guessed_between(tmp_path):
    nodes = nodes_of(branching("Relu", "Relu"), tmp_path)
    assert nodes.named("Relu_0", "Relu", 0).origin == "unresolved"


def test_a_tensor_name_is_no_node_name(nodes):
    assert nodes.named("h1_token_1", "Conv").origin == "unresolved"


def test_a_fused_node_stands_for_all_between_its_inputs_and_outputs(nodes):
    made = [
        _Made("fused first/MatMulAddFusion", "FusedGemm", ("x", "w1", "b1"), ("h3",)),
        _Made("second", "MatMul", ("h3", "w2"), ("y",)),
    ]
    found = regions(made, nodes)
    assert found["fused first/MatMulAddFusion", "FusedGemm"].onnx_nodes == ("first", "bias", "act")
    assert len(found) == 1


def test_what_is_put_around_a_fused_node_does_not_take_its_nodes(nodes):
    """The matrix product itself makes a tensor the model does not have; the Reshape behind it makes `h2`."""
    made = [
        _Made("gemm_input_reshape", "Reshape", ("x", "shape"), ("in2",)),
        _Made("first/MatMulAddFusion", "Gemm", ("in2", "w1", "b1"), ("out2",)),
        _Made("gemm_output_reshape", "Reshape", ("out2", "shape2"), ("h2",)),
        _Made("act", "Relu", ("h2",), ("h3",)),
        _Made("second", "MatMul", ("h3", "w2"), ("y",)),
    ]
    found = regions(made, nodes)
    assert found["first/MatMulAddFusion", "Gemm"].onnx_nodes == ("first", "bias")
    assert found["gemm_output_reshape", "Reshape"].origin == "inserted"


def test_another_layout_is_followed_through_tensors_without_a_name_of_the_model(tmp_path):
    nodes = nodes_of(conv_net(), tmp_path)
    made = [
        _Made("r_nchwc", "Conv", ("x", "weights2"), ("reorder",)),
        _Made("ReorderOutput", "ReorderOutput", ("reorder",), ("r",)),
        _Made("", "GlobalAveragePool", ("r",), ("y",)),
    ]
    found = regions(made, nodes)
    assert found["r_nchwc", "Conv"].onnx_nodes == ("Conv(c)", "Relu(r)")
    assert found["ReorderOutput", "ReorderOutput"].onnx_nodes == ()


def test_a_quantized_operator_stands_for_its_q_and_dq_nodes_too(tmp_path):
    nodes = nodes_of(qdq(), tmp_path)
    made = [_Made("/MatMulAddFusion", "QGemm", ("x_q", "s", "z", "w_q", "w_s", "w_z", "b_q"), ("y_q",))]
    labels = regions(made, nodes)["/MatMulAddFusion", "QGemm"].onnx_nodes
    assert {"MatMul(m)", "Add(a)", "QuantizeLinear(y_q)", "DequantizeLinear(x_d)"} <= set(labels)
    assert "QuantizeLinear(x_q)" not in labels


@pytest.mark.parametrize(
    ("name", "expected"), [("/layer1/conv1/Conv_token_3", "Conv"), ("/a/Gemm_12", "Gemm"), ("conv_y", None)]
)
def test_types_are_guessed_only_from_names_that_end_in_one(name, expected):
    assert type_in_name(name) == expected


def test_what_became_one_operator_is_named_after_the_node_that_does_the_work(nodes):
    assert nodes.sources(("act", "bias", "second")).onnx_nodes == ("second", "act", "bias")
