"""From what was measured to the answer."""

from modelwright.evaluation import EvalOptions
from modelwright.evaluation._run import Measured
from modelwright.evaluation._types import EvalData, EvalSide
from modelwright.evaluation._verdict import judge
from modelwright.judge import VerdictKind

SIDE = EvalSide("m.onnx", "onnxruntime", None, "cpu", (), (), simulated=False)
NOTHING = Measured(SIDE, SIDE, EvalData("d.npz", "npz", 1, 1, 0, ""), (0,), None, None, None, (), ())


def test_a_gate_without_anything_compared_decides_nothing():
    found = judge(NOTHING, None, EvalOptions(outputs=True, min_cosine=0.99))
    assert (found.verdict, found.reasons) == (VerdictKind.INCONCLUSIVE, ("no output was compared",))
    assert judge(NOTHING, None, EvalOptions(outputs=True)).verdict is None
