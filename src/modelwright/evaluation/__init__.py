"""Task accuracy: two models on the same samples."""

from modelwright.evaluation._evaluate import (
    evaluate,
)
from modelwright.evaluation._types import (
    EvalData,
    EvalInterrupted,
    EvalOptions,
    EvalOutput,
    EvalResult,
    NoRowsLeftError,
    SampleScore,
)
from modelwright.evaluation.tasks import (
    CustomTask,
)

__all__ = [
    "CustomTask",
    "EvalData",
    "EvalInterrupted",
    "EvalOptions",
    "EvalOutput",
    "EvalResult",
    "NoRowsLeftError",
    "SampleScore",
    "evaluate",
]
