"""The search for the configuration that is really best on a target, and its proof."""

from modelwright.search._asked import answer_file
from modelwright.search._energy import WHAT_COUNTS
from modelwright.search._experiment import ChangeQuestion, experiment
from modelwright.search._fallback import FallbackStep, fallback_chain
from modelwright.search._latency import LatencyCheck
from modelwright.search._limits import Objective, TuneLimits
from modelwright.search._portfolio import Carried, CarriedArtifact, Portfolio, PortfolioRow, portability, portfolio
from modelwright.search._space import refuse_unknown
from modelwright.search._sweep import SearchFailure, SweepInterrupted, SweepRow, TuneSweep
from modelwright.search._timeline import TimelineStep
from modelwright.search._tune import tune
from modelwright.search._types import DeviceLostError, TuneFront, TuneInterrupted, TuneOptions, TuneResult, TuneRow

__all__ = [
    "WHAT_COUNTS",
    "Carried",
    "CarriedArtifact",
    "ChangeQuestion",
    "DeviceLostError",
    "FallbackStep",
    "LatencyCheck",
    "Objective",
    "Portfolio",
    "PortfolioRow",
    "SearchFailure",
    "SweepInterrupted",
    "SweepRow",
    "TimelineStep",
    "TuneFront",
    "TuneInterrupted",
    "TuneLimits",
    "TuneOptions",
    "TuneResult",
    "TuneRow",
    "TuneSweep",
    "answer_file",
    "experiment",
    "fallback_chain",
    "portability",
    "portfolio",
    "refuse_unknown",
    "tune",
]
