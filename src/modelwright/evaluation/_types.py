"""What an evaluation is asked for, and what it answers. No field here is a time: accuracy runs never speak of speed."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from modelwright.errors import UsageError
from modelwright.evaluation._paired import EvalVerdict, Paired
from modelwright.evaluation.tasks import Metric
from modelwright.metrics import Aggregate
from modelwright.models import FileDigest
from modelwright.vocabulary import Result


@dataclass(frozen=True)
class Allowance:
    """How much worse the candidate may be: a share of the reference's metric, or an amount in the metric's unit."""

    amount: float
    relative: bool

    def __str__(self) -> str:
        return f"{100 * self.amount:g} %" if self.relative else f"{self.amount:g}"

    def holds(self, reference: float, kept: float, *, clearly: bool = False) -> bool:
        """Whether this much is left of the reference's metric; 0.93 - 0.92 is no more than 0.01.

        `clearly` asks for more than just that: what lies at the limit is on the wrong side every other time.
        """
        drop, allowed = reference - kept, self.amount * abs(reference) if self.relative else self.amount
        at_the_limit = math.isclose(drop, allowed, rel_tol=1e-9)
        return drop < allowed and not at_the_limit if clearly else drop <= allowed or at_the_limit


def parse_allowance(text: str) -> Allowance:
    """`1%` is relative to the reference, `0.01` and `1pt` (one point of a share) are absolute."""
    found = re.fullmatch(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*(%|pt|points?)?\s*", text.lower())
    if found is None or not 0.0 < float(found.group(1)) < 1e6:
        raise UsageError(
            f"cannot read the allowed drop '{text}'",
            cause="it is a positive number, alone (in the metric's unit), with % (of the reference) or pt (points)",
            fix="--max-drop 1%, --max-drop 0.01 or --max-drop 1pt",
        )
    amount, unit = float(found.group(1)), found.group(2)
    return Allowance(amount / 100 if unit else amount, relative=unit == "%")


@dataclass(frozen=True)
class DataChoice:
    """Which samples. `source` is a path, `random`, or a `datasets` id with :config and @split behind it."""

    source: str
    samples: int | None = None
    seed: int = 0
    scale: float | None = None
    processor: str | None = None
    columns: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class EvalOptions:
    """Beside the models and the data. `metric` is `file.py:function`; `settings` are the task's own.

    `span` declares how much worse one sample's own score can get at most, for a metric that has no such bound itself.
    """

    metric: str | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    max_drop: Allowance | None = None
    span: float | None = None
    outputs: bool = False
    min_cosine: float | None = None
    min_sqnr_db: float | None = None
    target: str = "cpu"
    reference_target: str = "cpu"
    alpha: float = 0.05
    timeout_s: float = 1800.0


@dataclass(frozen=True)
class Bound:
    """What a model really ran on; `files` is what it is, by content."""

    model: str
    engine: str
    ep_version: str | None
    target: str
    providers: tuple[str, ...]
    nodes_per_ep: tuple[tuple[str, int], ...]
    simulated: bool
    files: tuple[FileDigest, ...] = ()


@dataclass(frozen=True)
class SampleFailure:
    """A sample that gave no score: NaN or infinity came out."""

    index: int
    side: str
    reason: str


@dataclass(frozen=True)
class SampleScore:
    """What one sample (its row in the data) contributes to each metric; for a mean that is its score.

    None is a failed sample.
    """

    index: int
    candidate: float | None
    reference: float | None


@dataclass(frozen=True)
class EvalData:
    """`available` rows are there, `selected` were used; `digest` is SHA-256 over what was fed."""

    source: str
    kind: str
    available: int
    selected: int
    seed: int
    digest: str


@dataclass(frozen=True)
class EvalOutput:
    """One output against the reference's. `problem` is set when it cannot be compared at all."""

    output: str
    scores: Aggregate | None
    problem: str | None


@dataclass(frozen=True)
class Values:
    """The metric of both models; None comes with the reason."""

    candidate: float | None
    reference: float | None
    drop: float | None
    reason: str | None
    more: Mapping[str, tuple[float | None, float | None]] = field(default_factory=dict)


@dataclass(frozen=True)
class EvalResult(Result):
    """The answer. `verdict` is None where nothing was asked to hold, or not all samples were seen; `reasons` say what
    decided it."""

    kind: ClassVar[str] = "eval"

    status: Literal["complete", "interrupted"]
    task: str | None
    metric: Metric | None
    max_drop: str | None
    verdict: EvalVerdict | None
    reasons: tuple[str, ...]
    warnings: tuple[str, ...]
    candidate: Bound
    reference: Bound
    data: EvalData
    values: Values | None
    comparison: Paired | None
    outputs: tuple[EvalOutput, ...]
    failures: tuple[SampleFailure, ...]
    scores: tuple[SampleScore, ...]


class EvalInterrupted(KeyboardInterrupt):
    """Ctrl-C; `partial` is about the samples until then, and judges nothing."""

    partial: EvalResult
