"""onnxruntime's profile: which call belongs to which run, and whose time is whose."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelwright.measure.traces import _profile as _trace_profile
from modelwright.measure.traces._profile import Kernel, KernelCall, KernelShapes, Profile, Run, read_profile
from modelwright.measure.traces._spans import lay_out
from modelwright.measure.traces._types import TraceReason
from modelwright.targets import TraceProblem
from unit.trace.recordings import model_run, node, profile, profile_text


def own_times(found: Profile, run: int = 0) -> list[tuple[str, float]]:
    return [(found.kernels[span.row.kernel].name, span.own) for span in lay_out(found, None).spans(run)]


def test_calls_belong_to_the_run_they_lie_in(tmp_path):
    found = profile(
        tmp_path,
        node("a", 10, 5),
        model_run(9, 10),
        node("a", 30, 6),
        node("b", 37, 2, index=1),
        model_run(29, 12),
    )
    assert [[call.duration for call in run.calls] for run in found.runs] == [[5], [6, 2]]


def test_calls_outside_every_run_are_left_out(tmp_path):
    found = profile(tmp_path, node("early", 1, 2), node("a", 10, 5), model_run(9, 10), node("late", 99, 1))
    assert [len(run.calls) for run in found.runs] == [1]


def test_the_body_of_a_loop_is_taken_from_the_loop(tmp_path):
    inner = [node("body", 12, 3), node("body", 16, 4)]
    found = profile(tmp_path, *inner, node("loop", 10, 20, "Loop", 1), model_run(9, 30))
    assert own_times(found) == [("loop", 13), ("body", 3), ("body", 4)]


def test_a_loop_in_a_loop_is_taken_only_from_its_own_parent(tmp_path):
    found = profile(
        tmp_path,
        node("leaf", 13, 2),
        node("inner", 12, 5, "Loop", 1),
        node("outer", 10, 20, "Loop", 2),
        model_run(9, 30),
    )
    assert own_times(found) == [("outer", 15), ("inner", 3), ("leaf", 2)]


def test_two_short_calls_in_the_same_microsecond_are_siblings(tmp_path):
    found = profile(tmp_path, node("a", 10, 0), node("b", 10, 3, index=1), model_run(9, 9))
    assert sorted(own_times(found)) == [("a", 0), ("b", 3)]


def test_a_parent_is_never_negative_when_rounding_makes_its_body_longer(tmp_path):
    found = profile(tmp_path, node("body", 10, 6), node("branch", 10, 5, "If", 1), model_run(9, 9))
    assert dict(own_times(found))["branch"] == 0


@given(st.lists(st.integers(0, 50), min_size=1, max_size=20), st.integers(0, 30))
def test_own_times_add_up_to_the_outermost_calls(lengths, rest):
    """However many calls a body makes, nothing is counted twice and nothing is lost."""
    kernels = (Kernel("loop", "Loop", "CPU", 0), Kernel("body", "Add", "CPU", 0))
    calls, at = [], 1
    for length in lengths:
        calls.append(KernelCall(1, at, length, 1))
        at += max(length, 1)
    total = at + rest
    run = Run(0, total, (KernelCall(0, 0, total, 1), *calls))
    shape = KernelShapes((), (), None, None, None)
    found = lay_out(Profile(kernels, (shape, shape), (run,)), None).spans(0)
    assert sum(span.own for span in found) == total


def test_shapes_and_sizes_are_read(tmp_path):
    shape = profile(tmp_path, node("a", 10, 5), model_run(9, 10)).shapes[0]
    assert (shape.inputs, shape.outputs) == (("float32[1,4]",), ("float32[1,4]",))
    assert (shape.activation_bytes, shape.parameter_bytes, shape.output_bytes) == (16, 0, 16)


def test_a_name_may_hold_anything(tmp_path):
    name = 'a"b\\c_kernel_time {},[]'
    assert profile(tmp_path, node(name, 10, 5), model_run(9, 10)).kernels[0].name == name


def reason(path) -> str:
    with pytest.raises(TraceProblem) as caught:
        read_profile(path)
    return caught.value.reason


def test_a_missing_profile_is_told_apart_from_a_damaged_one(tmp_path):
    assert reason(tmp_path / "none.json") is TraceReason.PROFILE_MISSING


@pytest.mark.parametrize("kept", [0.4, 0.97])
def test_a_file_cut_short_is_damaged(tmp_path, kept):
    text = profile_text(node("a", 10, 5), node("b", 16, 5), model_run(9, 20))
    path = tmp_path / "profile.json"
    path.write_text(text[: int(len(text) * kept)])
    assert reason(path) is TraceReason.PROFILE_DAMAGED


def test_a_file_at_the_event_limit_is_truncated(tmp_path, monkeypatch):
    monkeypatch.setattr(_trace_profile, "MOST_EVENTS", 2)
    path = tmp_path / "profile.json"
    path.write_text(profile_text(node("a", 10, 5), model_run(9, 20)))
    assert reason(path) is TraceReason.TRUNCATED
