"""Planning: what a question costs and what a budget buys."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from modelwright._json import dumps
from modelwright.errors import UsageError
from modelwright.judge import equate_floor, forecast, min_units, resolvable_effect, units_needed


def test_smaller_effects_and_more_noise_cost_more_units() -> None:
    assert units_needed(0.03, 0.05) > units_needed(0.10, 0.05) >= min_units(0.05)
    assert units_needed(0.03, 0.05) > units_needed(0.03, 0.01)
    assert units_needed(0.03, 0.03, alpha=0.001) > units_needed(0.03, 0.03)


def test_no_noise_costs_the_floor() -> None:
    assert units_needed(0.01, 0.0) == min_units(0.05)
    assert forecast(0.0).units_to_equate == equate_floor(0.05)


@pytest.mark.parametrize("units", [10, 20, 60])
def test_what_a_budget_resolves_is_found_within_the_budget(units: int) -> None:
    effect = resolvable_effect(0.03, units)
    assert effect is not None
    assert units_needed(effect, 0.03) <= units + 1


def test_a_budget_below_the_floor_resolves_nothing_and_says_so() -> None:
    plan = forecast(0.03, 0.02, units=5)
    assert plan.resolvable is None
    assert "at least 7" in plan.reason


def test_a_forecast_is_json_and_plain_words() -> None:
    plan = forecast(0.03, 0.05, units=20)
    assert json.loads(dumps(plan))["units"] == 20
    assert plan.reason == "20 units resolve effects of 3.7% and more"


@pytest.mark.parametrize(("noise", "effect"), [(-1, 0.1), (float("nan"), 0.1), (0.1, 0), (0.1, float("inf"))])
def test_impossible_questions_are_refused(noise: float, effect: float) -> None:
    with pytest.raises(UsageError):
        units_needed(effect, noise)


def test_the_planning_table_in_the_docs_is_what_the_code_says() -> None:
    page = (Path(__file__).parents[3] / "docs" / "judge.md").read_text("utf-8")
    for noise in (0.01, 0.03, 0.05):
        units = [units_needed(effect, noise) for effect in (0.03, 0.05, 0.10, 0.30)]
        units += [forecast(noise, zone).units_to_equate for zone in (0.02, 0.05)]
        assert f"| {noise:.0%} | " + " | ".join(map(str, units)) + " |" in page
