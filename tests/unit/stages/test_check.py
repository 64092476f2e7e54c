"""Which answers of a target are kept."""

from dataclasses import replace

import numpy as np
import pytest

from modelwright.stages.check import CHECK, CheckOutcome
from modelwright.stages.check._enough import is_clear, says_enough
from modelwright.stages.validate import CLOSE, OutputParity
from modelwright.stages.validate._types import Measure

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


def numbers(*shape):
    return np.random.default_rng(0).standard_normal(shape, np.float32)


SURE = np.eye(1, 1000, 7, dtype=np.float32) + 1e-4 * numbers(1, 1000)
PICTURE = {"x": numbers(1, 3, 8, 8)}


@pytest.mark.parametrize(
    ("feed", "answer", "enough"),
    [
        (PICTURE, numbers(1, 1000), True),
        (PICTURE, numbers(1, 16, 8, 8), True),
        (PICTURE, numbers(1, 5), False),
        (PICTURE, SURE, False),
        (PICTURE, np.full((1, 1000), 3.0, np.float32), False),
        (PICTURE, np.where(numbers(1, 1000) > 2, np.nan, numbers(1, 1000)), False),
        (PICTURE, np.arange(1000), False),
        # Two samples have the 8 numbers for each column that a slice is judged by, one has not.
        (PICTURE, numbers(1, 5, 30), False),
        ({"x": np.zeros((1, 3, 8, 8), np.float32)}, numbers(1, 1000), False),
        ({"x": PICTURE["x"], "t": np.zeros(1, np.float32)}, numbers(1, 1000), False),
        ({"ids": np.arange(16)[None], "mask": np.ones((1, 16), np.int64)}, numbers(1, 1000), True),
        ({"ids": np.array([[101, 102, 0, 0, 0, 0, 0, 0, 0]])}, numbers(1, 1000), False),
    ],
)
def test_one_answer_is_enough_where_it_has_many_numbers_and_the_sample_is_no_blank(feed, answer, enough):
    assert says_enough(feed, {"y": answer}, 2) is enough


def seen(value, bound=0.99, *, passed=True, **more):
    measure = Measure(CLOSE, value, bound, passed, "")
    return OutputParity("y", "other", value, 0.0, 40.0, None, identical=False, reason=None, measures=(measure,), **more)


def test_only_a_pass_that_is_not_narrow_is_clear():
    assert is_clear([seen(0.9999)])
    assert not is_clear([seen(0.9999), seen(0.991)])
    assert not is_clear([seen(0.9999, passed=False)])
    assert not is_clear([replace(seen(0.9999), measures=())])
    assert not is_clear([replace(seen(0.9999), reason="shapes differ")])
    assert is_clear([replace(seen(1.0), identical=True, measures=())])
    assert not is_clear([])
