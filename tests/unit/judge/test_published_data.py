"""Numbers a public search published: its rules saw speed-ups in them, an honest judge sees one."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from modelwright.judge import Judge, Verdict
from support import predecessor

PUBLISHED = json.loads((Path(__file__).parent / "published.json").read_text("utf-8"))
SESSIONS, GAINS, ROUNDS = ({row["id"]: row for row in PUBLISHED[kind]} for kind in ("sessions", "gains", "rounds"))


def judged(base: list[float], arm: list[float]) -> Verdict:
    """Each session or round as one unit."""
    judge = Judge()
    for base_time, arm_time in zip(base, arm, strict=True):
        judge.add([base_time], [arm_time])
    return judge.verdict()


def judged_gains(gains: list[float]) -> Verdict:
    return judged([100.0] * len(gains), [100.0 - gain for gain in gains])


@pytest.mark.parametrize("name", SESSIONS)
def test_no_speed_up_from_sessions_measured_one_after_the_other(name: str) -> None:
    row = SESSIONS[name]
    verdict = judged(row["base"], row["arm"])
    assert verdict.kind == "invalid"
    assert "too few units" in verdict.reason
    pooled = Judge()
    pooled.add(row["base"], row["arm"])
    assert pooled.verdict().kind == "invalid"


@pytest.mark.parametrize("name", GAINS)
def test_no_speed_up_from_published_gains(name: str) -> None:
    assert judged_gains(GAINS[name]["gains"]).kind not in ("improved", "regressed")


def test_the_yolos_pairs_are_close_and_too_few_to_be_called_equal() -> None:
    verdict = judged_gains(GAINS["P1 yolos NPU opset 21"]["gains"])
    assert verdict.kind == "inconclusive"
    assert "narrow enough, but odd sessions may not have shown before 17 units" in verdict.reason


def test_their_accidental_aa_table_proves_no_difference() -> None:
    everything = [gain for name, row in GAINS.items() if name.startswith("A/A") for gain in row["gains"]]
    assert len(everything) == 23
    assert judged_gains(everything).kind == "inconclusive"


@pytest.mark.parametrize("name", ROUNDS)
def test_interleaved_rounds_improve_only_for_swin(name: str) -> None:
    row = ROUNDS[name]
    verdict = judged(row["base"], row["arm"])
    assert verdict.kind != "improved" or row["may_improve"]


@pytest.mark.parametrize("pair", ["h0/h6", "h3/h6"])
def test_ten_swin_rounds_are_a_proven_gain_and_so_is_its_increment(pair: str) -> None:
    row = ROUNDS[f"P2b swin NPU 10 rounds {pair}"]
    assert judged(row["base"], row["arm"]).kind == "improved"


def test_a_bad_reference_is_caught_when_it_is_raced_against_its_twin() -> None:
    """F15: h1 is h0 built again; fed as the sentinel it fails, and the +26 % goes with it."""
    judge = Judge()
    for unit in range(9):
        reference, candidate = SESSIONS["F15 yolos NPU h1/h3 bad reference"]["base"], [48.741, 48.599, 48.605]
        judge.add([reference[unit % 3]], [candidate[unit % 3]])
    assert judge.verdict().kind == "improved"
    for unit in range(9):
        judge.add_sentinel([reference[unit % 3]], [[50.715, 49.324, 49.598][unit % 3]])
    assert judge.verdict().kind == "invalid"


@pytest.mark.parametrize(
    ("gain", "cv", "word"),
    [
        (0.5, 0.1, 0),
        (1.0, 0.1, 1),
        (1.5, 0.1, 2),
        (24.1, 30, 0),
        (24.1, 10, 1),
        (24.1, 8, 2),
        (10, 5, 1),
        (14.9, 5, 1),
        (15, 5, 2),
    ],
)
def test_the_rules_we_compare_with_are_the_published_ones(gain: float, cv: float, word: int) -> None:
    assert predecessor.throughput_only(np.array(gain), np.array(cv)) == word


def test_their_statistics_are_the_published_ones() -> None:
    assert predecessor.upper_median(np.array([1.0, 2.0])) == 2
    assert predecessor.upper_median(np.array([4.0, 1.0, 3.0, 2.0])) == 3
    assert predecessor.session_cv(np.array([4.976, 5.51, 5.716])) == pytest.approx(0.0707, abs=1e-4)
    keep, discard = predecessor.paired(np.full(3, 100.0), 100 - np.array([12, 12.5, 11.8]))
    assert keep
    assert not discard
    assert predecessor.paired(np.full(3, 100.0), 100 + np.array([3, 3.1, 2.9]))[1]


@pytest.mark.parametrize("name", ["F7 dinov2-base NPU h0/h1 A/A", "F10 dino-vitb16 NPU h0/h1 A/A", "F35 one session"])
def test_their_gate_calls_these_reliable_and_ours_does_not(name: str) -> None:
    row = SESSIONS[name]
    assert predecessor.effect_gate(np.array(row["base"]), np.array(row["arm"]))
    assert judged(row["base"], row["arm"]).kind == "invalid"
