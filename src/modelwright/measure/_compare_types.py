"""What `compare` is asked and what it answers. The answer with every sample is the data file."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal

from modelwright.errors import ExecutionError, UsageError
from modelwright.judge import Forecast, Verdict
from modelwright.measure._environment import Environment
from modelwright.measure._subject import InputChoice
from modelwright.measure._unit import UnitPlan, UnitRecord
from modelwright.targets import SessionFacts

COMPARE_PROTOCOL = "compare-1"
"""Goes up when units measured before and after must not be mixed."""

DEFAULT_BUDGET_S = 120.0


@dataclass(frozen=True)
class CompareOptions:
    """`target` and `threads` are for arms that do not say otherwise. `measure_duplicates` times identical arms too."""

    target: str = "cpu"
    threads: int | None = None
    budget_s: float = DEFAULT_BUDGET_S
    min_effect: float = 0.02
    alpha: float = 0.05
    seed: int = 0
    inputs: InputChoice = field(default_factory=InputChoice)
    measure_duplicates: bool = False
    wait: bool = True
    unit: UnitPlan = field(default_factory=UnitPlan)

    def check(self) -> None:
        if not (math.isfinite(self.budget_s) and self.budget_s > 0):
            raise UsageError(
                f"--budget {self.budget_s} is not possible",
                cause="it is a finite number of seconds above 0",
                fix=f"try --budget {DEFAULT_BUDGET_S:g}",
            )
        if self.threads is not None and self.threads < 1:
            raise UsageError(
                f"--threads {self.threads} is not possible", cause="the smallest is 1", fix="try --threads 1"
            )


@dataclass(frozen=True)
class OutputCheck:
    """An arm's answers beside the base's. `problem` is set when they are no answers at all."""

    problem: str | None
    cosine: float | None
    max_abs: float | None


@dataclass(frozen=True)
class ArmResult:
    """One arm. `verdict` is None for the base; `p50_ms` is the median over its units of their medians.

    While it is not decided, `forecast` says what the budget can resolve and `settled_after_s` which budget would do.
    """

    name: str
    model: str
    fingerprint: str
    precision: str | None
    target: str
    runtime: str | None
    facts: SessionFacts | None
    p50_ms: float | None
    verdict: Verdict | None
    sentence: str
    outputs: OutputCheck | None
    forecast: Forecast | None
    settled_after_s: float | None
    failure: str | None


@dataclass(frozen=True)
class CompareResult:
    """A comparison. Every verdict can be computed again from `units`."""

    status: Literal["complete", "interrupted", "failed"]
    protocol: str
    base: str
    arms: tuple[ArmResult, ...]
    min_effect: float
    alpha: float
    seed: int
    budget_s: float
    total_s: float
    unit_s: float | None
    unit_plan: UnitPlan
    fresh_processes: bool
    sentinel_units: int
    sentinel_noise: float | None
    environment: Environment
    warnings: tuple[str, ...]
    units: tuple[UnitRecord, ...]

    @property
    def regressed(self) -> bool:
        return any(arm.verdict is not None and arm.verdict.kind == "regressed" for arm in self.arms)

    @property
    def broken(self) -> tuple[ArmResult, ...]:
        return tuple(arm for arm in self.arms if arm.failure is not None)


class ComparisonFailed(ExecutionError):
    """The base itself failed; `partial` holds what was measured until then."""

    partial: CompareResult


class ComparisonInterrupted(KeyboardInterrupt):
    """Ctrl-C; `partial` holds what was measured until then."""

    partial: CompareResult
