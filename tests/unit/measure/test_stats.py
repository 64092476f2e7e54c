"""Percentiles are numpy's, and unknown is None."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from modelwright.measure import latency
from modelwright.measure.timing._stats import drift


@given(st.lists(st.integers(1_000, 10**9), min_size=1, max_size=200))
@settings(deadline=None)
def test_percentiles_follow_numpy_s_linear_rule(samples):
    found = latency(samples)
    expected = np.percentile(np.array(samples) / 1e6, [50, 90, 95, 99], method="linear")
    assert [found.p50_ms, found.p90_ms, found.p95_ms, found.p99_ms] == pytest.approx(expected.tolist())
    assert found.min_ms <= found.p50_ms <= found.max_ms


def test_the_median_of_an_even_count_lies_in_the_middle():
    assert latency([1_000_000, 2_000_000, 3_000_000, 4_000_000]).p50_ms == 2.5


def test_one_sample_has_no_standard_deviation():
    assert latency([1_000_000]).std_ms is None


def test_an_outlier_does_not_move_the_spread():
    assert latency([1_000_000] * 99 + [10**9]).spread == 0


def test_drift_compares_the_ends_and_needs_enough_samples():
    assert drift([100] * 29) is None
    assert drift([100] * 10 + [105] * 10 + [110] * 10) == pytest.approx(0.10)
