"""The search for the configuration that is really best on a target, and its proof."""

from modelwright.search._experiment import ChangeQuestion, experiment
from modelwright.search._latency import LatencyCheck
from modelwright.search._limits import Objective, TuneLimits
from modelwright.search._tune import tune
from modelwright.search._types import DeviceLostError, TuneInterrupted, TuneOptions, TuneResult, TuneRow

__all__ = [
    "ChangeQuestion",
    "DeviceLostError",
    "LatencyCheck",
    "Objective",
    "TuneInterrupted",
    "TuneLimits",
    "TuneOptions",
    "TuneResult",
    "TuneRow",
    "experiment",
    "tune",
]
