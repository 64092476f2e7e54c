"""What it means that another word came out of a review."""

import pytest

from modelwright.support import Claim, ClaimedCase, ClaimedSource, LadderRow, SupportRun
from modelwright.support._review import compared_rows, decided

_SHA = "ab" * 32
CLAIM = Claim(
    effort="none",
    ceiling="L0",
    outcome="supported",
    source=ClaimedSource(name="tiny", digest=_SHA),
    cases=(ClaimedCase("cpu", "fp32"),),
)


def meant(claimed, found):
    said, here = (LadderRow("L0", "cpu", "fp32", None, word, "structure-1", ("why",)) for word in (claimed, found))
    own = SupportRun(CLAIM, CLAIM.digest, "here", None, (here,), (), None, ())
    rows = compared_rows(CLAIM, [said], own)
    return rows[0].word, decided(rows, [], "rerun")[0]


@pytest.mark.parametrize("claimed", ["pass", "inconclusive", "blocked"])
def test_what_fails_here_contradicts_whatever_is_said_of_it(claimed):
    assert meant(claimed, "fail") == ("contradicted", "reject")


@pytest.mark.parametrize("claimed", ["fail", "not-reached", "inconclusive"])
def test_who_says_less_than_comes_out_is_no_forger_and_gets_nothing(claimed):
    assert meant(claimed, "pass") == ("unverified", "changes")


def test_blocked_where_it_is_not_is_a_lie_also_where_it_passes():
    assert meant("blocked", "pass") == ("contradicted", "reject")


@pytest.mark.parametrize("found", ["inconclusive", "blocked", "not-reached"])
def test_what_does_not_come_to_its_level_here_is_open(found):
    assert meant("pass", found) == ("unverified", "changes")


def test_the_same_word_is_approved_only_where_it_is_what_is_claimed():
    assert meant("pass", "pass") == ("reproduced", "approve")
    assert meant("fail", "fail") == ("reproduced", "changes")
