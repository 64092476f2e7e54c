"""`advise`: what is recommended holds what was asked, what is not says why, and a decision can be made again."""

from dataclasses import replace

import numpy as np
import pytest

import modelwright as mw
from modelwright.answers import Offer, WantedLimits, differences, held
from modelwright.errors import UsageError
from modelwright.report.advise import advice
from support.models import mlp, save


@pytest.fixture(scope="module")
def decided(tmp_path_factory):
    path = save(mlp(), tmp_path_factory.mktemp("advise"))
    return path, mw.advise(path, precisions=["fp32"], latency_ms=60_000.0, memory=8 << 30, budget_s=5)


@pytest.fixture(scope="module")
def samples(tmp_path_factory):
    path = tmp_path_factory.mktemp("samples") / "samples.npz"
    np.savez(path, x=np.random.default_rng(0).standard_normal((64, 4)).astype(np.float32))
    return str(path)


def test_what_holds_everything_is_recommended_with_its_reasons(decided):
    _, found = decided
    (offer,) = found.offers
    assert found.chosen == "fp32 on cpu"
    assert (offer.holds_latency, offer.holds_memory, offer.holds_drop) == (True, True, None)
    assert "holds everything" in found.reasons[0]


def test_a_decision_is_kept_and_replayed(decided):
    path, _ = decided
    asked = {"precisions": ["fp32"], "latency_ms": 60_000.0, "budget_s": 5}
    found = mw.advise(path, **asked)
    again = mw.advise(path, **asked, replay=found.record_id)
    assert again.changed == ()
    assert mw.read(again.record_id).refs == (found.record_id,)
    with pytest.raises(UsageError, match="another question"):
        mw.advise(path, latency_ms=1.0, replay=found.record_id)


def test_nothing_is_recommended_where_nothing_holds(decided):
    path, _ = decided
    found = mw.advise(path, precisions=["fp32"], memory=1 << 20, budget_s=5)
    assert found.chosen is None
    assert not found.undecided
    assert "MiB" in found.would_change[0]


def test_a_drop_cannot_be_judged_without_labels(decided):
    path, _ = decided
    with pytest.raises(UsageError, match="labelled"):
        mw.advise(path, max_drop="1pt")


def test_a_race_that_decides_nothing_is_told_beside_the_recommendation(decided, samples):
    """One unit is too few for any verdict, so which of the two is faster is open, whatever this machine does."""
    path, _ = decided
    found = mw.advise(path, precisions=["fp32", "w8a8"], data=samples, budget_s=0.01)
    assert found.chosen == "fp32 on cpu"
    assert found.undecided
    assert "would be better is not decided" in advice(found)
    assert found.offers[1].faster is None
    assert "as `budget_s`" in found.offers[1].fix


def test_what_was_calibrated_on_made_up_numbers_is_not_recommended(decided):
    """However fast it is: nothing real says what it answers."""
    path, _ = decided
    found = mw.advise(path, precisions=["w8a8"], latency_ms=60_000.0, data=mw.Data("random"), budget_s=5)
    assert (found.chosen, found.undecided) == (None, True)
    assert found.offers[0].fix == "give real samples as `data`"


def test_limits_that_hold_do_not_excuse_a_failed_gate_nor_what_does_not_run():
    wanted = WantedLimits(latency_ms=10.0)
    fast = Offer("cpu", "w8a8", size_bytes=1, passed=True, holds_latency=True)
    assert held(fast, wanted) is True
    assert held(replace(fast, passed=False), wanted) is False
    assert held(replace(fast, usable=False), WantedLimits(max_drop="1pt")) is False


def test_a_replay_tells_what_is_no_longer_offered(decided):
    _, found = decided
    more = replace(found, offers=(*found.offers, Offer("cpu", "w8a8")))
    assert differences(more, found) == ("w8a8 on cpu is not offered now",)


def test_without_times_the_targets_own_precision_is_taken_and_said(decided, samples):
    path, _ = decided
    found = mw.advise(path, "qnn-npu", precisions=["fp32", "w8a16"], data=samples, budget_s=5)
    assert found.chosen == "w8a16 on qnn-npu"
    assert "nothing can be timed here" in found.reasons[1]
