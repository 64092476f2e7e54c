"""Which operators of a quantized arm are slower: claimed only where traces show it."""

from dataclasses import replace

import numpy as np
import pytest
from onnx import helper

from modelwright.graph import load
from modelwright.measure._operators import median_interval, operator_changes
from modelwright.measure.traces._types import Operator, Spread, TraceRequested, empty_trace
from support import models

RUNS = 20


def operator(node, op_type, times, onnx_nodes=None, fed="float32[4]"):
    spread = Spread(0, float(np.median(times)), 0, 0, 0)
    nodes = (node,) if onnx_nodes is None else onnx_nodes
    return Operator(
        node, node, nodes, "model", op_type, "onnx", "kernel", "cpu", None, None, 1.0, spread, None, None, None,
        (fed,), None, None, tuple(times),
    )  # fmt: skip


def trace(*operators):
    asked = TraceRequested("cpu", "CPUExecutionProvider", "cpu", "basic")
    return replace(empty_trace("m", asked, RUNS, 0), operators=operators)


def pair(folder):
    """y = Sigmoid(Conv-like Neg(x)) in float, and with Q/DQ pairs around the Sigmoid."""
    value = [models.value("x", shape=[4])], [models.value("y", shape=[4])]
    floats = [helper.make_node("Neg", ["x"], ["n"], name="neg"), helper.make_node("Sigmoid", ["n"], ["y"], name="sig")]
    grid = models.scalar("s", 0.1), models.scalar("z", 0, "uint8")
    quant = [
        helper.make_node("Neg", ["x"], ["n"], name="neg"),
        helper.make_node("QuantizeLinear", ["n", "s", "z"], ["n_q"], name="n_Q"),
        helper.make_node("DequantizeLinear", ["n_q", "s", "z"], ["n_d"], name="n_DQ"),
        helper.make_node("Sigmoid", ["n_d"], ["y"], name="sig"),
    ]
    first = models.save(models.model(floats, *value, []), folder, "float.onnx")
    second = models.save(models.model(quant, *value, list(grid)), folder, "quant.onnx")
    return load(first), load(second)


def times(rng, middle):
    return rng.normal(middle, 2.0, RUNS).tolist()


def test_a_sigmoid_between_conversions_is_told_with_what_they_cost(tmp_path):
    rng = np.random.default_rng(0)
    floats, quant = pair(tmp_path)
    base = [trace(operator("neg", "Neg", times(rng, 50)), operator("sig", "Sigmoid", times(rng, 100))) for _ in "ab"]
    arm = [
        trace(
            operator("neg", "Neg", times(rng, 50)),
            operator("n_Q", "QuantizeLinear", times(rng, 20)),
            operator("n_DQ/duplicated", "DequantizeLinear", times(rng, 30), ()),
            operator("sig", "Sigmoid", times(rng, 100)),
        )
        for _ in "ab"
    ]
    rows = {row.op_type: row for row in operator_changes(floats, base, quant, arm)}
    # The QuantizeLinear reads what Neg makes, the DequantizeLinear serves the Sigmoid.
    assert rows["Neg"].slower
    assert rows["Neg"].difference_ms == pytest.approx(0.020, abs=0.004)
    sigmoid = rows["Sigmoid"]
    assert sigmoid.slower
    assert sigmoid.low_ms < sigmoid.difference_ms < sigmoid.high_ms
    assert (sigmoid.conversions, sigmoid.kernels) == (1, ("Sigmoid",))
    assert sigmoid.conversion_ms == pytest.approx(0.030, abs=0.004)
    assert sigmoid.why == "run in float with 1 conversion around them (0.03 ms)"


def test_what_is_fed_integers_is_not_said_to_run_in_float(tmp_path):
    floats, quant = pair(tmp_path)
    base = [trace(operator("sig", "Sigmoid", [100.0] * RUNS))]
    arm = [trace(operator("sig", "Sigmoid", [90.0] * RUNS, fed="uint8[4]"))]
    (row,) = operator_changes(floats, base, quant, arm)
    assert row.faster
    assert row.why == "run on integers as they are"


def test_the_same_times_prove_nothing_and_neither_does_one_slow_session(tmp_path):
    floats, quant = pair(tmp_path)
    claims = 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        sides = [[trace(operator("sig", "Sigmoid", times(rng, 100))) for _ in "ab"] for _ in "xy"]
        claims += any(row.slower or row.faster for row in operator_changes(floats, sides[0], quant, sides[1]))
    assert claims <= 5
    rng = np.random.default_rng(1)
    base = [trace(operator("sig", "Sigmoid", times(rng, 100))) for _ in "ab"]
    odd = [trace(operator("sig", "Sigmoid", times(rng, middle))) for middle in (100, 150)]
    (row,) = operator_changes(floats, base, quant, odd)
    assert not row.slower


def test_the_interval_of_a_median_holds_it_as_often_as_it_says():
    rng = np.random.default_rng(0)
    held = 0
    for _ in range(2000):
        low, high = median_interval(rng.exponential(1.0, RUNS).tolist())
        held += low <= np.log(2) <= high
    assert held / 2000 > 0.945
