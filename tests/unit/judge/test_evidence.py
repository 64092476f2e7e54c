"""The mathematics under the judge: monotone evidence, exact bounds, honest error rates."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from modelwright.judge._evidence import (
    confidence_bounds,
    log_evidence,
    min_units,
    pseudo_median,
    walsh_averages,
)

UNITS = st.lists(st.integers(-40, 40), min_size=1, max_size=25).map(lambda values: np.array(values) / 100)


@given(UNITS)
@settings(max_examples=150, deadline=None)
def test_evidence_for_a_higher_centre_falls_as_the_centre_rises(units: np.ndarray) -> None:
    paths = np.array([log_evidence(units, centre)[0] for centre in np.linspace(-0.5, 0.5, 41)])
    assert (np.diff(paths, axis=0) <= 1e-9).all()


@given(UNITS, st.sampled_from([0.05, 0.2]))
@settings(max_examples=60, deadline=None)
def test_bounds_by_bisection_equal_bounds_by_brute_force(units: np.ndarray, alpha: float) -> None:
    points = walsh_averages(units)
    gaps = np.concatenate(([points[0] - 1], (points[1:] + points[:-1]) / 2, [points[-1] + 1]))
    excluded = [log_evidence(units, gap)[0].max() >= math.log(2 / alpha) for gap in gaps]
    brute = points[sum(excluded) - 1] if any(excluded) else None
    assert confidence_bounds(units, alpha).low == (None if brute is None else pytest.approx(brute))


@given(UNITS)
@settings(max_examples=60, deadline=None)
def test_mirrored_units_have_mirrored_bounds(units: np.ndarray) -> None:
    there, back = confidence_bounds(units, 0.05), confidence_bounds(-units, 0.05)
    assert there.low == (None if back.high is None else -back.high)


@given(st.permutations(range(7)), st.integers(1, 1000))
@settings(max_examples=40, deadline=None)
def test_from_the_floor_on_the_interval_is_finite_whatever_the_units(order: list[int], scale: int) -> None:
    bounds = confidence_bounds(np.array(order, dtype=float) * scale, 0.05)
    assert min_units(0.05) == 7
    assert bounds.low is not None
    assert bounds.high is not None


@given(UNITS)
@settings(max_examples=60, deadline=None)
def test_a_fair_coin_wins_nothing_on_average(units: np.ndarray) -> None:
    """Over all signs of given sizes the mean wealth is exactly 1: the property the proof rests on."""
    sizes = np.abs(units[:8]) + 0.01
    flips = 1 - 2 * ((np.arange(2 ** len(sizes))[:, None] >> np.arange(len(sizes))) & 1)
    above, below = log_evidence(sizes * flips, 0.0)
    assert np.exp(above).mean(axis=0) == pytest.approx(np.ones(len(sizes)))
    assert np.exp(below).mean(axis=0) == pytest.approx(np.ones(len(sizes)))


def test_many_comparisons_at_once_equal_one_at_a_time() -> None:
    units = np.random.default_rng(0).standard_normal((5, 30))
    together = log_evidence(units, 0.3)
    for row in range(5):
        alone = log_evidence(units[row], 0.3)
        assert np.allclose(together[0][row], alone[0])
        assert np.allclose(together[1][row], alone[1])


@pytest.mark.parametrize("noise", ["normal", "cauchy", "outliers", "clusters"])
def test_the_interval_covers_the_truth_at_every_look_under_ugly_noise(noise: str) -> None:
    rng = np.random.default_rng(1)
    shape = (1000, 60)
    units = {
        "normal": lambda: rng.standard_normal(shape),
        "cauchy": lambda: rng.standard_cauchy(shape),
        "outliers": lambda: rng.standard_normal(shape) * np.where(rng.random(shape) < 0.1, 20, 1),
        "clusters": lambda: rng.standard_normal(shape) * np.exp(np.cumsum(rng.standard_normal(shape) / 3, axis=1)),
    }[noise]()
    missed = [np.maximum(*log_evidence(part, 0.0)).max(axis=1) >= math.log(40) for part in np.split(units, 10)]
    assert np.mean(missed) <= 0.05 + 2 * math.sqrt(0.05 * 0.95 / 1000)


def test_the_point_estimate_shrugs_off_a_wild_unit() -> None:
    units = np.array([0.09, 0.10, 0.11, 0.10, 0.10, 5.0])
    assert pseudo_median(units) == pytest.approx(0.10, abs=0.01)
