"""Task accuracy: two models on the same samples."""

from modelwright.evaluation._evaluate import (
    evaluate,
)
from modelwright.evaluation._paired import (
    EvalVerdict,
    Paired,
    paired,
)
from modelwright.evaluation._types import (
    Allowance,
    DataChoice,
    EvalData,
    EvalInterrupted,
    EvalOptions,
    EvalOutput,
    EvalResult,
    parse_allowance,
)
from modelwright.evaluation.tasks import (
    TASKS as EVAL_TASKS,
)
from modelwright.evaluation.tasks import (
    CustomTask,
)

__all__ = [
    "EVAL_TASKS",
    "Allowance",
    "CustomTask",
    "DataChoice",
    "EvalData",
    "EvalInterrupted",
    "EvalOptions",
    "EvalOutput",
    "EvalResult",
    "EvalVerdict",
    "Paired",
    "evaluate",
    "paired",
    "parse_allowance",
]
