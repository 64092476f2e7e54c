"""Statistics and verdicts, of speed and of accuracy: numbers in, words out. Pure, no I/O."""

from modelwright.judge._change_points import FEWEST_TO_CHANGE, ChangePoint, change_points
from modelwright.judge._contributions import Form, contributions, heaviest
from modelwright.judge._evidence import min_units
from modelwright.judge._judge import MIN_TICKS, Judge, equate_floor, tail_runs
from modelwright.judge._margin import (
    Allowance,
    KeptMetric,
    KeptSignal,
    as_allowance,
    kept_metric,
    kept_signal,
    parse_allowance,
    reaches,
)
from modelwright.judge._paired import MIN_SAMPLES, Paired, paired
from modelwright.judge._plan import Forecast, forecast, resolvable_effect, units_needed
from modelwright.judge._race import TYPICAL, WORK, Race
from modelwright.judge._sentinel import Sentinel
from modelwright.judge._verdict import JUDGE_VERSION, Finding, Verdict, finding
from modelwright.judge._words import SAID, Said, Tone, VerdictKind, worst

__all__ = [
    "FEWEST_TO_CHANGE",
    "JUDGE_VERSION",
    "MIN_SAMPLES",
    "MIN_TICKS",
    "SAID",
    "TYPICAL",
    "WORK",
    "Allowance",
    "ChangePoint",
    "Finding",
    "Forecast",
    "Form",
    "Judge",
    "KeptMetric",
    "KeptSignal",
    "Paired",
    "Race",
    "Said",
    "Sentinel",
    "Tone",
    "Verdict",
    "VerdictKind",
    "as_allowance",
    "change_points",
    "contributions",
    "equate_floor",
    "finding",
    "forecast",
    "heaviest",
    "kept_metric",
    "kept_signal",
    "min_units",
    "paired",
    "parse_allowance",
    "reaches",
    "resolvable_effect",
    "tail_runs",
    "units_needed",
    "worst",
]
