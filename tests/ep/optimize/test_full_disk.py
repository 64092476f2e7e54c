"""A disk that fills up while a stage works, inside its child."""

import shutil

import pytest
from onnx import TensorProto, helper, save

from modelwright.errors import StoreError
from modelwright.stages.optimize import PRESETS, OptimizeParams, run_optimize
from modelwright.worker import Worker


@pytest.fixture
def model(tmp_path):
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 4]) for name in "xy"]
    nodes = [helper.make_node("Relu", ["x"], ["t"]), helper.make_node("Identity", ["t"], ["y"])]
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:], doc_string="long " * 20_000)
    path = tmp_path / "model.onnx"
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


def test_a_disk_that_fills_up_under_native_code_and_under_python_is_said_to_be_full(model, small_disk):
    """With nothing left onnxruntime fails, with a few pages it is our own writing that does."""
    filler, params = small_disk / "filler", OptimizeParams(PRESETS["portable"])
    with Worker() as worker:
        for left in (0, 20_000):
            work = small_disk / f"work-{left}"
            work.mkdir()
            filler.unlink(missing_ok=True)
            filler.write_bytes(b"x" * (shutil.disk_usage(small_disk).free - left))
            result = worker.run(run_optimize.call(str(model), str(work), params), timeout=100)
            with pytest.raises(StoreError, match="the disk is full") as caught:
                result.unwrap()
            assert str(small_disk) in caught.value.cause
