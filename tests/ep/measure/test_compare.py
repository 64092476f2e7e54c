"""compare on real sessions: decided, duplicate, broken, crashed and refused."""

import contextlib
import importlib.util
import platform
import signal
import sys

import numpy as np
import psutil
import pytest
from onnx import helper, numpy_helper

from modelwright._json import dumps
from modelwright.errors import InputError, UsageError
from modelwright.judge import Judge
from modelwright.measure import CompareOptions, ComparisonFailed, ComparisonInterrupted, InputChoice, UnitPlan, compare
from support import models

QUICK = UnitPlan(burst_s=0.01, burst_runs=3, guard_s=0.002, warmup_cap_s=0.02)
needs_simulator = pytest.mark.skipif(
    importlib.util.find_spec("onnxruntime_qnn") is None or (sys.platform, platform.machine()) != ("linux", "x86_64"),
    reason="the QNN simulator exists on x86 Linux",
)


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("MODELWRIGHT_HOME", str(tmp_path / "home"))


def options(**changes):
    return CompareOptions(threads=1, budget_s=20, unit=QUICK, inputs=InputChoice(batch=64), **changes)


def stack(folder, depth, name):
    """`depth` square layers: twice the depth is twice the work."""
    nodes, weights = [], []
    for layer in range(depth):
        weights.append(models.weight(f"w{layer}", 96, 96))
        nodes.append(helper.make_node("MatMul", [f"h{layer}" if layer else "x", f"w{layer}"], [f"m{layer}"]))
        nodes.append(helper.make_node("Tanh", [f"m{layer}"], [f"h{layer + 1}" if layer + 1 < depth else "y"]))
    shape = ["batch", 96]
    proto = models.model(nodes, [models.value("x", shape=shape)], [models.value("y", shape=shape)], weights)
    return models.save(proto, folder, name)


@pytest.fixture
def slow(tmp_path):
    return stack(tmp_path, 8, "slow.onnx")


@pytest.fixture
def fast(tmp_path):
    return stack(tmp_path, 4, "fast.onnx")


def test_half_the_work_is_faster_and_the_samples_prove_it(slow, fast):
    result = compare([str(slow), str(fast)], options())
    arm = result.arms[1]
    assert arm.verdict.kind == "improved"
    assert arm.verdict.low > 0.3
    assert arm.sentence.startswith("fast is ")
    judge = Judge(result.min_effect, result.alpha)
    for unit in result.units:
        if unit.arm is None:
            judge.add_sentinel(unit.base_ms, unit.arm_ms)
        else:
            judge.add(unit.base_ms, unit.arm_ms)
    assert judge.verdict() == arm.verdict
    assert dumps(result)


def test_twice_the_work_regresses_and_the_base_is_the_first_arm(slow, fast):
    result = compare([f"base={fast}", f"other={slow}"], options())
    assert result.base == "base"
    assert result.regressed
    assert "slower than base" in result.arms[1].sentence


def test_the_coin_puts_the_base_into_both_slots(slow, fast):
    units = compare([str(slow), str(fast)], options()).units
    assert {unit.base_first for unit in units} == {True, False}
    assert any(unit.arm is None for unit in units)


def test_the_same_graph_with_the_same_options_is_a_duplicate_without_timing(slow, tmp_path):
    copy = tmp_path / "copy.onnx"
    copy.write_bytes(slow.read_bytes())
    result = compare([str(slow), str(copy)], options())
    assert result.arms[1].verdict.kind == "duplicate"
    assert result.units == ()
    assert "nothing was measured" in result.arms[1].sentence


def test_the_same_graph_with_other_options_is_measured(slow):
    result = compare([f"a={slow}", f"b={slow}@level=basic"], options(min_effect=0.3))
    assert result.units
    assert result.arms[1].facts.graph_optimization == "basic"


def test_arms_with_another_interface_are_refused(slow, tmp_path):
    with pytest.raises(InputError):
        compare([str(slow), str(models.save(models.mlp(), tmp_path))], options())


def test_an_arm_that_answers_nonsense_is_not_faster(slow, fast):
    proto = models.onnx.load(str(fast))
    broken = np.full((96, 96), np.nan, np.float32)
    proto.graph.initializer[0].CopyFrom(numpy_helper.from_array(broken, "w0"))
    path = models.save(proto, fast.parent, "broken.onnx")
    result = compare([str(slow), str(path)], options())
    assert result.arms[1].verdict.kind == "invalid"
    assert "not finite" in result.broken[0].failure


def test_an_arm_that_breaks_on_the_way_is_out_and_the_others_go_on(slow, fast, tmp_path):
    third = stack(tmp_path, 2, "third.onnx")

    def remove(text):
        if text.startswith("unit 3,"):
            fast.unlink(missing_ok=True)

    result = compare([str(slow), str(fast), str(third)], options(), note=remove)
    assert [arm.name for arm in result.broken] == ["fast"]
    assert [arm.verdict.kind for arm in result.arms[1:]] == ["invalid", "improved"]


def test_a_base_that_breaks_ends_the_comparison_with_what_was_measured(slow, fast):
    def remove(text):
        if text.startswith("unit 2,"):
            slow.unlink(missing_ok=True)

    with pytest.raises(ComparisonFailed, match="base slow failed") as caught:
        compare([str(slow), str(fast)], options(), note=remove)
    assert len(caught.value.partial.units) == 2


def test_a_killed_child_is_told_from_an_answer(slow, fast):
    def kill(text):
        if text.startswith("unit 2,"):
            for child in psutil.Process().children(recursive=True):
                with contextlib.suppress(psutil.NoSuchProcess):
                    child.send_signal(signal.SIGSEGV)

    # Whichever child is asked first is blamed; base or arm, nobody is called faster.
    try:
        result = compare([str(slow), str(fast)], options(), note=kill)
    except ComparisonFailed as error:
        result = error.partial
    else:
        assert [arm.verdict.kind for arm in result.broken] == ["invalid"]
    assert len(result.units) == 2


def test_ctrl_c_keeps_the_units(slow, fast):
    def interrupt(text):
        if text.startswith("unit 2,"):
            raise KeyboardInterrupt

    with pytest.raises(ComparisonInterrupted) as caught:
        compare([str(slow), str(fast)], options(), note=interrupt)
    partial = caught.value.partial
    assert partial.status == "interrupted"
    assert len(partial.units) == 2
    assert partial.arms[1].verdict.kind == "invalid"


@needs_simulator
def test_a_simulated_arm_is_refused(tmp_path):
    model = models.save(models.conv_net(), tmp_path)
    with pytest.raises(UsageError, match="speed"):
        compare([f"cpu={model}", f"npu={model}@target=qnn-npu"], CompareOptions(budget_s=20, unit=QUICK))
