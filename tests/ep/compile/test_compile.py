"""Compiling for a chip this machine does not have; what does not load does not count."""

import hashlib
import importlib.util
import platform
import sys

import numpy as np
import onnx
import pytest

from ep.compile import tasks
from ep.compile.nets import SHAPE, resnet18, w8a16
from ep.session.nets import conv_between, conv_relu
from modelwright.data import DataSource
from modelwright.errors import ExecutionError, InputError
from modelwright.graph import load, summary
from modelwright.stages.compile import CompileParams, run_compile
from modelwright.stages.validate import Gate, run_validate
from modelwright.worker import Worker, run
from support.models import model, save, save_external, value

ELITE = "qnn-npu:soc=x-elite"
needs_simulator = pytest.mark.skipif(
    importlib.util.find_spec("onnxruntime_qnn") is None or (sys.platform, platform.machine()) != ("linux", "x86_64"),
    reason="the QNN simulator exists on x86 Linux",
)


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("MODELWRIGHT_HOME", str(tmp_path / "home"))


@pytest.fixture
def compiled(tmp_path):
    """Compiles in a child; gives the outcome and the folder."""
    count = iter(range(100))

    def call(model, target=ELITE, **params):
        folder = tmp_path / f"out{next(count)}"
        folder.mkdir()
        task = run_compile.call(str(model), str(folder), CompileParams(target, **params))
        return run(task, timeout=300).unwrap(), folder

    return call


def digests(folder):
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.iterdir())}


@needs_simulator
def test_a_model_compiles_for_x_elite_and_loads_back(compiled, tmp_path):
    outcome, folder = compiled(conv_relu(tmp_path))
    assert outcome.files == ("model.onnx", "model_qnn.bin")
    assert outcome.simulated
    assert (outcome.nodes, outcome.partitions, outcome.outside_count) == (4, 1, 0)
    assert dict(outcome.options)["soc_model"] == "60"
    context = summary(load(folder / "model.onnx")).ep_context[0]
    assert context.cache_file == "model_qnn.bin"
    assert context.source == "QNNExecutionProvider"


@needs_simulator
def test_the_same_model_gives_the_same_bytes_wherever_it_lies(compiled, tmp_path):
    here = conv_relu(tmp_path)
    (tmp_path / "elsewhere").mkdir()
    there = save_external(onnx.load(here), tmp_path / "elsewhere", "other.onnx")
    first, second, third = (compiled(model)[1] for model in (here, here, there))
    assert digests(first) == digests(second) == digests(third)
    assert str(tmp_path).encode() not in (first / "model_qnn.bin").read_bytes()


@needs_simulator
def test_a_process_that_computed_on_the_cpu_before_gives_the_same_bytes(compiled, tmp_path):
    here, folder = str(conv_relu(tmp_path)), tmp_path / "after"
    folder.mkdir()
    with Worker() as worker:
        gate = run_validate.call(here, here, str(tmp_path), Gate(precision="fp32"), DataSource())
        assert worker.run(gate, timeout=300).unwrap().passed
        worker.run(run_compile.call(here, str(folder), CompileParams(ELITE)), timeout=300).unwrap()
    assert digests(folder) == digests(compiled(here)[1])


@needs_simulator
def test_every_architecture_gets_a_binary_of_its_own(compiled, tmp_path):
    model = conv_relu(tmp_path)
    found = set()
    for arch in ("68", "73", "75", "79", "81"):
        _, folder = compiled(model, f"qnn-npu:htp_arch={arch}")
        found.add(digests(folder)["model_qnn.bin"])
    assert len(found) == 5


@needs_simulator
def test_nodes_that_stayed_outside_are_named(compiled, tmp_path):
    outcome, _ = compiled(conv_between(tmp_path, "Shrink"))
    assert outcome.partitions == 2
    assert [(op.op_type, op.nodes) for op in outcome.outside] == [("Shrink", ("shrink_b",))]


@needs_simulator
def test_an_embedded_context_is_one_file(compiled, tmp_path):
    outcome, folder = compiled(conv_relu(tmp_path), embed=True)
    assert outcome.files == ("model.onnx",)
    assert summary(load(folder / "model.onnx")).ep_context[0].embedded


@needs_simulator
def test_a_model_the_ep_takes_nothing_of_fails_and_leaves_no_file(tmp_path):
    folder = tmp_path / "out"
    folder.mkdir()
    model = conv_relu(tmp_path, batch="n")
    with pytest.raises(ExecutionError, match="could not compile"):
        run(run_compile.call(str(model), str(folder), CompileParams(ELITE)), timeout=120).unwrap()
    assert list(folder.iterdir()) == []


@needs_simulator
def test_a_late_expanded_function_is_named_in_the_fix(compiled, tmp_path):
    with pytest.raises(ExecutionError) as caught:
        compiled(conv_between(tmp_path, "Mish", opset=18))
    assert "Mish" in caught.value.fix


@needs_simulator
def test_a_compiled_model_is_refused(compiled, tmp_path):
    _, folder = compiled(conv_relu(tmp_path))
    with pytest.raises(InputError, match="compiled already"):
        compiled(folder / "model.onnx")


@needs_simulator
def test_a_used_process_is_refused_because_its_bytes_would_differ(tmp_path):
    model = str(conv_relu(tmp_path))
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    with Worker() as worker:
        first = run_compile.call(model, str(tmp_path / "one"), CompileParams(ELITE))
        assert worker.run(first, timeout=120).ok
        second = run_compile.call(model, str(tmp_path / "two"), CompileParams(ELITE))
        with pytest.raises(ExecutionError, match="process of its own"):
            worker.run(second, timeout=120).unwrap()


@pytest.mark.parametrize(
    ("target", "words"),
    [("cpu", "no compiler"), ("dml-gpu", "no compiler"), ("trtrtx-gpu", "cannot run here")],
)
def test_a_target_that_cannot_compile_here_says_so(compiled, tmp_path, target, words):
    with pytest.raises(ExecutionError, match=words):
        compiled(conv_relu(tmp_path), target)


def test_openvino_compiles_for_an_intel_cpu_and_gives_the_same_bytes_twice(compiled, tmp_path):
    model = conv_relu(tmp_path)
    try:
        (outcome, first), (_, second) = compiled(model, "openvino-cpu"), compiled(model, "openvino-cpu")
    except ExecutionError as error:
        pytest.skip(error.cause)
    assert not outcome.simulated
    assert digests(first) == digests(second)


@needs_simulator
@pytest.mark.proof
def test_a_resnet18_size_w8a16_model_for_x_elite_stays_close_to_fp32(compiled, tmp_path):
    fp32 = resnet18(tmp_path / "fp32.onnx")
    quantized = w8a16(fp32, tmp_path / "w8a16.onnx")
    assert summary(load(quantized)).precision.label == "w8a16"
    outcome, folder = compiled(quantized)
    assert {op.op_type for op in outcome.outside} <= {"QuantizeLinear", "DequantizeLinear"}
    feeds = {"x": np.random.default_rng(9).standard_normal(SHAPE, dtype=np.float32)}
    call = tasks.outputs_of.call(str(folder / "model.onnx"), ELITE, feeds)
    valid, found = run(call, timeout=300).unwrap()
    assert not valid
    _, expected = run(tasks.outputs_of.call(str(fp32), "cpu", feeds), timeout=120).unwrap()
    a, b = found["y"].ravel().astype("float64"), expected["y"].ravel().astype("float64")
    assert a @ b / np.linalg.norm(a) / np.linalg.norm(b) >= 0.95
    assert a.argmax() == b.argmax()


@needs_simulator
def test_doubles_that_the_compiler_does_not_take_are_named_in_the_fix(compiled, tmp_path):
    nodes = [
        onnx.helper.make_node("Relu", ["x"], ["r"]),
        onnx.helper.make_node("Cast", ["r"], ["d"], to=onnx.TensorProto.DOUBLE),
        onnx.helper.make_node("Softmax", ["d"], ["y"]),
    ]
    sides = [value("x", shape=[1, 8])], [value("y", onnx.TensorProto.DOUBLE, [1, 8])]
    save(model(nodes, *sides, opsets={"": 17}), tmp_path)
    with pytest.raises(ExecutionError) as caught:
        compiled(tmp_path / "model.onnx")
    assert "narrow_doubles" in caught.value.fix
