"""The judge: collects units, answers with a verdict that may be asked for at any time."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from modelwright._lazy import lazy
from modelwright.errors import UsageError
from modelwright.judge import _evidence, _legs
from modelwright.judge._sentinel import Sentinel
from modelwright.judge._verdict import Verdict
from modelwright.judge._words import VerdictKind

if TYPE_CHECKING:
    import numpy as np

    from modelwright.judge._evidence import Floats
    from modelwright.judge._legs import Samples
else:
    np = lazy("numpy")

MIN_TICKS = 1000
_BIMODAL_SHARE = 0.25
_ODD_SHARE = 0.2
_STANDARD_ERRORS = 3.0
_WORTH_TELLING = 0.5
_NOTHING = _evidence.Bounds(None, None)


class Judge:
    """Compares one arm with one baseline, by one quantile of the time a run takes.

    One `add` is one unit: a fresh pair of sessions created in random order, its legs mirrored in time.
    Bursts inside one pair of sessions are not units, only parts of one. Every unit counts. `verdict` is a pure
    function of what was added, and looking after every unit costs nothing. Judges of one baseline and quantile may
    share its `sentinel`.
    """

    def __init__(
        self, min_effect: float = 0.02, alpha: float = 0.05, *, quantile: float = 0.5, sentinel: Sentinel | None = None
    ) -> None:
        _inside("min_effect", min_effect, 0, 1)
        _inside("alpha", alpha, 0, 0.5)
        _inside("quantile", quantile, 0, 1)
        self.min_effect = min_effect
        self.alpha = alpha
        self.quantile = quantile
        self._ratios: list[float] = []
        self._averages: list[float] = []
        self._sentinel = Sentinel(min_effect, quantile) if sentinel is None else sentinel
        self._bimodal = 0
        self._ticks = math.inf
        self._shortest: float = math.inf
        self._known: tuple[int, _evidence.Bounds] = (0, _NOTHING)
        self._said: tuple[tuple[int, int], Verdict] | None = None

    @property
    def min_units(self) -> int:
        """Units before which no verdict is possible at this alpha."""
        return _evidence.min_units(self.alpha)

    @property
    def log_ratios(self) -> tuple[float, ...]:
        """ln(base / arm) of each unit, in order."""
        return tuple(self._ratios)

    def add(self, base: Samples, arm: Samples) -> None:
        """One unit: all samples of both legs, in any one unit of time; as bursts where they took turns, and then the
        burst at each place of one leg was taken next to the other leg's."""
        legs = _legs.unit(base, arm, ("base", "arm"))
        self._ratios.append(_legs.log_ratio(*legs, self.quantile))
        self._averages.append(_legs.average_ratio(*legs, self.quantile))
        self._bimodal += _legs.is_bimodal(*legs) or _legs.is_bimodal(*reversed(legs))
        for leg in legs:
            self._ticks = min(self._ticks, _legs.ticks(leg.samples) or math.inf)
            self._shortest = min(self._shortest, leg.samples.size)

    def add_sentinel(self, first: Samples, second: Samples) -> None:
        """One A/A unit, measured exactly as `add` is."""
        self._sentinel.add(first, second)

    def verdict(self) -> Verdict:
        """What the units prove so far."""
        added = len(self._ratios), len(self._sentinel)
        if self._said is None or self._said[0] != added:
            self._said = added, self._judged()
        return self._said[1]

    def _judged(self) -> Verdict:
        invalid = self._why_invalid()
        if invalid:
            return self._verdict(VerdictKind.INVALID, invalid, _NOTHING)
        bounds = self._bounds()
        if _contradict(bounds):
            reason = "the units contradict each other: the effect changed during the comparison"
            return self._verdict(VerdictKind.INVALID, reason, _NOTHING)
        kind = self._kind(bounds)
        return self._verdict(kind, self._reason(kind, bounds), bounds)

    def within(self, max_slowdown: float) -> bool | None:
        """Whether the arm is slower by no more than this: proven, proven not to be, or None for cannot tell.

        The interval holds for all effects at once, so this question costs no level of its own.
        """
        bounds = self._bounds()
        if self._why_invalid() or _contradict(bounds):
            return None
        edge = math.log1p(-max_slowdown)
        if bounds.high is not None and bounds.high < edge:
            return False
        near = self._near(bounds)
        return True if near.low is not None and near.low > edge else None

    def _bounds(self) -> _evidence.Bounds:
        units = len(self._ratios)
        if self._known[0] != units:
            self._known = units, _evidence.confidence_bounds(np.array(self._ratios), self.alpha)
        return self._known[1]

    def _near(self, bounds: _evidence.Bounds) -> _evidence.Bounds:
        """The bounds by which two arms may be called close: the centre's, and those of the average over all units.

        A minority of slow sessions moves the average and not the centre. One that makes up a fifth must have shown.
        """
        if len(self._averages) < equate_floor(self.alpha) or bounds.low is None or bounds.high is None:
            return _NOTHING
        average, error = float(np.mean(self._averages)), self._standard_error()
        return _evidence.Bounds(min(bounds.low, average - error), max(bounds.high, average + error))

    def _standard_error(self) -> float:
        return _STANDARD_ERRORS * float(np.std(self._averages, ddof=1)) / math.sqrt(len(self._averages))

    def _why_invalid(self) -> str | None:
        units = len(self._ratios)
        if (shift := self._sentinel.shift) is not None:
            return f"the A/A sentinel failed: the baseline differs from itself by {shift:+.1%} between the two slots"
        if self._ticks < MIN_TICKS:
            return f"the clock is too coarse: a run takes {self._ticks:.0f} of its ticks, {MIN_TICKS} are needed"
        if self._shortest < (needed := tail_runs(self.quantile)):
            return f"{_name(self.quantile)} needs {needed} runs in a leg or more, one has {self._shortest:.0f}"
        if _legs.is_central(self.quantile) and self._bimodal > _BIMODAL_SHARE * units:
            return f"bimodal legs in {self._bimodal} of {units} units: there is no one typical time"
        if units < self.min_units:
            return f"too few units: {units} of at least {self.min_units}"
        return None

    def _kind(self, bounds: _evidence.Bounds) -> VerdictKind:
        if self._inside_zone(bounds):
            return VerdictKind.EQUIVALENT if self._inside_zone(self._near(bounds)) else VerdictKind.INCONCLUSIVE
        if not _excludes_zero(bounds) or self._is_slight(bounds):
            return VerdictKind.INCONCLUSIVE
        return VerdictKind.IMPROVED if bounds.low is not None and bounds.low > 0 else VerdictKind.REGRESSED

    def _is_slight(self, bounds: _evidence.Bounds) -> bool:
        """So far from the smallest effect of interest that it is no finding, though something may be proven."""
        effect = _ratio(_centre(np.array(self._ratios), bounds))
        return effect is None or abs(effect) < _WORTH_TELLING * self.min_effect

    def _inside_zone(self, bounds: _evidence.Bounds) -> bool:
        low, high = _ratio(bounds.low), _ratio(bounds.high)
        return low is not None and high is not None and -self.min_effect < low and high < self.min_effect

    def _verdict(self, kind: VerdictKind, reason: str, bounds: _evidence.Bounds) -> Verdict:
        units = np.array(self._ratios)
        return Verdict(
            kind=kind,
            quantile=self.quantile,
            effect=_ratio(_centre(units, bounds)),
            low=_ratio(bounds.low),
            high=_ratio(bounds.high),
            units=len(units),
            reason=reason,
            noise=_legs.spread(units) if len(units) > 1 else None,
            average=_ratio(float(np.mean(self._averages))) if self._averages else None,
            bimodal=self._bimodal,
            sentinel_units=len(self._sentinel),
            min_effect=self.min_effect,
            alpha=self.alpha,
        )

    def _reason(self, kind: VerdictKind, bounds: _evidence.Bounds) -> str:
        low, high = _ratio(bounds.low), _ratio(bounds.high)
        effect = _ratio(_centre(np.array(self._ratios), bounds))
        if effect is None or low is None or high is None:
            return "no interval yet"
        span = f"{100 * (1 - self.alpha):.4g}% interval {low:+.1%} to {high:+.1%}"
        if kind is VerdictKind.EQUIVALENT:
            return f"proven within ±{self.min_effect:.1%}: {span}"
        if kind is VerdictKind.INCONCLUSIVE:
            return self._why_open(bounds, span) or f"{effect:+.1%} so far, but the {span} decides nothing"
        return f"{abs(effect):.1%} {'faster' if effect > 0 else 'slower'}, {span}"

    def _why_open(self, bounds: _evidence.Bounds, span: str) -> str | None:
        """Why an interval inside the zone is no equality yet, and one that excludes zero no effect."""
        if not self._inside_zone(bounds):
            least = _WORTH_TELLING * self.min_effect
            return f"less than {least:.1%} so far, and the {span} holds more" if _excludes_zero(bounds) else None
        floor = equate_floor(self.alpha)
        if len(self._ratios) < floor:
            return f"the {span} is narrow enough, but odd sessions may not have shown before {floor} units"
        average, error = float(np.mean(self._averages)), self._standard_error()
        spread = f"{math.expm1(average - error):+.1%} to {math.expm1(average + error):+.1%}"
        return f"the {span} is narrow enough, but some sessions are odd: their average is {spread}"


def equate_floor(alpha: float) -> int:
    """Units before which nothing is called equal: a kind of session that makes up a fifth would have shown by then.

    Half of the level is for its not showing at all, the rest for its showing too seldom.
    """
    return max(_evidence.min_units(alpha), math.ceil(math.log(alpha / 2) / math.log1p(-_ODD_SHARE)))


def tail_runs(quantile: float) -> int:
    """Runs a leg must have for a tail to be in it at all: 100 for p99."""
    return 1 if quantile <= 0.5 or _legs.is_central(quantile) else math.ceil(1 / (1 - quantile) - 1e-9)


def _contradict(bounds: _evidence.Bounds) -> bool:
    return bounds.low is not None and bounds.high is not None and bounds.low > bounds.high


def _excludes_zero(bounds: _evidence.Bounds) -> bool:
    return bounds.low is not None and bounds.high is not None and (bounds.low > 0 or bounds.high < 0)


def _centre(units: Floats, bounds: _evidence.Bounds) -> float | None:
    if len(units) == 0:
        return None
    centre = _evidence.pseudo_median(units)
    if bounds.low is not None:
        centre = max(centre, bounds.low)
    return centre if bounds.high is None else min(centre, bounds.high)


def _ratio(log_ratio: float | None) -> float | None:
    # Any two floats may be times; beyond this their ratio is no float.
    return None if log_ratio is None else math.expm1(min(log_ratio, 700.0))


def _name(quantile: float) -> str:
    return f"p{100 * quantile:g}"


def _inside(name: str, value: float, low: float, high: float) -> None:
    if not low < value < high:
        raise UsageError(
            f"{name} {value!r} is not possible",
            cause=f"{name} lies between {low} and {high}",
            fix=f"give {name} as a fraction, for example 0.02 for 2 %",
        )
