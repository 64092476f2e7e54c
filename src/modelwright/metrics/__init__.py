"""The one library of tensor metrics: float64, defined for every input, unknown is None with a reason."""

from modelwright.metrics._accumulate import Accumulator, Aggregate, Summary
from modelwright.metrics._compare import METRICS, Score, TensorScores, compare

__all__ = ["METRICS", "Accumulator", "Aggregate", "Score", "Summary", "TensorScores", "compare"]
