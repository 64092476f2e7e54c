"""The margin a repair must keep: what was seen, and what other samples will keep."""

import math

import pytest

from modelwright.judge import kept_metric, kept_signal, parse_allowance, reaches


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


def test_a_drop_is_proven_by_enough_samples_and_few_say_how_many_would():
    allowed = parse_allowance("2pt")
    few, many = (kept_metric([(1.0, 1.0)] * count, allowed, 1.0) for count in (100, 1000))
    assert (few.verdict, few.carried) == ("inconclusive", False)
    assert few.needed > 400
    assert (many.verdict, many.carried) == ("pass", True)
    lost = kept_metric([(0.0, 1.0)] * 100 + [(1.0, 1.0)] * 900, allowed, 1.0)
    assert (lost.verdict, lost.carried, lost.candidate, lost.reference) == ("fail", True, 0.9, 1.0)
    assert kept_metric([], allowed, 1.0) is None


def test_without_a_span_nothing_is_proven_and_that_is_the_reason():
    found = kept_metric([(1.0, 1.0)] * 1000, parse_allowance("2pt"), None)
    assert (found.verdict, found.carried, found.needed) == ("inconclusive", False, None)
    assert "how much one sample can lose is not known" in found.reason


def test_decibels_that_differ_by_rounding_reach_what_is_wanted():
    assert reaches(20.0 - 1e-12, 20.0)
    assert reaches(None, 20.0)
    assert not reaches(19.99, 20.0)
