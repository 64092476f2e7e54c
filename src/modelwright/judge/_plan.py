"""How many units a question needs, and what a budget can answer.

The numbers are fits to simulations of this engine (bench/judge_proof.py repeats them): nine of ten
runs are decided within floor + factor * (noise / effect)^2 units of roughly normal noise. Equality has a floor of
its own, below which odd sessions may not have shown.
"""

from __future__ import annotations

import math

from modelwright._dataclass import dataclass
from modelwright.errors import UsageError
from modelwright.judge._evidence import min_units
from modelwright.judge._judge import equate_floor

POWER = 0.9


@dataclass(frozen=True)
class Forecast:
    """What to expect, at a nine in ten chance. `noise` is the standard deviation of a unit's log ratio."""

    noise: float
    min_effect: float
    alpha: float
    units: int | None
    units_to_find: int
    units_to_equate: int
    resolvable: float | None
    reason: str


def forecast(noise: float, min_effect: float = 0.02, units: int | None = None, *, alpha: float = 0.05) -> Forecast:
    """Units to find an effect of `min_effect`, to prove there is none, and what `units` units resolve."""
    find = units_needed(min_effect, noise, alpha=alpha)
    equate = max(equate_floor(alpha), _needed(noise / math.log1p(min_effect), alpha, _equate_factor(alpha)))
    resolvable = None if units is None else resolvable_effect(noise, units, alpha=alpha)
    return Forecast(noise, min_effect, alpha, units, find, equate, resolvable, _say(units, resolvable, find, alpha))


def units_needed(effect: float, noise: float, *, alpha: float = 0.05) -> int:
    """Units within which a true effect of this size is proven in nine of ten runs."""
    _check(noise, effect, alpha)
    return _needed(noise / math.log1p(effect), alpha, _find_factor(alpha))


def resolvable_effect(noise: float, units: int, *, alpha: float = 0.05) -> float | None:
    """The smallest effect that this many units prove in nine of ten runs; None when no effect can be."""
    _check(noise, 1.0, alpha)
    spare = units - min_units(alpha)
    if spare < 0:
        return None
    # At the floor every unit must agree: about three deviations from zero.
    return math.expm1(noise * min(3.0, math.sqrt(_find_factor(alpha) / max(spare, 1))))


def _needed(noise_per_effect: float, alpha: float, factor: float) -> int:
    return math.ceil(min_units(alpha) + factor * noise_per_effect**2)


def _find_factor(alpha: float) -> float:
    return 8.0 + 2.9 * math.log(2 / alpha)


def _equate_factor(alpha: float) -> float:
    return 10.5 + 3.1 * math.log(2 / alpha)


def _say(units: int | None, resolvable: float | None, find: int, alpha: float) -> str:
    if units is None:
        return f"{find} units decide an effect of the smallest size of interest"
    if resolvable is None:
        return f"{units} units decide nothing: at least {min_units(alpha)} are needed"
    return f"{units} units resolve effects of {resolvable:.1%} and more"


def _check(noise: float, effect: float, alpha: float) -> None:
    if not (math.isfinite(noise) and noise >= 0 and math.isfinite(effect) and effect > 0 and 0 < alpha < 0.5):
        raise UsageError(
            "nothing can be forecast",
            cause=f"noise {noise!r}, effect {effect!r}, alpha {alpha!r}",
            fix="give noise of 0 or more, an effect above 0 and an alpha between 0 and 0.5, as fractions",
        )
