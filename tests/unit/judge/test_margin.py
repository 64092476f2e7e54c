"""The margin a repair must keep: what was seen, and what other samples will keep."""

import math

import pytest

from modelwright.judge import kept_metric, kept_signal


def test_samples_that_agree_need_no_margin():
    found = kept_signal([1.0, 2.0, 4.0], [0.01, 0.02, 0.04])
    assert found.decibels == pytest.approx(20.0)
    assert found.low_decibels == pytest.approx(20.0)


def test_scatter_lowers_what_other_samples_will_keep():
    """Two samples of power 1 with noise 0 and 0.02: the ratio is 0.01, its standard error 0.01."""
    found = kept_signal([1.0, 1.0], [0.0, 0.02])
    assert found.decibels == pytest.approx(20.0)
    assert found.low_decibels == pytest.approx(-10 * math.log10(0.01 + 1.645 * 0.01))


@pytest.mark.parametrize(("signal", "noise"), [([], []), ([0.0], [0.0]), ([1.0, 1.0], [0.0, 0.0])])
def test_where_nothing_differs_there_is_no_ratio(signal, noise):
    assert kept_signal(signal, noise).decibels is None


def test_the_metric_is_lowered_by_a_standard_error_of_the_difference():
    """Of four samples one was lost: the differences are 0, 0, 0, -1, their deviation 0.5, the standard error 0.25."""
    found = kept_metric([(1.0, 1.0), (1.0, 1.0), (0.0, 0.0), (0.0, 1.0)])
    assert (found.candidate, found.reference) == (0.5, 0.75)
    assert found.low == pytest.approx(0.5 - 0.25)
    assert kept_metric([]) is None
