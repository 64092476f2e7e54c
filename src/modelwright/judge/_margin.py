"""What may be lost, and how sure one must be that no more is: the margins of gates and repairs. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from modelwright._dataclass import dataclass
from modelwright._lazy import lazy
from modelwright.errors import UsageError
from modelwright.judge._paired import MIN_SAMPLES, paired
from modelwright.judge._words import VerdictKind

if TYPE_CHECKING:
    import numpy as np
else:
    np = lazy("numpy")

# One-sided 95 %.
_CONFIDENCE = 1.645


@dataclass(frozen=True)
class Allowance:
    """How much worse the candidate may be: a share of the reference's metric, or an amount in the metric's unit. It was
    said in `points` where it means something of metrics from 0 to 1 only."""

    amount: float
    relative: bool
    points: bool = False

    def __str__(self) -> str:
        return f"{100 * self.amount:g} %" if self.relative else f"{self.amount:g}"

    def holds(self, reference: float, kept: float) -> bool:
        """Whether this much is left of the reference's metric; 0.93 - 0.92 is no more than 0.01."""
        drop, allowed = reference - kept, self.amount * abs(reference) if self.relative else self.amount
        return drop <= allowed or math.isclose(drop, allowed, rel_tol=1e-9)


def parse_allowance(text: str) -> Allowance:
    """`1%` is relative to the reference, `0.01` and `1pt` (one point of a share) are absolute."""
    found = re.fullmatch(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*(%|pt|points?)?\s*", text.lower())
    if found is None or not 0.0 < float(found.group(1)) < 1e6:
        raise UsageError(
            f"cannot read the allowed drop '{text}'",
            cause="it is a positive number, alone (in the metric's unit), with % (of the reference) or pt (points)",
            fix="`max_drop` is written 1%, 0.01 or 1pt",
        )
    amount, unit = float(found.group(1)), found.group(2)
    return Allowance(amount / 100 if unit else amount, relative=unit == "%", points=unit not in (None, "%"))


def as_allowance(said: str | float | Allowance | None) -> Allowance | None:
    """A text or a number is read; None is nothing allowed for, and stays None."""
    return parse_allowance(str(said)) if isinstance(said, str | float | int) else said


def reaches(decibels: float | None, wanted: float) -> bool:
    """Whether a signal is as clear as wanted; None is without any noise. What differs by rounding is equal."""
    return decibels is None or decibels >= wanted or math.isclose(decibels, wanted, rel_tol=1e-9)


@dataclass(frozen=True)
class KeptSignal:
    """The SQNR of one output over samples, and what other samples will keep with 95 % confidence; None when nothing
    differs. `ratio` is noise to signal."""

    ratio: float
    decibels: float | None
    low_decibels: float | None


def kept_signal(signal: Sequence[float], noise: Sequence[float]) -> KeptSignal:
    """From the power of signal and noise of each sample."""
    total = sum(signal)
    ratio = sum(noise) / total if total > 0 else 0.0
    if not ratio:
        return KeptSignal(0.0, None, None)
    rest = [one - ratio * power for one, power in zip(noise, signal, strict=True)]
    count = len(rest)
    error = math.sqrt(sum(item**2 for item in rest) * count / max(1, count - 1)) / total
    return KeptSignal(ratio, _decibels(ratio), _decibels(ratio + _CONFIDENCE * error))


def _decibels(ratio: float) -> float:
    return -10.0 * math.log10(ratio)


@dataclass(frozen=True)
class KeptMetric:
    """Two means over the same samples, and what these prove about what may be lost.

    `carried`: so many samples would prove it if nothing were lost. `needed` decide it if the true drop is the one seen;
    None where no number does, or where `reason` says why nothing is ever decided.
    """

    candidate: float
    reference: float
    verdict: VerdictKind
    carried: bool
    needed: int | None
    reason: str | None


def kept_metric(
    scores: Sequence[tuple[float, float]], allowed: Allowance | None, span: float | None
) -> KeptMetric | None:
    """From (candidate, reference) of each sample, where more is better; None without any."""
    if not scores or allowed is None:
        return None
    candidate, reference = (np.array([pair[side] for pair in scores], np.float64) for side in (0, 1))
    found, same = (
        paired(reference, other, margin=allowed.amount, relative=allowed.relative, span=span)
        for other in (candidate, reference)
    )
    return KeptMetric(
        candidate=float(candidate.mean()),
        reference=float(reference.mean()),
        verdict=found.verdict or VerdictKind.INCONCLUSIVE,
        carried=same.verdict is VerdictKind.PASS,
        needed=found.needed_at_drop,
        reason=found.reason if found.span is None or found.samples >= MIN_SAMPLES else None,
    )
