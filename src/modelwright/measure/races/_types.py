"""What `compare` is asked and what it answers. The answer with every sample is the data file."""

from __future__ import annotations

import math
from dataclasses import field
from pathlib import Path
from typing import ClassVar, Literal

from modelwright._dataclass import dataclass
from modelwright.errors import ExecutionError, UsageError
from modelwright.evidence import Environment
from modelwright.judge import TYPICAL, WORK, Finding, Forecast
from modelwright.measure._against_types import Against
from modelwright.measure._operator_types import OperatorChanges
from modelwright.measure.races._outputs import OutputCheck
from modelwright.measure.races._unit import UnitPlan, UnitRecord
from modelwright.measure.timing._subject import InputChoice, InputFact
from modelwright.models import FileDigest
from modelwright.targets import SessionFacts
from modelwright.vocabulary import Result

COMPARE_PROTOCOL = "compare-3"
"""Goes up when units measured before and after must not be mixed."""

DEFAULT_BUDGET_S = 120.0


@dataclass(frozen=True)
class CompareOptions:
    """`target` and `threads` are for arms that do not say otherwise. `by` are the quantiles of the run time that are
    judged. An arm proven slower by more than `max_slowdown` fails the gate. Arms with other answers than the base are
    refused unless `allow_different`. `measure_duplicates` times identical arms too. `seed` is for the coins; None draws
    one from the system. `unit` None is the plan that suits the arms. The units of `retry`, a result of the same
    comparison, count too.
    """

    target: str = "cpu"
    threads: int | None = None
    budget_s: float = DEFAULT_BUDGET_S
    min_effect: float = 0.02
    alpha: float = 0.05
    by: tuple[float, ...] = (WORK, TYPICAL)
    max_slowdown: float | None = None
    allow_different: bool = False
    seed: int | None = None
    inputs: InputChoice = field(default_factory=InputChoice)
    measure_duplicates: bool = False
    wait: bool = True
    unit: UnitPlan | None = None
    retry: Path | None = None

    def check(self) -> None:
        if not (math.isfinite(self.budget_s) and self.budget_s > 0):
            raise UsageError(
                f"`budget_s` {self.budget_s} is not possible",
                cause="it is a finite number of seconds above 0",
                fix=f"try `budget_s` {DEFAULT_BUDGET_S:g}",
            )
        if self.threads is not None and self.threads < 1:
            raise UsageError(
                f"`threads` {self.threads} is not possible", cause="the smallest is 1", fix="try `threads` 1"
            )
        if self.max_slowdown is not None and not 0 < self.max_slowdown < 1:
            raise UsageError(
                f"`max_slowdown` {self.max_slowdown:g} is not possible",
                cause="it is a share between 0 and 1, or a percentage",
                fix="try `max_slowdown` 3%",
            )
        if not self.by or len(set(self.by)) < len(self.by):
            raise UsageError("`by` is not possible", cause="it names quantiles, each once", fix="try `by` p10 and p50")


@dataclass(frozen=True)
class ArmResult:
    """One arm. `verdict` is None for the base; `times_ms` has one time for each quantile asked for, the median over the
    units in which the arm was measured. `within` answers the gate: None is cannot tell, or not asked.

    `operators` says where a quantized arm loses and wins time against a float base; None of other arms.

    While nothing is proven, `forecast` says what the budget can resolve and `settled_after_s` which budget would do.
    """

    name: str
    model: str
    fingerprint: str
    identity: str
    files: tuple[FileDigest, ...]
    precision: str | None
    target: str
    runtime: str | None
    facts: SessionFacts | None
    times_ms: tuple[float | None, ...]
    verdict: Finding | None
    sentence: str
    within: bool | None
    outputs: OutputCheck | None
    forecast: Forecast | None
    settled_after_s: float | None
    refused: str | None
    failure: str | None
    operators: OperatorChanges | None = None


@dataclass(frozen=True)
class CompareResult(Result):
    """A comparison: what was asked, what was fed, and every sample. Every verdict can be computed again from `units`.

    `seeds` are those of the coins, one for each call that added units; `inputs_digest` is of the arrays fed. `against`
    is an earlier time beside it, which proves nothing.
    """

    kind: ClassVar[str] = "compare"

    status: Literal["complete", "interrupted", "failed"]
    protocol: str
    base: str
    arms: tuple[ArmResult, ...]
    options: CompareOptions
    arms_as_written: tuple[str, ...]
    inputs: tuple[InputFact, ...]
    inputs_digest: str
    seeds: tuple[int, ...]
    total_s: float
    unit_s: float | None
    fresh_processes: bool
    sentinel_units: int
    sentinel_noise: float | None
    environment: Environment
    warnings: tuple[str, ...]
    units: tuple[UnitRecord, ...]
    against: Against | None = None

    @property
    def within(self) -> bool | None:
        """Whether all arms keep `max_slowdown`: one that is proven slower decides, one that is open leaves it open."""
        answers = [arm.within for arm in self.arms if arm.verdict is not None]
        return False if False in answers else None if None in answers else True

    @property
    def refused(self) -> tuple[ArmResult, ...]:
        return tuple(arm for arm in self.arms if arm.refused is not None)

    @property
    def broken(self) -> tuple[ArmResult, ...]:
        return tuple(arm for arm in self.arms if arm.failure is not None)


class ComparisonFailed(ExecutionError):
    """The base itself failed; `partial` holds what was measured until then."""

    partial: CompareResult


class ComparisonInterrupted(KeyboardInterrupt):
    """Ctrl-C; `partial` holds what was measured until then."""

    partial: CompareResult
