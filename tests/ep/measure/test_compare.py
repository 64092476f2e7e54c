"""compare on real sessions: decided, duplicate, broken, crashed and refused."""

import contextlib
import importlib.util
import platform
import signal
import sys
from dataclasses import replace

import numpy as np
import onnx
import psutil
import pytest
from onnx import helper, numpy_helper

from modelwright._json import dumps
from modelwright.errors import InputError, UsageError
from modelwright.judge import Race
from modelwright.measure import (
    CompareOptions,
    ComparisonFailed,
    ComparisonInterrupted,
    InputChoice,
    UnitPlan,
    compare,
)
from modelwright.measure.races._arm import make_arms
from modelwright.measure.races._arm_spec import parse_arms
from modelwright.measure.races._unit import SPINNING
from modelwright.vocabulary import Data
from support import models

QUICK = UnitPlan(burst_s=0.01, burst_runs=3, guard_s=0.002, bursts_s=0.0, warmup_cap_s=0.02)
needs_simulator = pytest.mark.skipif(
    importlib.util.find_spec("onnxruntime_qnn") is None or (sys.platform, platform.machine()) != ("linux", "x86_64"),
    reason="the QNN simulator exists on x86 Linux",
)


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("MODELWRIGHT_HOME", str(tmp_path / "home"))


def options(**changes):
    """One question at a loose level: enough to see the wiring, in few units."""
    given = {"threads": 1, "budget_s": 300, "unit": QUICK, "inputs": InputChoice(batch=64), "by": (0.1,), "alpha": 0.2}
    return CompareOptions(**{**given, **changes})


def stack(folder, depth, name):
    """`depth` square layers of nearly nothing: twice the depth is twice the work and the same answers."""
    nodes, weights = [], []
    for layer in range(depth):
        matrix = 1e-6 * np.random.default_rng(layer).standard_normal((96, 96)).astype(np.float32)
        weights.append(numpy_helper.from_array(matrix, f"w{layer}"))
        source, target = f"h{layer}" if layer else "x", f"h{layer + 1}" if layer + 1 < depth else "y"
        nodes.append(helper.make_node("MatMul", [source, f"w{layer}"], [f"m{layer}"]))
        nodes.append(helper.make_node("Add", [source, f"m{layer}"], [target]))
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
    result = compare([str(slow), str(fast)], options(by=(0.1, 0.5)))
    arm = result.arms[1]
    assert arm.verdict.kind == "improved"
    assert [verdict.quantile for verdict in arm.verdict.by] == [0.1, 0.5]
    assert arm.verdict.by[0].low > 0.3
    assert arm.sentence.startswith("fast is faster than slow: its work is about ")
    race = Race(["fast"], result.options.alpha, min_effect=result.options.min_effect, quantiles=result.options.by)
    for unit in result.units:
        if unit.arm is None:
            race.add_sentinel(*unit.slots_ms)
        else:
            race.add("fast", base=unit.base_ms, arm=unit.arm_ms)
    assert race.findings()["fast"] == arm.verdict
    assert dumps(result)


def test_twice_the_work_regresses_and_the_base_is_the_first_arm(slow, fast):
    result = compare([f"base={fast}", f"other={slow}"], options())
    assert result.base == "base"
    assert result.arms[1].verdict.kind == "regressed"
    assert "other is slower than base" in result.arms[1].sentence


def test_arms_of_one_thread_take_short_turns_on_one_cpu_and_those_that_spin_long_ones(slow, fast):
    quick = options(budget_s=0.1, unit=None)
    for others, plan, spins in (
        ("", UnitPlan(), False),
        ("@threads=2,config.session.intra_op.allow_spinning=0", UnitPlan(), True),
        ("@threads=2", SPINNING, True),
    ):
        result = compare([str(slow), f"fast={fast}{others}"], quick)
        assert result.options.unit == plan
        unit = result.units[0]
        assert len(unit.base_ns) == len(unit.arm_ns) == 2 * unit.blocks
        assert (unit.cpu is not None) is (not spins and sys.platform == "linux")


def test_the_result_says_what_was_fed_and_asked_and_draws_its_own_seed(slow, fast):
    results = [compare([str(slow), str(fast)], options(budget_s=0.1)) for _ in range(2)]
    for result in results:
        assert [(fact.name, fact.dtype, fact.shape) for fact in result.inputs] == [("x", "float32", (64, 96))]
        assert result.options.inputs.batch == 64
        assert result.arms_as_written == (str(slow), str(fast))
    assert results[0].inputs_digest == results[1].inputs_digest
    assert results[0].seeds != results[1].seeds


@pytest.mark.parametrize(("margin", "within"), [(0.03, False), (0.9, True)])
def test_the_gate_is_decided_at_its_margin(slow, fast, margin, within):
    """Half as fast is more than 3 % slower, and less than 90 %."""
    result = compare([f"base={fast}", f"other={slow}"], options(max_slowdown=margin))
    assert result.within is within


def test_without_units_the_gate_cannot_tell(slow, fast):
    assert compare([str(slow), str(fast)], options(max_slowdown=0.03, budget_s=0.1)).within is None


def test_retry_adds_units_to_those_of_the_file(slow, fast, tmp_path):
    file = tmp_path / "first.json"
    first = compare([str(slow), str(fast)], options(budget_s=0.1))
    first.save(file)
    again = compare([str(slow), str(fast)], options(retry=file))
    assert again.units[: len(first.units)] == first.units
    assert again.seeds[0] == first.seeds[0]
    assert len(again.seeds) == 2
    assert again.arms[1].verdict.kind == "improved"


def test_units_of_another_comparison_are_refused(slow, fast, tmp_path):
    file = tmp_path / "first.json"
    compare([str(slow), str(fast)], options(budget_s=0.1)).save(file)
    for arms, changes, what in (
        ([str(slow), f"fast={fast}@level=basic"], {}, "the arms"),
        ([str(slow), str(fast)], {"inputs": InputChoice(Data(seed=1), batch=64)}, "the inputs"),
        ([str(slow), str(fast)], {"by": (0.5,)}, "`by`"),
    ):
        with pytest.raises(UsageError) as caught:
            compare(arms, options(retry=file, **changes))
        assert what in caught.value.cause
    older = replace(compare([str(slow), str(fast)], options(budget_s=0.1)), protocol="compare-2")
    older.save(tmp_path / "older.json")
    with pytest.raises(UsageError) as caught:
        compare([str(slow), str(fast)], options(retry=tmp_path / "older.json"))
    assert "the protocols differ" in caught.value.cause
    file.write_text(file.read_text().replace('"base_first":', '"base_first" :', 1))
    with pytest.raises(InputError, match="no result of wright compare"):
        compare([str(slow), str(fast)], options(retry=file))


def test_the_coin_puts_the_base_into_both_slots(slow, fast):
    # This seed says both in its first two turns.
    units = compare([str(slow), str(fast)], options(seed=1)).units
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
    result = compare([f"a={slow}", f"b={slow}@level=basic"], options(budget_s=0.1))
    assert result.units
    assert result.arms[1].facts.graph_optimization == "basic"


def test_arms_with_another_interface_are_refused(slow, tmp_path):
    with pytest.raises(InputError):
        compare([str(slow), str(models.save(models.mlp(), tmp_path))], options())


def zeroed(path, *, factor=0.0):
    """The same model, whose last Add adds to `factor` times the input."""
    proto = models.onnx.load(str(path))
    proto.graph.initializer.append(models.scalar("factor", factor))
    proto.graph.node[-1].output[0] = "whole"
    proto.graph.node.append(helper.make_node("Mul", ["whole", "factor"], ["y"]))
    return models.save(proto, path.parent, "zeroed.onnx")


@pytest.mark.parametrize(
    ("factor", "words"),
    [(0.0, "the arm answers only zeros"), (float("nan"), "NaN or infinite"), (-1.0, "cosine"), (1.5, "50.0% off")],
)
def test_an_arm_that_answers_something_else_is_refused_and_not_measured(slow, fast, factor, words):
    result = compare([str(slow), str(zeroed(fast, factor=factor))], options())
    assert result.arms[1].verdict.kind == "invalid"
    assert words in result.arms[1].refused
    assert words in result.arms[1].sentence
    assert result.units == ()


def test_other_answers_that_are_allowed_are_told_beside_the_speed(slow, fast):
    result = compare([str(slow), str(zeroed(fast))], options(allow_different=True))
    arm = result.arms[1]
    assert arm.verdict.kind == "improved"
    assert "zeroed is faster than slow, but its answers differ (y: the arm answers only zeros): " in arm.sentence


def kinds(folder, name, *, flip):
    """Classes, truth values, a sequence and strings, beside one float."""
    nodes = [
        helper.make_node("ArgMin" if flip == "class" else "ArgMax", ["x"], ["class"], axis=1),
        helper.make_node("Less" if flip == "mask" else "Greater", ["x", "zero"], ["mask"]),
        helper.make_node("SplitToSequence", ["x"], ["parts"], axis=1 if flip == "parts" else 0),
        helper.make_node("StringConcat", ["dog" if flip == "word" else "cat", "dog"], ["word"]),
    ]
    weights = [models.scalar("zero", 0.0)]
    weights += [helper.make_tensor(word, models.TensorProto.STRING, [1], [word.encode()]) for word in ("cat", "dog")]
    part = helper.make_tensor_type_proto(models.FLOAT, None)
    outputs = [
        models.value("class", models.TensorProto.INT64, [8, 1]),
        models.value("mask", models.TensorProto.BOOL, [8, 8]),
        helper.make_value_info("parts", helper.make_sequence_type_proto(part)),
        models.value("word", models.TensorProto.STRING, [1]),
    ]
    proto = models.model(nodes, [models.value("x", shape=[8, 8])], outputs, weights)
    return models.save(proto, folder, name)


@pytest.mark.parametrize("flip", ["class", "mask", "parts", "word"])
def test_answers_of_every_kind_are_compared(tmp_path, flip):
    base, other = kinds(tmp_path, "base.onnx", flip=None), kinds(tmp_path, "other.onnx", flip=flip)
    result = compare([str(base), str(other)], options(inputs=InputChoice()))
    assert flip in result.arms[1].refused


def test_equal_answers_of_every_kind_are_measured(tmp_path):
    base = kinds(tmp_path, "base.onnx", flip=None)
    result = compare([f"a={base}", f"b={base}@level=basic"], options(inputs=InputChoice(), budget_s=0.1))
    assert result.arms[1].outputs.different is None
    assert result.units


def test_an_arm_that_breaks_on_the_way_is_out_and_the_others_go_on(slow, fast, tmp_path):
    third = stack(tmp_path, 2, "third.onnx")

    def remove(progress):
        if (progress.stage or "").startswith("unit 3,"):
            fast.unlink(missing_ok=True)

    result = compare([str(slow), str(fast), str(third)], options(), on_progress=remove)
    assert [arm.name for arm in result.broken] == ["fast"]
    assert [arm.verdict.kind for arm in result.arms[1:]] == ["invalid", "improved"]


def test_a_base_that_breaks_ends_the_comparison_with_what_was_measured(slow, fast):
    def remove(progress):
        if (progress.stage or "").startswith("unit 2,"):
            slow.unlink(missing_ok=True)

    with pytest.raises(ComparisonFailed, match="base slow failed") as caught:
        compare([str(slow), str(fast)], options(), on_progress=remove)
    assert len(caught.value.partial.units) == 2


def test_a_killed_child_is_told_from_an_answer(slow, fast):
    def kill(progress):
        if (progress.stage or "").startswith("unit 2,"):
            for child in psutil.Process().children(recursive=True):
                with contextlib.suppress(psutil.NoSuchProcess):
                    child.send_signal(signal.SIGSEGV)

    # Whichever child is asked first is blamed; base or arm, nobody is called faster.
    try:
        result = compare([str(slow), str(fast)], options(), on_progress=kill)
    except ComparisonFailed as error:
        result = error.partial
    else:
        assert [arm.verdict.kind for arm in result.broken] == ["invalid"]
    assert len(result.units) == 2


def test_ctrl_c_keeps_the_units(slow, fast):
    def interrupt(progress):
        if (progress.stage or "").startswith("unit 2,"):
            raise KeyboardInterrupt

    with pytest.raises(ComparisonInterrupted) as caught:
        compare([str(slow), str(fast)], options(), on_progress=interrupt)
    partial = caught.value.partial
    assert partial.status == "interrupted"
    assert len(partial.units) == 2
    assert partial.arms[1].verdict.kind == "invalid"


@needs_simulator
def test_a_simulated_arm_is_refused(tmp_path):
    model = models.save(models.conv_net(), tmp_path)
    with pytest.raises(UsageError, match="speed"):
        compare([f"cpu={model}", f"npu={model}@target=qnn-npu"], CompareOptions(budget_s=20, unit=QUICK))


def static(path, batch):
    proto = onnx.load(path)
    for value in (*proto.graph.input, *proto.graph.output):
        value.type.tensor_type.shape.dim[0].dim_value = batch
    onnx.save(proto, path.with_name("static.onnx"))
    return path.with_name("static.onnx")


@pytest.mark.parametrize("real", [True, False])
def test_a_dynamic_base_is_fed_what_a_static_arm_takes(slow, tmp_path, real):
    if real:
        np.savez(tmp_path / "rows.npz", x=np.random.default_rng(0).standard_normal((8, 96)).astype(np.float32))
    data = Data(str(tmp_path / "rows.npz")) if real else Data()
    specs = parse_arms([str(slow), str(static(slow, 4))])
    arms = make_arms(specs, InputChoice(data=data), "cpu", 1)
    assert [arm.feeds["x"].shape for arm in arms] == [(4, 96), (4, 96)]


def test_a_batch_that_was_asked_for_is_not_overruled_by_an_arm(slow):
    specs = parse_arms([str(slow), str(static(slow, 4))])
    with pytest.raises(InputError, match="8 in dimension 0, not 4"):
        make_arms(specs, InputChoice(batch=8), "cpu", 1)
