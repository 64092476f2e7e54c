"""A series that changed its level is told where; one that only wavers is left alone."""

import numpy as np
import pytest

from modelwright.judge import FEWEST_TO_CHANGE, change_points


def test_a_step_is_found_at_its_place():
    values = [*np.random.default_rng(0).normal(0.0, 0.01, 12), *np.random.default_rng(1).normal(-0.1, 0.01, 9)]
    (found,) = change_points(values)
    assert (found.place, round(found.before, 1), round(found.after, 1)) == (12, 0.0, -0.1)


def test_two_steps_are_both_found():
    draw = np.random.default_rng(2)
    values = np.concatenate([draw.normal(level, 0.01, 10) for level in (0.0, -0.1, 0.02)])
    assert [change.place for change in change_points(values)] == [10, 20]


def test_what_only_wavers_has_no_change_point():
    draw = np.random.default_rng(3)
    false = sum(bool(change_points(draw.standard_t(2, size=20))) for _ in range(60))
    assert false <= 8  # 5 % of 60, and three standard errors


@pytest.mark.parametrize("values", [[], [1.0] * 30, list(range(FEWEST_TO_CHANGE - 1))])
def test_nothing_is_found_in_little_or_in_what_never_moves(values):
    assert change_points(values) == ()


def test_an_outlier_is_no_new_level():
    values = [0.0, 0.01, -0.01, 0.0, 0.01, 5.0, 0.0, -0.01, 0.01, 0.0, 0.01, -0.01]
    assert change_points(values) == ()
