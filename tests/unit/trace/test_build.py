"""From recordings to a trace: samples per run, shares of 100 %, one shape in every state."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from modelwright._json import dumps, plain
from modelwright.measure.traces._build import build
from modelwright.measure.traces._profile import Kernel, KernelCall, KernelShapes, Profile, Run
from modelwright.measure.traces._types import TraceReason, TraceStatus
from modelwright.targets import DeviceTrace, TraceProblem
from modelwright.targets.eps.qnn import parse_blocks
from unit.trace.recordings import (
    QNN,
    block,
    csv_text,
    empty,
    mlp_nodes,
    model_run,
    node,
    profile,
    recorded,
)

PART = f"{QNN}_{QNN}_42_1_0"


def qnn(*blocks: list[str]) -> DeviceTrace:
    return DeviceTrace(
        "QNNExecutionProvider",
        "qnn csv",
        tuple(parse_blocks(csv_text(*blocks).splitlines())),
        {(PART, "conv"): "Conv2d"},
    )


@pytest.fixture
def nodes(tmp_path):
    return mlp_nodes(tmp_path)


def test_warm_up_is_left_out_and_every_operator_has_a_sample_per_run(tmp_path, nodes):
    runs = [(0, 900), (1000, 10), (2000, 12), (3000, 11)]
    events = [item for at, us in runs for item in (node("act", at + 1, us, index=2), model_run(at, us + 2))]
    found = build(empty(3, 1), recorded(profile(tmp_path, *events), warmup=1, measured=3), nodes, {})
    assert found.status is TraceStatus.OK
    assert found.operators[0].samples_us == (10, 12, 11)
    assert (found.totals.kernel_us, found.totals.overhead_us) == (11, 2)
    assert found.window.measured == 3


def test_one_disturbed_run_does_not_change_the_shares(tmp_path, nodes):
    runs = [(0, 10), (1000, 10), (2000, 5000)]
    events = []
    for at, us in runs:
        events += [node("act", at + 1, us, index=2), node("second", at + us + 1, 30, "MatMul", 3)]
        events += [model_run(at, us + 40)]
    found = build(empty(3), recorded(profile(tmp_path, *events), measured=3), nodes, {})
    assert [(item.node, item.percent) for item in found.operators] == [("second", 75), ("act", 25)]


def test_calls_of_a_loop_body_are_summed_per_run(tmp_path, nodes):
    events = [node("body", 12, 3), node("body", 16, 4), node("loop", 10, 20, "Loop", 1), model_run(9, 30)]
    found = build(empty(), recorded(profile(tmp_path, *events)), nodes, {})
    body = next(item for item in found.operators if item.node == "body")
    assert (body.samples_us, body.calls_per_run, body.parent) == ((7,), 2, "loop#1")


def test_an_operator_of_some_runs_only_has_no_sample_in_the_others(tmp_path, nodes):
    events = [node("a", 1, 5), model_run(0, 9), node("b", 11, 6, index=1), model_run(10, 9)]
    found = build(empty(2), recorded(profile(tmp_path, *events), measured=2), nodes, {})
    assert {item.node: item.samples_us for item in found.operators} == {"a": (5, None), "b": (None, 6)}


def test_equal_names_in_two_subgraphs_stay_two_operators(tmp_path, nodes):
    events = [
        node("Mul_0", 2, 3, "Mul"),
        node("first", 1, 5, "If", 1),
        node("Mul_0", 11, 2, "Mul"),
        node("other", 10, 5, "If", 2),
        model_run(0, 20),
    ]
    found = build(empty(), recorded(profile(tmp_path, *events)), nodes, {})
    assert len({item.id for item in found.operators}) == len(found.operators) == 4


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 900)), max_size=8), min_size=1, max_size=6))
def test_shares_add_up_to_100_whatever_ran(tmp_path_factory, runs):
    made = []
    for number, calls in enumerate(runs):
        at = number * 100_000
        places = [at + sum(us for _, us in calls[:index]) for index in range(len(calls))]
        spans = tuple(KernelCall(kernel, place, us, 1) for place, (kernel, us) in zip(places, calls, strict=True))
        made.append(Run(at, 99_000, spans))
    kernels = tuple(Kernel(f"n{index}", "Add", "CPU", index) for index in range(6))
    shapes = (KernelShapes((), (), None, None, None),) * 6
    names = mlp_nodes(tmp_path_factory.mktemp("model"))
    found = build(empty(len(runs)), recorded(Profile(kernels, shapes, tuple(made)), measured=len(runs)), names, {})
    shares = [item.percent for item in found.operators]
    if any(share is not None for share in shares):
        assert sum(shares) == pytest.approx(100)
        assert sum(share.percent for share in found.by_op_type) == pytest.approx(100)
    dumps(found)


def qnn_events(*, runs: int = 1):
    events = []
    for at in range(0, 1000 * runs, 1000):
        events += [node(PART, at + 1, 120, f"{QNN}_42_1", 9, QNN), node("act", at + 125, 10, index=2)]
        events += [model_run(at, 150)]
    return events


def test_a_partition_opens_into_its_operators_and_keeps_its_overhead(tmp_path, nodes):
    ops = block(100, 1000, ("Input OpId_2", 200, ""), ("conv:OpId_22", 800, "second_token_3"))
    found = build(empty(), recorded(profile(tmp_path, *qnn_events()), inside=qnn(ops)), nodes, {})
    times = {item.id: item.self_us.p50 for item in found.operators}
    assert times == {"qnn_0:OpId_22": 80, "qnn_0:OpId_2": 20, "qnn_0": 20, "act#2": 10}
    mapped = found.operators[0]
    assert (mapped.onnx_nodes, mapped.op_type, mapped.partition) == (("second",), "MatMul", "qnn_0")
    assert (found.partitions[0].wall_us, found.partitions[0].accelerator_us) == (120, 100)
    assert found.source.fidelity == "kernel"


def test_blocks_that_do_not_match_the_runs_leave_the_partition_closed(tmp_path, nodes):
    ops = block(100, 1000, ("conv:OpId_22", 1000, ""))
    found = build(empty(), recorded(profile(tmp_path, *qnn_events()), inside=qnn(ops, ops)), nodes, {})
    assert (found.status, found.reason_code) == (TraceStatus.PARTIAL, TraceReason.BLOCK_COUNT)
    assert {item.id for item in found.operators} == {"qnn_0", "act#2"}
    assert found.source.fidelity == "partition"
    assert found.partitions[0].accelerator_us is None


def test_qnns_own_type_is_used_where_nodes_were_fused(tmp_path, nodes):
    ops = block(100, 1000, ("conv:OpId_22", 1000, "first;bias"))
    found = build(empty(), recorded(profile(tmp_path, *qnn_events()), inside=qnn(ops)), nodes, {})
    item = found.operators[0]
    assert (item.op_type, item.vocabulary, item.onnx_nodes) == ("Conv2d", "qnn", ("first", "bias"))


def states(tmp_path, nodes):
    problem = TraceProblem(TraceReason.PROFILE_DAMAGED, "broken")
    full = profile(tmp_path, node("act", 1, 5, index=2), model_run(0, 9))
    silent = profile(tmp_path, model_run(0, 9))
    yield empty(), TraceStatus.NOT_RUN
    yield build(empty(), recorded(None, problem=problem), nodes, {}), TraceStatus.PARSE_FAILED
    missing = TraceProblem(TraceReason.PROFILE_MISSING, "none")
    yield build(empty(), recorded(None, problem=missing), nodes, {}), TraceStatus.NO_DATA
    yield build(empty(), recorded(silent), nodes, {}), TraceStatus.NO_DATA
    yield build(empty(), recorded(full, measured=2), nodes, {}), TraceStatus.PARSE_FAILED
    yield build(empty(), recorded(full), nodes, {}), TraceStatus.OK


def test_every_state_has_the_same_keys_and_says_why(tmp_path, nodes):
    keys = set(plain(empty()))
    for found, status in states(tmp_path, nodes):
        assert set(plain(found)) == keys
        assert found.status is status
        assert (found.reason_code is None) == (status in (TraceStatus.OK, TraceStatus.NOT_RUN))
        assert bool(found.operators) == (status is TraceStatus.OK)
        dumps(found)


def test_a_simulator_stamps_its_times_invalid(tmp_path, nodes):
    full = profile(tmp_path, node("act", 1, 5, index=2), model_run(0, 9))
    assert build(empty(), recorded(full, simulated=True), nodes, {}).source.timing_valid is False


def test_shapes_and_sizes_come_with_detail_only(tmp_path, nodes):
    full = profile(tmp_path, node("act", 1, 5, index=2), model_run(0, 9))
    detail, basic = (build(empty(level=level), recorded(full), nodes, {}) for level in ("detail", "basic"))
    assert detail.operators[0].outputs == ("float32[1,4]",)
    assert detail.operators[0].bytes.outputs == 16
    assert (basic.operators[0].outputs, basic.operators[0].bytes) == (None, None)


def test_the_timeline_is_of_a_run_that_was_not_interrupted(tmp_path, nodes):
    events = [node("act", 1, 9000, index=2), model_run(0, 9002)]
    for at in (10_000, 20_000):
        events += [node("act", at + 1, 10, index=2), model_run(at, 12)]
    found = build(empty(3), recorded(profile(tmp_path, *events), measured=3), nodes, {})
    assert [span.duration_us for span in found.timeline] == [10]
