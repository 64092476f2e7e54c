"""Racing many arms against one baseline."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from modelwright._json import dumps
from modelwright.errors import InputError, UsageError
from modelwright.judge import Judge, Race


def test_an_arm_needs_no_more_units_as_soon_as_it_is_decided() -> None:
    race = Race(["fast", "same"])
    while "fast" in race.alive:
        found = race.add("fast", base=[10.0], arm=[8.0])
    assert found.kind == "improved"
    assert race.alive == ("same",)


def test_two_questions_share_the_level() -> None:
    found = Race(["a", "b"], 0.05).add("a", base=[1.0], arm=[1.0])
    assert [(verdict.quantile, verdict.alpha) for verdict in found.by] == [(0.1, 0.0125), (0.5, 0.0125)]


def noisy_middle(rng: np.random.Generator, centre: float, spread: float = 0.3) -> np.ndarray:
    """A leg whose fast runs are steady and whose typical run depends on the neighbours of the moment."""
    disturbed = np.exp(spread * rng.random())
    return np.concatenate([np.linspace(centre, centre * 1.01, 30), np.linspace(1.02, 1.3, 70) * centre * disturbed])


def test_the_work_is_proven_where_the_typical_run_is_not_and_the_wait_for_it_ends() -> None:
    rng = np.random.default_rng(0)
    race = Race(["slow"])
    while race.alive:
        found = race.add("slow", base=noisy_middle(rng, 1.0), arm=noisy_middle(rng, 1.05))
    work, typical = found.by
    assert (found.kind, work.kind, typical.kind) == ("regressed", "regressed", "inconclusive")
    assert work.units == 2 * race.min_units


def test_opposite_proofs_are_mixed_and_never_faster() -> None:
    race = Race(["odd"])
    fast_but_rarely = np.concatenate([np.linspace(0.8, 0.81, 30), np.linspace(1.2, 1.21, 70)])
    for _ in range(20):
        found = race.add("odd", base=np.linspace(1.0, 1.01, 100), arm=fast_but_rarely)
    assert [verdict.kind for verdict in found.by] == ["improved", "invalid"]  # two modes: no typical run
    rising = np.linspace(0.8, 1.4, 100)
    race = Race(["odd"])
    for _ in range(20):
        found = race.add("odd", base=np.linspace(1.0, 1.01, 100), arm=rising)
    assert [verdict.kind for verdict in found.by] == ["improved", "regressed"]
    assert found.kind == "mixed"
    assert race.best() is None


def test_equal_needs_all_questions() -> None:
    rng = np.random.default_rng(1)
    race = Race(["same"])
    for _ in range(60):
        found = race.add("same", base=noisy_middle(rng, 1.0), arm=noisy_middle(rng, 1.0))
    assert [verdict.kind for verdict in found.by] == ["equivalent", "inconclusive"]
    assert found.kind == "inconclusive"


@pytest.mark.parametrize(
    ("effect", "within", "kind"),
    [(-0.05, False, "regressed"), (-0.01, True, "regressed"), (0.0, True, "inconclusive"), (0.05, True, "improved")],
)
def test_the_gate_asks_about_its_margin_and_not_about_zero(effect: float, within: bool, kind: str) -> None:
    """One percent is proven slower and within three all the same."""
    rng = np.random.default_rng(2)
    race = Race(["arm"], quantiles=(0.1,), min_effect=0.001, max_slowdown=0.03)
    while race.alive:
        ratio = (1 + effect) * math.exp(0.003 * rng.standard_normal())
        found = race.add("arm", base=[ratio], arm=[1.0])
    assert race.within("arm") is within
    assert found.kind == kind


def test_a_slowdown_of_exactly_the_margin_is_rarely_called_either() -> None:
    rng = np.random.default_rng(3)
    answers = []
    for _ in range(100):
        judge = Judge(alpha=0.05)
        for _ in range(25):
            judge.add([0.97 * math.exp(0.01 * rng.standard_normal())], [1.0])
        answers.append(judge.within(0.03))
    assert answers.count(True) <= 6
    assert answers.count(False) <= 6


def test_the_gate_cannot_tell_while_nothing_is_valid() -> None:
    race = Race(["arm"], max_slowdown=0.03)
    race.add("arm", base=[1.0], arm=[2.0])
    assert race.within("arm") is None
    assert race.alive == ("arm",)


def test_more_arms_ask_for_more_evidence() -> None:
    assert Race(["a"], quantiles=(0.5,)).min_units == Judge().min_units
    assert Race([str(i) for i in range(8)]).min_units > Judge().min_units


def test_without_a_proven_gain_the_baseline_stays() -> None:
    race = Race(["same", "slow"])
    for _ in range(25):
        for name in race.alive:
            race.add(name, base=[10.0], arm=[10.0 if name == "same" else 12.0])
    assert {name: found.kind.value for name, found in race.findings().items()} == {
        "same": "equivalent",
        "slow": "regressed",
    }
    assert race.best() is None
    assert race.alive == ()


def test_the_best_arm_is_the_one_with_the_highest_proven_gain() -> None:
    race = Race(["good", "better"])
    for _ in range(12):
        for name in race.alive:
            race.add(name, base=[10.0], arm=[9.0 if name == "good" else 8.0])
    assert race.best() == "better"


def test_a_failed_sentinel_takes_back_every_claim() -> None:
    race = Race(["fast"])
    for _ in range(12):
        if race.alive:
            race.add("fast", base=[10.0], arm=[8.0])
        race.add_sentinel(first=[10.0], second=[9.5])
    assert race.findings()["fast"].kind == "invalid"
    assert race.best() is None


def test_a_bad_leg_does_not_count_as_a_unit() -> None:
    race = Race(["arm"])
    with pytest.raises(InputError):
        race.add("arm", base=[1.0], arm=[])
    assert race.findings()["arm"].by[0].units == 0


@pytest.mark.parametrize("arms", [[], ["a", "a"]])
def test_a_race_needs_arms_with_different_names(arms: list[str]) -> None:
    with pytest.raises(UsageError):
        Race(arms)


def test_an_unknown_arm_is_refused() -> None:
    with pytest.raises(UsageError, match="takes no units"):
        Race(["a"]).add("b", base=[1.0], arm=[1.0])


def test_results_are_json() -> None:
    assert json.loads(dumps(Race(["a"]).findings()))["a"]["kind"] == "invalid"
