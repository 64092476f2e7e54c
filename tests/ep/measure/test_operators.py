"""compare tells where a quantized arm loses time, from traces of real sessions."""

import numpy as np
import pytest
from onnx import helper, numpy_helper

from modelwright.data import DataSource
from modelwright.measure import CompareOptions, UnitPlan, compare, explained
from modelwright.stages.quantize import QuantizeParams, run_quantize
from support import models

QUICK = UnitPlan(burst_s=0.01, burst_runs=3, guard_s=0.002, bursts_s=0.0, warmup_cap_s=0.02)


@pytest.fixture
def pair(tmp_path, monkeypatch):
    monkeypatch.setenv("MODELWRIGHT_HOME", str(tmp_path / "home"))
    rng = np.random.default_rng(0)
    nodes, weights, x = [], [], "x"
    for index in range(2):
        shape = (8, 8 if index else 3, 3, 3)
        weights.append(numpy_helper.from_array((rng.standard_normal(shape) / 5).astype(np.float32), f"w{index}"))
        nodes += [
            helper.make_node("Conv", [x, f"w{index}"], [f"c{index}"], name=f"b{index}/conv", pads=[1, 1, 1, 1]),
            helper.make_node("Softplus", [f"c{index}"], [f"s{index}"], name=f"b{index}/softplus"),
        ]
        x = f"s{index}"
        if index == 0:
            pool = helper.make_node("MaxPool", [x], ["p"], name="pool", kernel_shape=[3, 3], pads=[1, 1, 1, 1])
            nodes.append(pool)
            x = "p"
    given, made = models.value("x", shape=[1, 3, 32, 32]), models.value(x, shape=[1, 8, 32, 32])
    path = models.save(models.model(nodes, [given], [made], weights), tmp_path, "float.onnx")
    (tmp_path / "int8").mkdir()
    run_quantize(str(path), str(tmp_path / "int8"), QuantizeParams("w8a8"), DataSource())
    return path, tmp_path / "int8"


def test_the_operators_of_a_quantized_arm_are_told_with_what_converts_for_them(pair):
    options = CompareOptions(threads=1, budget_s=0.1, unit=QUICK, by=(0.5,), allow_different=True)
    result = compare([str(pair[0]), str(pair[1])], options, explain=explained)
    base, arm = result.arms
    assert base.operators is None
    rows = {row.op_type: row for row in arm.operators.changes}
    assert rows["Conv"].kernels == ("QLinearConv",)
    assert rows["Softplus"].kernels == ("Softplus",)
    assert rows["Softplus"].conversions >= 2
    assert "run in float with" in rows["Softplus"].why
    assert rows["MaxPool"].why.startswith(
        "run in float" if rows["MaxPool"].conversions else "run on integers as they are"
    )
    assert all(row.low_ms <= row.difference_ms <= row.high_ms for row in rows.values())
