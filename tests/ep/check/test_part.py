"""Parts of a model as models of their own: the same numbers as in the whole, with and without their Q/DQ pairs."""

import tomllib

import numpy as np
import onnx
import onnxruntime as ort
import pytest

from ep.check.test_check import attention, needs_simulator, vision
from ep.quantize.faults import narrow
from modelwright.data import DataSource, generate
from modelwright.stages.check import TargetGate, _part
from modelwright.stages.check._cut import Cuttable, told
from modelwright.stages.check._part import TRIES, smallest_part
from modelwright.stages.check._types import DIFFERS, OPENS
from modelwright.stages.check._widths import in_bits
from modelwright.stages.quantize import QuantizeParams, TensorOverride, run_quantize


@pytest.fixture
def quantized(tmp_path):
    (tmp_path / "out").mkdir()
    params = QuantizeParams("w8a16", op_types=("all",))
    run_quantize(str(vision(tmp_path)), str(tmp_path / "out"), params, DataSource())
    return Cuttable(onnx.load(tmp_path / "out/model.onnx"))


def answers(model, feeds, names=None):
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return dict(zip([one.name for one in session.get_outputs()], session.run(names, feeds), strict=True))


def test_every_operator_can_be_cut_out_and_all_of_them_are_the_whole(quantized):
    assert {node.op_type for node in quantized.operators}.isdisjoint({"QuantizeLinear", "DequantizeLinear"})
    for node in quantized.operators:
        part = quantized.part([node])
        assert [one.op_type for one in part.graph.node].count(node.op_type) == 1
        answers(part, generate(quantized.feeds(part), 0))
    whole = quantized.part(quantized.operators)
    feeds = generate(quantized.feeds(whole), 0)
    (expected,) = answers(quantized.model, feeds).values()
    (found,) = answers(whole, feeds).values()
    np.testing.assert_array_equal(found, expected)


def test_a_part_in_floats_has_no_pairs_and_the_weights_they_stand_for(quantized):
    conv = [node for node in quantized.operators if node.op_type == "Conv"][:1]
    pairs, floats = quantized.part(conv), quantized.part(conv, floats=True)
    assert [node.op_type for node in floats.graph.node] == ["Conv"]
    feeds = generate(quantized.feeds(pairs), 0)
    (one,), (other,) = answers(pairs, feeds).values(), answers(floats, feeds).values()
    # What passes the range of the pair behind it is clipped; the rest is the same.
    assert np.median(np.abs(one - other)) < 0.01 * np.abs(other).max()


def test_what_a_part_is_fed_lies_in_the_range_of_its_pair(quantized):
    part = quantized.part([quantized.operators[2]])
    (spec,) = quantized.feeds(part)
    assert spec.fill.kind == "uniform"
    assert spec.fill.low < 0 < spec.fill.high


@needs_simulator
def test_what_the_target_computes_rightly_has_no_failing_part(tmp_path):
    assert smallest_part(str(attention(tmp_path)), TargetGate(target="qnn-npu", precision="fp32"), DIFFERS) is None


def test_the_smallest_part_is_found_within_the_tries(quantized, monkeypatch):
    """The search itself, with an answer for each part that costs nothing."""
    guilty = {"Sigmoid sigmoid", "Mul silu"}
    asked = []

    def fails(self, places):
        self.tries += 1
        asked.append(places)
        self._seen[places] = DIFFERS
        return guilty <= {told(self.model.operators[place]) for place in places}

    monkeypatch.setattr(_part._Hunt, "fails", fails)
    monkeypatch.setattr(_part._Hunt, "_avoided", lambda self, nodes: ())
    found = _part._Hunt(quantized, TargetGate(target="cpu", precision="w8a16"), DIFFERS).result()
    assert set(found.operators) == guilty
    assert found.minimal
    assert len(asked) < TRIES
    assert "what fails alone: Sigmoid sigmoid, Mul silu (2 of 9 operators" in found.words


@needs_simulator
def test_a_part_in_double_precision_is_tried_in_floats(tmp_path):
    """QNN claims a Softmax of doubles and cannot open it."""
    spec = onnx.helper.make_tensor_value_info
    nodes = [
        onnx.helper.make_node("Relu", ["x"], ["r"], name="relu"),
        onnx.helper.make_node("Cast", ["r"], ["d"], name="widen", to=onnx.TensorProto.DOUBLE),
        onnx.helper.make_node("Softmax", ["d"], ["y"], name="shares", axis=-1),
    ]
    graph = onnx.helper.make_graph(nodes, "tail", [spec("x", 1, [1, 8])], [spec("y", 11, [1, 8])])
    onnx.save(
        onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=9),
        tmp_path / "m.onnx",
    )
    gate = TargetGate(target="qnn-npu", precision="fp32")
    found = smallest_part(str(tmp_path / "m.onnx"), gate, f"{OPENS}: composing failed")
    assert found is not None
    assert any(operator.startswith("Softmax") for operator in found.operators)
    (way,) = found.avoided_by
    assert (way.how, way.passed) == ('[optimize] passes = ["portable", "narrow_doubles"]', True)


def unbound(op_type, bits):
    return None


def quantized_types(part):
    stored = {tensor.name: tensor.data_type for tensor in part.graph.initializer}
    return {node.input[0]: stored[node.input[2]] for node in part.graph.node if node.op_type == "QuantizeLinear"}


def test_a_part_in_another_width_keeps_its_ranges_and_its_answers(quantized):
    body = [node for node in quantized.operators if node.name in ("body", "sigmoid", "silu")]
    whole = quantized.part(body)
    narrow = in_bits(whole, 8, unbound)
    assert set(narrow.tensors) == {"c", "d", "e"}
    onnx.checker.check_model(narrow.part)
    assert {quantized_types(narrow.part)[name] for name in narrow.tensors} == {onnx.TensorProto.UINT8}
    feeds = generate(quantized.feeds(whole), 0)
    (one,), (other,) = answers(whole, feeds).values(), answers(narrow.part, feeds).values()
    noise = np.square(one - other).sum() / np.square(one).sum()
    assert 1e-7 < noise < 1e-2
    again = in_bits(narrow.part, 16, unbound)
    (back,) = answers(again.part, feeds).values()
    assert np.square(one - back).sum() < np.square(one - other).sum()


def test_what_is_as_wide_already_or_has_no_pairs_is_not_tried(quantized):
    whole = quantized.part(quantized.operators)
    assert in_bits(whole, 16, unbound) is None
    assert in_bits(quantized.part(quantized.operators, floats=True), 8, unbound) is None


@needs_simulator
def test_a_part_that_fails_in_16_bits_is_offered_in_8_and_a_build_that_says_so_is_right(tmp_path):
    """A Swish behind a normalization, of which QNN makes something else in 16 bits."""
    onnx.save(narrow(), tmp_path / "m.onnx")
    gate = TargetGate(target="qnn-npu", precision="w8a16")

    def hunt(name, **chosen):
        (tmp_path / name).mkdir()
        run_quantize(str(tmp_path / "m.onnx"), str(tmp_path / name), QuantizeParams("w8a16", **chosen), DataSource())
        found = _part._Hunt(Cuttable(onnx.load(tmp_path / name / "model.onnx")), gate, DIFFERS)
        found.folder = tmp_path
        return found

    first = hunt("sixteen")
    assert first.fails(first.all)
    eight, floats = first._avoided(first.model.operators)
    assert (eight.title, eight.passed, floats.title) == ("in 8 bits", True, "left in float")
    said = tomllib.loads(eight.how.replace("[quantize] ", ""))["overrides"]
    second = hunt("eight", overrides=tuple(TensorOverride(**item) for item in said))
    assert second._asked(second.model.model).agrees
