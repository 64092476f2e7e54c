"""Are an arm's answers answers at all? A broken arm must not win by being fast."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from modelwright._lazy import lazy
from modelwright.measure._compare_types import OutputCheck
from modelwright.metrics import compare

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Outputs = Mapping[str, NDArray[Any]]
else:
    np = lazy("numpy")


def check_outputs(base: Outputs, arm: Outputs) -> OutputCheck:
    """The worst cosine and the largest difference over all outputs; different names or shapes are a problem, and so
    are NaN and infinity where the base has none."""
    problem = _problem(base, arm)
    if problem is not None:
        return OutputCheck(problem, None, None)
    floats = [name for name, value in base.items() if value.dtype.kind == "f"]
    scores = [compare(base[name], arm[name]) for name in floats]
    cosines = [score.cosine.value for score in scores if score.cosine.value is not None]
    largest = [score.max_abs.value for score in scores if score.max_abs.value is not None]
    return OutputCheck(None, min(cosines, default=None), max(largest, default=None))


def _problem(base: Outputs, arm: Outputs) -> str | None:
    if list(base) != list(arm):
        return f"its outputs are {', '.join(arm)}, the base's are {', '.join(base)}"
    for name, expected in base.items():
        found = arm[name]
        if found.shape != expected.shape:
            return f"output {name} has shape {list(found.shape)}, the base's {list(expected.shape)}"
        if found.dtype.kind == "f" and not np.isfinite(found).all() and np.isfinite(expected).all():
            return f"output {name} is not finite"
    return None
