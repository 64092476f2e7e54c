"""Tracing real models: on the CPU, and on the QNN simulator with a node it does not take."""

import importlib.util
import json
import platform
import sys

import pytest
from onnx import TensorProto, helper

from ep.session.nets import branching, conv_between, conv_relu
from modelwright._json import dumps, plain
from modelwright.errors import InputError, UsageError
from modelwright.measure import InputChoice
from modelwright.measure.traces._trace import TraceOptions, trace
from modelwright.measure.traces._types import TraceReason, TraceStatus
from modelwright.stages.compile import CompileParams, run_compile
from modelwright.targets import SessionSpec, parse_target
from modelwright.worker import run
from support.models import FLOAT, mlp, model, qdq, save, scalar, value, weight

CPU, QNN = parse_target("cpu"), parse_target("qnn-npu")
needs_simulator = pytest.mark.skipif(
    importlib.util.find_spec("onnxruntime_qnn") is None or (sys.platform, platform.machine()) != ("linux", "x86_64"),
    reason="the QNN simulator exists on x86 Linux",
)


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("MODELWRIGHT_HOME", str(tmp_path / "home"))


def looping(folder):
    """A Loop of three rounds between a fused matrix product and a Sigmoid."""
    body = helper.make_graph(
        [
            helper.make_node("Mul", ["acc", "half"], ["out"], name="body_mul"),
            helper.make_node("Identity", ["go"], ["go_on"], name="body_go"),
        ],
        "body",
        [value("i", TensorProto.INT64, []), value("go", TensorProto.BOOL, []), value("acc", FLOAT, [2, 4])],
        [value("go_on", TensorProto.BOOL, []), value("out", FLOAT, [2, 4])],
    )
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["h"], name="product"),
        helper.make_node("Add", ["h", "b"], ["h2"], name="bias"),
        helper.make_node("Relu", ["h2"], ["h3"], name="act"),
        helper.make_node("Loop", ["rounds", "", "h3"], ["l"], name="rounds3", body=body),
        helper.make_node("Sigmoid", ["l"], ["y"], name="last"),
    ]
    weights = [weight("w", 4, 4), weight("b", 4), scalar("half", 0.5), scalar("rounds", 3, "int64")]
    return save(model(nodes, [value("x", FLOAT, [2, 4])], [value("y", FLOAT, [2, 4])], weights), folder)


def test_a_cpu_trace_adds_up_and_fused_names_are_the_models(tmp_path):
    found = trace(save(mlp(), tmp_path), CPU, runs=5, warmup=2)
    assert found.status is TraceStatus.OK
    assert sum(item.percent for item in found.operators) == pytest.approx(100)
    assert {item.op_type: item.onnx_nodes for item in found.operators} == {
        "FusedGemm": ("first", "bias", "act"),
        "MatMul": ("second",),
    }
    assert all(len(item.samples_us) == 5 for item in found.operators)
    assert found.source.timing_valid
    assert json.loads(dumps(found))["window"] == {"runs": 5, "warmup": 2, "measured": 5}


def test_time_in_operators_and_around_them_is_the_run(tmp_path):
    found = trace(save(mlp(), tmp_path), CPU, runs=1, warmup=1)
    totals = found.totals
    assert totals.kernel_us + totals.overhead_us == pytest.approx(totals.model_run_us)


def test_a_loop_is_its_own_time_and_its_body_is_summed_per_run(tmp_path):
    found = trace(looping(tmp_path), CPU, runs=3, warmup=1)
    items = {item.node: item for item in found.operators}
    assert sum(item.percent for item in found.operators) == pytest.approx(100)
    assert items["body_mul"].calls_per_run == 3
    assert items["body_mul"].parent == items["rounds3"].id
    assert all(len(item.samples_us) == 3 for item in found.operators)
    fused = next(item for item in found.operators if item.origin == "fused")
    assert fused.onnx_nodes == ("product", "bias", "act")


def test_only_the_branch_that_ran_is_there(tmp_path):
    found = trace(branching(tmp_path), CPU, runs=2, warmup=0)
    nodes = {node for item in found.operators for node in item.onnx_nodes}
    assert {"relu_t", "choose", "sigmoid_y"} <= nodes
    assert "neg_e" not in nodes


def test_without_graph_optimization_names_are_one_to_one(tmp_path):
    plain_graph = TraceOptions(session=SessionSpec(graph_optimization="disabled"))
    found = trace(save(mlp(), tmp_path), CPU, runs=2, warmup=0, options=plain_graph)
    assert sorted(item.onnx_nodes for item in found.operators) == [("act",), ("bias",), ("first",), ("second",)]
    assert all(item.origin == "model" for item in found.operators)


def test_a_quantized_model_is_mapped_to_its_qdq_nodes(tmp_path):
    found = trace(save(qdq(), tmp_path), CPU, runs=2, warmup=0)
    fused = next(item for item in found.operators if item.origin == "fused")
    assert {"MatMul(m)", "Add(a)"} <= set(fused.onnx_nodes)


def test_detail_has_shapes_and_sizes(tmp_path):
    found = trace(save(mlp(), tmp_path), CPU, "detail", runs=1, warmup=0, inputs=InputChoice(batch=2))
    last = next(item for item in found.operators if item.node == "second")
    assert (last.inputs[0], last.outputs) == ("float32[2,8]", ("float32[2,3]",))
    assert last.bytes.outputs == 24


def test_the_chrome_trace_is_written_whole(tmp_path):
    file = tmp_path / "chrome.json"
    trace(save(mlp(), tmp_path), CPU, runs=2, warmup=1, options=TraceOptions(chrome=file))
    events = json.loads(file.read_text())
    assert sum(event.get("cat") == "run" for event in events) == 2
    assert {"second"} <= {event["name"] for event in events}


def test_nothing_is_left_behind(tmp_path, monkeypatch):
    folder = tmp_path / "model"
    folder.mkdir()
    path = save(mlp(), folder)
    monkeypatch.chdir(folder)
    folder.chmod(0o555)
    try:
        assert trace(path, CPU, runs=1, warmup=0).has_data
    finally:
        folder.chmod(0o755)
    assert [item.name for item in folder.iterdir()] == ["model.onnx"]


@needs_simulator
def test_qnn_with_a_node_it_does_not_take(tmp_path):
    found = trace(conv_between(tmp_path, "Hardmax"), QNN, runs=3, warmup=2)
    assert (found.status, found.source.timing_valid) == (TraceStatus.OK, False)
    assert [part.id for part in found.partitions] == ["qnn_0", "qnn_1"]
    assert len({item.id for item in found.operators}) == len(found.operators)
    assert all(len(item.samples_us) == 3 and None not in item.samples_us for item in found.operators)
    assert sum(item.percent for item in found.operators) == pytest.approx(100)
    nodes = {item.onnx_nodes[0]: item for item in found.operators if item.onnx_nodes}
    assert nodes["hardmax_b"].provider == "CPUExecutionProvider"
    assert {name: nodes[name].partition for name in ("conv_a", "conv_y")} == {"conv_a": "qnn_0", "conv_y": "qnn_1"}
    assert nodes["conv_a"].op_type == nodes["conv_y"].op_type == "Conv"
    assert nodes["conv_a"].cycles > 0
    inside = sum(item.self_us.mean for item in found.operators if item.partition)
    whole = inside + nodes["hardmax_b"].self_us.mean
    runs = found.totals.model_run_samples_us
    assert whole <= sum(runs) / len(runs)


@needs_simulator
def test_a_second_trace_knows_nothing_of_the_first(tmp_path):
    path = conv_relu(tmp_path)
    first, second = (trace(path, QNN, runs=2, warmup=0) for _ in range(2))
    assert first.status is second.status is TraceStatus.OK
    assert {item.id for item in first.operators} == {item.id for item in second.operators}
    assert all(len(item.samples_us) == 2 for item in second.operators)


@needs_simulator
def test_a_model_compiled_before_is_traced_by_the_names_left_in_it(tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    call = run_compile.call(str(conv_between(tmp_path, "Hardmax")), str(out), CompileParams("qnn-npu"))
    run(call, timeout=120).unwrap()
    found = trace(out / "model.onnx", QNN, runs=2, warmup=1)
    assert found.status is TraceStatus.OK
    assert len(found.partitions) == 2
    convolution = next(item for item in found.operators if item.node.startswith("conv_a"))
    assert (convolution.origin, convolution.onnx_nodes) == ("unresolved", ())


@needs_simulator
def test_detail_on_qnn_says_what_is_missing(tmp_path):
    found = trace(conv_relu(tmp_path), QNN, "detail", runs=1, warmup=0)
    assert (found.status, found.reason_code) == (TraceStatus.PARTIAL, "qnn_sdk_needed")
    assert found.operators


def test_an_ep_that_cannot_run_is_a_status_of_the_same_shape(tmp_path):
    path = save(mlp(), tmp_path)
    failed = trace(path, parse_target("webgpu-gpu"), runs=1, warmup=0)
    assert (failed.status, failed.reason_code) == (TraceStatus.RUN_FAILED, TraceReason.EP_FAILED)
    assert "webgpu" in failed.error
    assert set(plain(failed)) == set(plain(trace(path, CPU, runs=1, warmup=0)))


def test_a_child_that_does_not_end_is_a_status(tmp_path):
    found = trace(save(mlp(), tmp_path), CPU, runs=1, options=TraceOptions(timeout_s=0.01))
    assert (found.status, found.reason_code) == (TraceStatus.RUN_FAILED, TraceReason.CHILD_DIED)
    assert "no result after" in found.error


def test_a_bad_model_and_bad_numbers_raise(tmp_path):
    (tmp_path / "broken.onnx").write_bytes(b"\x08\x08garbage")
    with pytest.raises(InputError):
        trace(tmp_path / "broken.onnx", CPU)
    path = save(mlp(), tmp_path)
    for wrong in ({"runs": 0}, {"warmup": -1}, {"level": "optrace"}, {"runs": 1_000_000}):
        with pytest.raises(UsageError):
            trace(path, CPU, **wrong)
