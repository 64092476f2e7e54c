"""Statistics only: units of timing in, one verdict out. Pure, no I/O."""

from modelwright.judge._evidence import min_units
from modelwright.judge._judge import Judge
from modelwright.judge._plan import Forecast, forecast, resolvable_effect, units_needed
from modelwright.judge._race import Race
from modelwright.judge._verdict import JUDGE_VERSION, Verdict, VerdictKind

__all__ = [
    "JUDGE_VERSION",
    "Forecast",
    "Judge",
    "Race",
    "Verdict",
    "VerdictKind",
    "forecast",
    "min_units",
    "resolvable_effect",
    "units_needed",
]
