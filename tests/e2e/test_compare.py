"""`wright compare` as a user types it."""

import importlib.util
import json
import platform
import sys

import pytest
from onnx import helper

from support import models

needs_simulator = pytest.mark.skipif(
    importlib.util.find_spec("onnxruntime_qnn") is None or (sys.platform, platform.machine()) != ("linux", "x86_64"),
    reason="the QNN simulator exists on x86 Linux",
)


def _stack(folder, depth, name):
    nodes, weights = [], []
    for layer in range(depth):
        weights.append(models.weight(f"w{layer}", 96, 96))
        nodes.append(helper.make_node("MatMul", [f"h{layer}" if layer else "x", f"w{layer}"], [f"m{layer}"]))
        nodes.append(helper.make_node("Tanh", [f"m{layer}"], [f"h{layer + 1}" if layer + 1 < depth else "y"]))
    shape = [64, 96]
    proto = models.model(nodes, [models.value("x", shape=shape)], [models.value("y", shape=shape)], weights)
    return models.save(proto, folder, name)


@pytest.fixture(autouse=True)
def arms(tmp_path):
    _stack(tmp_path, 8, "slow.onnx")
    _stack(tmp_path, 3, "fast.onnx")


def test_one_true_sentence_and_every_sample(wright, tmp_path):
    answer = wright("compare", "slow.onnx", "fast.onnx", "--threads", 1, "--output", "result.json")
    assert answer.code == 0, answer.err
    assert "fast is" in answer.out
    assert "% faster than slow (95 % interval" in answer.out
    assert "which resolve" in answer.err
    kept = json.loads((tmp_path / "result.json").read_text())
    assert kept["arms"][1]["verdict"]["kind"] == "improved"
    assert all(unit["base_ns"] and unit["arm_ns"] for unit in kept["units"])


def test_a_proven_regression_is_exit_1_only_where_asked(wright):
    words = ("compare", "base=fast.onnx", "new=slow.onnx", "--threads", 1, "--json")
    assert wright(*words).code == 0
    gated = wright(*words, "--fail-if-slower")
    assert gated.code == 1
    assert gated.json["arms"][1]["verdict"]["kind"] == "regressed"


def test_duplicates_are_not_measured(wright):
    answer = wright("compare", "a=slow.onnx", "b=slow.onnx", "--json")
    assert answer.code == 0
    assert answer.json["arms"][1]["verdict"]["kind"] == "duplicate"
    assert answer.json["units"] == []


def test_a_budget_too_small_decides_nothing_and_says_how_much_would(wright):
    answer = wright("compare", "slow.onnx", "fast.onnx", "--threads", 1, "--budget", 1)
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
