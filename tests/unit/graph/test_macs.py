"""Multiply-accumulates, on nodes whose number is known by hand."""

import pytest
from onnx import TensorProto, helper

from modelwright.graph import count_macs, load, stored_weights
from support.models import model, qdq, save, value, weight


def counted(folder, node, inputs, outputs, weights=(), **options):
    opsets = {"": 21, "com.microsoft": 1}
    return count_macs(load(save(model([node], inputs, outputs, list(weights), opsets), folder)), **options)


@pytest.mark.parametrize(
    ("node", "shapes", "out", "expected"),
    [
        (helper.make_node("Conv", ["x", "w"], ["y"]), [(1, 3, 8, 8), (4, 3, 3, 3)], (1, 4, 6, 6), 4 * 36 * 27),
        (helper.make_node("Conv", ["x", "w"], ["y"], group=3), [(1, 3, 8, 8), (3, 1, 3, 3)], (1, 3, 6, 6), 3 * 36 * 9),
        (helper.make_node("ConvTranspose", ["x", "w"], ["y"]), [(1, 3, 4, 4), (3, 5, 2, 2)], (1, 5, 5, 5), 48 * 20),
        (helper.make_node("MatMul", ["x", "w"], ["y"]), [(2, 7, 4), (4, 5)], (2, 7, 5), 2 * 7 * 5 * 4),
        (helper.make_node("Gemm", ["x", "w"], ["y"], transA=1), [(4, 7), (4, 5)], (7, 5), 7 * 5 * 4),
        (
            helper.make_node("Einsum", ["x", "w"], ["y"], equation="bij,bjk->bik"),
            [(2, 3, 4), (2, 4, 5)],
            (2, 3, 5),
            120,
        ),
        (
            helper.make_node("MatMulNBits", ["x", "w"], ["y"], domain="com.microsoft", K=16, N=8),
            [(1, 16), (8, 8)],
            (1, 8),
            128,
        ),
    ],
    ids=lambda item: getattr(item, "op_type", None),
)
def test_products_are_counted(tmp_path, node, shapes, out, expected):
    inputs = [value(name, shape=list(shape)) for name, shape in zip(("x", "w"), shapes, strict=True)]
    assert counted(tmp_path, node, inputs, [value("y", shape=list(out))]).total == expected


def test_a_recurrent_net_costs_its_weights_at_every_step(tmp_path):
    node = helper.make_node("LSTM", ["x", "w", "r"], ["y"], hidden_size=4)
    weights = [weight("w", 1, 16, 3), weight("r", 1, 16, 4)]
    found = counted(tmp_path, node, [value("x", shape=[10, 2, 3])], [value("y", shape=[10, 1, 2, 4])], weights)
    assert found.total == 10 * 2 * (48 + 64)


def test_a_dynamic_dimension_is_unknown_with_the_reason_until_it_gets_a_size(tmp_path):
    node = helper.make_node("MatMul", ["x", "w"], ["y"])
    ends = [value("x", shape=["batch", 4])], [value("y", shape=["batch", 3])], [weight("w", 4, 3)]
    found = counted(tmp_path, node, *ends)
    assert (found.total, found.counted) == (None, 0)
    assert found.uncounted[0].reason == "the dimension batch is not fixed"
    assert counted(tmp_path, node, *ends, dims={"batch": 5}, infer=True).total == 5 * 12


def test_shapes_between_nodes_are_inferred_where_the_model_does_not_say_them(tmp_path):
    path = save(qdq(), tmp_path)
    assert count_macs(load(path)).shapes_missing
    assert count_macs(load(path), infer=True).total == 2 * 4 * 8


def test_what_has_no_rule_is_not_taken_for_free(tmp_path):
    node = helper.make_node("QAttention", ["x"], ["y"], domain="com.microsoft")
    found = counted(tmp_path, node, [value("x", shape=[1, 4])], [value("y", shape=[1, 4])])
    assert found.total is None
    assert (found.uncounted[0].op_type, found.shapes_missing) == ("QAttention", False)


def test_the_biggest_weight_comes_first_with_its_reader(tmp_path):
    node = helper.make_node("Gemm", ["x", "w", "b"], ["y"], name="fc")
    weights = [weight("b", 3), weight("w", 4, 3)]
    proto = model([node], [value("x", TensorProto.FLOAT, [1, 4])], [value("y", shape=[1, 3])], weights)
    first, second = stored_weights(load(save(proto, tmp_path)))
    assert (first.name, first.shape, first.size_bytes, first.node) == ("w", (4, 3), 48, "fc")
    assert second.name == "b"
