"""What to do next about an arm that is not decided."""

from __future__ import annotations

import math

from modelwright.judge import VerdictKind, forecast, min_units
from modelwright.measure.races._types import ArmResult, CompareResult

QUIETER = "measure it on a quieter machine"


def what_settles(arm: ArmResult, race: CompareResult) -> str:
    """In `budget_s`, by the noise that was seen, where time is what is missing."""
    found = arm.verdict
    too_few = found is None or any(one.units < min_units(one.alpha) for one in found.by)
    if found is not None and found.kind is VerdictKind.INVALID and not too_few:
        return QUIETER
    return more_budget(max(arm.settled_after_s or 0.0, _least_s(race)), race.total_s)


def _least_s(race: CompareResult) -> float:
    """So long take the units without which nothing is called equal, however quiet it is, with their sentinels."""
    units = forecast(0.0, race.options.min_effect, alpha=race.options.alpha).units_to_equate
    return 4 / 3 * units * (race.unit_s or 0.0)


def more_budget(needed_s: float | None, spent_s: float) -> str:
    """Twice what was spent in vain at least, whatever was foreseen."""
    most = max(needed_s or 0.0, 2 * spent_s)
    return f"give {math.ceil(most / 10) * 10:,.0f} s or more as `budget_s`, or {QUIETER}"
