"""The screening: of whom it is not known yet whether they can win, from the units they took so far.

Nothing here is told as a finding: what is given up by mistake costs a win, not a claim.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from statistics import median

from modelwright.judge import Judge, Sentinel
from modelwright.search._contender import Contender
from modelwright.search._events import UnitTaken, VariantDropped
from modelwright.search._limits import TuneLimits
from modelwright.search._variant import BASELINE

# Whoever is chosen by luck fails to be confirmed, so screening may err more often than claims may.
SCREEN_ALPHA = 0.1
HOPELESS = 5.0
MOST_UNITS = 40
# After so many units an arm is given up when its centre, so many standard errors above it, is not worth having.
FEW_UNITS, HOPE = 3, 2.5
USUAL_UNITS = 12


class Screening:
    """All units taken so far, and who may still win by them. `combined`: what won alone is being tried together."""

    def __init__(self, contenders: Mapping[str, Contender], limits: TuneLimits) -> None:
        self.contenders, self.limits, self.combined = contenders, limits, False
        self._sentinel = Sentinel(limits.min_effect, limits.judged_by[0])
        self._noise = 0.0

    def add(self, unit: UnitTaken) -> None:
        if unit.label is None:
            self._sentinel.add(*unit.slots)
            return
        contender = self.contenders[unit.label]
        judge = contender.judge = contender.judge or self._judge()
        judge.add(base=unit.base, arm=unit.arm)
        self._noise = self._pooled()
        if judge.log_ratios[-1] < -math.log(HOPELESS):
            worse = "slower" if self.limits.objective == "latency" else "the energy"
            reason = f"more than {HOPELESS:g} times {worse} in its first unit"
            contender.dropped = VariantDropped(unit.label, "hopeless", reason)

    @property
    def shift(self) -> float | None:
        """By how much the baseline differs from itself, where that spoils everything."""
        return self._sentinel.shift

    @property
    def rivals(self) -> list[Contender]:
        return [one for one in self.contenders.values() if one.runs and one.label != BASELINE]

    @property
    def alive(self) -> list[str]:
        """Of whom it is not known yet whether they can win, alone or together with others."""
        if self.shift is not None:
            return []
        return [one.label for one in self.rivals if self._open(one)]

    @property
    def missing_units(self) -> int:
        """As far as one can tell: most are decided after a dozen units."""
        return sum(max(1, USUAL_UNITS - self.contenders[label].units) for label in self.alive)

    @property
    def winners(self) -> list[Contender]:
        """Faster than the baseline as far as screening can tell, best first."""
        return sorted((one for one in self.rivals if one.is_winner), key=lambda one: one.effect, reverse=True)

    def _competing(self, contender: Contender) -> list[Contender]:
        """Those of whom only one can be taken: who changes the same, and when all is put together everyone."""
        mine = contender.variant.slots
        return [one for one in self.rivals if one is not contender and (self.combined or one.variant.slots == mine)]

    def _to_beat(self, contender: Contender) -> float:
        """What is worth having beside the surest gain of those it competes with."""
        won = [one for one in self._competing(contender) if one.is_winner]
        sure = max((one.effect - HOPE * self._error(one) for one in won), default=0.0)
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
        if not contender.is_winner:
            return False
        error = HOPE * self._error(contender)
        sure = contender.effect - error
        return error < self.limits.min_effect or all(self._hopes(one) < sure for one in self._competing(contender))

    def _hopes(self, contender: Contender) -> float:
        """The most that can be hoped of it: by the centre of its units or by their median, which a single odd unit of a
        few does not move."""
        if contender.judge is None:
            return math.inf
        ratios = contender.judge.log_ratios
        return max(contender.effect, math.expm1(median(ratios))) + HOPE * self._error(contender)

    def _error(self, contender: Contender) -> float:
        """Of its effect, by the noise that all arms share: a few units of one arm do not tell theirs."""
        return (1 + contender.effect) * self._noise / math.sqrt(max(1, contender.units))

    def _pooled(self) -> float:
        """The spread of one unit, which outliers do not move: from all arms, each around its own centre."""
        found = []
        for contender in self.contenders.values():
            ratios = contender.judge.log_ratios if contender.judge is not None else ()
            if len(ratios) > 1:
                centre, missing = math.log1p(contender.effect), math.sqrt(len(ratios) / (len(ratios) - 1))
                found += [abs(ratio - centre) * missing for ratio in ratios]
        return 1.4826 * median(found) if found else math.inf

    def _judge(self) -> Judge:
        limits = self.limits
        return Judge(limits.min_effect, SCREEN_ALPHA, quantile=limits.judged_by[0], sentinel=self._sentinel)
