"""Where accuracy goes: tensors, tasks, and how to get it back."""

from modelwright.quality._debug import DebugOptions, debug
from modelwright.quality._debug_types import (
    Activation,
    DataFacts,
    DebugInterrupted,
    DebugReport,
    DebugSummary,
    NoiseShare,
    OutputScore,
    Spread,
    Unmatched,
    WeightScore,
)
from modelwright.quality._eval import evaluate
from modelwright.quality._eval_types import (
    Allowance,
    DataChoice,
    EvalData,
    EvalInterrupted,
    EvalOptions,
    EvalOutput,
    EvalResult,
    parse_allowance,
)
from modelwright.quality._fix import fix, keeps_to_7_bits
from modelwright.quality._fix_types import FixOptions, FixPlan, FixResult, FixRow, FixScore, Raise
from modelwright.quality._paired import EvalVerdict, Paired, paired
from modelwright.quality.tasks import TASKS as EVAL_TASKS

__all__ = [
    "EVAL_TASKS",
    "Activation",
    "Allowance",
    "DataChoice",
    "DataFacts",
    "DebugInterrupted",
    "DebugOptions",
    "DebugReport",
    "DebugSummary",
    "EvalData",
    "EvalInterrupted",
    "EvalOptions",
    "EvalOutput",
    "EvalResult",
    "EvalVerdict",
    "FixOptions",
    "FixPlan",
    "FixResult",
    "FixRow",
    "FixScore",
    "NoiseShare",
    "OutputScore",
    "Paired",
    "Raise",
    "Spread",
    "Unmatched",
    "WeightScore",
    "debug",
    "evaluate",
    "fix",
    "keeps_to_7_bits",
    "paired",
    "parse_allowance",
]
