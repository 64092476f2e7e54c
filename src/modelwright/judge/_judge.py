"""The judge: collects units, answers with a verdict that may be asked for at any time."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from modelwright._lazy import lazy
from modelwright.errors import UsageError
from modelwright.judge import _evidence, _legs
from modelwright.judge._verdict import Verdict, VerdictKind

if TYPE_CHECKING:
    import numpy as np

    from modelwright.judge._evidence import Floats
    from modelwright.judge._legs import Samples
else:
    np = lazy("numpy")

SENTINEL_ALPHA = 0.05
_BIMODAL_SHARE = 0.25


class Judge:
    """Compares one arm with one baseline.

    One `add` is one unit: a fresh pair of sessions created in random order, its legs mirrored in time.
    Blocks inside one pair of sessions are not units; pool their samples. `verdict` is a pure function
    of what was added, and looking after every unit costs nothing.
    """

    def __init__(self, min_effect: float = 0.02, alpha: float = 0.05, *, quantile: float = 0.5) -> None:
        _inside("min_effect", min_effect, 0, 1)
        _inside("alpha", alpha, 0, 0.5)
        _inside("quantile", quantile, 0, 1)
        self.min_effect = min_effect
        self.alpha = alpha
        self.quantile = quantile
        self._ratios: list[float] = []
        self._sentinel: list[float] = []
        self._set_aside = 0

    @property
    def min_units(self) -> int:
        """Units before which no verdict is possible at this alpha."""
        return _evidence.min_units(self.alpha)

    @property
    def log_ratios(self) -> tuple[float, ...]:
        """ln(base / arm) of each unit that counts, in order."""
        return tuple(self._ratios)

    def add(self, base: Samples, arm: Samples) -> None:
        """One unit: all samples of both legs, in any one unit of time."""
        base_times, arm_times = _legs.checked(base, "base"), _legs.checked(arm, "arm")
        if _legs.is_bimodal(base_times) or _legs.is_bimodal(arm_times):
            # Setting it aside is fair: the test does not know which leg is which.
            self._set_aside += 1
            return
        self._ratios.append(self._log_ratio(base_times, arm_times))

    def add_sentinel(self, first: Samples, second: Samples) -> None:
        """One A/A unit: the baseline against itself, measured exactly as `add` is."""
        self._sentinel.append(self._log_ratio(_legs.checked(first, "first"), _legs.checked(second, "second")))

    def verdict(self) -> Verdict:
        """What the units prove so far."""
        units = np.array(self._ratios)
        invalid = self._why_invalid()
        if invalid:
            return self._verdict(VerdictKind.INVALID, invalid, units, _evidence.Bounds(None, None))
        bounds = _evidence.confidence_bounds(units, self.alpha)
        if bounds.low is not None and bounds.high is not None and bounds.low > bounds.high:
            reason = "the units contradict each other: the effect changed during the comparison"
            return self._verdict(VerdictKind.INVALID, reason, units, _evidence.Bounds(None, None))
        kind = self._kind(bounds)
        return self._verdict(kind, "", units, bounds)

    def _log_ratio(self, above: Floats, below: Floats) -> float:
        return _legs.log_level(above, self.quantile) - _legs.log_level(below, self.quantile)

    def _why_invalid(self) -> str | None:
        if _evidence.excludes(np.array(self._sentinel), 0.0, SENTINEL_ALPHA):
            shift = math.expm1(_evidence.pseudo_median(np.array(self._sentinel)))
            return f"the A/A sentinel failed: the baseline differs from itself by {shift:+.1%}"
        measured = len(self._ratios) + self._set_aside
        if self._set_aside > _BIMODAL_SHARE * measured:
            return f"bimodal legs in {self._set_aside} of {measured} units: there is no one typical time"
        if len(self._ratios) < self.min_units:
            return f"too few units: {len(self._ratios)} of at least {self.min_units}"
        return None

    def _kind(self, bounds: _evidence.Bounds) -> VerdictKind:
        low, high = _ratio(bounds.low), _ratio(bounds.high)
        if low is None or high is None:
            return VerdictKind.INCONCLUSIVE
        if -self.min_effect < low and high < self.min_effect:
            return VerdictKind.EQUIVALENT
        if low > 0:
            return VerdictKind.IMPROVED
        if high < 0:
            return VerdictKind.REGRESSED
        return VerdictKind.INCONCLUSIVE

    def _verdict(self, kind: VerdictKind, reason: str, units: Floats, bounds: _evidence.Bounds) -> Verdict:
        low, high = _ratio(bounds.low), _ratio(bounds.high)
        effect = _ratio(_centre(units, bounds))
        return Verdict(
            kind=kind,
            effect=effect,
            low=low,
            high=high,
            units=len(units),
            reason=reason or self._sentence(kind, effect, low, high),
            noise=_legs.spread(units) if len(units) > 1 else None,
            set_aside=self._set_aside,
            sentinel_units=len(self._sentinel),
            min_effect=self.min_effect,
            alpha=self.alpha,
        )

    def _sentence(self, kind: VerdictKind, effect: float | None, low: float | None, high: float | None) -> str:
        if effect is None or low is None or high is None:
            return "no interval yet"
        span = f"{100 * (1 - self.alpha):.4g}% interval {low:+.1%} to {high:+.1%}"
        if kind is VerdictKind.EQUIVALENT:
            return f"proven within ±{self.min_effect:.1%}: {span}"
        if kind is VerdictKind.INCONCLUSIVE:
            return f"{effect:+.1%} so far, but the {span} decides nothing"
        return f"{abs(effect):.1%} {'faster' if effect > 0 else 'slower'}, {span}"


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


def _inside(name: str, value: float, low: float, high: float) -> None:
    if not low < value < high:
        raise UsageError(
            f"{name} {value!r} is not possible",
            cause=f"{name} lies between {low} and {high}",
            fix=f"give {name} as a fraction, for example 0.02 for 2 %",
        )
