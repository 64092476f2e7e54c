"""When what the kernels cost is worth a sentence."""

import pytest

from modelwright.stages.validate._types import Fidelity
from modelwright.stages.validate._ways import _much_worse


@pytest.mark.parametrize(
    ("executed", "written", "much"),
    [(20.0, 32.0, True), (20.0, 22.0, False), (20.0, None, True), (61.3, None, False), (45.0, 90.0, False)],
)
def test_a_loss_that_leaves_forty_decibels_is_not_told(executed, written, much):
    assert _much_worse(Fidelity(0.999, executed), Fidelity(1.0, written)) is much
