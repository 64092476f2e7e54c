"""Looking at a graph needs ONNX's messages, and none of the library around them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from onnx import TensorProto, helper, save

_LOOK = """
import sys
from modelwright.graph import facts, shared
assert facts(sys.argv[1]).node_count == 1
assert not {"numpy", "onnx"} & set(sys.modules)
import onnx
assert isinstance(shared(sys.argv[1]).model, onnx.ModelProto)
assert onnx.onnx_ml_pb2.ModelProto is onnx.ModelProto
onnx.checker.check_model(shared(sys.argv[1]).model)
"""


def test_facts_of_a_model_bring_no_numpy_and_the_messages_are_onnxs_own(tmp_path: Path) -> None:
    info = helper.make_tensor_value_info
    node = helper.make_node("Relu", ["x"], ["y"])
    ends = [info(name, TensorProto.FLOAT, [1]) for name in ("x", "y")]
    model = helper.make_model(helper.make_graph([node], "g", ends[:1], ends[1:]), ir_version=10)
    save(model, tmp_path / "model.onnx")
    subprocess.run([sys.executable, "-c", _LOOK, str(tmp_path / "model.onnx")], check=True)
