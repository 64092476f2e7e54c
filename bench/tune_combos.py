"""Changes that get in each other's way, on simulated devices: what won alone tried together, and what optuna proposes.

    python -m bench tune_combos

Every run plants ten changes that each gain 3 to 8 % alone, and twelve that do nothing. Three pairs of the ten clash:
together they are slower than neither. Two are values of one setting, and the one that gains less alone is the better
one beside another change. So all together is bad, and so is all without one; the best is one of each pair, and the
second value. `right`: within 2 % of the best there is. `false`: a champion that is not faster than the baseline.
Beside each other: the greedy way alone (optuna is not installed), as many combinations drawn by chance, and optuna's
proposals; the same device, truth and coins for each. The rules of the search were set on other seeds than these.
"""

from __future__ import annotations

import itertools
import math
import random
import sys
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field

import numpy as np

from bench.tune_sim import MODED, PROMISED, WITHIN, Truth, searched, table
from modelwright.search._combining import Proposer, Seen, Space
from modelwright.search._optuna import propose
from modelwright.search._variant import Variant

RUNS, SEED = 8, 20271
SMALLEST, LARGEST = 0.03, 0.08
CLASHES, NULLS = 3, 12
CLASH, HELP = 0.85, 1.08


@dataclass(frozen=True)
class Quarrel(Truth):
    """`beside`: what two changes do to each other, as a factor."""

    beside: dict[frozenset[str], float] = field(default_factory=dict)

    @property
    def best(self) -> float:
        gains = [change for change in self.speed if not change.startswith("null")]
        chosen = itertools.chain.from_iterable(itertools.combinations(gains, count) for count in range(len(gains) + 1))
        return max(self.of(one) for one in chosen if not {"way=1", "way=2"} <= {*one})

    def of(self, changes: Iterable[str]) -> float:
        named = frozenset(changes)
        return super().of(named) * math.prod(factor for pair, factor in self.beside.items() if pair <= named)


def planted(rng: np.random.Generator) -> Quarrel:
    pairs = [(f"one{place}=1", f"other{place}=1") for place in range(CLASHES)]
    alone = ["way=1", "way=2", "helper=1", "friend=1"]
    sizes = np.exp(rng.uniform(math.log(SMALLEST), math.log(LARGEST), 2 * CLASHES + len(alone)))
    speed = {change: float(1 + size) for change, size in zip([*itertools.chain(*pairs), *alone], sizes, strict=True)}
    first, second = sorted((speed["way=1"], speed["way=2"]), reverse=True)
    speed |= {"way=1": first, "way=2": second} | {f"null{place}=1": 1.0 for place in range(NULLS)}
    beside = {frozenset(pair): CLASH for pair in pairs} | {frozenset(("way=2", "helper=1")): HELP}
    return Quarrel(speed, frozenset(f"null{place}=1" for place in range(MODED)), beside)


def by_chance(space: Space, seen: Seen, seed: int, count: int) -> list[Variant]:
    """What optuna has to be better than."""
    coin, known, found = random.Random(seed), {variant for variant, _ in seen}, dict[Variant, None]()
    for _ in range(16 * count):
        drawn = (coin.choice((None, *changes)) for changes in space.values())
        variant = Variant(tuple(sorted(change for change in drawn if change is not None)))
        if variant not in known and len(variant.changes) > 1 and len(found) < count:
            found[variant] = None
    return list(found)


WAYS: dict[str, Proposer | None] = {"greedy": None, "greedy, then chance": by_chance, "greedy, then optuna": propose}


def one_run(task: tuple[int, int, int]) -> list[dict[str, object]]:
    seed, place, number = task
    truth = planted(np.random.default_rng([seed, place, number]))
    rows = []
    for way, proposer in WAYS.items():
        rng = np.random.default_rng([seed, place, number, 1])
        champion, spent, _ = searched(PROMISED[place], truth, rng, proposer)
        rows.append(_scored(way, PROMISED[place].name, truth, champion, spent))
    return rows


def _scored(way: str, device: str, truth: Quarrel, champion: list[str], seconds: float) -> dict[str, object]:
    harm, reached = bool(truth.moded.intersection(champion)), truth.of(champion)
    return {
        "way": way,
        "device": device,
        "right": not harm and reached >= truth.best / (1 + WITHIN),
        "false": bool(champion) and (harm or reached <= 1.0),
        "gain": reached - 1,
        "of_the_best": math.log(reached) / math.log(truth.best),
        "seconds": seconds,
    }


def _summed(rows: list[dict[str, object]], way: str) -> dict[str, object]:
    def mean(key: str) -> float:
        return round(float(np.mean([float(row[key]) for row in rows if row["way"] == way])), 4)  # type: ignore[arg-type]

    keys = ("right", "false", "gain", "of_the_best")
    return {"way": way, "runs": len(rows) // len(WAYS), **{key: mean(key) for key in keys}, "device_s": mean("seconds")}


def run(runs: int = RUNS, seed: int = SEED) -> dict[str, object]:
    tasks = [(seed, place, number) for number in range(runs) for place in range(len(PROMISED))]
    with ProcessPoolExecutor(2) as pool:
        rows = [row for found in pool.map(one_run, tasks) for row in found]
    greedy, chance, ours = (_summed(rows, way) for way in WAYS)
    better = all(ours["of_the_best"] > other["of_the_best"] for other in (greedy, chance))  # type: ignore[operator]
    return {
        "planted": {"gains": 10, "of": [SMALLEST, LARGEST], "pairs_that_clash": CLASHES, "nulls": NULLS},
        "ways": [greedy, chance, ours],
        "met": better and ours["right"] > greedy["right"] and ours["false"] <= 0.05,  # type: ignore[operator]
    }


if __name__ == "__main__":
    found = run(int(sys.argv[1]), int(sys.argv[2]))
    print(table(found["ways"]), f"met: {found['met']}", sep="\n\n")  # type: ignore[arg-type]
