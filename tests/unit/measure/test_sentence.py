"""One sentence that claims no more than was proven."""

from modelwright.judge import Verdict, VerdictKind
from modelwright.measure._sentence import sentence


def say(kind, effect=None, low=None, high=None, reason="why", alpha=0.05):
    verdict = Verdict(kind, effect, low, high, 14, reason, 0.01, 0, 3, 0.02, alpha)
    return sentence("B", "A", verdict, 41.2)


def test_faster():
    words = say(VerdictKind.IMPROVED, 0.124, 0.109, 0.138)
    assert words == "B is 12.4 % faster than A (95 % interval 10.9…13.8 %, 14 units, 41 s)"


def test_slower_is_told_in_positive_numbers():
    words = say(VerdictKind.REGRESSED, -0.110, -0.122, -0.099)
    assert words == "B is 11.0 % slower than A (95 % interval 9.9…12.2 %, 14 units, 41 s)"


def test_equal_names_the_margin():
    assert say(VerdictKind.EQUIVALENT, 0.001, -0.004, 0.009).startswith("B is as fast as A, proven within ±2 %")


def test_undecided_claims_nothing():
    words = say(VerdictKind.INCONCLUSIVE, 0.01, -0.02, 0.05)
    assert words.startswith("not decided between B and A: +1.0 % so far (95 % interval -2.0…+5.0 %")


def test_invalid_gives_the_reason():
    assert (
        say(VerdictKind.INVALID, reason="too few units") == "no verdict on B against A: too few units (14 units, 41 s)"
    )


def test_the_level_is_that_of_the_arm():
    assert "97.5 % interval" in say(VerdictKind.IMPROVED, 0.1, 0.05, 0.2, alpha=0.025)
