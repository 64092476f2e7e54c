"""`analyze` asks the real partitioner, maps its answer onto the model as given, and never guesses."""

import importlib.util
import platform
import sys

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnxruntime.quantization import CalibrationDataReader, QuantType, quantize_static

from ep.session.nets import branching, conv_between, conv_relu
from modelwright.errors import InputError
from modelwright.targets import SessionSpec, parse_target, placement
from modelwright.worker import run
from support.hostile_library import aborting
from support.models import save_external

CPU, QNN = "CPUExecutionProvider", "QNNExecutionProvider"
on_x86_linux = (sys.platform, platform.machine()) == ("linux", "x86_64")
needs_simulator = pytest.mark.skipif(
    importlib.util.find_spec("onnxruntime_qnn") is None or not on_x86_linux,
    reason="the QNN simulator exists on x86 Linux",
)


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("MODELWRIGHT_HOME", str(tmp_path / "home"))


def ask(path, target, spec=None, *, cpu_fallback=True):
    return run(placement.call(str(path), parse_target(target), spec, cpu_fallback=cpu_fallback), timeout=120).unwrap()


def shares(found):
    return {share.ep: share.nodes for share in found.eps}


@needs_simulator
class TestConvFusionHazard:
    """onnxruntime's extended level makes FusedConv, which QNN does not know."""

    @pytest.fixture
    def fused(self, tmp_path):
        options = ort.SessionOptions()
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
        options.optimized_model_filepath = str(tmp_path / "fused.onnx")
        options.log_severity_level = 3
        ort.InferenceSession(str(conv_relu(tmp_path)), options, providers=[CPU])
        return tmp_path / "fused.onnx"

    def test_every_fused_conv_is_on_the_cpu_with_the_eps_reason(self, fused):
        assert {node.op_type for node in onnx.load(fused).graph.node} == {"FusedConv"}
        found = ask(fused, "qnn-npu")
        assert shares(found) == {CPU: 2}
        assert set(found.left_by_type) == {"FusedConv"}
        assert len(found.unsupported) == 2
        for node in found.left:
            assert "`FusedConv` are not supported by QNN" in node.why.reason
            assert node.name in node.why.line

    def test_unfused_the_whole_graph_is_on_the_npu(self, tmp_path):
        found = ask(conv_relu(tmp_path), "qnn-npu")
        assert shares(found) == {QNN: 4}
        assert found.eps[0].partitions == 1
        assert found.left == found.copies == ()
        assert {tally.op_type for tally in found.inserted} == {"Transpose"}


@needs_simulator
def test_an_operator_in_the_middle_splits_the_graph_and_its_copies_are_counted(tmp_path):
    found = ask(conv_between(tmp_path, "Shrink"), "qnn-npu")
    assert shares(found) == {QNN: 2, CPU: 1}
    assert {share.ep: share.partitions for share in found.eps} == {QNN: 2, CPU: 1}
    assert [(copy.tensor, copy.source_ep, copy.reader_ep, copy.size_bytes) for copy in found.copies] == [
        ("a", QNN, CPU, 4 * 64 * 4),
        ("b", CPU, QNN, 4 * 64 * 4),
    ]
    assert found.copied_bytes == 2 * 4 * 64 * 4
    assert [(node.ep, node.reads) for node in found.graph] == [(QNN, ()), (CPU, (0,)), (QNN, (1,))]


@needs_simulator
def test_a_symbolic_dimension_keeps_everything_on_the_cpu_and_the_ep_says_why(tmp_path):
    found = ask(conv_relu(tmp_path, batch="n"), "qnn-npu")
    assert shares(found) == {CPU: 4}
    assert {node.why.reason for node in found.left} == {"Cannot get shape"}


@needs_simulator
def test_nodes_without_names_are_told_apart(tmp_path):
    path = conv_relu(tmp_path, named=False)
    found = ask(path, "qnn-npu")
    assert shares(found) == {QNN: 4}
    fallen = ask(conv_relu(tmp_path, batch="n", named=False, name="dynamic.onnx"), "qnn-npu")
    assert [node.name for node in fallen.left] == ["Conv(a)", "Relu(b)", "Conv(c)", "Relu(y)"]
    assert all("Conv(a)" in node.why.line or node.name != "Conv(a)" for node in fallen.left)


@needs_simulator
def test_weights_beside_an_unnamed_model_are_found(tmp_path):
    proto = onnx.load(conv_relu(tmp_path, named=False))
    assert shares(ask(save_external(proto, tmp_path, "external.onnx"), "qnn-npu")) == {QNN: 4}


@needs_simulator
def test_a_function_that_onnxruntime_expands_is_named(tmp_path):
    found = ask(conv_between(tmp_path, "Mish", opset=18), "qnn-npu")
    assert found.expanded == ("mish_b",)
    assert shares(found) == {QNN: 2}
    assert {"Softplus", "Tanh", "Mul"} <= {tally.op_type for tally in found.inserted}


class _Samples(CalibrationDataReader):
    def __init__(self):
        rng = np.random.default_rng(0)
        self._feeds = iter([{"x": rng.standard_normal([1, 3, 8, 8], dtype=np.float32)} for _ in range(2)])

    def get_next(self):
        return next(self._feeds, None)


@needs_simulator
class TestQuantized:
    @pytest.fixture
    def qdq(self, tmp_path):
        path = tmp_path / "qdq.onnx"
        quantize_static(
            conv_relu(tmp_path),
            path,
            _Samples(),
            activation_type=QuantType.QUInt16,
            weight_type=QuantType.QUInt8,
        )
        return path

    def test_quantization_of_graph_inputs_and_outputs_stays_outside_by_policy(self, qdq):
        total = len(onnx.load(qdq).graph.node)
        found = ask(qdq, "qnn-npu:soc=x-elite")
        assert [node.name for node in found.left] == ["x_QuantizeLinear"]
        assert {node.why.kind for node in found.left} == {"policy"}
        assert found.unsupported == found.expanded == ()
        assert shares(found) == {QNN: total - 1, CPU: 1}
        assert [(copy.tensor, copy.size_bytes) for copy in found.copies] == [("x_QuantizeLinear_Output", 3 * 64 * 2)]

    def test_without_cpu_fallback_the_ep_takes_them_too(self, qdq):
        found = ask(qdq, "qnn-npu", cpu_fallback=False)
        assert found.left == ()
        assert not found.cpu_fallback

    def test_the_quick_finalisation_changes_nothing_but_the_time(self, qdq):
        slow = SessionSpec(
            graph_optimization="disabled", provider_options={"htp_graph_finalization_optimization_mode": "3"}
        )
        quick, thorough = ask(qdq, "qnn-npu"), ask(qdq, "qnn-npu", slow)
        assert dict(quick.facts.options) != dict(thorough.facts.options)
        for field in ("eps", "copies", "inserted", "expanded"):
            assert getattr(quick, field) == getattr(thorough, field)
        assert [(node.name, node.why.reason) for node in quick.left] == [
            (node.name, node.why.reason) for node in thorough.left
        ]


def test_subgraphs_are_counted_too(tmp_path):
    found = ask(branching(tmp_path), "cpu")
    assert shares(found) == {CPU: 4}
    assert found.left == ()


@needs_simulator
def test_an_ep_that_breaks_when_asked_is_a_failure_not_a_cpu_placement(tmp_path):
    spec = SessionSpec(graph_optimization="disabled", provider_options={"backend_path": "/nowhere/libQnnHtp.so"})
    found = ask(conv_relu(tmp_path), "qnn-npu", spec)
    assert found.status == "failed"
    assert "Unable to load backend" in found.reason
    assert found.eps == ()


@needs_simulator
def test_float_operators_open_where_no_chip_is_named_and_a_chip_without_fp16_is_named_as_the_reason(tmp_path):
    path = conv_between(tmp_path, "Gelu", opset=20)
    assert shares(ask(path, "qnn-npu")) == {QNN: 3}
    refused = ask(path, "qnn-npu:soc=sm8350")
    assert refused.status == "failed"
    assert "Snapdragon 888 has none" in refused.reason
    assert "w8a16" in refused.fix


@pytest.mark.skipif(not on_x86_linux, reason="what is missing depends on the platform")
@pytest.mark.parametrize("target", ["dml-gpu", "webgpu-gpu", "vitisai-npu", "openvino-npu", "qnn-gpu"])
def test_what_cannot_be_asked_here_is_unknown_with_a_reason(tmp_path, target):
    found = ask(conv_relu(tmp_path), target)
    assert found.status == "unknown"
    assert found.reason
    assert found.fix
    assert found.eps == found.left == ()
    assert found.facts is None


@pytest.mark.skipif(not on_x86_linux, reason="the hostile library is an x86-64 ELF file")
def test_an_unrelated_ep_cannot_hurt_the_answer_for_the_cpu(tmp_path, monkeypatch):
    library = aborting(tmp_path / "libaborts.so")
    monkeypatch.setenv("MODELWRIGHT_EP_LIBRARIES", f"WebGpuExecutionProvider={library}")
    path = conv_relu(tmp_path)
    assert ask(path, "cpu").status == "placed"
    broken = run(placement.call(str(path), parse_target("webgpu-gpu")), timeout=120)
    assert broken.failure.kind == "crash"


def test_openvino_places_the_whole_graph_on_an_intel_cpu(tmp_path):
    found = ask(conv_relu(tmp_path), "openvino-cpu")
    if found.status == "unknown":
        pytest.skip(found.reason)
    assert shares(found) == {"OpenVINOExecutionProvider": 4}
    assert found.facts.timing_valid


def test_nothing_is_written_beside_the_model(tmp_path):
    folder = tmp_path / "models"
    folder.mkdir()
    path = conv_relu(folder)
    ask(path, "cpu")
    assert list(folder.iterdir()) == [path]


def test_a_file_that_is_no_model_is_bad_input(tmp_path):
    path = tmp_path / "notes.onnx"
    path.write_text("this is not a model")
    with pytest.raises(InputError):
        ask(path, "cpu")
