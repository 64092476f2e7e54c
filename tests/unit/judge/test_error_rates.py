"""The short version of bench/judge_proof.py: no false claims, enough power, races included."""

from __future__ import annotations

import math

import numpy as np
import pytest

from modelwright.judge import Judge, Race, forecast, units_needed
from support import predecessor
from support.looks import first_look, looks
from support.simdevice import DRIFT, HOSTILE, OFFSET, Device, measure_sessions, measure_units

RUNS = 1000
BAR = 0.05 + 2 * math.sqrt(0.05 * 0.95 / RUNS)


@pytest.mark.parametrize("device", HOSTILE, ids=lambda device: device.name)
def test_identical_arms_are_rarely_called_different_when_looking_after_every_unit(device: Device) -> None:
    for blocks in (1, 4):
        ratios = measure_units(device, RUNS // blocks, 30, np.random.default_rng(11), blocks=blocks).log_ratios()
        assert looks(ratios).false_claims() <= BAR


@pytest.mark.parametrize("device", HOSTILE, ids=lambda device: device.name)
def test_the_whole_judge_says_at_each_look_what_the_fast_table_says(device: Device) -> None:
    units = measure_units(device, 2, 20, np.random.default_rng(12), effect=0.03)
    table = looks(units.log_ratios(), averages=units.log_averages())
    for run in range(2):
        judge = Judge()
        for look in range(20):
            judge.add(units.base[run, look], units.arm[run, look])
            verdict = judge.verdict()
            if verdict.bimodal:
                break
            assert (verdict.kind == "improved") == table.improved[run, look]
            assert (verdict.kind == "regressed") == table.regressed[run, look]
            assert (verdict.kind == "equivalent") == table.equivalent[run, look]


def test_the_error_rate_would_be_seen_if_blocks_in_one_session_were_counted_as_units() -> None:
    """The check can fail: one lucky session repeated is not evidence, and the rate shows it."""
    rng = np.random.default_rng(13)
    one_session = 0.02 * rng.standard_normal((RUNS, 1)) + 0.01 * rng.standard_normal((RUNS, 30))
    assert looks(one_session).false_claims() > 0.2


def test_the_predecessor_calls_identical_arms_different_on_the_same_devices() -> None:
    rng = np.random.default_rng(14)
    drifting = np.median(measure_sessions(DRIFT, 200, 6, rng, iterations=100, pause=30), axis=-1)
    base, arm = drifting[:, :3], drifting[:, 3:]
    assert predecessor.either_way(predecessor.effect_gate, base, arm).mean() > 0.9
    lucky = np.median(measure_sessions(OFFSET, 200, 6, rng, iterations=100, pause=30), axis=-1)
    assert predecessor.either_way(predecessor.sweep_median, lucky[:, :3], lucky[:, 3:]).mean() > 0.1


@pytest.mark.parametrize("noise", [0.01, 0.03, 0.05])
@pytest.mark.parametrize("effect", [0.03, 0.05, 0.10, 0.30])
def test_true_effects_are_found_within_the_stated_units(noise: float, effect: float) -> None:
    stated = units_needed(effect, noise)
    ratios = math.log1p(effect) + noise * np.random.default_rng(15).standard_normal((600, stated))
    seen = looks(ratios)
    assert seen.improved.any(axis=-1).mean() >= 0.9
    assert seen.regressed.any(axis=-1).mean() <= 0.025


@pytest.mark.parametrize(("noise", "min_effect"), [(0.0, 0.02), (0.01, 0.02), (0.03, 0.05)])
def test_no_effect_is_proven_equivalent_within_the_stated_units(noise: float, min_effect: float) -> None:
    stated = forecast(noise, min_effect).units_to_equate
    ratios = noise * np.random.default_rng(16).standard_normal((600, stated))
    assert np.isfinite(first_look(looks(ratios, min_effect).equivalent)).mean() >= 0.9


def test_an_effect_just_outside_the_zone_is_rarely_called_equivalent() -> None:
    ratios = math.log1p(0.0205) + 0.01 * np.random.default_rng(17).standard_normal((RUNS, 40))
    assert looks(ratios).equivalent.any(axis=-1).mean() <= BAR


def test_a_race_of_eight_null_arms_keeps_the_family_error() -> None:
    rng = np.random.default_rng(18)
    shared = rng.standard_normal((RUNS, 1, 30))
    ratios = 0.03 * (shared - rng.standard_normal((RUNS, 8, 30)))
    seen = looks(ratios.reshape(-1, 30), alpha=0.05 / 8)
    claimed = (seen.improved | seen.regressed).any(axis=-1).reshape(RUNS, 8)
    assert claimed.any(axis=-1).mean() <= BAR


def test_races_themselves_find_the_winner_and_promote_nothing_else() -> None:
    rng = np.random.default_rng(19)
    for _ in range(5):
        race = Race(["a", "b", "winner", "c"], 0.05)
        for _ in range(40):
            base = math.exp(0.02 * rng.standard_normal())
            for name in race.alive:
                gain = 1.08 if name == "winner" else 1.0
                race.add(name, base=[base], arm=[math.exp(0.015 * rng.standard_normal()) / gain])
        assert race.best() == "winner"
        assert [name for name, found in race.findings().items() if found.kind == "improved"] == ["winner"]
