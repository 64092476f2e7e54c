"""What one search leaves to choose from, by what was measured and read."""

import pytest

from modelwright.search import TuneRow
from modelwright.search._front import front_of
from modelwright.search._limits import TuneLimits

BASE = TuneRow("baseline", "baseline", "", size=100)


def arm(label, middle, half=0.01, word="no gain", size=100, **more):
    return TuneRow(label, word, "", middle, middle - half, middle + half, 12, size, **more)


def front(*rows, champion="baseline", timed=True):
    return front_of(rows, champion, TuneLimits(1.0), timed=timed)


def test_who_is_faster_and_no_larger_leaves_nothing_to_choose():
    found = front(BASE, arm("threads=1", 0.2, word="improved"), arm("level=basic", -0.1), champion="threads=1")
    assert found.labels == ("threads=1",)
    assert found.reason == "nothing is proven better than threads=1 in any of latency, size"


def test_faster_and_larger_beside_slower_and_smaller_is_a_front():
    large, small = arm("+a", 0.2, word="improved", size=150), arm("-b", -0.1, size=60)
    found = front(BASE, large, small, champion="+a")
    assert set(found.labels) == {"baseline", "+a", "-b"}
    assert found.reason is None


def test_a_gain_that_no_unit_proves_is_no_place_on_the_front():
    found = front(BASE, arm("denormals=off", 0.03, half=0.05))
    assert found.labels == ("baseline",)


def test_smaller_takes_the_place_of_the_baseline_only_where_it_is_proven_no_slower():
    assert front(BASE, arm("+a", 0.0, half=0.01, size=60)).labels == ("+a",)
    assert set(front(BASE, arm("+a", 0.0, half=0.05, size=60)).labels) == {"baseline", "+a"}


def test_of_two_that_nothing_tells_apart_the_champion_stands_for_both():
    one, other = arm("threads=1", 0.20, word="improved"), arm("spinning=off", 0.21, half=0.05, word="improved")
    assert front(BASE, one, other, champion="threads=1").labels == ("threads=1",)


def test_another_precision_is_never_taken_for_as_true_as_the_baseline():
    tried = arm("precision=w8a8", 0.4, word="improved", size=30)
    assert set(front(BASE, tried).labels) == {"baseline", "precision=w8a8"}
    judged = arm("precision=w8a8", 0.4, word="improved", size=30, lost=-0.001)
    assert set(front(BASE, judged).labels) == {"baseline", "precision=w8a8"}
    other = arm("precision=w8a16", 0.1, word="improved", size=60, lost=0.002)
    assert set(front(BASE, judged, other).labels) == {"baseline", "precision=w8a8"}


@pytest.mark.parametrize("word", ["mixed", "invalid"])
def test_spoilt_times_prove_nothing(word):
    assert front(BASE, arm("+a", 0.5, word=word)).labels == ("baseline",)


def test_who_is_out_or_was_never_timed_takes_no_part():
    out = TuneRow("+a", "placement", "", size=1), TuneRow("+b", "not measured", "", size=1)
    found = front(BASE, *out, arm("+c", 0.0))
    assert found.labels == ("baseline",)
    assert front(BASE, out[0]).reason == "no variant is left beside the baseline"


def test_where_one_thing_alone_was_read_there_is_no_front():
    rows = (BASE, TuneRow("+a", "not measured", "", size=50))
    assert front(*rows).reason == "only size was looked at"


def test_what_a_target_takes_is_weighed_where_nothing_is_timed():
    rows = TuneRow("baseline", "baseline", "", size=100, left_nodes=0), TuneRow("+a", "not measured", "", size=50)
    more = TuneRow("+a", "not measured", "", size=50, left_nodes=0)
    assert front(rows[0], more, timed=False).labels == ("+a",)
    assert front(*rows, timed=False).reason == "only size was looked at"
