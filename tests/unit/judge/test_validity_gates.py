"""When the measurement itself cannot be trusted, the verdict is invalid and says why."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from modelwright.judge import Judge, equate_floor
from modelwright.judge._legs import has_two_modes
from support.looks import looks
from support.simdevice import OFFSET, REGIMES, measure_units, odd_sessions


def two_modes(rng: np.random.Generator, samples: int = 50) -> np.ndarray:
    return 10 * np.exp(0.03 * rng.standard_normal(samples)) * np.where(rng.random(samples) < 0.5, 1.0, 1.6)


def one_mode(rng: np.random.Generator, samples: int = 50) -> np.ndarray:
    return 10 * np.exp(0.03 * rng.standard_normal(samples))


def test_bimodal_legs_are_invalid_even_when_the_ratio_looks_great() -> None:
    rng = np.random.default_rng(0)
    judge = Judge()
    for _ in range(20):
        judge.add(base=two_modes(rng) * 3, arm=one_mode(rng))
    verdict = judge.verdict()
    assert verdict.kind == "invalid"
    assert "bimodal legs in 20 of 20 units" in verdict.reason


def test_a_rare_bimodal_unit_counts_like_any_other_and_is_told() -> None:
    rng = np.random.default_rng(1)
    judge = Judge()
    for unit in range(20):
        judge.add(base=two_modes(rng) if unit == 5 else one_mode(rng), arm=one_mode(rng) / 1.1)
    verdict = judge.verdict()
    assert (verdict.kind, verdict.units, verdict.bimodal) == ("improved", 20, 1)


@pytest.mark.parametrize("slow_runs", [0.3, 0.5, 1.0])
def test_a_minority_of_slow_sessions_is_not_called_equal(slow_runs: float) -> None:
    """A fifth of the arm's sessions is odd: some of their runs are slow, or all. The average is 3.5 % slower."""
    units = odd_sessions(0.2, slow_runs, 1 + 0.175 / slow_runs, 400, 50, np.random.default_rng(8))
    seen = looks(units.log_ratios(), averages=units.log_averages())
    assert seen.equivalent.any(axis=-1).mean() <= 0.05 + 2 * math.sqrt(0.05 * 0.95 / 400)


def test_an_interval_that_hides_odd_sessions_says_so() -> None:
    rng = np.random.default_rng(9)
    judge = Judge()
    for unit in range(40):
        judge.add(one_mode(rng), one_mode(rng) * (1.3 if unit % 5 == 4 else 1.0))
    verdict = judge.verdict()
    assert verdict.kind == "inconclusive"
    assert verdict.average == pytest.approx(-0.05, abs=0.01)
    assert "some sessions are odd: their average is -" in verdict.reason


def test_nothing_is_equal_before_a_fifth_of_odd_sessions_would_have_shown() -> None:
    assert [equate_floor(alpha) for alpha in (0.05, 0.025, 0.0125)] == [17, 20, 23]
    judge = Judge()
    for _ in range(16):
        judge.add([1.0], [1.0])
    assert judge.verdict().kind == "inconclusive"
    assert "odd sessions may not have shown before 17 units" in judge.verdict().reason
    judge.add([1.0], [1.0])
    assert judge.verdict().kind == "equivalent"


@pytest.mark.parametrize("ticks", [1, 3, 30, 900])
def test_a_clock_too_coarse_for_the_legs_is_refused(ticks: int) -> None:
    """A tenth slower, and the clock moves only so often during a run."""
    rng = np.random.default_rng(10)
    judge = Judge()
    for _ in range(30):
        base, arm = (np.floor(ticks * one_mode(rng, 400) / 10 * slow) + 1 for slow in (1.0, 1.1))
        judge.add(base, arm)
    assert judge.verdict().kind == "invalid"
    assert "the clock is too coarse" in judge.verdict().reason
    assert judge.within(0.2) is None


def test_a_fine_clock_is_not_called_coarse() -> None:
    """Nanoseconds of a model of 70 µs, with so many samples that many are equal."""
    rng = np.random.default_rng(11)
    judge = Judge()
    for _ in range(30):
        base, arm = (np.round(70_000 * np.exp(0.002 * rng.standard_normal(650))) / 1e6 for _ in range(2))
        judge.add(base, arm)
    assert judge.verdict().kind == "equivalent"


def test_a_tail_needs_legs_that_have_one() -> None:
    judge = Judge(quantile=0.99)
    for _ in range(20):
        judge.add(np.linspace(1, 2, 50), np.linspace(1, 2, 50))
    assert judge.verdict().reason == "p99 needs 100 runs in a leg or more, one has 50"


SHAPES = {
    "normal": lambda rng, n: rng.standard_normal(n),
    "heavy": lambda rng, n: np.clip(rng.standard_t(1.5, n), -20, 20),
    "skewed": lambda rng, n: rng.exponential(3, n),
    "uniform": lambda rng, n: 5 * rng.random(n),
    "drifting": lambda rng, n: np.linspace(0, 10, n) + 0.3 * rng.standard_normal(n),
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("samples", [10, 20, 100])
def test_noise_tails_skew_and_drift_are_not_bimodal(shape: str, samples: int) -> None:
    rng = np.random.default_rng(2)
    flagged = sum(has_two_modes(0.1 * SHAPES[shape](rng, samples)) for _ in range(300))
    assert flagged <= 9


@pytest.mark.parametrize("samples", [20, 50, 200])
def test_two_clean_modes_are_bimodal(samples: int) -> None:
    rng = np.random.default_rng(3)
    assert sum(has_two_modes(np.log(two_modes(rng, samples))) for _ in range(200)) >= 130


def test_a_handful_of_samples_is_never_called_bimodal() -> None:
    assert not has_two_modes(np.log([5.0, 5.0, 10.0, 10.0]))


def in_bursts(speeds: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Bursts of a session on a machine that has these speeds one after the other."""
    return np.stack([one_mode(rng, 30) / speed for speed in speeds])


def test_a_machine_with_two_speeds_makes_no_leg_bimodal_and_hides_no_effect() -> None:
    rng = np.random.default_rng(20)
    judges = [Judge(quantile=quantile) for quantile in (0.1, 0.5)]
    for _ in range(20):
        speeds = np.where(rng.random(16) < 0.5, 1.0, 1.9)
        base, arm = in_bursts(speeds, rng), 1.05 * in_bursts(speeds, rng)
        for judge in judges:
            judge.add(base, arm)
    for judge in judges:
        verdict = judge.verdict()
        assert (verdict.kind, verdict.bimodal) == ("regressed", 0)
        assert verdict.noise is not None
        assert verdict.noise < 0.01


def test_an_arm_that_alone_has_two_speeds_is_bimodal() -> None:
    rng = np.random.default_rng(21)
    judge = Judge()
    for _ in range(20):
        base, arm = in_bursts(np.ones(16), rng), in_bursts(np.where(rng.random(16) < 0.5, 1.0, 1.9), rng)
        judge.add(base, arm)
    assert "bimodal legs in" in judge.verdict().reason


def test_an_arm_slow_in_a_few_bursts_is_not_called_equal() -> None:
    """Two of sixteen bursts take 1.3 times as long: no median sees it, the average does."""
    rng = np.random.default_rng(22)
    judge = Judge()
    for _ in range(30):
        judge.add(in_bursts(np.ones(16), rng), in_bursts(rng.permutation([1 / 1.3] * 2 + [1.0] * 14), rng))
    verdict = judge.verdict()
    assert verdict.kind == "inconclusive"
    assert "some sessions are odd" in verdict.reason


def test_a_tail_is_that_of_the_whole_leg() -> None:
    """Of one run in fifty, too few for most bursts to hold one."""
    judge = Judge(quantile=0.99)
    for _ in range(12):
        arm = np.ones((10, 20))
        arm[:4, 3] = 2.0
        judge.add(np.ones((10, 20)), arm)
    assert judge.verdict().effect == pytest.approx(-0.5)


def test_a_sentinel_proven_different_invalidates_a_clear_gain() -> None:
    rng = np.random.default_rng(4)
    judge = Judge()
    for _ in range(12):
        judge.add(base=one_mode(rng), arm=one_mode(rng) / 1.3)
        judge.add_sentinel(first=one_mode(rng), second=one_mode(rng) / 1.05)
    verdict = judge.verdict()
    assert verdict.kind == "invalid"
    assert "A/A sentinel failed" in verdict.reason
    assert verdict.sentinel_units == 12


def test_a_healthy_sentinel_changes_nothing() -> None:
    rng = np.random.default_rng(5)
    judge = Judge()
    for _ in range(12):
        judge.add(base=one_mode(rng), arm=one_mode(rng) / 1.3)
        judge.add_sentinel(first=one_mode(rng), second=one_mode(rng))
    assert judge.verdict().kind == "improved"


def test_a_harness_without_the_coin_is_caught_by_its_sentinel() -> None:
    """The second session is always slower; without random order that looks like an effect."""
    rng = np.random.default_rng(6)
    biased = replace(OFFSET, second_session=0.06)
    arms = measure_units(biased, 1, 60, rng, coin=False)
    sentinel = measure_units(biased, 1, 60, rng, coin=False)
    judge = Judge()
    for unit in range(60):
        judge.add(arms.base[0, unit], arms.arm[0, unit])
    assert judge.verdict().kind == "regressed"
    for unit in range(60):
        judge.add_sentinel(sentinel.base[0, unit], sentinel.arm[0, unit])
    assert judge.verdict().kind == "invalid"


def test_a_slot_that_is_favoured_a_little_is_left_to_the_coin() -> None:
    rng = np.random.default_rng(12)
    judge = Judge()
    for _ in range(60):
        judge.add_sentinel(first=one_mode(rng), second=one_mode(rng) * 1.005)
        judge.add(one_mode(rng), one_mode(rng) / 1.3)
    assert judge.verdict().kind == "improved"


def test_clock_regimes_shared_by_both_legs_do_not_spoil_the_comparison() -> None:
    units = measure_units(REGIMES, 1, 30, np.random.default_rng(7), effect=0.05)
    judge = Judge()
    for unit in range(30):
        judge.add(units.base[0, unit], units.arm[0, unit])
    assert judge.verdict().kind == "improved"
