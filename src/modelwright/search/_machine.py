"""The search as a state machine: events in, instructions out. It has no clock, starts nothing and writes nothing.

Screening: every variant that survives the checks takes turns with the baseline under a judge of its own, until it is
known whether it can still win. The changes that won are then tried together. Confirming: the best of all is built
anew and judged on fresh units alone; only those are reported, so whatever luck chose it is not part of the claim.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import field
from statistics import median
from typing import Literal

from modelwright._dataclass import dataclass
from modelwright.judge import Finding, Judge, Race, Sentinel, Verdict, VerdictKind
from modelwright.measure import Schedule, Turn
from modelwright.search._events import (
    Instruction,
    MakeVariants,
    RebuildVariant,
    SearchDone,
    SearchEvent,
    TakeUnit,
    TryVariants,
    UnitTaken,
    VariantDropped,
    VariantMade,
    VariantRebuilt,
    VariantTried,
    answers,
)
from modelwright.search._variant import BASELINE, Variant, combinations

# Whoever is chosen by luck fails to be confirmed, so screening may err more often than claims may.
SCREEN_ALPHA = 0.1
# Part of the budget that is kept for confirming.
RESERVE = 0.3
HOPELESS = 5.0
MOST_UNITS = 40
# After so many units an arm is given up when its centre, so many standard errors above it, is not worth having.
FEW_UNITS, HOPE = 3, 2.5
# Of two that hardly differ, by this part of the smallest effect of interest, the one with fewer changes is taken.
ALIKE = 0.5
USUAL_UNITS = 12
MOST_COMBINATIONS = 8
# In the screening, which claims nothing.
SENTINEL_EVERY = 8


Objective = Literal["latency", "size", "memory"]


@dataclass(frozen=True)
class TuneLimits:
    """What is asked of the search. `max_memory` is in bytes, of a process that opens and runs the model."""

    budget_s: float
    min_effect: float = 0.02
    alpha: float = 0.05
    by: tuple[float, ...] = (0.1, 0.5)
    objective: Objective = "latency"
    max_memory: int | None = None

    @property
    def weighs(self) -> bool:
        """Whether memory has to be measured."""
        return self.objective == "memory" or self.max_memory is not None


@dataclass
class Contender:
    """One variant and what became of it so far."""

    variant: Variant
    made: VariantMade | None = None
    tried: VariantTried | None = None
    dropped: VariantDropped | None = None
    same_as: str | None = None
    judge: Judge | None = None

    @property
    def label(self) -> str:
        return self.variant.label

    @property
    def verdict(self) -> Verdict | None:
        """None before its first unit."""
        return self.judge.verdict() if self.judge is not None else None

    @property
    def runs(self) -> bool:
        return self.dropped is None and self.same_as is None


@dataclass
class TuneSearch:
    """`next` says what to do, `tell` takes what happened. The same events give the same instructions, always."""

    variants: Sequence[Variant]
    limits: TuneLimits
    seed: int
    spent_s: float = 0.0
    confirmed_s: float = 0.0
    units: int = 0
    contenders: dict[str, Contender] = field(default_factory=dict)
    rebuilt: VariantRebuilt | None = None
    race: Race | None = None
    _combined: bool = False
    _unit_s: float = 0.0
    _noise: float = 0.0
    _turn: Turn | None = None

    def __post_init__(self) -> None:
        for variant in (Variant(), *self.variants):
            self.contenders.setdefault(variant.label, Contender(variant))
        self._schedule = Schedule(self.seed, SENTINEL_EVERY)
        self._sentinel = Sentinel(self.limits.min_effect, self.limits.by[0])

    @property
    def baseline(self) -> Contender:
        return self.contenders[BASELINE]

    @property
    def finding(self) -> Finding | None:
        """What the fresh units prove about the one that was chosen."""
        return next(iter(self.race.findings().values())) if self.race is not None else None

    def replay(self, events: Iterable[SearchEvent]) -> int:
        """Go to where the search stood when these had happened; how many of them belong to it.

        With another budget a search may come to other instructions: what does not answer them is not counted.
        """
        count = 0
        for event in events:
            if not answers(self.next(), event):
                break
            self.tell(event)
            count += 1
        return count

    # --- what to do ---------------------------------------------------------------------------------------------------

    def next(self) -> Instruction:
        if self.baseline.dropped is not None:
            return SearchDone(BASELINE, f"the baseline itself: {self.baseline.dropped.reason}")
        unmade = tuple(one.variant for one in self._running() if one.made is None)
        if unmade:
            return MakeVariants(unmade)
        untried = tuple(one.label for one in self._running() if one.tried is None)
        if untried:
            return TryVariants(untried)
        if self.baseline.tried is not None and not self.baseline.tried.timed:
            return self._smallest()
        if self.limits.objective != "latency":
            return self._combine() or self._least()
        return self._screen() or self._combine() or self._confirm()

    def _screen(self) -> Instruction | None:
        alive = self.alive if self.spent_s + self._unit_s <= (1 - RESERVE) * self.limits.budget_s else []
        return self._take(alive, confirming=False) if alive else None

    def _combine(self) -> Instruction | None:
        """What won alone is tried together, once."""
        winners = [one.variant for one in self.winners()]
        if self._combined or self.race is not None:
            return None
        self._combined = True
        fresh = [one for one in combinations(winners, MOST_COMBINATIONS) if one.label not in self.contenders]
        self.contenders |= {one.label: Contender(one) for one in fresh}
        return self.next() if fresh else None

    def _confirm(self) -> Instruction:
        best = self._best()
        if best is None:
            return SearchDone(BASELINE, self._why_none(), self._short_of())
        if self.rebuilt is None or self.rebuilt.label != best.label:
            return RebuildVariant(best.label)
        if self.race is None or self.race.arms != (best.label,):
            limits = self.limits
            self.race = Race([best.label], limits.alpha, min_effect=limits.min_effect, quantiles=limits.by)
            self._schedule, self._turn, self.confirmed_s = Schedule(self.seed + 1), None, 0.0
        if self.race.alive and self.spent_s + self._unit_s <= self.limits.budget_s:
            return self._take(list(self.race.alive), confirming=True)
        return self._verdict(self.race.arms[0])

    def _take(self, alive: list[str], *, confirming: bool) -> TakeUnit:
        if self._turn is None:
            self._turn = self._schedule.next(alive)
        return TakeUnit(self._turn.arm, self._turn.base_first, confirming)

    def _verdict(self, label: str) -> SearchDone:
        found = self.finding
        assert found is not None
        if found.kind is VerdictKind.IMPROVED:
            return SearchDone(label, f"{label} is proven faster than the baseline on a fresh build and fresh units")
        why = "was not proven faster when it was measured anew"
        more = None if self.race is None or not self.race.alive else 2 * self.limits.budget_s
        return SearchDone(BASELINE, f"{label} looked best and {why} ({found.kind.value})", more)

    def _least(self) -> Instruction:
        """By what can be read instead of timed; the best is made anew all the same."""
        objective, base = self.limits.objective, _cost(self.baseline, self.limits.objective)
        best = next(iter(self.winners()), None)
        if best is None:
            return SearchDone(BASELINE, f"no variant takes less {objective} by {self.limits.min_effect:.1%} or more")
        if self.rebuilt is None or self.rebuilt.label != best.label:
            return RebuildVariant(best.label)
        cost = _cost(best, objective)
        taken = f"takes {cost:.0f} bytes of {objective} instead of {base:.0f} ({cost / base - 1:+.1%})"
        return SearchDone(best.label, f"{best.label} {taken}, made anew; speed was not measured")

    def _short_of(self) -> float | None:
        """The budget that would do, where some are not decided."""
        if not self.alive:
            return None
        return self.needed_s if self._unit_s else 2 * max(self.spent_s, self.limits.budget_s)

    def _why_none(self) -> str:
        if self._sentinel.shift is not None:
            shift = f"{self._sentinel.shift:+.1%}"
            return f"nothing can be told: the baseline differs from itself by {shift} between the two slots"
        undecided = [one.label for one in self._running() if one.label in self.alive]
        if undecided:
            more = f"about {self.needed_s:.0f} s would do" if self._unit_s else "raise the budget"
            return f"the budget was spent before {len(undecided)} of the variants were decided; {more}"
        return "no variant was seen to be faster"

    def _smallest(self) -> SearchDone:
        """By what the target takes, then by size; the baseline wins ties."""
        best = min(self._running(), key=lambda one: (*_pieces(one), one.made.size if one.made else 0))
        left, pieces = _pieces(best)
        size = best.made.size if best.made else 0
        found = f"leaves {left} nodes to the CPU in {pieces} partitions at {size} bytes"
        return SearchDone(
            best.label, f"{best.label} {found}, and no variant does better in that order; speed was not measured"
        )

    # --- what is known ------------------------------------------------------------------------------------------------

    @property
    def alive(self) -> list[str]:
        """Those in the screening of whom it is not known yet whether they can win, alone or together with others."""
        if self._sentinel.shift is not None:
            return []
        return [one.label for one in self._rivals() if self._open(one)]

    @property
    def needed_s(self) -> float:
        """The budget that screens all who are left, as far as one can tell: most are decided after a dozen units."""
        missing = sum(max(1, USUAL_UNITS - self._units_of(label)) for label in self.alive)
        return (self.spent_s + missing * self._unit_s * 4 / 3) / (1 - RESERVE)

    def _units_of(self, label: str) -> int:
        judge = self.contenders[label].judge
        return len(judge.log_ratios) if judge is not None else 0

    def winners(self) -> list[Contender]:
        """Better than the baseline as far as screening can tell, best first."""
        objective = self.limits.objective
        if objective == "latency":
            return sorted((one for one in self._rivals() if _is_winner(one)), key=_effect, reverse=True)
        enough = _cost(self.baseline, objective) * (1 - self.limits.min_effect)
        less = [one for one in self._rivals() if _cost(one, objective) <= enough]
        return sorted(less, key=lambda one: (_cost(one, objective), len(one.variant.changes)))

    def _best(self) -> Contender | None:
        """The simplest of those that hardly differ from the one that looks best."""
        winners = self.winners()
        if not winners:
            return None
        enough = _effect(winners[0]) - ALIKE * self.limits.min_effect
        return min((one for one in winners if _effect(one) >= enough), key=lambda one: len(one.variant.changes))

    def _competing(self, contender: Contender) -> list[Contender]:
        """Those of whom only one can be taken: who changes the same, and when all is put together everyone."""
        mine = contender.variant.slots
        return [one for one in self._rivals() if one is not contender and (self._combined or one.variant.slots == mine)]

    def _to_beat(self, contender: Contender) -> float:
        """What is worth having beside the surest gain of those it competes with."""
        won = [one for one in self._competing(contender) if _is_winner(one)]
        sure = max((_effect(one) - HOPE * self._error(one) for one in won), default=0.0)
        return max(sure, 0.0) + self.limits.min_effect

    def _open(self, contender: Contender) -> bool:
        verdict = contender.verdict
        if verdict is None or verdict.units < FEW_UNITS:
            return True
        to_beat = self._to_beat(contender)
        if verdict.units >= MOST_UNITS or self._hopes(contender) < to_beat:
            return False
        return not self._settled(contender) and (verdict.high is None or verdict.high >= to_beat)

    def _settled(self, contender: Contender) -> bool:
        """It won, and its gain is known well enough to choose, or nobody it competes with can reach it."""
        if not _is_winner(contender):
            return False
        error = HOPE * self._error(contender)
        sure = _effect(contender) - error
        return error < self.limits.min_effect or all(self._hopes(one) < sure for one in self._competing(contender))

    def _hopes(self, contender: Contender) -> float:
        """The most that can be hoped of it: by the centre of its units or by their median, which a single odd unit of a
        few does not move."""
        if contender.judge is None:
            return math.inf
        ratios = contender.judge.log_ratios
        return max(_effect(contender), math.expm1(median(ratios))) + HOPE * self._error(contender)

    def _error(self, contender: Contender) -> float:
        """Of its effect, by the noise that all arms share: a few units of one arm do not tell theirs. It only ends a
        screening and is never told as a finding: what is given up by mistake costs a win, not a claim."""
        return (1 + _effect(contender)) * self._noise / math.sqrt(max(1, self._units_of(contender.label)))

    def _pooled(self) -> float:
        """The spread of one unit, which outliers do not move: from all arms, each around its own centre."""
        found = []
        for contender in self.contenders.values():
            ratios = contender.judge.log_ratios if contender.judge is not None else ()
            if len(ratios) > 1:
                centre, missing = math.log1p(_effect(contender)), math.sqrt(len(ratios) / (len(ratios) - 1))
                found += [abs(ratio - centre) * missing for ratio in ratios]
        return 1.4826 * median(found) if found else math.inf

    def _rivals(self) -> list[Contender]:
        return [one for one in self._running() if one is not self.baseline]

    def _running(self) -> list[Contender]:
        return [one for one in self.contenders.values() if one.runs]

    # --- what happened ------------------------------------------------------------------------------------------------

    def tell(self, event: SearchEvent) -> None:
        self.spent_s += event.seconds
        if isinstance(event, UnitTaken):
            self._count(event)
        elif isinstance(event, VariantRebuilt):
            self.rebuilt = event
        else:
            self._note(self.contenders[event.label], event)

    def _note(self, contender: Contender, event: VariantMade | VariantDropped | VariantTried) -> None:
        if isinstance(event, VariantDropped):
            contender.dropped, self._turn = event, None
        elif isinstance(event, VariantMade):
            contender.made = event
            others = (one for one in self.contenders.values() if one is not contender and one.made and one.runs)
            same = next((one for one in others if one.made and one.made.identity == event.identity), None)
            contender.same_as = same.label if same is not None else None
        else:
            contender.tried = event
            contender.dropped = self._displaced(event) or self._too_large(event)

    def _too_large(self, event: VariantTried) -> VariantDropped | None:
        """The baseline is what others are held against, whatever it takes."""
        most, peak = self.limits.max_memory, event.peak_bytes
        if most is None or peak is None or peak <= most or event.label == BASELINE:
            return None
        return VariantDropped(event.label, "memory", f"it takes {peak} bytes of memory, more than {most}")

    def _displaced(self, event: VariantTried) -> VariantDropped | None:
        base = self.baseline.tried
        if base is None or base.left_nodes is None or event.left_nodes is None or event.left_nodes <= base.left_nodes:
            return None
        more = event.left_nodes - base.left_nodes
        return VariantDropped(event.label, "placement", f"it leaves {more} more nodes to the CPU than the baseline")

    def _count(self, unit: UnitTaken) -> None:
        self.units += 1
        self._unit_s, self._turn = unit.seconds, None
        if self.race is not None:
            self.confirmed_s += unit.seconds
            self._confirmed(self.race, unit)
        elif unit.label is None:
            self._sentinel.add(*unit.slots)
        else:
            contender = self.contenders[unit.label]
            judge = contender.judge = contender.judge or self._judge()
            judge.add(base=unit.base_ms, arm=unit.arm_ms)
            self._noise = self._pooled()
            if judge.log_ratios[-1] < -math.log(HOPELESS):
                reason = f"more than {HOPELESS:g} times slower in its first unit"
                contender.dropped = VariantDropped(unit.label, "hopeless", reason)

    def _confirmed(self, race: Race, unit: UnitTaken) -> None:
        if unit.label is None:
            race.add_sentinel(*unit.slots)
        else:
            race.add(unit.label, base=unit.base_ms, arm=unit.arm_ms)

    def _judge(self) -> Judge:
        limits = self.limits
        return Judge(limits.min_effect, SCREEN_ALPHA, quantile=limits.by[0], sentinel=self._sentinel)


def _pieces(contender: Contender) -> tuple[int, int]:
    tried = contender.tried
    return (tried.left_nodes or 0, tried.partitions or 0) if tried is not None else (0, 0)


def _effect(contender: Contender) -> float:
    return (contender.verdict.effect or 0.0) if contender.verdict is not None else 0.0


def _is_winner(contender: Contender) -> bool:
    return contender.verdict is not None and contender.verdict.kind is VerdictKind.IMPROVED


def _cost(contender: Contender, objective: Objective) -> float:
    """In bytes; what is not known is no gain."""
    if objective == "size":
        return contender.made.size if contender.made is not None else math.inf
    peak = contender.tried.peak_bytes if contender.tried is not None else None
    return math.inf if peak is None else peak
