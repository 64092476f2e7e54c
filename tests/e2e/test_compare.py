"""`wright compare` as a user types it."""

import importlib.util
import json
import platform
import sys

import numpy as np
import pytest
from onnx import helper, numpy_helper

from support import models

needs_simulator = pytest.mark.skipif(
    importlib.util.find_spec("onnxruntime_qnn") is None or (sys.platform, platform.machine()) != ("linux", "x86_64"),
    reason="the QNN simulator exists on x86 Linux",
)


QUICK = ("--threads", 1, "--by", "p10", "--alpha", 0.2)


def _stack(folder, depth, name, last="Identity"):
    """Layers that change nearly nothing: more of them take longer and answer the same."""
    nodes, weights = [], []
    for layer in range(depth):
        matrix = 1e-6 * np.random.default_rng(layer).standard_normal((96, 96)).astype(np.float32)
        weights.append(numpy_helper.from_array(matrix, f"w{layer}"))
        nodes.append(helper.make_node("MatMul", [f"h{layer}" if layer else "x", f"w{layer}"], [f"m{layer}"]))
        nodes.append(helper.make_node("Add", [f"h{layer}" if layer else "x", f"m{layer}"], [f"h{layer + 1}"]))
    nodes.append(helper.make_node(last, [f"h{depth}"], ["y"]))
    shape = [64, 96]
    proto = models.model(nodes, [models.value("x", shape=shape)], [models.value("y", shape=shape)], weights)
    return models.save(proto, folder, name)


@pytest.fixture(autouse=True)
def arms(tmp_path):
    _stack(tmp_path, 8, "slow.onnx")
    _stack(tmp_path, 3, "fast.onnx")


def test_one_true_sentence_and_every_sample(wright, tmp_path):
    answer = wright("compare", "slow.onnx", "fast.onnx", "--threads", 1, "--save", "result.json")
    assert answer.code == 0, answer.err
    assert "fast is faster than slow: its work is about" in answer.out
    assert "% faster (p10, 97.5 % interval" in answer.out
    assert "its typical run" in answer.out
    assert "which resolve" in answer.err
    kept = json.loads((tmp_path / "result.json").read_text())
    assert kept["arms"][1]["verdict"]["kind"] == "improved"
    assert kept["inputs"] == [{"name": "x", "dtype": "float32", "shape": [64, 96]}]
    assert kept["arms_as_written"] == ["slow.onnx", "fast.onnx"]
    assert all(unit["base_ns"] and unit["arm_ns"] for unit in kept["units"])


def test_a_slowdown_beyond_the_margin_is_exit_1_only_where_asked(wright):
    words = ("compare", "base=fast.onnx", "new=slow.onnx", *QUICK, "--json")
    assert wright(*words).code == 0
    gated = wright(*words, "--max-slowdown", "3%")
    assert gated.code == 1
    assert gated.json["arms"][1]["within"] is False


def test_a_gate_that_nothing_decides_is_exit_6_and_a_retry_decides_it(wright):
    words = ("compare", "base=slow.onnx", "new=fast.onnx", *QUICK, "--max-slowdown", "3%", "--save", "r.json")
    first = wright(*words, "--budget", 0.1)
    assert first.code == 6
    assert "gate: cannot tell whether new is more than 3 % slower" in first.out
    again = wright(*words, "--retry", "r.json")
    assert again.code == 0, again.err
    assert "gate: new is proven not to be more than 3 % slower" in again.out


def test_arms_that_both_see_nothing_are_not_called_different(wright, tmp_path):
    """A detector's chances where nothing is: 3e-8 and 4e-8."""
    for name, shift in (("one.onnx", -17.3), ("two.onnx", -17.0)):
        nodes = [helper.make_node("Add", ["x", "b"], ["h"]), helper.make_node("Sigmoid", ["h"], ["y"])]
        ends = [models.value("x", shape=[1, 64])], [models.value("y", shape=[1, 64])]
        models.save(models.model(nodes, *ends, [numpy_helper.from_array(np.float32([shift]), "b")]), tmp_path, name)
    answer = wright("compare", "one.onnx", "two.onnx", *QUICK, "--html", "page.html")
    assert answer.code == 6
    assert "wright compare one.onnx two.onnx --data DATA" in (tmp_path / "page.html").read_text()
    assert "error: cannot tell whether two answers what one answers" in answer.err
    assert "give real samples" in answer.err
    assert "next to nothing" in answer.out


def test_an_arm_that_answers_something_else_is_exit_1_unless_allowed(wright, tmp_path):
    _stack(tmp_path, 3, "other.onnx", last="Neg")
    refused = wright("compare", "slow.onnx", "other.onnx", *QUICK)
    assert refused.code == 1
    assert "error: other does not answer what slow answers" in refused.err
    assert "faster" not in refused.out
    allowed = wright("compare", "slow.onnx", "other.onnx", *QUICK, "--allow-different")
    assert allowed.code == 0
    assert "other is faster than slow, but its answers differ (cosine -1.00000 of y, fp32 needs 0.9999)" in allowed.out


def test_duplicates_are_not_measured_and_pass_the_gate(wright):
    answer = wright("compare", "a=slow.onnx", "b=slow.onnx", "--max-slowdown", "1%", "--json")
    assert answer.code == 0
    assert answer.json["arms"][1]["verdict"]["kind"] == "duplicate"
    assert answer.json["units"] == []


def test_a_budget_too_small_decides_nothing_and_says_how_much_would(wright):
    answer = wright("compare", "slow.onnx", "fast.onnx", "--threads", 1, "--budget", 0.1)
    assert answer.code == 0
    assert "no verdict on fast against slow: too few units" in answer.out
    assert "raise --budget" in answer.err


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["slow.onnx"], 2),
        (["slow.onnx", "fast.onnx@thread=1"], 2),
        (["slow.onnx", "fast.onnx@runtime=none"], 2),
        (["slow.onnx", "fast.onnx", "--budget", "nan"], 2),
        (["slow.onnx", "fast.onnx", "--alpha", "2"], 2),
        (["slow.onnx", "fast.onnx", "--max-slowdown", "0%"], 2),
        (["slow.onnx", "fast.onnx", "--by", "p10", "--by", "p10"], 2),
        (["slow.onnx", "fast.onnx", "--retry", "slow.onnx"], 3),
        (["slow.onnx", "absent.onnx"], 3),
    ],
    ids=str,
)
def test_bad_requests_have_their_exit_code_and_a_next_step(wright, words, code):
    answer = wright("compare", *words)
    assert answer.code == code
    assert "next: " in answer.err


def test_an_arm_that_cannot_be_opened_is_exit_4_and_no_winner(wright):
    answer = wright("compare", "slow.onnx", "npu=slow.onnx@target=vitisai-npu", "--budget", 5, "--json")
    assert answer.code == 4
    assert answer.json["arms"][1]["verdict"]["kind"] == "invalid"
    assert "cannot run here" in answer.json["arms"][1]["failure"]


@needs_simulator
def test_a_simulated_arm_is_refused(wright, tmp_path):
    models.save(models.conv_net(), tmp_path, "conv.onnx")
    answer = wright("compare", "cpu=conv.onnx", "npu=conv.onnx@target=qnn-npu")
    assert answer.code == 2
    assert "simulated" in answer.err
