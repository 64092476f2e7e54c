"""Sessions that are opened to ask them for a few answers."""

import threading

import numpy as np
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper
from onnxruntime.capi import _pybind_state

from modelwright.errors import ExecutionError
from modelwright.targets import _reference_sessions, open_as_written, open_in_place
from support.models import model, value, weight


def saved(folder, *operators):
    names = ["x", *(f"h{index}" for index in range(1, len(operators))), "y"]
    nodes = [
        helper.make_node(kind, [names[place], "w"] if kind == "MatMul" else [names[place]], [names[place + 1]])
        for place, kind in enumerate(operators)
    ]
    ends = [value(name, shape=[4, 4]) for name in ("x", "y")]
    path = folder / "model.onnx"
    path.write_bytes(model(nodes, ends[:1], ends[1:], [weight("w", 4, 4)]).SerializeToString())
    return path


@pytest.fixture(params=[False, True], ids=["few nodes", "many nodes"])
def many(request, monkeypatch):
    monkeypatch.setattr(_reference_sessions, "_MANY_NODES", 0 if request.param else 10**9)
    return request.param


@pytest.mark.parametrize("opened", [open_in_place, open_as_written])
def test_where_a_session_is_initialized_changes_no_answer(tmp_path, many, opened):
    feed = {"x": np.random.default_rng(0).standard_normal((4, 4), np.float32)}
    path = saved(tmp_path, "MatMul", "Relu", "MatMul")
    expected = ort.InferenceSession(path, providers=["CPUExecutionProvider"]).run(None, feed)[0]
    with opened(path) as session:
        np.testing.assert_array_equal(session.run(feed)["y"], expected)


def test_what_onnxruntime_refuses_while_it_initializes_is_told(tmp_path, many):
    """The model is read without complaint: the operator is known, and nobody computes it in 16 bits."""
    ends = [helper.make_tensor_value_info(name, TensorProto.UINT16, [4]) for name in ("x", "y")]
    shift = helper.make_node("BitShift", ["x", "x"], ["y"], direction="LEFT")
    path = tmp_path / "model.onnx"
    path.write_bytes(model([shift], ends[:1], ends[1:], []).SerializeToString())
    with pytest.raises(ExecutionError) as told:
        open_as_written(path)
    assert "BitShift" in told.value.cause


def test_only_long_graphs_get_a_thread_and_nothing_is_left_of_it(tmp_path, many, monkeypatch):
    where, caller = [], threading.current_thread()
    native = _pybind_state.InferenceSession

    class Watched(native):
        def initialize_session(self, *given):
            where.append(threading.current_thread() is caller)
            super().initialize_session(*given)

    monkeypatch.setattr(_pybind_state, "InferenceSession", Watched)
    open_in_place(saved(tmp_path, "MatMul", "Relu")).close()
    assert where == [not many]
    assert _pybind_state.InferenceSession is Watched
