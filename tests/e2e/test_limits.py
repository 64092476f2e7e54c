"""Small files that ask for all the memory or all the time there is, and the limits a user sets."""

import onnx
import pytest
from onnx import TensorProto, helper

FLOATS = 2_000_000_000


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """Two hundred bytes each: one fills eight gigabytes, one never ends."""
    folder = tmp_path_factory.mktemp("models")
    ones = helper.make_tensor("ones", TensorProto.FLOAT, [1], [1.0])
    filling = [
        helper.make_node("Shape", ["x"], ["shape"]),
        helper.make_node("Mul", ["shape", "many"], ["size"]),
        helper.make_node("ConstantOfShape", ["size"], ["filled"], value=ones),
        helper.make_node("ReduceSum", ["filled"], ["sum"], keepdims=0),
        helper.make_node("Add", ["x", "sum"], ["y"]),
    ]
    _save(folder / "fill.onnx", filling, [helper.make_tensor("many", TensorProto.INT64, [1], [FLOATS])])
    more = helper.make_tensor_value_info
    body = helper.make_graph(
        [helper.make_node("Identity", ["go"], ["go_on"]), helper.make_node("Add", ["a", "a"], ["b"])],
        "body",
        [more("i", TensorProto.INT64, []), more("go", TensorProto.BOOL, []), more("a", TensorProto.FLOAT, [1])],
        [more("go_on", TensorProto.BOOL, []), more("b", TensorProto.FLOAT, [1])],
    )
    start = [
        helper.make_tensor("times", TensorProto.INT64, [], [2**62]),
        helper.make_tensor("first", TensorProto.BOOL, [], [True]),
    ]
    _save(folder / "loop.onnx", [helper.make_node("Loop", ["times", "first", "x"], ["y"], body=body)], start)
    return folder


def _save(path, nodes, initializers):
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1]) for name in "xy"]
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:], initializers)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    assert path.stat().st_size < 300


def test_memory_beyond_the_limit_ends_the_stage_and_says_how_to_raise_it(wright, models):
    answer = wright("build", "-m", models / "fill.onnx", "--memory", "700MB")
    assert answer.code == 4, answer.err
    assert "more than its limit of 700 MB" in answer.err
    assert "--memory" in answer.err


def test_a_model_that_never_ends_is_stopped_by_the_time_limit_beyond_the_planned_duration(wright, models):
    answer = wright("perf", models / "loop.onnx", "--timeout", "3s", "--duration", "1")
    assert answer.code == 4, answer.err
    # On a busy machine even opening it may take that long; a duration is planned only for measuring.
    assert "(limit 4 s)" in answer.err or "(limit 3 s)" in answer.err
    assert "--timeout" in answer.err


def test_a_limit_of_nothing_is_refused(wright, models):
    answer = wright("perf", models / "fill.onnx", "--memory", "0")
    assert (answer.code, "is no limit" in answer.err) == (2, True)
