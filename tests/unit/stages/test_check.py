"""Which answers of a target are kept."""

from dataclasses import replace

import pytest

from modelwright.stages.check import CHECK, CheckOutcome
from modelwright.stages.validate import OutputParity

COMPUTED = CheckOutcome(
    passed=True,
    reason=None,
    fix=None,
    chip=None,
    engine="QNN",
    simulated=True,
    opened=True,
    nodes=3,
    on_target=3,
    left=(),
    samples=2,
    bound=0.95,
    outputs=(),
    compute_s=1.0,
    installed=True,
)


@pytest.mark.parametrize(
    ("passed", "reason", "kept"),
    [
        (True, None, True),
        (False, "it computes something else", False),
        (None, "not computed: its 90.0 GMACs would take the simulator about 750 s", True),
        (None, "the simulated run did not end within 60 s", False),
    ],
)
def test_an_answer_that_may_be_another_one_on_a_quiet_machine_is_not_kept(passed, reason, kept):
    assert CHECK.keeps(replace(COMPUTED, passed=passed, reason=reason)) is kept


@pytest.mark.parametrize(("simulated", "kept"), [(True, True), (False, False)])
def test_other_numbers_are_kept_of_a_simulator_and_asked_again_of_a_device(simulated, kept):
    computed = OutputParity("y", "other", 0.1, 1.0, -3.0, None, identical=False, reason=None)
    assert CHECK.keeps(replace(COMPUTED, passed=False, simulated=simulated, outputs=(computed,))) is kept
