"""Stored weights as the floats that a graph makes of them have the bits that onnxruntime computes."""

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper, numpy_helper

from modelwright.targets import _weights_as_floats
from modelwright.targets._weights_as_floats import weights_as_floats

RNG = np.random.default_rng(0)
CASES = {
    "int8, one scale, no zero point": (RNG.integers(-128, 128, (5, 7), np.int8), 0.017, None, {}),
    "uint8, one scale": (RNG.integers(0, 256, (5, 7), np.uint8), 0.3, 131, {}),
    "int8, by channel": (RNG.integers(-128, 128, (5, 7), np.int8), RNG.random(5), np.zeros(5), {"axis": 0}),
    "uint8, by the last axis": (RNG.integers(0, 256, (3, 7), np.uint8), RNG.random(7), RNG.integers(0, 255, 7), {}),
    "axis from the end": (RNG.integers(-9, 9, (3, 4, 5), np.int8), RNG.random(4), None, {"axis": -2}),
    "int32 beyond what floats hold": (RNG.integers(-(2**31), 2**31, 9, np.int32), RNG.random(9), None, {"axis": 0}),
}


def stored(values, scale, zero, attributes, **named):
    """y = x + DequantizeLinear(weight): the sum is the weight where x is zero."""
    scale = np.asarray(scale, np.float32)
    weights = {"q": values, "s": scale} | ({} if zero is None else {"z": np.asarray(zero, values.dtype)})
    nodes = [
        helper.make_node("DequantizeLinear", list(weights), ["w"], **attributes),
        helper.make_node("Add", ["x", "w"], ["y"]),
    ]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, values.shape) for name in ("x", "y")]
    tensors = [numpy_helper.from_array(value, name) for name, value in weights.items()]
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:], tensors, **named)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def computed(model):
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, {"x": np.zeros(session.get_inputs()[0].shape, np.float32)})[0]


def operators(model):
    return [node.op_type for node in model.graph.node]


@pytest.fixture
def always(monkeypatch):
    monkeypatch.setattr(_weights_as_floats, "WORTH", 1)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
@pytest.mark.usefixtures("always")
def test_the_bits_are_those_of_onnxruntime(case):
    model = stored(*case)
    expected = computed(model)
    weights_as_floats(model)
    assert operators(model) == ["Add"]
    onnx.checker.check_model(model)
    np.testing.assert_array_equal(computed(model).view(np.int32), expected.view(np.int32))


@pytest.mark.usefixtures("always")
def test_blocks_outputs_inputs_and_weights_in_other_files_are_left_alone():
    blocks = stored(np.ones((4, 4), np.int8), np.ones((2, 4)), None, {"axis": 0, "block_size": 2})
    given = stored(*CASES["uint8, one scale"])
    given.graph.output.append(helper.make_tensor_value_info("w", TensorProto.FLOAT, [5, 7]))
    outside = stored(*CASES["uint8, one scale"])
    outside.graph.initializer[0].data_location = TensorProto.EXTERNAL
    fed = stored(*CASES["uint8, one scale"])
    fed.graph.input.append(helper.make_tensor_value_info("q", TensorProto.UINT8, [5, 7]))
    for model in (blocks, given, outside, fed):
        weights_as_floats(model)
        assert operators(model) == ["DequantizeLinear", "Add"]


@pytest.mark.usefixtures("always")
def test_what_a_branch_may_read_stays():
    model = stored(*CASES["uint8, one scale"])
    body = helper.make_graph([helper.make_node("Identity", ["q"], ["o"])], "b", [], [])
    model.graph.node.append(helper.make_node("If", ["c"], ["n"], then_branch=body, else_branch=body))
    weights_as_floats(model)
    assert operators(model) == ["DequantizeLinear", "Add", "If"]


def test_few_of_them_stay_as_they_are_written():
    model = stored(*CASES["uint8, one scale"])
    weights_as_floats(model)
    assert operators(model) == ["DequantizeLinear", "Add"]


@pytest.mark.usefixtures("always")
def test_a_model_with_sparse_weights_is_left_as_it_is():
    """They would not be in the graph that is made of the rest."""
    model = stored(np.ones((2, 2), np.int8), 0.5, None, {})
    values = numpy_helper.from_array(np.array([3.0], np.float32), "e")
    places = numpy_helper.from_array(np.array([0], np.int64), "p")
    model.graph.sparse_initializer.append(helper.make_sparse_tensor(values, places, [2, 2]))
    before = model.SerializeToString()
    weights_as_floats(model)
    assert model.SerializeToString() == before
