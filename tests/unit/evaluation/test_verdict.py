"""From what was measured to the answer."""

from dataclasses import replace

import numpy as np
import pytest

from modelwright.evaluation import EvalOptions
from modelwright.evaluation._run import Measured
from modelwright.evaluation._types import EvalData, EvalOutput, EvalSide
from modelwright.evaluation._verdict import judge
from modelwright.judge import VerdictKind
from modelwright.metrics import Accumulator

SIDE = EvalSide("m.onnx", "onnxruntime", None, "cpu", (), (), simulated=False)
NOTHING = Measured(SIDE, SIDE, EvalData("d.npz", "npz", 1, 1, 0, ""), (0,), None, None, None, (), ())


def test_a_gate_without_anything_compared_decides_nothing():
    found = judge(NOTHING, None, EvalOptions(outputs=True, min_cosine=0.99))
    assert (found.verdict, found.reasons) == (VerdictKind.INCONCLUSIVE, ("no output was compared",))
    assert judge(NOTHING, None, EvalOptions(outputs=True)).verdict is None


@pytest.mark.parametrize("gate", [{"min_cosine": 0.99}, {"min_sqnr_db": 20.0}])
@pytest.mark.parametrize(("sizes", "expected"), [((0, 0), VerdictKind.INCONCLUSIVE), ((0, 3), VerdictKind.PASS)])
def test_answers_that_are_empty_in_every_sample_decide_nothing_and_in_some_nothing_wrong(gate, sizes, expected):
    sums = Accumulator()
    for size in sizes:
        sums.add(np.ones(size), np.ones(size))
    compared = replace(NOTHING, outputs=(EvalOutput("y", sums.aggregate(), None),))
    assert judge(compared, None, EvalOptions(outputs=True, **gate)).verdict is expected
