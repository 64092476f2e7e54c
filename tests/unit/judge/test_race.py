"""Racing many arms against one baseline."""

from __future__ import annotations

import json

import pytest

from modelwright._json import dumps
from modelwright.errors import InputError, UsageError
from modelwright.judge import Judge, Race


def test_an_arm_is_dropped_as_soon_as_it_is_decided_and_takes_no_more_units() -> None:
    race = Race(["fast", "same"])
    while "fast" in race.alive:
        verdict = race.add("fast", base=[10.0], arm=[8.0])
    assert verdict.kind == "improved"
    assert race.alive == ("same",)
    with pytest.raises(UsageError) as caught:
        race.add("fast", base=[10.0], arm=[8.0])
    assert caught.value.cause == "it is decided"
    assert "same" in caught.value.fix


def test_more_arms_ask_for_more_evidence() -> None:
    assert Race(["a"]).min_units == Judge().min_units
    assert Race([str(i) for i in range(8)]).min_units > Judge().min_units


def test_without_a_proven_gain_the_baseline_stays() -> None:
    race = Race(["same", "slow"])
    for _ in range(12):
        for name in race.alive:
            race.add(name, base=[10.0], arm=[10.0 if name == "same" else 12.0])
    assert {name: verdict.kind.value for name, verdict in race.verdicts().items()} == {
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
    assert race.verdicts()["fast"].kind == "invalid"
    assert race.best() is None


def test_a_bad_leg_does_not_count_as_a_unit() -> None:
    race = Race(["arm"])
    with pytest.raises(InputError):
        race.add("arm", base=[1.0], arm=[])
    assert race.verdicts()["arm"].units == 0


@pytest.mark.parametrize("arms", [[], ["a", "a"]])
def test_a_race_needs_arms_with_different_names(arms: list[str]) -> None:
    with pytest.raises(UsageError):
        Race(arms)


def test_an_unknown_arm_is_refused() -> None:
    with pytest.raises(UsageError, match="takes no units"):
        Race(["a"]).add("b", base=[1.0], arm=[1.0])


def test_results_are_json() -> None:
    assert json.loads(dumps(Race(["a"]).verdicts()))["a"]["kind"] == "invalid"
