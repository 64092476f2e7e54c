"""The whole of an evaluation in one call: numbers of thousands of samples stay in the child that measured them."""

from __future__ import annotations

from modelwright.evaluation._run import EvalJob, measure_pair
from modelwright.evaluation._types import EvalOptions, EvalResult
from modelwright.evaluation._verdict import judge
from modelwright.worker import task


@task
def evaluate_pair(job: EvalJob, options: EvalOptions) -> EvalResult:
    return judge(measure_pair(job), job.task, options)
