"""One sentence that claims no more than was proven."""

import pytest

from modelwright.judge import Verdict, VerdictKind, finding
from modelwright.measure.races._sentence import sentence

FASTER = (VerdictKind.IMPROVED, 0.124, 0.109, 0.138)
SLOWER = (VerdictKind.REGRESSED, -0.110, -0.122, -0.099)
EQUAL = (VerdictKind.EQUIVALENT, 0.001, -0.004, 0.009)
OPEN = (VerdictKind.INCONCLUSIVE, 0.01, -0.02, 0.05)
NONE = (VerdictKind.INVALID, None, None, None)


def verdict(found, quantile, reason="why", alpha=0.05, bimodal=0, average=None):
    kind, effect, low, high = found
    return Verdict(kind, quantile, effect, low, high, 14, reason, 0.01, average, bimodal, 3, 0.02, alpha)


def say(work, typical=None, different=None, **more):
    verdicts = [verdict(work, 0.1, **more)]
    if typical is not None:
        verdicts.append(verdict(typical, 0.5, **more))
    return sentence("B", "A", finding(tuple(verdicts)), 41.2, different)


def test_faster_by_both_measures():
    assert say(FASTER, FASTER, alpha=0.025) == (
        "B is faster than A: its work is about 12.4 % faster (p10, 97.5 % interval 10.9…13.8 %), "
        "its typical run is about 12.4 % faster (p50, 97.5 % interval 10.9…13.8 %); 14 units, 41 s"
    )


def test_slower_is_told_in_positive_numbers():
    words = say(SLOWER)
    assert (
        words == "B is slower than A: its work is about 11.0 % slower (p10, 95 % interval 9.9…12.2 %); 14 units, 41 s"
    )


def test_what_is_proven_and_what_is_not_stand_side_by_side():
    words = say(FASTER, OPEN)
    assert words.startswith("B is faster than A: its work is about 12.4 % faster (p10")
    assert "its typical run is not decided (p50, +1.0 % so far, 95 % interval -2.0…+5.0 %)" in words
    assert "there is no verdict on its typical run (p50: why)" in say(FASTER, NONE)


def test_measures_that_disagree_are_never_hidden():
    words = say(FASTER, SLOWER)
    assert words.startswith("B is faster than A by one measure and slower by another: its work is about 12.4 % faster")
    assert "its typical run is about 11.0 % slower" in words


def test_equal_names_the_margin_and_needs_both():
    assert say(EQUAL, EQUAL).startswith(
        "B is as fast as A: its work is as fast, proven within ±2 % (p10, 95 % interval"
    )
    assert say(EQUAL, OPEN).startswith("not decided between B and A: its work is as fast, proven within ±2 %")


def test_odd_units_are_in_the_sentence():
    assert "10.9…13.8 %, 3 of 14 units bimodal)" in say(FASTER, bimodal=3)
    narrow = (VerdictKind.INCONCLUSIVE, 0.001, -0.004, 0.009)
    assert "-3.5 % on average: odd sessions are not excluded)" in say(narrow, average=-0.035)


@pytest.mark.parametrize("found", [FASTER, SLOWER, EQUAL, OPEN, NONE])
def test_other_answers_are_told_in_the_same_sentence(found):
    assert ", but its answers differ (cosine 0.40 of y, fp32 needs 0.9999): " in say(
        found, different="cosine 0.40 of y, fp32 needs 0.9999"
    )


def test_invalid_gives_the_reason_once():
    words = say(NONE, NONE, reason="too few units")
    assert words == "no verdict on B against A: too few units (14 units, 41 s)"


def test_a_tail_has_its_own_name():
    words = sentence("B", "A", finding((verdict(SLOWER, 0.99),)), 41.2)
    assert words.startswith("B is slower than A: its tail is about 11.0 % slower (p99, ")
