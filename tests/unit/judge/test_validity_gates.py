"""When the measurement itself cannot be trusted, the verdict is invalid and says why."""

from __future__ import annotations

import numpy as np
import pytest

from modelwright.judge import Judge
from modelwright.judge._legs import is_bimodal
from support.simdevice import OFFSET, REGIMES, measure_units


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


def test_a_rare_bimodal_unit_is_set_aside_and_counted() -> None:
    rng = np.random.default_rng(1)
    judge = Judge()
    for unit in range(20):
        judge.add(base=two_modes(rng) if unit == 5 else one_mode(rng), arm=one_mode(rng) / 1.1)
    verdict = judge.verdict()
    assert (verdict.kind, verdict.units, verdict.set_aside) == ("improved", 19, 1)


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
    flagged = sum(is_bimodal(np.exp(0.1 * SHAPES[shape](rng, samples))) for _ in range(300))
    assert flagged <= 9


@pytest.mark.parametrize("samples", [20, 50, 200])
def test_two_clean_modes_are_bimodal(samples: int) -> None:
    rng = np.random.default_rng(3)
    assert sum(is_bimodal(two_modes(rng, samples)) for _ in range(200)) >= 130


def test_a_handful_of_samples_is_never_called_bimodal() -> None:
    assert not is_bimodal(np.array([5.0, 5.0, 10.0, 10.0]))


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
    arms = measure_units(OFFSET, 1, 200, rng, coin=False)
    sentinel = measure_units(OFFSET, 1, 200, rng, coin=False)
    judge = Judge()
    for unit in range(200):
        judge.add(arms.base[0, unit], arms.arm[0, unit])
    assert judge.verdict().kind == "regressed"
    for unit in range(200):
        judge.add_sentinel(sentinel.base[0, unit], sentinel.arm[0, unit])
    assert judge.verdict().kind == "invalid"


def test_clock_regimes_shared_by_both_legs_do_not_spoil_the_comparison() -> None:
    units = measure_units(REGIMES, 1, 30, np.random.default_rng(7), effect=0.05)
    judge = Judge()
    for unit in range(30):
        judge.add(units.base[0, unit], units.arm[0, unit])
    assert judge.verdict().kind == "improved"
