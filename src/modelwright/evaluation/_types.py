"""What an evaluation is asked for, and what it answers. No field here is a time: accuracy runs never speak of speed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import ClassVar, Literal

from modelwright._dataclass import dataclass
from modelwright.errors import InputError
from modelwright.evaluation.tasks import Metric
from modelwright.judge import Allowance, Paired, VerdictKind
from modelwright.metrics import Aggregate
from modelwright.models import FileDigest
from modelwright.vocabulary import Result

EvalStatus = Literal["complete", "interrupted", "crashed"]


class NoRowsLeftError(InputError):
    """All rows went into the candidate's calibration: there is none to judge it by."""


@dataclass(frozen=True)
class EvalOptions:
    """Beside the models and the data. `metric` is `file.py:function`; `settings` are the task's own.

    `span` declares how much worse one sample's own score can get at most, for a metric that has no such bound itself.
    `after`: so many rows went into the candidate's calibration and are not judged.
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
    after: int = 0


@dataclass(frozen=True)
class EvalSide:
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

    status: EvalStatus
    task: str | None
    metric: Metric | None
    max_drop: str | None
    verdict: VerdictKind | None
    reasons: tuple[str, ...]
    warnings: tuple[str, ...]
    candidate: EvalSide
    reference: EvalSide
    data: EvalData
    values: Values | None
    comparison: Paired | None
    outputs: tuple[EvalOutput, ...]
    failures: tuple[SampleFailure, ...]
    scores: tuple[SampleScore, ...]


class EvalInterrupted(KeyboardInterrupt):
    """Ctrl-C; `partial` is about the samples until then, and judges nothing."""

    partial: EvalResult
