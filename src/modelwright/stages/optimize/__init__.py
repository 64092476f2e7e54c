"""Graph optimization by named passes: onnxruntime's, its transformer fusions, and our own."""

from typing import TYPE_CHECKING

from modelwright._lazy import lazy_names
from modelwright.stages.optimize._table import PRESETS, Pass, PassExtension, find_pass, passes, resolve_passes
from modelwright.stages.optimize._types import OPTIMIZE, ORT_IMPORT, OptimizeOutcome, OptimizeParams, PassEffect

if TYPE_CHECKING:
    from modelwright.stages.optimize._check import check_passes, try_passes
    from modelwright.stages.optimize._doubles import narrow_doubles
    from modelwright.stages.optimize._run import run_optimize
else:
    __getattr__ = lazy_names(
        __name__,
        check_passes="_check",
        narrow_doubles="_doubles",
        try_passes="_check",
        run_optimize="_run",
    )

__all__ = [
    "OPTIMIZE",
    "ORT_IMPORT",
    "PRESETS",
    "OptimizeOutcome",
    "OptimizeParams",
    "Pass",
    "PassEffect",
    "PassExtension",
    "check_passes",
    "find_pass",
    "narrow_doubles",
    "passes",
    "resolve_passes",
    "run_optimize",
    "try_passes",
]
