"""Are an arm's answers those of the base? An arm that answers something else must not win by being fast."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from modelwright._dataclass import dataclass
from modelwright._lazy import lazy
from modelwright.graph import Precision
from modelwright.metrics import compare, leaves
from modelwright.stages.validate import cosine_bound, tells_nothing, top1_bound

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Leaf = NDArray[Any]
else:
    np = lazy("numpy")

Outputs = Mapping[str, Any]
_HALVES = ("float16", "bfloat16")
_COARSEST = "w8a8"


@dataclass(frozen=True)
class OutputCheck:
    """An arm's answers beside the base's: the worst output by each measure that applies. `different` says how they are
    not the base's, by the bound of `precision`, or why that could not be found out. `nothing`: only because both answer
    next to nothing, so nobody can tell."""

    different: str | None
    precision: str
    cosine: float | None
    relative_error: float | None
    equal: float | None
    max_abs: float | None
    nothing: bool = False


def check_outputs(base: Outputs, arm: Outputs, *tolerances: str) -> OutputCheck:
    """Every output of the arm beside the base's, by its kind: numbers by cosine and relative error, integers, truth
    values and strings by the share that is equal, sequences and maps part by part. The loosest tolerance decides."""
    precision = min(tolerances, key=cosine_bound)
    expected, found = dict(leaves(base)), dict(leaves(arm))
    if list(expected) != list(found):
        return _different(f"its outputs are {_names(found)}, those of the base {_names(expected)}", precision)
    checks = [_check(name, expected[name], found[name], precision) for name in expected]
    worst = first_unlike(checks)
    different = None if worst is None else worst.different
    compared = [check for check in checks if check.cosine is not None or check.equal is not None]
    if different is None and not compared:
        different = "its answers are empty, so there is nothing to compare"
    return OutputCheck(
        different=different,
        precision=precision,
        cosine=_least(check.cosine for check in checks),
        relative_error=_largest(check.relative_error for check in checks),
        equal=_least(check.equal for check in checks),
        max_abs=_largest(check.max_abs for check in checks),
        nothing=worst is not None and worst.nothing,
    )


def first_unlike(checks: Iterable[OutputCheck]) -> OutputCheck | None:
    """The first that is really different, else the first of which nobody can tell."""
    return min((check for check in checks if check.different is not None), key=lambda one: one.nothing, default=None)


def says_something(answers: Outputs) -> bool:
    """Whether there is anything but NaN and infinity in it."""
    return any(array.dtype.kind != "f" or bool(np.isfinite(array).any()) for _, array in leaves(answers))


def _check(name: str, base: Leaf, arm: Leaf, precision: str) -> OutputCheck:
    if arm.shape != base.shape:
        return _different(f"{name} has shape {list(arm.shape)}, that of the base {list(base.shape)}", precision)
    numbers = base.dtype.kind == "f"
    if (arm.dtype.kind == "f") != numbers:
        return _different(f"{name} is {arm.dtype}, that of the base {base.dtype}", precision)
    if base.size == 0:
        return OutputCheck(None, precision, None, None, None, None)
    return _numbers(name, base, arm, precision) if numbers else _things(name, base, arm, precision)


def _things(name: str, base: Leaf, arm: Leaf, precision: str) -> OutputCheck:
    """Classes, token ids, masks, words: near is not equal."""
    equal = float(np.mean(base == arm))
    bound = top1_bound(precision)
    words = f"{equal:.1%} of {name} equal, {precision} needs {bound:.0%}" if equal < bound else None
    return OutputCheck(words, precision, None, None, equal, None)


def _numbers(name: str, base: Leaf, arm: Leaf, precision: str) -> OutputCheck:
    """The cosine does not see a wrong size and says nothing of zeros or of a single number; the relative error does."""
    scores = compare(base, arm)
    if scores.problem is not None:
        return _different(
            f"{name}: {scores.problem.replace('candidate', 'arm').replace('reference', 'base')}", precision
        )
    cosine, error = scores.cosine.value, scores.relative_l2.value
    least = cosine_bound(precision)
    # Two vectors of one length that are so far apart have exactly that cosine.
    most = math.sqrt(2 * (1 - least))
    different = None
    if cosine is None:
        different = f"{name}: {'the base' if error is None else 'the arm'} answers only zeros"
    elif cosine < least:
        different = f"cosine {cosine:.5f} of {name}, {precision} needs {least}"
    elif error is None or error > most:
        different = f"{name} is {_percent(error)} off, {precision} may be {most:.1%}"
    nothing = different is not None and tells_nothing([(base, arm)], rounded=precision != "fp32")
    if nothing:
        different = f"{name}, from 0 to 1, is next to nothing in both, and {scores.max_abs.value:.1g} apart at most"
    return OutputCheck(different, precision, cosine, error, None, scores.max_abs.value, nothing)


def _percent(error: float | None) -> str:
    return "far" if error is None else f"{error:.1%}"


def _different(words: str, precision: str) -> OutputCheck:
    return OutputCheck(words, precision, None, None, None, None)


def tolerance(precision: Precision) -> str:
    """The precision by whose bound answers are judged, for labels that the gate of a build has no bound for too."""
    if precision.quantized is False:
        halves = any(share.dtype in _HALVES for share in precision.weights)
        return "fp16" if halves else "fp32"
    try:
        cosine_bound(precision.label or "")
    except KeyError:
        return _COARSEST
    return precision.label or _COARSEST


def _names(leaves: Mapping[str, Leaf]) -> str:
    return ", ".join(leaves) or "none"


def _least(values: Iterator[float | None]) -> float | None:
    return min((value for value in values if value is not None), default=None)


def _largest(values: Iterator[float | None]) -> float | None:
    return max((value for value in values if value is not None), default=None)
