"""Tasks: how rows and raw outputs become a metric. One small module per family, imported when asked for."""

from modelwright.evaluation.tasks._base import Context, EvalTask, Metric, Outputs, Row, Run
from modelwright.evaluation.tasks._custom import CustomTask
from modelwright.evaluation.tasks._registry import make_task, scored_task

__all__ = [
    "Context",
    "CustomTask",
    "EvalTask",
    "Metric",
    "Outputs",
    "Row",
    "Run",
    "make_task",
    "scored_task",
]
