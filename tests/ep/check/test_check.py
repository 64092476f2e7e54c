"""A build for a target ends with the target itself: it opens the artifact, computes, and is compared with the CPU."""

import importlib.util
import platform
import sys

import numpy as np
import pytest
from onnx import helper

import modelwright as mw
from ep.session.nets import conv_between
from modelwright.data import DataSource
from modelwright.stages.check import CHECK, TargetGate
from modelwright.worker import run
from support.models import model, save, scalar, value, weight

needs_simulator = pytest.mark.skipif(
    importlib.util.find_spec("onnxruntime_qnn") is None or (sys.platform, platform.machine()) != ("linux", "x86_64"),
    reason="the QNN simulator exists on x86 Linux",
)
QNN = "qnn-npu"


def vision(folder):
    """Convolutions with the activations of mobile nets, and a Softmax at the end."""
    nodes = [
        helper.make_node("Conv", ["x", "w0"], ["a"], name="stem", pads=[1] * 4),
        helper.make_node("HardSwish", ["a"], ["b"], name="swish"),
        helper.make_node("Conv", ["b", "w1"], ["c"], name="body", pads=[1] * 4),
        helper.make_node("Sigmoid", ["c"], ["d"], name="sigmoid"),
        helper.make_node("Mul", ["c", "d"], ["e"], name="silu"),
        helper.make_node("GlobalAveragePool", ["e"], ["f"], name="pool"),
        helper.make_node("Flatten", ["f"], ["g"], name="flat"),
        helper.make_node("Gemm", ["g", "w2"], ["h"], name="head"),
        helper.make_node("Softmax", ["h"], ["y"], name="softmax"),
    ]
    weights = [weight("w0", 8, 3, 3, 3), weight("w1", 8, 8, 3, 3), weight("w2", 8, 5)]
    return _saved(folder, nodes, weights, [1, 3, 8, 8], [1, 5])


def attention(folder):
    """One head of attention with its normalization and a Gelu."""
    nodes = [
        helper.make_node("MatMul", ["x", "wq"], ["q"], name="q"),
        helper.make_node("MatMul", ["x", "wk"], ["k"], name="k"),
        helper.make_node("Transpose", ["k"], ["kt"], name="kt", perm=[0, 2, 1]),
        helper.make_node("MatMul", ["q", "kt"], ["s"], name="scores"),
        helper.make_node("Mul", ["s", "scale"], ["t"], name="scaled"),
        helper.make_node("Softmax", ["t"], ["p"], name="softmax"),
        helper.make_node("MatMul", ["p", "x"], ["m"], name="mixed"),
        helper.make_node("Add", ["m", "x"], ["r"], name="residual"),
        helper.make_node("LayerNormalization", ["r", "gamma", "beta"], ["n"], name="norm"),
        helper.make_node("Gelu", ["n"], ["y"], name="gelu"),
    ]
    weights = [
        weight("wq", 16, 16),
        weight("wk", 16, 16),
        scalar("scale", 0.05),
        weight("gamma", 16),
        weight("beta", 16),
    ]
    return _saved(folder, nodes, weights, [1, 6, 16], [1, 6, 16])


def _saved(folder, nodes, weights, taken, given):
    rows = np.random.default_rng(0).standard_normal((16, *taken[1:]), dtype=np.float32)
    folder.mkdir(parents=True, exist_ok=True)
    np.savez(folder / "data.npz", x=rows)
    return save(model(nodes, [value("x", shape=taken)], [value("y", shape=given)], weights), folder)


def check(path, target=QNN, **said):
    """The build, and what its target said about it."""
    data = path.parent / "data.npz"
    built = mw.build(path, target, data=str(data) if data.exists() else None, **said)[0]
    return built, built.components[0].check


_MORE = [(attention, word) for word in ("w8a16", "w8a8", "fp16")] + [(vision, "fp16"), (vision, "fp32")]


@needs_simulator
@pytest.mark.parametrize(
    ("net", "precision"),
    [
        (vision, "w8a16"),
        (vision, "w8a8"),
        (attention, "fp32"),
        *(pytest.param(*case, marks=pytest.mark.proof) for case in _MORE),
    ],
)
def test_what_passes_for_the_npu_was_opened_and_computed_there(tmp_path, net, precision):
    built, asked = check(net(tmp_path), precision=precision)
    assert built.passed is True
    assert asked.opened
    assert asked.simulated
    # Few numbers come of them: one sample would not say enough.
    assert asked.samples == 2
    assert asked.on_target > 0
    assert asked.worst_cosine >= asked.bound


@needs_simulator
def test_a_compiled_model_is_asked_too_and_its_binary_is_found(tmp_path):
    built, asked = check(vision(tmp_path), "qnn-npu:soc=sm8650")
    assert [stage.stage for stage in built.components[0].stages][-2:] == ["compile", "check"]
    assert built.components[0].final.files[0].name == "model.onnx"
    assert built.passed is True
    assert asked.chip == "Snapdragon 8 Gen 3"


AS_IT_IS = {"optimize": False, "quantize": False}


@needs_simulator
def test_a_file_that_is_only_compiled_is_compared_where_it_runs_and_not_with_itself(tmp_path):
    built, asked = check(vision(tmp_path), recipe=AS_IT_IS, compile=True)
    gate = built.components[0].validation
    assert (gate.passed, gate.unchanged, gate.samples) == (True, True, 0)
    assert (built.passed, asked.samples > 0) == (True, True)


@needs_simulator
def test_a_file_that_is_only_compiled_and_not_computed_there_is_unknown(tmp_path):
    built, asked = check(vision(tmp_path), recipe=AS_IT_IS | {"check": {"limit_s": 0.0}}, compile=True)
    assert (built.components[0].validation.passed, asked.passed, built.passed) == (True, None, None)


@needs_simulator
def test_a_file_that_is_not_compiled_is_compared_on_the_cpu_too(tmp_path):
    built, _ = check(vision(tmp_path), recipe=AS_IT_IS, compile=False)
    assert built.components[0].validation.samples > 0


@needs_simulator
def test_what_the_npu_cannot_open_has_not_passed_and_is_delivered_with_that_mark(tmp_path):
    path = conv_between(tmp_path, "Gelu", opset=20)
    found = mw.build(path, "qnn-npu:soc=sm8350", precision="fp32", compile=False, output=tmp_path / "out")
    assert found.passed is False
    asked = found[0].components[0].check
    assert "Snapdragon 888 has none" in asked.reason
    # The Convs beside it are taken: only the Gelu fails alone.
    assert asked.part.operators == ("Gelu gelu_b",)
    assert (asked.part.of, asked.part.minimal) == (3, True)
    assert "Snapdragon 888 has none" in asked.part.reason
    assert (tmp_path / "out/model.onnx").exists()
    assert '"passed": false' in (tmp_path / "out/wright.json").read_text()


@needs_simulator
def test_numbers_that_only_the_cpu_can_hold_fail_on_the_npu(tmp_path):
    """fp16 ends at 65,504: the gate on the CPU sees nothing wrong."""
    nodes = [
        helper.make_node("Mul", ["x", "large"], ["a"], name="up"),
        helper.make_node("Mul", ["a", "small"], ["y"], name="down"),
    ]
    path = _saved(tmp_path, nodes, [scalar("large", 1e6), scalar("small", 1e-6)], [1, 64], [1, 64])
    built, asked = check(path, precision="fp32", passes=())
    assert built.components[0].validation.passed is True
    assert asked.opened
    assert built.passed is False
    assert "the CPU" in asked.reason or "no numbers" in asked.reason
    assert asked.part is None or set(asked.part.operators) <= {"Mul up", "Mul down"}


@needs_simulator
def test_a_simulator_that_would_take_too_long_only_opens_it_and_says_so(tmp_path):
    built, asked = check(vision(tmp_path), precision="fp32", recipe={"check": {"limit_s": 0.0}})
    assert asked.opened
    assert asked.samples == 0
    assert built.passed is None
    assert "not computed" in asked.reason


def beside(folder, rows, width, *wrong, samples=2, precision="fp32"):
    """What the check says where the artifact is a product of `width` numbers, and `wrong` operators after it."""
    matrix = weight("w", 64, width)
    made = {}
    for name, more in (("plain", ()), ("artifact", wrong)):
        ends = ["y" if not more else "m", *(["y"] if more else [])]
        nodes = [helper.make_node("MatMul", ["x", "w"], [ends[0]], name="product")]
        nodes += [helper.make_node(op, [ends[0]], [ends[1]], name=op) for op in more]
        proto = model(nodes, [value("x", shape=[1, 64])], [value("y", shape=[1, width])], [matrix])
        made[name] = str(save(proto, folder, f"{name}.onnx"))
    np.savez(folder / "rows.npz", x=np.asarray(rows, np.float32))
    data = DataSource(mw.Data(str(folder / "rows.npz")))
    gate = TargetGate(QNN, samples=samples, precision=precision, look=False)
    return run(CHECK.task.call(**made, workdir=str(folder), params=gate, data=data), timeout=600).unwrap()


ROWS = np.random.default_rng(0).standard_normal((2, 64))


@needs_simulator
@pytest.mark.parametrize(
    ("rows", "width", "wrong", "samples", "passed"),
    [
        pytest.param(ROWS, 512, (), 1, True, id="many numbers, all right: one run is enough"),
        pytest.param(ROWS, 512, ("Relu",), 2, False, id="many numbers, wrong: the others are computed too"),
        pytest.param(ROWS, 4, (), 2, True, id="few numbers"),
        pytest.param([ROWS[0] * 0, ROWS[1]], 512, ("Relu",), 2, False, id="a blank first: only the second shows it"),
    ],
)
def test_a_simulator_computes_one_sample_where_that_says_enough(tmp_path, rows, width, wrong, samples, passed):
    asked = beside(tmp_path, rows, width, *wrong)
    assert (asked.samples, asked.passed) == (samples, passed)


@needs_simulator
@pytest.mark.parametrize("order", [1, -1])
def test_the_sample_that_reaches_farthest_is_not_spared(tmp_path, order):
    """Half floats end at 65,504: the square of the larger sample lies beyond, that of the smaller one does not."""
    nodes = [
        helper.make_node("Mul", ["x", "x"], ["s"], name="square"),
        helper.make_node("Sqrt", ["s"], ["y"], name="root"),
    ]
    proto = model(nodes, [value("x", shape=[1, 512])], [value("y", shape=[1, 512])])
    path = str(save(proto, tmp_path, "model.onnx"))
    numbers = 1 + np.random.default_rng(0).random((2, 512))
    np.savez(tmp_path / "rows.npz", x=(numbers * [[1], [500]])[::order].astype(np.float32))
    gate = TargetGate(QNN, precision="fp32", look=False)
    call = CHECK.task.call(
        artifact=path,
        plain=path,
        workdir=str(tmp_path),
        params=gate,
        data=DataSource(mw.Data(str(tmp_path / "rows.npz"))),
    )
    assert run(call, timeout=600).unwrap().passed is False


@needs_simulator
def test_of_a_quantized_model_every_sample_is_computed_because_what_rounding_costs_depends_on_it(tmp_path):
    assert beside(tmp_path, ROWS, 512, precision="w8a16").samples == 2


@needs_simulator
def test_an_error_that_the_first_sample_does_not_show_in_few_numbers_is_found(tmp_path):
    """Relu changes nothing about the numbers of the sample for which they are positive."""
    signs = np.sign(np.random.default_rng([0, *b"w"]).standard_normal((64, 1)))[:, 0]
    asked = beside(tmp_path, [signs, -signs], 1, "Relu")
    assert (asked.samples, asked.passed) == (2, False)


@needs_simulator
def test_more_samples_than_usual_are_all_computed(tmp_path):
    asked = beside(tmp_path, [*ROWS, *ROWS], 512, samples=3)
    assert (asked.samples, asked.passed) == (3, True)


@pytest.mark.skipif(sys.platform == "win32", reason="DirectML exists there")
def test_a_target_that_nobody_here_has_is_unknown_and_not_asked_again(tmp_path):
    built, asked = check(vision(tmp_path), "dml-gpu")
    assert built.passed is None
    assert "could not be asked" in asked.reason
    again, _ = check(vision(tmp_path), "dml-gpu")
    assert not any(stage.produced for stage in again.components[0].stages)


def test_the_cpu_was_asked_by_the_gate_already(tmp_path):
    built, asked = check(vision(tmp_path), "cpu")
    assert asked is None
    assert built.passed is True
