"""A model into an EPContext model for one target, checked by loading and running it."""

from modelwright.stages.compile._compile import LIBRARIES, STAGE, VERSION, run_compile
from modelwright.stages.compile._types import CompileOutcome, CompileParams, OutsideOp

__all__ = ["LIBRARIES", "STAGE", "VERSION", "CompileOutcome", "CompileParams", "OutsideOp", "run_compile"]
