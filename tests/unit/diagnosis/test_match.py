"""Counterparts are found by topology; what has none is listed with the reason."""

import pytest
from onnx import helper

from modelwright.diagnosis._match import match
from modelwright.diagnosis._match_view import view
from modelwright.diagnosis._match_weights import match_weights
from modelwright.diagnosis._rows import module_of, shares, spread
from modelwright.diagnosis._stream_model import shadow_of
from modelwright.graph import names_read
from support.models import FLOAT, branching, model, qdq, qlinear, save, scalar, value, weight


def product_and_add():
    nodes = [
        helper.make_node("MatMul", ["x", "w_q"], ["m"], name="product"),
        helper.make_node("Add", ["m", "b"], ["y"], name="sum"),
    ]
    weights = [weight("w_q", 4, 8), weight("b", 8)]
    return model(nodes, [value("x", FLOAT, [2, 4])], [value("y", FLOAT, [2, 8])], weights)


def views(tmp_path, wanted, got):
    return view(str(save(wanted, tmp_path, "float.onnx"))), view(str(save(got, tmp_path, "quant.onnx")))


def test_pairs_of_any_domain_are_sites(tmp_path):
    for domain in ("", "com.microsoft", "my.own"):
        wanted, got = views(tmp_path, product_and_add(), qdq(domain=domain))
        pairs = {pair.tensor: pair for pair in match(wanted, got).pairs}
        assert pairs["x"].quant == "x_d"
        assert pairs["y"].quant == "y"
        assert pairs["y"].grid.dtype == "uint8"
        # Not quantized, but still comparable under its own name.
        assert (pairs["m"].grid, pairs["m"].quant) == (None, "m")


def test_integer_operators_leave_their_inputs_unmatched_with_a_reason(tmp_path):
    wanted, got = views(tmp_path, product_and_add(), qlinear())
    (lost,) = match(wanted, got).quant_only
    assert lost.name == "x"
    assert "integer operator" in lost.reason


def test_the_weight_of_an_integer_operator_is_found_through_its_output(tmp_path):
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y_q"], name="p"), helper.make_node("Relu", ["y_q"], ["y"])]
    floats = model(nodes, [value("x", FLOAT, [2, 4])], [value("y", FLOAT, [2, 8])], [weight("w", 4, 8)])
    wanted, got = views(tmp_path, floats, qlinear())
    pairs, alone = match_weights(wanted, got)
    assert [(pair.weight, pair.quant, pair.dtype) for pair in pairs] == [("w", "w", "int8")]
    assert alone == ()


IMAGE, OUT = value("x", FLOAT, [1, 3, 8, 8]), value("y", FLOAT, [1, 4, 6, 6])


def conv_and_norm():
    conv = helper.make_node("Conv", ["x", "k"], ["c"], name="conv")
    norm = helper.make_node("BatchNormalization", ["c", "g", "b", "mean", "var"], ["n"], name="norm")
    relu = helper.make_node("Relu", ["n"], ["y"], name="relu")
    stats = [weight(name, 4) for name in ("g", "b", "mean", "var")]
    return model([conv, norm, relu], [IMAGE], [OUT], [weight("k", 4, 3, 3, 3), *stats])


@pytest.mark.parametrize("made", ["n", "renamed"])
def test_a_float_conv_that_took_in_a_batch_norm_is_not_taken_for_the_conv_alone(tmp_path, made):
    conv = helper.make_node("Conv", ["x", "k"], [made], name="conv")
    folded = model(
        [conv, helper.make_node("Relu", [made], ["y"], name="relu")], [IMAGE], [OUT], [weight("k", 4, 3, 3, 3)]
    )
    found = match(*views(tmp_path, conv_and_norm(), folded))
    assert "c" not in {pair.tensor for pair in found.pairs}
    assert {lost.name: lost.reason for lost in found.float_only}["c"] == "norm behind it was folded into conv"


def test_weights_that_took_in_a_batch_norm_are_not_compared(tmp_path):
    nodes = [
        helper.make_node("DequantizeLinear", ["k_quantized", "s"], ["kd"]),
        helper.make_node("Conv", ["x", "kd"], ["y"], name="conv"),
    ]
    folded = model(nodes, [IMAGE], [OUT], [weight("k_quantized", 4, 3, 3, 3, dtype="int8"), scalar("s", 0.1)])
    pairs, (lost,) = match_weights(*views(tmp_path, conv_and_norm(), folded))
    assert pairs == ()
    assert "norm was folded into it" in lost.reason


def test_a_shadow_begins_at_the_nearest_common_tensors(tmp_path):
    wanted, _ = views(tmp_path, product_and_add(), qdq())
    near = shadow_of(wanted, ["y"], frozenset({"x", "m", "y"}))
    far = shadow_of(wanted, ["y"], frozenset({"x", "y"}))
    assert (near.fed, near.nodes["y"]) == (("m",), (1,))
    assert (far.fed, far.nodes["y"]) == (("x",), (0, 1))


def test_names_read_inside_subgraphs_count_as_read(tmp_path):
    net = view(str(save(branching(), tmp_path)))
    assert set(names_read(net.nodes[1])) == {"flag", "h"}


def test_modules_are_what_stands_before_the_last_part_of_a_name():
    assert module_of("/encoder/layer.0/attention/MatMul") == "encoder/layer.0/attention"
    assert module_of("MatMul_3") == ""


def test_an_empty_spread_is_null_not_zero():
    assert spread([None, None]).mean is None
    assert spread([1.0, None, 3.0]).std == 1.0
    assert shares((), lambda row: row.op_type) == ()
