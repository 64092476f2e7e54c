"""Statistics only: units of timing in, one verdict out. Pure, no I/O."""

from modelwright.judge._evidence import min_units
from modelwright.judge._judge import MIN_TICKS, Judge, equate_floor, tail_runs
from modelwright.judge._plan import Forecast, forecast, resolvable_effect, units_needed
from modelwright.judge._race import TYPICAL, WORK, Race
from modelwright.judge._verdict import JUDGE_VERSION, Finding, Verdict, VerdictKind, finding

__all__ = [
    "JUDGE_VERSION",
    "MIN_TICKS",
    "TYPICAL",
    "WORK",
    "Finding",
    "Forecast",
    "Judge",
    "Race",
    "Verdict",
    "VerdictKind",
    "equate_floor",
    "finding",
    "forecast",
    "min_units",
    "resolvable_effect",
    "tail_runs",
    "units_needed",
]
