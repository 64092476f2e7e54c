"""The outputs of the artifact beside those of the export, each by what it is."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from modelwright._lazy import lazy
from modelwright.metrics import Accumulator, Aggregate
from modelwright.stages.validate._types import OutputParity

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:
    np = lazy("numpy")

Outputs = Mapping[str, Any]

_SCORES = re.compile("logit|score|prob|class|label", re.IGNORECASE)


def parity(wanted: Sequence[Outputs], got: Sequence[Outputs]) -> tuple[OutputParity, ...]:
    """Every tensor of every answer. What the export really gave counts, not what its graph declares."""
    names = dict.fromkeys(name for answers in (*wanted, *got) for name in answers)
    return tuple(_compared(name, wanted, got) for name in names)


def _compared(name: str, wanted: Sequence[Outputs], got: Sequence[Outputs]) -> OutputParity:
    pairs = [(one[name], other[name]) for one, other in zip(wanted, got, strict=True) if name in one and name in other]
    if any((name in one) != (name in other) for one, other in zip(wanted, got, strict=True)):
        return _unlike(name, "one of both does not give it")
    problem = next(filter(None, (_unlikeness(one, other) for one, other in pairs)), None)
    if problem is not None:
        return _unlike(name, problem)
    full = [(one, other) for one, other in pairs if one.size]
    if full and all(_are_numbers(one) for one, _ in full):
        return _numbers(name, full)
    return _things(name, full)


def _unlikeness(one: NDArray[Any], other: NDArray[Any]) -> str | None:
    if one.shape != other.shape:
        return f"shapes differ: {list(one.shape)} and {list(other.shape)}"
    return f"{other.dtype} instead of {one.dtype}" if _are_numbers(one) != _are_numbers(other) else None


def _are_numbers(values: NDArray[Any]) -> bool:
    """Near is good enough; so it is for integers that stand for quantized numbers. Not for classes, masks and words."""
    return values.dtype.kind == "f" or values.dtype.name in ("bfloat16", "int8", "uint8")


def _numbers(name: str, pairs: Sequence[tuple[NDArray[Any], NDArray[Any]]]) -> OutputParity:
    found = Accumulator()
    for one, other in pairs:
        found.add(_plain(one), _plain(other))
    return _output(name, found.aggregate(), _are_scores(name, [one for one, _ in pairs]))


def _plain(values: NDArray[Any]) -> NDArray[Any]:
    return values if values.dtype.kind in "fiu" else values.astype("f4")


def _things(name: str, pairs: Sequence[tuple[NDArray[Any], NDArray[Any]]]) -> OutputParity:
    """The share that is equal, in the worst sample; where there is nothing, nothing differs."""
    equal = min((float(np.mean(one == other)) for one, other in pairs), default=1.0)
    return OutputParity(name, None, None, None, None, equal, identical=equal == 1.0, reason=None)


def _unlike(name: str, problem: str) -> OutputParity:
    return OutputParity(name, None, None, None, None, None, identical=False, reason=problem)


def _are_scores(name: str, answers: Sequence[NDArray[Any]]) -> bool:
    """By name, or because every row is a distribution. The largest number of an embedding or a state means nothing."""
    if _SCORES.search(name):
        return True
    if any(answer.ndim == 0 or answer.shape[-1] < 2 or not np.isfinite(answer).all() for answer in answers):
        return False
    sums = np.concatenate([answer.reshape(-1, answer.shape[-1]).sum(axis=1) for answer in answers])
    return bool(np.allclose(sums, 1.0, atol=1e-3)) and min(float(answer.min()) for answer in answers) >= 0.0


def _output(name: str, found: Aggregate, scores: bool) -> OutputParity:
    return OutputParity(
        output=name,
        cosine=found.cosine.worst if not found.failed else None,
        max_abs=found.max_abs.worst if not found.failed else None,
        sqnr_db=found.sqnr_db.worst,
        top1=found.top1.mean if scores else None,
        equal=None,
        identical=found.identical == found.samples > 0,
        reason=found.problem or (found.cosine.reason if found.cosine.worst is None else None),
    )
