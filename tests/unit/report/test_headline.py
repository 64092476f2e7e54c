"""The sentence of `analyze` counts what runs."""

import io
from dataclasses import replace

import pytest

from modelwright.pipeline import Analyses, Analysis, Suggestion
from modelwright.report.analysis import headline
from modelwright.report.html.analysis import analysis_page
from modelwright.report.render import render
from modelwright.report.screen import Screen
from modelwright.stages.check import FailingPart
from modelwright.targets import EpShare, LeftNode, Placement


def test_constants_are_not_counted_among_the_nodes_an_ep_was_asked_about() -> None:
    left = tuple(LeftNode(f"conv{number}", "Conv", "", "CPUExecutionProvider", None) for number in range(30))
    alone = EpShare("CPUExecutionProvider", 30, 0, 1, ())
    placed = Placement("qnn-npu", "placed", None, None, nodes=48, eps=(alone,), left=left)
    assert "leaves 30 of 30 nodes" in headline(Analysis("m.onnx", "qnn-npu", (), placed, (), ()))


def test_what_fails_alone_is_on_the_page_and_says_when_there_may_be_less() -> None:
    part = FailingPart(("Gelu gelu",), 3, "it does not open: memory", True, (), 4, 2.0)
    placed = Placement("qnn-npu", "failed", "memory", "quantize it", nodes=3)
    (note,) = analysis_page([Analysis("m.onnx", "qnn-npu", (), placed, (), (), part)]).notes
    assert (
        note.words == "qnn-npu: what fails alone: Gelu gelu (1 of 3 operators, 4 tries, 2 s): it does not open: memory"
    )
    assert "there may be less that does" in replace(part, minimal=False).words


@pytest.mark.parametrize(
    ("left", "most", "accepted"),
    [(0, None, True), (1, None, False), (1, 0.02, True), (3, 0.02, False), (2, 0.02, True), (None, 0.02, None)],
)
def test_the_gate_of_analyze_counts_what_is_left_of_what_runs(left, most, accepted) -> None:
    nodes = tuple(LeftNode(f"n{number}", "Shrink", "", "CPUExecutionProvider", None) for number in range(left or 0))
    shares = EpShare("QNNExecutionProvider", 100 - len(nodes), 0, 1, ()), EpShare("CPU", len(nodes), 0, 1, ())
    status = "unknown" if left is None else "placed"
    placed = Placement("qnn-npu", status, None, None, nodes=100, eps=shares, left=nodes)
    assert Analyses((Analysis("m.onnx", "qnn-npu", (), placed, (), ()),), most).accepted is accepted


def test_what_a_build_does_by_itself_is_offered_without_an_option_to_type() -> None:
    helps = Suggestion("Build it for qnn-npu (passes)", "", 3, 1, 0, 1, 3)
    placed = Placement("qnn-npu", "placed", None, None, nodes=3)
    found = Analysis("m.onnx", "qnn-npu", (), placed, (helps,), ())
    (step,) = analysis_page([found]).next_steps
    assert step.command == "wright build m.onnx --target qnn-npu"
    screen = Screen(io.StringIO(), width=200)
    render(Analyses((found,)), screen)
    assert "try Build it for qnn-npu (passes): nodes left 3 → 1" in screen.file.getvalue()
