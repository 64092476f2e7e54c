"""Weights that the reader leaves on disk must reach the EP, also when nodes have to be named first."""

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from modelwright.targets import parse_target, placement
from modelwright.worker import run
from support.models import save


def test_nameless_nodes_with_a_large_weight_are_placed(tmp_path):
    weight = numpy_helper.from_array(np.ones((256, 256), np.float32), "w")
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])],
        "large",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 256])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 256])],
        [weight],
    )
    path = save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), tmp_path)
    found = run(placement.call(str(path), parse_target("cpu")), timeout=60).unwrap()
    assert found.status == "placed", found.reason
    assert found.unsupported == ()
