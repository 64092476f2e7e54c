"""One vocabulary: every verdict word has one way of being said, and several claims come to one word."""

import string

import pytest

from modelwright.judge import SAID, VerdictKind, worst
from modelwright.report._tones import verdict_style

KNOWN = {"arm", "base", "metric", "bound", "limit"}


def test_every_word_is_said_in_one_way_and_has_a_colour():
    assert set(SAID) == set(VerdictKind)
    assert all(verdict_style(kind) for kind in VerdictKind)
    for said in SAID.values():
        assert {name for _, name, _, _ in string.Formatter().parse(said.words) if name} <= KNOWN


@pytest.mark.parametrize(
    ("claims", "word"),
    [
        ("", None),
        ("pass pass", "pass"),
        ("pass inconclusive", "inconclusive"),
        ("inconclusive fail pass", "fail"),
    ],
)
def test_one_claim_that_fails_decides_then_one_that_is_open(claims, word):
    assert worst(VerdictKind(claim) for claim in claims.split()) == word
