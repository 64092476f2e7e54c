"""What may be lost, and how sure one must be that no more is: the margins of gates and repairs. Pure."""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Sequence

from modelwright._dataclass import dataclass
from modelwright.errors import UsageError

# One-sided 95 %.
_CONFIDENCE = 1.645


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
            fix="`max_drop` is written 1%, 0.01 or 1pt",
        )
    amount, unit = float(found.group(1)), found.group(2)
    return Allowance(amount / 100 if unit else amount, relative=unit == "%")


def as_allowance(said: str | float | Allowance | None) -> Allowance | None:
    """A text or a number is read; None is nothing allowed for, and stays None."""
    return parse_allowance(str(said)) if isinstance(said, str | float | int) else said


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
    """Two means over the same samples; `low` is one standard error of their difference below the candidate's."""

    candidate: float
    reference: float
    low: float


def kept_metric(scores: Sequence[tuple[float, float]]) -> KeptMetric | None:
    """From (candidate, reference) of each sample; None without any."""
    if not scores:
        return None
    gaps = [candidate - reference for candidate, reference in scores]
    error = statistics.stdev(gaps) / math.sqrt(len(gaps)) if len(gaps) > 1 else 0.0
    candidate, reference = (statistics.fmean(pair[side] for pair in scores) for side in (0, 1))
    return KeptMetric(candidate, reference, candidate - error)
