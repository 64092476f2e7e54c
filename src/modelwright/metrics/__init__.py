"""The one library of tensor metrics: float64, defined for every input, unknown is None with a reason."""

from modelwright.metrics._accumulate import Accumulator, Aggregate, Summary
from modelwright.metrics._blocked import block_moments, blocked_compare, blocks, compare_parts, is_sound
from modelwright.metrics._compare import (
    EMPTY,
    IDENTICAL,
    METRICS,
    Moments,
    Score,
    TensorScores,
    compare,
    is_of_reference,
    masked,
    scores,
)
from modelwright.metrics._leaves import LENGTH, leaves

__all__ = [
    "EMPTY",
    "IDENTICAL",
    "LENGTH",
    "METRICS",
    "Accumulator",
    "Aggregate",
    "Moments",
    "Score",
    "Summary",
    "TensorScores",
    "block_moments",
    "blocked_compare",
    "blocks",
    "compare",
    "compare_parts",
    "is_of_reference",
    "is_sound",
    "leaves",
    "masked",
    "scores",
]
