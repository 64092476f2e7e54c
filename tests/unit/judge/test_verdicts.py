"""What the judge says about plain cases, and that it says it in a form others can use."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys

import numpy as np
import pytest

from modelwright._json import dumps
from modelwright.errors import InputError, UsageError
from modelwright.judge import JUDGE_VERSION, Judge, Verdict, VerdictKind, min_units


def judged(ratios: list[float] | np.ndarray, **options: float) -> Verdict:
    """The verdict on units whose base / arm ratios are given."""
    judge = Judge(**options)
    for ratio in ratios:
        judge.add(base=[float(ratio)], arm=[1.0])
    return judge.verdict()


def noisy(effect: float, noise: float, units: int, seed: int = 0) -> np.ndarray:
    return (1 + effect) * np.exp(noise * np.random.default_rng(seed).standard_normal(units))


@pytest.mark.parametrize(
    ("effect", "noise", "kind"),
    [
        (0.1, 0.01, "improved"),
        (-0.1, 0.01, "regressed"),
        (0.0, 0.01, "equivalent"),
        (0.01, 0.1, "inconclusive"),
    ],
)
def test_clear_cases_get_the_word_they_deserve(effect: float, noise: float, kind: str) -> None:
    assert judged(noisy(effect, noise, 20)).kind == kind


def test_a_faster_arm_has_a_positive_effect_and_the_interval_holds_it() -> None:
    verdict = judged(noisy(0.10, 0.02, 30))
    assert verdict.low is not None
    assert verdict.high is not None
    assert 0 < verdict.low <= 0.10 <= verdict.high
    assert verdict.effect == pytest.approx(0.10, abs=0.02)
    assert "faster" in verdict.reason


def test_identical_samples_are_equivalent_from_the_seventeenth_unit_on() -> None:
    judge = Judge()
    kinds = []
    for _ in range(19):
        judge.add(base=[10.0, 10.5, 11.0], arm=[10.0, 10.5, 11.0])
        kinds.append(judge.verdict().kind.value)
    assert kinds == ["invalid"] * 6 + ["inconclusive"] * 10 + ["equivalent"] * 3
    assert (judge.verdict().low, judge.verdict().effect, judge.verdict().high) == (0.0, 0.0, 0.0)


def test_a_small_proven_gain_inside_the_zone_is_equivalent_not_improved() -> None:
    verdict = judged(noisy(0.005, 0.001, 30))
    assert verdict.low is not None
    assert verdict.low > 0
    assert verdict.kind is VerdictKind.EQUIVALENT


def test_a_proven_effect_is_no_finding_while_the_estimate_is_below_half_of_what_matters() -> None:
    """Eight units agree on the sign, one of them by much: zero is excluded, and so is little else."""
    slight = judged([1.004, 1.006, 1.03, 1.005, 1.008, 1.007, 1.009, 1.006])
    assert slight.low is not None
    assert slight.low > 0
    assert slight.kind == "inconclusive"
    assert slight.reason.startswith("less than 1.0% so far, and the 95% interval +0.")
    assert judged([1.014, 1.016, 1.03, 1.015, 1.018, 1.017, 1.019, 1.016]).kind == "improved"


@pytest.mark.parametrize(("alpha", "floor"), [(0.1, 6), (0.05, 7), (0.01, 10), (0.05 / 8, 11)])
def test_too_few_units_prove_nothing_however_large_the_gain(alpha: float, floor: int) -> None:
    assert min_units(alpha) == floor
    few = judged([3.0] * (floor - 1), alpha=alpha)
    assert few.kind == "invalid"
    assert "too few units" in few.reason
    assert few.low is None
    assert judged([3.0] * floor, alpha=alpha).kind == "improved"


def test_no_units_at_all_is_invalid_with_nothing_claimed() -> None:
    verdict = Judge().verdict()
    assert (verdict.kind, verdict.effect, verdict.low, verdict.units) == ("invalid", None, None, 0)


def test_swapping_the_arms_mirrors_the_verdict() -> None:
    ratios = noisy(0.05, 0.02, 25)
    there, back = judged(ratios), judged(1 / ratios)
    assert (there.kind, back.kind) == ("improved", "regressed")
    assert there.low is not None
    assert back.high is not None
    assert 1 + there.low == pytest.approx(1 / (1 + back.high))


def test_the_time_unit_does_not_matter() -> None:
    rng = np.random.default_rng(3)
    milli, seconds = Judge(), Judge()
    for _ in range(12):
        base, arm = rng.uniform(9, 11, 20), rng.uniform(8, 10, 20)
        milli.add(base, arm)
        seconds.add(base / 1000, arm / 1000)
    assert milli.verdict().low == pytest.approx(seconds.verdict().low)
    assert milli.verdict().kind is seconds.verdict().kind


def test_the_interval_only_narrows_as_units_arrive() -> None:
    judge = Judge()
    lows, highs = [], []
    for ratio in noisy(0.03, 0.03, 40, seed=5):
        judge.add([ratio], [1.0])
        verdict = judge.verdict()
        if verdict.low is not None and verdict.high is not None:
            lows.append(verdict.low)
            highs.append(verdict.high)
    assert lows == sorted(lows)
    assert highs == sorted(highs, reverse=True)
    assert len(lows) > 30


def test_an_effect_that_flips_halfway_is_a_contradiction_not_a_finding() -> None:
    verdict = judged([1.3] * 20 + [0.7] * 80)
    assert verdict.kind == "invalid"
    assert "contradict" in verdict.reason


def test_a_verdict_is_frozen_versioned_and_strict_json() -> None:
    verdict = judged(noisy(0.1, 0.01, 8))
    with pytest.raises(dataclasses.FrozenInstanceError):
        verdict.units = 3  # type: ignore[misc]
    data = json.loads(dumps(verdict))
    assert data["kind"] == "improved"
    assert data["judge_version"] == JUDGE_VERSION
    assert json.loads(dumps(Judge().verdict()))["low"] is None


def test_absurdly_different_times_still_get_a_verdict() -> None:
    judge = Judge()
    for _ in range(8):
        judge.add(base=[1e300], arm=[1e-300])
    assert judge.verdict().kind == "improved"
    assert dumps(judge.verdict())


def test_the_same_units_give_the_same_verdict() -> None:
    assert judged(noisy(0.02, 0.05, 30)) == judged(noisy(0.02, 0.05, 30))


def test_the_vocabulary_is_closed() -> None:
    speed = {"improved", "regressed", "equivalent", "mixed", "inconclusive", "invalid", "noop", "duplicate"}
    assert {kind.value for kind in VerdictKind} == speed | {
        "pass",
        "fail",
        "met",
        "already_met",
        "not_met",
        "unfinished",
    }


@pytest.mark.parametrize(
    ("leg", "cause"),
    [
        ([], "no samples"),
        ([1.0, float("nan")], "sample 1 is nan"),
        ([float("inf")], "sample 0 is inf"),
        ([1.0, 0.0], "sample 1 is 0.0"),
        ([-2.0], "sample 0 is -2.0"),
        ([[[1.0, 2.0]]], "2 dimensions"),
        ([[1.0], []], "no samples"),
        (["fast"], "not a number"),
        (3.0, "0 dimensions"),
        (None, "0 dimensions|not a number|is nan"),
    ],
)
def test_a_leg_that_is_no_list_of_times_is_refused_and_leaves_no_trace(leg: list[float], cause: str) -> None:
    judge = Judge()
    for base, arm, name in ((leg, [1.0], "base"), ([1.0], leg, "arm")):
        with pytest.raises(InputError, match=f"the {name} leg cannot be judged") as caught:
            judge.add(base=base, arm=arm)
        assert any(part in caught.value.cause for part in cause.split("|"))
        assert caught.value.fix
    with pytest.raises(InputError):
        judge.add_sentinel(first=[1.0], second=leg)
    assert judge.log_ratios == ()


def test_legs_of_different_numbers_of_bursts_are_refused() -> None:
    with pytest.raises(InputError) as caught:
        Judge().add(base=[[1.0], [1.0]], arm=[1.0])
    assert caught.value.cause == "it has 1 bursts and the base leg 2"


@pytest.mark.parametrize("options", [{"alpha": 0}, {"alpha": 0.6}, {"min_effect": 0}, {"min_effect": float("nan")}])
def test_impossible_levels_are_refused(options: dict[str, float]) -> None:
    with pytest.raises(UsageError):
        Judge(**options)


def test_importing_the_judge_does_not_import_numpy() -> None:
    code = "import sys, modelwright.judge; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
