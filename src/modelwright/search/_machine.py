"""The search as a state machine: events in, instructions out. It has no clock, starts nothing and writes nothing.

Screening: every variant that survives the checks takes turns with the baseline under a judge of its own, until it is
known whether it can still win. The changes that won are then tried together. Confirming: the best of all is built
anew and judged on fresh units alone; only those are reported, so whatever luck chose it is not part of the claim.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import field

from modelwright._dataclass import dataclass
from modelwright.judge import Finding, Race, VerdictKind
from modelwright.measure import Schedule, Turn
from modelwright.search._circuit import Circuit
from modelwright.search._combining import Combining, Proposer
from modelwright.search._contender import Contender
from modelwright.search._events import (
    DeviceCrashed,
    DeviceProbed,
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
)
from modelwright.search._latency import LatencyCheck, check, unit_quantile
from modelwright.search._limits import TuneLimits
from modelwright.search._screening import MOST_UNITS, Screening
from modelwright.search._timeline import TimelineStep, noted
from modelwright.search._variant import BASELINE, Variant

# Part of the budget that is kept for confirming.
RESERVE = 0.3
# Of two that hardly differ, by this part of the smallest effect of interest, the one with fewer changes is taken.
ALIKE = 0.5
# In the screening, which claims nothing.
SENTINEL_EVERY = 8


@dataclass
class TuneSearch:
    """`next` says what to do, `tell` takes what happened. The same events give the same instructions, always."""

    variants: Sequence[Variant]
    limits: TuneLimits
    seed: int
    proposer: Proposer | None = None
    spent_s: float = 0.0
    confirmed_s: float = 0.0
    units: int = 0
    contenders: dict[str, Contender] = field(default_factory=dict)
    rebuilt: VariantRebuilt | None = None
    race: Race | None = None
    timeline: tuple[TimelineStep, ...] = ()
    _unit_s: float = 0.0
    _turn: Turn | None = None

    def __post_init__(self) -> None:
        for variant in (Variant(), *self.variants):
            self.contenders.setdefault(variant.label, Contender(variant))
        self._schedule = Schedule(self.seed, SENTINEL_EVERY)
        self.screening = Screening(self.contenders, self.limits)
        self.combining = Combining(self.proposer, self.seed)
        self.circuit = Circuit(self.contenders)

    @property
    def baseline(self) -> Contender:
        return self.contenders[BASELINE]

    @property
    def finding(self) -> Finding | None:
        """What the fresh units prove about the one that was chosen."""
        return next(iter(self.race.findings().values())) if self.race is not None else None

    def latency(self, label: str) -> LatencyCheck | None:
        """Whether it keeps what was asked for, if anything was."""
        limits, quantile = self.limits, max(self.limits.by)
        if limits.max_latency_ms is None:
            return None
        return check(self.contenders[label].unit_ms, limits.max_latency_ms, quantile, limits.alpha)

    # --- what to do ---------------------------------------------------------------------------------------------------

    def next(self) -> Instruction:
        step = self._step()
        return self._timed(step) if isinstance(step, SearchDone) else step

    def _step(self) -> Instruction:
        asked = self.circuit.next()
        if asked is not None:
            return asked
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
        if not self.limits.raced:
            return self._combine() or self._least()
        return self._screen() or self._combine() or self._confirm()

    def _timed(self, done: SearchDone) -> Instruction:
        """More units, until it is known whether the champion takes as long as it may."""
        champion, found = self.contenders[done.champion], self.latency(done.champion)
        timed = champion.tried is not None and champion.tried.timed and champion.runs
        if found is None or found.kept is not None or not timed or done.lost or self.spent_s >= self.limits.budget_s:
            return done
        if found.units >= MOST_UNITS:
            return done
        label = None if champion is self.baseline else champion.label
        return TakeUnit(label, self.units % 2 == 0, confirming=True)

    def _screen(self) -> Instruction | None:
        alive = self.alive if self._has_time else []
        return self._take(alive, confirming=False) if alive else None

    def _combine(self) -> Instruction | None:
        """What won alone is tried together, as long as there is time to measure it."""
        if not self._has_time:
            return None
        found = self.combining.more(self._seen()) if self.combining.begun else self._begun()
        fresh = [one for one in found if one.label not in self.contenders]
        self.contenders.update({one.label: Contender(one) for one in fresh})
        return self._step() if fresh else None

    def _begun(self) -> list[Variant]:
        self.screening.combined = True
        return self.combining.begin([one.variant for one in self.winners()])

    def _seen(self) -> list[tuple[Variant, float | None]]:
        """What everybody gained so far; who is the same as another gains the same."""
        return [
            (one.variant, self._gain(self.contenders[one.same_as or one.label])) for one in self.contenders.values()
        ]

    def _gain(self, one: Contender) -> float | None:
        objective = self.limits.objective
        if not one.runs:
            return None
        return one.effect if self.limits.raced else self.baseline.cost(objective) / one.cost(objective) - 1

    def _confirm(self) -> Instruction:
        best = self._best()
        if best is None:
            return SearchDone(BASELINE, self._why_none(), self._short_of())
        if self.rebuilt is None or self.rebuilt.label != best.label:
            return RebuildVariant(best.label)
        if self.race is None or self.race.arms != (best.label,):
            limits = self.limits
            self.race = Race([best.label], limits.alpha, min_effect=limits.min_effect, quantiles=limits.judged_by)
            self._schedule, self._turn, self.confirmed_s = Schedule(self.seed + 1), None, 0.0
            best.unit_ms.clear()
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
            return SearchDone(
                label, f"{label} is proven {self._better} than the baseline on a fresh build and fresh units"
            )
        why = f"was not proven {self._better} when it was measured anew"
        more = None if self.race is None or not self.race.alive else 2 * self.limits.budget_s
        return SearchDone(BASELINE, f"{label} looked best and {why} ({found.kind.value})", more)

    def _least(self) -> Instruction:
        """By what can be read instead of timed; the best is made anew all the same."""
        objective, base = self.limits.objective, self.baseline.cost(self.limits.objective)
        best = next(iter(self.winners()), None)
        if best is None:
            return SearchDone(BASELINE, f"no variant takes less {objective} by {self.limits.min_effect:.1%} or more")
        if self.rebuilt is None or self.rebuilt.label != best.label:
            return RebuildVariant(best.label)
        cost = best.cost(objective)
        taken = f"takes {cost:.0f} bytes of {objective} instead of {base:.0f} ({cost / base - 1:+.1%})"
        return SearchDone(best.label, f"{best.label} {taken}, made anew; speed was not measured")

    def _short_of(self) -> float | None:
        """The budget that would do, where some are not decided."""
        if not self.alive:
            return None
        return self.needed_s if self._unit_s else 2 * max(self.spent_s, self.limits.budget_s)

    def _why_none(self) -> str:
        if self.screening.shift is not None:
            shift = f"{self.screening.shift:+.1%}"
            return f"nothing can be told: the baseline differs from itself by {shift} between the two slots"
        undecided = self.alive
        if undecided:
            more = f"a budget of about {math.ceil(self.needed_s)} s would do" if self._unit_s else "raise the budget"
            who = undecided[0] if len(undecided) == 1 else f"{len(undecided)} of the variants"
            return f"the part of the budget that is for screening ended before {who} could be decided; {more}"
        return f"no variant was seen {'to be ' if self._better == 'faster' else ''}{self._better}"

    @property
    def _better(self) -> str:
        return "to take less energy" if self.limits.objective == "energy" else "faster"

    def _smallest(self) -> SearchDone:
        """By what the target takes, then by size; the baseline wins ties."""
        best = min(self._running(), key=lambda one: (*one.pieces, one.made.size if one.made else 0))
        left, pieces = best.pieces
        size = best.made.size if best.made else 0
        nodes, parts = ("1 node" if left == 1 else f"{left} nodes"), ("1 piece" if pieces == 1 else f"{pieces} pieces")
        found = f"leaves {nodes} to the CPU, in {parts}, at {size:,} bytes"
        return SearchDone(
            best.label, f"{best.label} {found}, and no variant does better in that order; speed was not measured"
        )

    # --- what is known ------------------------------------------------------------------------------------------------

    @property
    def alive(self) -> list[str]:
        return self.screening.alive

    @property
    def _has_time(self) -> bool:
        """For more units before the best is confirmed, or builds where nothing is timed."""
        return self.race is None and self.spent_s + self._unit_s <= (1 - RESERVE) * self.limits.budget_s

    @property
    def needed_s(self) -> float:
        """The budget that screens all who are left, as far as one can tell."""
        return (self.spent_s + self.screening.missing_units * self._unit_s * 4 / 3) / (1 - RESERVE)

    def winners(self) -> list[Contender]:
        """Better than the baseline as far as one can tell before it is made anew, best first."""
        objective = self.limits.objective
        if self.limits.raced:
            return self.screening.winners
        enough = self.baseline.cost(objective) * (1 - self.limits.min_effect)
        less = [one for one in self.screening.rivals if one.cost(objective) <= enough]
        return sorted(less, key=lambda one: (one.cost(objective), len(one.variant.changes)))

    def _best(self) -> Contender | None:
        """The simplest of those that hardly differ from the one that looks best."""
        winners = self.winners()
        if not winners:
            return None
        enough = winners[0].effect - ALIKE * self.limits.min_effect
        return min((one for one in winners if one.effect >= enough), key=lambda one: len(one.variant.changes))

    def _running(self) -> list[Contender]:
        return [one for one in self.contenders.values() if one.runs]

    # --- what happened ------------------------------------------------------------------------------------------------

    def tell(self, event: SearchEvent) -> None:
        self.timeline = noted(self.timeline, event, self.spent_s)
        self.spent_s += event.seconds
        if isinstance(event, UnitTaken):
            self._count(event)
        elif isinstance(event, VariantRebuilt):
            self.rebuilt = event
        elif isinstance(event, DeviceCrashed):
            self._turn = None
            self.circuit.crashed(event)
        elif isinstance(event, DeviceProbed):
            self.circuit.probed(event)
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
            contender.dropped = self.circuit.blocked(contender)
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
        nodes = "1 more node" if more == 1 else f"{more} more nodes"
        return VariantDropped(event.label, "placement", f"it leaves {nodes} to the CPU than the baseline")

    def _count(self, unit: UnitTaken) -> None:
        self.units += 1
        self._unit_s, self._turn = unit.seconds, None
        self._note_times(unit)
        if not unit.confirming:
            self.screening.add(unit)
        elif self.race is not None and self.race.alive:
            self._confirmed(self.race, unit)

    def _confirmed(self, race: Race, unit: UnitTaken) -> None:
        self.confirmed_s += unit.seconds
        if unit.label is None:
            race.add_sentinel(*unit.slots)
        else:
            race.add(unit.label, base=unit.base, arm=unit.arm)

    def _note_times(self, unit: UnitTaken) -> None:
        """What runs take, where that was asked for; who is small and too slow makes room for the next."""
        if self.limits.max_latency_ms is None:
            return
        arm, quantile = self.contenders[unit.label or BASELINE], max(self.limits.by)
        self.baseline.unit_ms.append(unit_quantile(unit.base_ms, quantile))
        arm.unit_ms.append(unit_quantile(unit.arm_ms, quantile))
        found = self.latency(arm.label)
        out = found is not None and (found.kept is False or (found.kept is None and found.units >= MOST_UNITS))
        if found is not None and out and self.limits.objective != "latency" and arm is not self.baseline:
            arm.dropped = VariantDropped(arm.label, "latency", found.reason)
