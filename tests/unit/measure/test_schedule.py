"""Who is measured when: mirrored, random, and the same again for the same seed."""

from collections import Counter

import pytest

from modelwright.measure.races._schedule import Schedule, blocks_per_unit, segments


def turns(seed, count, alive=("a", "b")):
    schedule = Schedule(seed)
    return [schedule.next(alive) for _ in range(count)]


@pytest.mark.parametrize("blocks", [1, 2, 5, 8])
def test_both_slots_have_the_same_mean_position_in_time(blocks):
    order = [slot for slot, bursts in segments(blocks) for _ in range(bursts)]
    places = [[place for place, one in enumerate(order) if one == slot] for slot in (0, 1)]
    assert len(places[0]) == len(places[1]) == 2 * blocks
    assert sum(places[0]) == sum(places[1])


def test_the_coin_is_fair_for_arms_and_sentinels():
    drawn = turns(1, 4000)
    for group in ([turn for turn in drawn if turn.arm], [turn for turn in drawn if turn.arm is None]):
        first = sum(turn.base_first for turn in group)
        assert abs(first - len(group) / 2) < 3 * (len(group) / 4) ** 0.5


def test_every_fourth_unit_is_a_sentinel_and_arms_share_the_rest():
    counts = Counter(turn.arm for turn in turns(1, 400))
    assert counts == {None: 100, "a": 150, "b": 150}


def test_the_seed_decides_everything():
    assert turns(7, 50) == turns(7, 50)
    assert turns(7, 50) != turns(8, 50)


def test_a_decided_arm_gets_no_more_units():
    schedule = Schedule(0)
    schedule.next(("a", "b", "c"))
    assert {schedule.next(("b",)).arm for _ in range(20)} == {"b", None}


def test_expensive_sessions_and_short_bursts_are_measured_longer_within_limits():
    assert blocks_per_unit(open_s=0.1, block_s=0.4, least_s=0.4) == 1
    assert blocks_per_unit(open_s=0.1, block_s=0.1, least_s=0.4) == 4
    assert blocks_per_unit(open_s=0.1, block_s=0.01, least_s=0.4) == 8
    assert blocks_per_unit(open_s=3.6, block_s=0.4, least_s=0.4) == 3
    assert blocks_per_unit(open_s=600, block_s=0.4, least_s=0.4) == 8
