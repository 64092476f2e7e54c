"""The sentence of `analyze` counts what runs."""

from modelwright.pipeline import Analysis
from modelwright.report.analysis import headline
from modelwright.targets import EpShare, LeftNode, Placement


def test_constants_are_not_counted_among_the_nodes_an_ep_was_asked_about() -> None:
    left = tuple(LeftNode(f"conv{number}", "Conv", "", "CPUExecutionProvider", None) for number in range(30))
    alone = EpShare("CPUExecutionProvider", 30, 0, 1, ())
    placed = Placement("qnn-npu", "placed", None, None, nodes=48, eps=(alone,), left=left)
    assert "leaves 30 of 30 nodes" in headline(Analysis("m.onnx", "qnn-npu", (), placed, (), 0))
