"""Adding models: what a model needs, and what is shown of it."""

from modelwright.support._probe import Effort, SupportProbe, TaskSurface, probe

__all__ = ["Effort", "SupportProbe", "TaskSurface", "probe"]
