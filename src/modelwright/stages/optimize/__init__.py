"""Graph optimization by named passes: onnxruntime's, its transformer fusions, and our own."""

from modelwright.stages.optimize._check import check_passes, try_passes
from modelwright.stages.optimize._run import run_optimize
from modelwright.stages.optimize._table import PRESETS, Pass, PassExtension, find_pass, passes, resolve_passes
from modelwright.stages.optimize._types import (
    LIBRARIES,
    STAGE,
    VERSION,
    OptimizeOutcome,
    OptimizeParams,
    PassEffect,
)
from modelwright.stages.optimize._working_model import ORT_IMPORT

__all__ = [
    "LIBRARIES",
    "ORT_IMPORT",
    "PRESETS",
    "STAGE",
    "VERSION",
    "OptimizeOutcome",
    "OptimizeParams",
    "Pass",
    "PassEffect",
    "PassExtension",
    "check_passes",
    "find_pass",
    "passes",
    "resolve_passes",
    "run_optimize",
    "try_passes",
]
