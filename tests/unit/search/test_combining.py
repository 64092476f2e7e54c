"""Which combinations are tried, and what optuna proposes where they are too many to try all of them."""

import itertools

import pytest

from modelwright.search import _combining, _optuna
from modelwright.search._combining import (
    MISSING,
    MOST_COMBINATIONS,
    MOST_PROPOSED,
    Combining,
    all_of,
    space_of,
    together,
)
from modelwright.search._events import KnownEvents, MakeVariants, SearchDone, VariantDropped
from modelwright.search._limits import TuneLimits
from modelwright.search._machine import TuneSearch
from modelwright.search._optuna import propose
from modelwright.search._variant import Variant
from unit.search.test_machine import FakeDevice, change

FOUR = [change(axis) for axis in "abcd"]
CLASHES = ({"a", "b"}, {"c", "d"})


class Quarrel(FakeDevice):
    """All four gain alone; two pairs of them are slower together than neither. So all without one is bad too."""

    def __init__(self):
        super().__init__({"a": 1.05, "b": 1.06, "c": 1.07, "d": 1.05})

    def speed(self, variant):
        axes = {one.axis for one in variant.changes}
        return super().speed(variant) * 0.85 ** sum(pair <= axes for pair in CLASHES)


def run(device, proposer, *, events=(), **limits):
    search, known, happened = TuneSearch(FOUR, TuneLimits(4000.0, **limits), 1, proposer), KnownEvents(events), []
    while not isinstance(done := search.next(), SearchDone):
        before = known.take(done)
        for event in device.do(done, search) if before is None else [before]:
            search.tell(event)
            happened.append(event)
    return search, done, happened


def labels(variants):
    return {variant.label for variant in variants}


def test_a_few_combinations_are_all_tried_the_second_best_of_a_place_too():
    winners = [change("threads"), change("threads", "2"), change("level")]
    found = Combining(None, 0).begin(winners)
    assert labels(found) == {"level=1 threads=1", "level=1 threads=2"}
    assert len(together(winners, 8)) == 1


def test_where_they_are_many_only_all_and_all_without_one_are_tried_and_the_answer_says_so():
    search, done, _ = run(Quarrel(), None)
    assert len(done.champion.split()) == 1
    said = search.combining.said
    assert said.startswith("11 combinations of what won are possible")
    assert MISSING in said


def test_what_is_proposed_finds_the_pair_that_all_without_one_misses():
    search, done, _ = run(Quarrel(), propose)
    assert done.champion == "b=1 c=1"
    assert f"and {search.combining.proposed} that optuna proposed" in search.combining.said
    assert 0 < search.combining.proposed <= 11 - 5


def test_a_search_that_was_cut_anywhere_proposes_the_same_again():
    whole, done, happened = run(Quarrel(), propose)
    for cut in range(0, len(happened), 37):
        device = Quarrel()
        # The times of a unit come from the device in turn, so that the rest of them is what it would have been.
        for event in happened[:cut]:
            if hasattr(event, "base_ms"):
                device.leg(1.0)
                device.leg(1.0)
        again, ended, _ = run(device, propose, events=happened[:cut])
        assert (ended, labels(one.variant for one in again.contenders.values())) == (
            done,
            labels(one.variant for one in whole.contenders.values()),
        )


def test_to_ask_twice_what_comes_next_changes_nothing():
    once, twice = (TuneSearch(FOUR, TuneLimits(4000.0), 1, propose) for _ in range(2))
    one, other = Quarrel(), Quarrel()
    while not isinstance(first := once.next(), SearchDone):
        twice.next()
        assert twice.next() == first
        for event in one.do(first, once):
            once.tell(event)
        for event in other.do(first, twice):
            twice.tell(event)
    assert twice.next() == first


def test_nothing_is_proposed_when_the_time_for_screening_is_over():
    """What cannot be measured any more is not even made: that would be at the cost of the confirmation."""
    limits = TuneLimits(4000.0)
    search, device = TuneSearch(FOUR, limits, 1, propose), Quarrel()
    while not search.combining.begun:
        for event in device.do(search.next(), search):
            search.tell(event)
        search.spent_s = 3000.0 if len(search.winners()) == len(FOUR) else search.spent_s
        if search.spent_s >= 3000.0:
            break
    assert not isinstance(search.next(), MakeVariants)
    assert len(search.contenders) == 1 + len(FOUR)


def test_proposals_are_of_the_space_new_and_the_same_for_the_same_past():
    space = space_of([*FOUR, change("a", "2")])
    seen = [(Variant(), 0.0), *((one, 0.05) for one in FOUR)]
    found = propose(space, seen, 7, 4)
    assert found == propose(space, seen, 7, 4)
    assert len({*found}) == 4
    assert labels(found) <= labels(all_of(space))
    assert not labels(found) & labels(variant for variant, _ in seen)


def test_what_does_not_work_is_proposed_around():
    """Whatever has `a` in it breaks: its share of what is proposed gets small."""
    space = space_of([change(axis) for axis in "abcdefgh"])
    every = all_of(space)
    seen = [(one, None if "a=1" in one.label else 0.01 * len(one.changes)) for one in every[::5]]
    found = list(itertools.chain.from_iterable(propose(space, seen, seed, 4) for seed in range(8)))
    assert sum("a=1" in one.label for one in found) < len(found) / 4


def test_a_space_that_is_used_up_ends_the_proposals():
    space = space_of(FOUR[:2])
    assert propose(space, [(one, 0.1) for one in (Variant(), *FOUR[:2], *all_of(space))], 1, 4) == []


def test_no_more_is_proposed_than_stated_however_well_it_goes():
    winners = [change(f"x{place}") for place in range(12)]
    combining, seen = Combining(propose, 3), [(Variant(), 0.0)]
    fresh = combining.begin(winners)
    assert len(fresh) == MOST_COMBINATIONS
    while fresh:
        seen += [(one, 0.001 * (len(seen) + place)) for place, one in enumerate(fresh)]
        fresh = combining.more(seen)
    assert combining.proposed == MOST_PROPOSED
    assert combining.more(seen) == []


def test_what_gets_no_better_for_some_rounds_ends_it():
    combining = Combining(propose, 3)
    seen = [(one, 0.1) for one in combining.begin([change(f"x{place}") for place in range(12)])]
    while fresh := combining.more(seen):
        seen += [(one, 0.05) for one in fresh]
    assert combining.proposed == _combining.ROUND * _combining.PATIENCE


def test_a_change_outside_the_space_tells_nothing_about_it():
    told = []
    combining = Combining(lambda space, seen, seed, count: told.extend(seen) or [], 0)
    combining.begin(FOUR)
    combining.more([(Variant(), 0.0), (change("slow"), -0.5), (change("a", "2"), -0.5), (FOUR[0], 0.05)])
    assert [variant.label for variant, _ in told] == ["baseline", "a=1"]


def test_by_size_combinations_are_proposed_too():
    class Sizes(Quarrel):
        def do(self, instruction, search):
            if isinstance(instruction, MakeVariants):
                self.sizes = {one.label: round(1e6 / self.speed(one)) for one in instruction.variants}
            yield from super().do(instruction, search)

    _, done, _ = run(Sizes(), propose, objective="size")
    assert done.champion == "b=1 c=1"


def test_combinations_that_fail_are_told_and_not_tried_again():
    device = Quarrel()
    device.dropped = {"b=1 c=1": "its gate failed"}
    _, done, happened = run(device, propose)
    assert done.champion in ("a=1 c=1", "b=1 d=1")
    assert sum(isinstance(event, VariantDropped) for event in happened) == 1


def test_without_optuna_nobody_proposes(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(_optuna, "installed", lambda name: None)
    assert _optuna.find_proposer() is None
