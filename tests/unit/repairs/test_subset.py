"""The search for the cheapest good set, on made-up things whose noise and cost are known for every set."""

from __future__ import annotations

import itertools
import random

import pytest

from modelwright.repairs._subset import Spent, SubsetSearch, Things, Trial

LIMIT = 1.0


class World:
    """Things with a price and a noise each. Counts what is tried, and refuses after `most`."""

    def __init__(self, prices, noises, most=10_000, good=None, refused=None):
        self.prices, self.noises, self.most = prices, noises, most
        self._is_good = good or (lambda chosen: self.noise(chosen) <= LIMIT)
        self._refused = refused or (lambda chosen: False)
        self.asked = []

    def noise(self, chosen):
        return max(0.1, sum(noise for thing, noise in enumerate(self.noises) if thing not in chosen))

    def cost(self, chosen):
        return 100.0 + sum(self.prices[thing] for thing in chosen)

    def good(self, chosen):
        return not self._refused(chosen) and self._is_good(chosen)

    def ask(self, chosen):
        if len(self.asked) >= self.most:
            raise Spent
        self.asked.append(chosen)
        return Trial(self.good(chosen), None if self._refused(chosen) else self.noise(chosen), self.cost(chosen))

    def search(self):
        found = SubsetSearch(Things(tuple(self.noises), self.cost), self.ask)
        found.run()
        return found

    def sets(self):
        count = range(len(self.prices))
        return (frozenset(one) for size in range(len(self.prices) + 1) for one in itertools.combinations(count, size))

    def optimum(self):
        return min((self.cost(chosen) for chosen in self.sets() if self.good(chosen)), default=None)


def test_the_last_thing_is_left_out_too_where_the_others_will_do():
    """Neither of the first two is enough, both are; and then the third, which was needed by nobody, is dear."""
    world = World([10, 10, 10], [1.0, 1.0, 1.0], good=lambda chosen: 0 in chosen)
    assert world.search().best == frozenset({0})
    world = World([10, 10, 10, 500], [1.0, 1.0, 1.0, 1.0], good=lambda chosen: len(chosen & {0, 1, 2}) == 3)
    found = world.search()
    assert found.best == frozenset({0, 1, 2})
    assert found.minimal


@pytest.mark.parametrize("size", [3, 5, 6, 7, 11, 21, 29])
def test_a_size_between_half_and_all_is_found_when_all_is_refused(size):
    """As many as the start of the order, no more and no less."""
    only = frozenset(range(size))
    world = World([1] * 30, [1.0] * 30, good=lambda chosen: chosen == only, refused=lambda chosen: len(chosen) > size)
    assert world.search().best == only
    assert world.asked.index(only) <= 30


@pytest.mark.parametrize("size", [3, 6, 13, 22])
def test_a_size_in_the_middle_is_found_when_more_is_worse(size):
    world = World([1] * 30, [1.0] * 30, good=lambda chosen: chosen == frozenset(range(size)))
    found = world.search()
    assert found.best == frozenset(range(size))
    assert found.minimal


def test_a_set_that_is_no_start_of_the_order_is_found():
    """What is raised first makes it worse."""
    world = World([1] * 6, [-3.0, 5.0, -1.0, 2.0, 1.0, 1.0], good=lambda chosen: 0 not in chosen and {1, 3} <= chosen)
    assert world.search().best == frozenset({1, 3})


@pytest.mark.parametrize("seed", range(30))
def test_it_is_good_minimal_and_nearly_as_cheap_as_can_be(seed):
    coin = random.Random(seed)
    count = coin.randrange(3, 9)
    world = World(
        [coin.choice([0, 1, 10, 40, 100]) * coin.random() for _ in range(count)],
        sorted((coin.lognormvariate(0, 1.5) for _ in range(count)), reverse=True),
        most=40,
    )
    found = world.search()
    assert world.good(found.best)
    assert found.minimal
    assert all(not world.good(found.best - {thing}) for thing in found.best)
    assert world.cost(found.best) <= 1.05 * world.optimum()


def test_what_is_spent_leaves_the_best_so_far_and_does_not_call_it_minimal():
    world = World([10] * 6, [1.0] * 6, most=5, good=lambda chosen: 5 in chosen)
    found = world.search()
    assert found.best == frozenset(range(6))
    assert not found.minimal


def test_nothing_is_asked_twice():
    world = World([5, 3, 8, 1, 9], [3.0, 2.0, 1.0, 0.5, 0.2])
    world.search()
    assert len(world.asked) == len(set(world.asked))


def test_that_nothing_helps_is_only_known_where_everything_was_taken_together():
    never = {"good": lambda chosen: False}
    assert World([1.0] * 3, [1.0] * 3, **never).search().whole
    assert not World([1.0] * 3, [1.0] * 3, most=2, **never).search().whole
    assert not World([1.0] * 3, [1.0] * 3, refused=lambda chosen: len(chosen) == 3, **never).search().whole
