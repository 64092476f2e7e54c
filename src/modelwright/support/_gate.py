"""Is there anything to contribute? The tool with the contribution beside the tool without it, by effect.

What decides is a pure function of what the builds gave. One build of a model that fails by chance says nothing, so each
arm is built with several seeds, and every count is told with its bound.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import Literal

from modelwright._dataclass import dataclass
from modelwright.support._types import ArmCount
from modelwright.support._words import GateWord

GATE = "gate-2"
"""The function that gives the word, with its version."""
BASE, BASE_TASK, WITH = "without", "without, with its task named", "with"
_ALPHA = 0.05
Standing = Literal["always", "never", "sometimes"]


@dataclass(frozen=True)
class GateRun:
    """One build in an empty store: what came of it, part by part. `hits` are stages that were not run."""

    arm: str
    seed: int
    works: bool
    hits: int = 0
    failure: str | None = None
    graphs: Mapping[str, str] = field(default_factory=dict, hash=False)
    contents: Mapping[str, str] = field(default_factory=dict, hash=False)
    precisions: Mapping[str, str] = field(default_factory=dict, hash=False)
    placements: Mapping[str, str] = field(default_factory=dict, hash=False)

    @property
    def graph(self) -> tuple[tuple[str, str], ...]:
        return tuple(sorted(self.graphs.items()))

    def effects(self) -> dict[str, Mapping[str, str]]:
        return {"graph": self.contents, "precision": self.precisions, "placement": self.placements}


@dataclass(frozen=True)
class GateJudgement:
    word: GateWord
    reasons: tuple[str, ...]
    arms: tuple[ArmCount, ...]
    differs: tuple[str, ...] = ()
    inert: tuple[str, ...] = ()


def fails_below(failures: int, runs: int) -> float:
    """What the share of failures is below, with 95 % confidence (Clopper and Pearson, one-sided)."""
    if failures >= runs:
        return 1.0
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        seen = sum(math.comb(runs, n) * middle**n * (1 - middle) ** (runs - n) for n in range(failures + 1))
        low, high = (middle, high) if seen > _ALPHA else (low, middle)
    return high


def judge_gate(runs: Sequence[GateRun], changed: Sequence[str], *, contributed: bool) -> GateJudgement:
    """`changed` are the fields in which the resolved recipe is another one with the contribution."""
    by_arm: dict[str, list[GateRun]] = {}
    for run in runs:
        by_arm.setdefault(run.arm, []).append(run)
    arms = {name: _GateArm(name, found) for name, found in by_arm.items()}
    counts = tuple(arm.count() for arm in arms.values())
    taken = [run for run in runs if run.hits]
    if taken:
        return GateJudgement("blocked", (f"{len(taken)} builds were taken from a store, and are no runs",), counts)
    base = [arm for name, arm in arms.items() if name != WITH]
    if contributed:
        return _judged(arms[WITH], base, counts, tuple(changed))
    return _alone(base, counts)


_TOGETHER: tuple[GateWord, ...] = ("blocked", "flaky", "delta", "inert", "no-delta")


def together(found: Mapping[str, GateJudgement]) -> GateJudgement:
    """Of several cases: what one of them lacks all lack, what one of them shows is shown. Needed is only what all
    need; what one needs and another does not is a difference."""
    words = {one.word for one in found.values()}
    word: GateWord = "needed"
    if words != {"needed"}:
        seen = {"delta" if one == "needed" else one for one in words}
        word = next(one for one in _TOGETHER if one in seen)
    differs = dict.fromkeys(what for one in found.values() for what in one.differs)
    if word == "delta" and "needed" in words:
        differs["whether it is built"] = None
    return GateJudgement(
        word,
        tuple(f"{case}: {reason}" for case, one in found.items() for reason in one.reasons),
        tuple(replace(arm, name=f"{case}: {arm.name}") for case, one in found.items() for arm in one.arms),
        tuple(differs),
        tuple(dict.fromkeys(name for one in found.values() for name in one.inert)) if word == "inert" else (),
    )


class _GateArm:
    """Seeds that give another graph than most count as failures."""

    def __init__(self, name: str, runs: list[GateRun]) -> None:
        self.name, self.runs = name, runs
        graphs = Counter(run.graph for run in runs if run.works)
        self.graphs = len(graphs)
        usual = graphs.most_common(1)[0][0] if graphs else None
        self.good = [run for run in runs if run.works and run.graph == usual]

    @property
    def standing(self) -> Standing:
        if len(self.good) == len(self.runs):
            return "always"
        return "sometimes" if any(run.works for run in self.runs) else "never"

    @property
    def failure(self) -> str | None:
        said = next((run.failure for run in self.runs if not run.works), None)
        return f"{self.graphs} different graphs" if said is None and self.graphs > 1 else said

    def count(self) -> ArmCount:
        works, runs = len(self.good), len(self.runs)
        return ArmCount(self.name, works, runs, fails_below(runs - works, runs), self.graphs, self.failure)

    def told(self) -> str:
        found = self.count()
        words = f"{self.name}: builds {found.works} of {found.runs}"
        if found.works == found.runs:
            return f"{words}, {bound_words(found)}"
        return words + (f" ({found.failure})" if found.failure else "")


def bound_words(count: ArmCount) -> str:
    """What is known of its failures with 95 % confidence, never less than that."""
    return f"fails < {math.ceil(count.fails_below * 100 - 1e-9)} %"


def _alone(base: list[_GateArm], counts: tuple[ArmCount, ...]) -> GateJudgement:
    told = tuple(arm.told() for arm in base)
    word: GateWord = "flaky"
    if all(arm.standing == "never" for arm in base):
        word = "blocked"
    elif all(arm.standing != "sometimes" for arm in base):
        word = "no-delta"
    return GateJudgement(word, told, counts)


def _judged(
    mine: _GateArm, base: list[_GateArm], counts: tuple[ArmCount, ...], changed: tuple[str, ...]
) -> GateJudgement:
    told = tuple(arm.told() for arm in (*base, mine))
    if mine.standing == "never":
        return GateJudgement("blocked", told, counts)
    if mine.standing == "sometimes":
        return GateJudgement("flaky", told, counts)
    if all(arm.standing == "never" for arm in base):
        return GateJudgement("needed", told, counts)
    if any(arm.standing == "sometimes" for arm in base):
        return _unsteady(mine, base, counts, told)
    effects = [_differences(mine, arm) for arm in base if arm.standing == "always"]
    differs = min(effects, key=len)
    if differs:
        return GateJudgement("delta", told, counts, differs)
    word: GateWord = "inert" if changed else "no-delta"
    fields = (f"changes nothing: {', '.join(changed)}",) if changed else ()
    return GateJudgement(word, (*told, *fields), counts, (), changed)


def _unsteady(
    mine: _GateArm, base: list[_GateArm], counts: tuple[ArmCount, ...], told: tuple[str, ...]
) -> GateJudgement:
    """A base that works by chance: only where chance is not the reason for the difference is it one."""
    best = max(base, key=lambda arm: len(arm.good))
    chance = _chance(len(best.good), len(best.runs), len(mine.good), len(mine.runs))
    if chance > _ALPHA:
        words = f"so large a difference has a chance of {chance:.2g}: more seeds would tell"
        return GateJudgement("flaky", (*told, words), counts)
    return GateJudgement("delta", (*told, f"chance would do that with {chance:.2g}"), counts, ("whether it is built",))


def _chance(works: int, runs: int, mine: int, my_runs: int) -> float:
    """Fisher's exact test, one-sided: that the better arm has so many of all successes."""
    total, good = runs + my_runs, works + mine
    ways = math.comb(total, good)
    most = min(my_runs, good)
    return (
        sum(math.comb(my_runs, n) * math.comb(runs, good - n) for n in range(mine, most + 1) if good - n <= runs) / ways
    )


def _differences(mine: _GateArm, base: _GateArm) -> tuple[str, ...]:
    """What differs at the same seed."""
    before = {run.seed: run.effects() for run in base.runs}
    found: dict[str, None] = {}
    for run in mine.runs:
        for name, effect in run.effects().items():
            if run.seed in before and dict(effect) != dict(before[run.seed][name]):
                found[name] = None
    return tuple(found)
