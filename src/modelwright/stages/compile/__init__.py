"""A model into an EPContext model for one target, checked by loading it back."""

from typing import TYPE_CHECKING

from modelwright._lazy import lazy_names
from modelwright.stages.compile._types import COMPILE, CompileOutcome, CompileParams, OutsideOp

if TYPE_CHECKING:
    from modelwright.stages.compile._compile import run_compile
else:
    __getattr__ = lazy_names(__name__, run_compile="_compile")

__all__ = ["COMPILE", "CompileOutcome", "CompileParams", "OutsideOp", "run_compile"]
