"""What is asked of a search."""

from __future__ import annotations

from typing import Literal

from modelwright._dataclass import dataclass

Objective = Literal["latency", "size", "memory", "energy"]

TYPICAL_ONLY = (0.5,)


@dataclass(frozen=True)
class TuneLimits:
    """What is asked of the search. `max_memory` is in bytes, of a process that opens and runs the model;
    `max_latency_ms` is what a run may take, by the slowest quantile of `by`. Energy has no quantiles: it is read for
    many runs at once."""

    budget_s: float
    min_effect: float = 0.02
    alpha: float = 0.05
    by: tuple[float, ...] = (0.1, 0.5)
    objective: Objective = "latency"
    max_memory: int | None = None
    max_latency_ms: float | None = None

    @property
    def raced(self) -> bool:
        """Whether the objective is measured in turns and judged; else it is read once."""
        return self.objective in ("latency", "energy")

    @property
    def judged_by(self) -> tuple[float, ...]:
        return TYPICAL_ONLY if self.objective == "energy" else self.by

    @property
    def weighs(self) -> bool:
        """Whether memory has to be measured."""
        return self.objective == "memory" or self.max_memory is not None
