"""`analyze` says what a build would reach, and what it tried."""

import importlib.util
import platform
import sys

import onnx
import pytest

import modelwright as mw
from ep.session.nets import conv_between
from modelwright.errors import UsageError
from modelwright.graph import load
from modelwright.targets import SessionSpec, parse_target, placement
from modelwright.targets._sizes import tensor_bytes
from modelwright.worker import run
from support import models

needs_simulator = pytest.mark.skipif(
    importlib.util.find_spec("onnxruntime_qnn") is None or (sys.platform, platform.machine()) != ("linux", "x86_64"),
    reason="the QNN simulator exists on x86 Linux",
)


@pytest.fixture
def dynamic(tmp_path):
    """Nothing of it can be placed as it is, and one operator never."""
    path = conv_between(tmp_path, "Shrink")
    proto = onnx.load(path)
    for value in (*proto.graph.input, *proto.graph.output):
        value.type.tensor_type.shape.dim[0].dim_param = "batch"
    onnx.save(proto, path)
    return path


@needs_simulator
def test_what_a_build_would_place_is_said_and_every_change_that_was_tried(dynamic):
    (found,) = mw.analyze(dynamic, "qnn-npu")
    assert found.fallback == 1.0
    built = next(item for item in found.suggestions if item.title.startswith("Build it for qnn-npu"))
    assert built.how == "--precision w8a16"
    assert (built.left_before, built.left_after) == (3, 1)
    result = mw.build(dynamic, "qnn-npu")[0].components[0].check
    assert (result.nodes, sum(op.count for op in result.left)) == (built.nodes_after, 1)
    assert {"Fix the dynamic dimensions", "Clean the graph up"} <= {item.title for item in found.tried}
    assert all("nodes left" in item.result for item in found.tried)


@needs_simulator
def test_a_model_of_an_unknown_precision_is_offered_no_precision_to_type(tmp_path):
    """Nothing in it has weights, so that no precision can be measured."""
    sides = [models.value(name, shape=["batch", 4]) for name in "xy"]
    alone = [onnx.helper.make_node("Shrink", ["x"], ["y"])]
    (found,) = mw.analyze(models.save(models.model(alone, sides[:1], sides[1:]), tmp_path), "qnn-npu")
    built = next(item for item in found.tried if item.title.startswith("Build it for qnn-npu"))
    assert (built.title, built.how) == ("Build it for qnn-npu (passes, batch=1, its own precision)", "")


@needs_simulator
def test_an_option_that_the_ep_does_not_know_is_refused(dynamic):
    spec = SessionSpec(provider_options={"vtcm_megabytes": "4"})
    with pytest.raises(UsageError, match="does not know the option vtcm_megabytes"):
        run(placement.call(str(dynamic), parse_target("qnn-npu"), spec), timeout=120).unwrap()


def test_sixteen_bit_pairs_of_onnxruntimes_own_do_not_hide_the_sizes(tmp_path):
    path = conv_between(tmp_path, "Relu")
    proto = onnx.load(path)
    pair = [
        onnx.helper.make_node("QuantizeLinear", ["a", "s", "z"], ["q"], domain="com.microsoft"),
        onnx.helper.make_node("DequantizeLinear", ["q", "s", "z"], ["d"], domain="com.microsoft"),
    ]
    for place, node in enumerate(pair):
        proto.graph.node.insert(1 + place, node)
    proto.graph.node[3].input[0] = "d"
    proto.graph.initializer.append(onnx.helper.make_tensor("s", onnx.TensorProto.FLOAT, [], [0.1]))
    proto.graph.initializer.append(onnx.helper.make_tensor("z", onnx.TensorProto.UINT16, [], [0]))
    proto.opset_import.append(onnx.helper.make_opsetid("com.microsoft", 1))
    onnx.save(proto, path)
    assert tensor_bytes(load(path), ["q", "b"]) == {"q": 4 * 64 * 2, "b": 4 * 64 * 4}
