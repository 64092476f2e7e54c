"""What the gate is asked for, and what it answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

# How close an artifact must stay to its export: cosine of the worst output, by the precision it claims.
_COSINE = {
    "fp32": 0.9999,
    "fp16": 0.999,
    "w16a16": 0.95,
    "w8a16": 0.95,
    "w16a8": 0.90,
    "w8a8": 0.90,
    "dynamic": 0.90,
    "w4a32": 0.90,
    "w4a16": 0.90,
}
# Share of samples whose best class may change; only asked on real data, where scores are not near-ties.
_TOP1 = {"fp32": 1.0, "fp16": 0.99, "w16a16": 0.98, "w8a16": 0.95}
_TOP1_OTHER = 0.90


@dataclass(frozen=True)
class ValidateParams:
    """`min_cosine` and `min_top1` replace the bound of the precision when given."""

    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid"}

    samples: int = 4
    seed: int = 1
    min_cosine: float | None = None
    min_top1: float | None = None


@dataclass(frozen=True)
class Check:
    """One question of the gate. `detail` says what was seen, also when it passed."""

    name: str
    passed: bool
    detail: str


@dataclass(frozen=True)
class OutputParity:
    """One output against the export: worst sample. None comes with a reason."""

    output: str
    cosine: float | None
    max_abs: float | None
    sqnr_db: float | None
    top1: float | None
    identical: bool
    reason: str | None


@dataclass(frozen=True)
class ValidateOutcome:
    """`passed` is all checks; `worst_cosine` is that of the worst output, which decides."""

    passed: bool
    precision: str
    bound: float
    worst_cosine: float | None
    samples: int
    random_inputs: bool
    checks: tuple[Check, ...]
    outputs: tuple[OutputParity, ...]


def cosine_bound(precision: str) -> float:
    """The loosest step of a chain decides (`w8a8+fp16` is bound like `w8a8`)."""
    return min(_COSINE[word] for word in precision.split("+"))


def top1_bound(precision: str) -> float:
    return min(_TOP1.get(word, _TOP1_OTHER) for word in precision.split("+"))
