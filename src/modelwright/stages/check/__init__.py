"""The finished artifact on its target: opened, placed, and its answers compared with the CPU's."""

from typing import TYPE_CHECKING

from modelwright._lazy import lazy_names
from modelwright.stages.check._types import CHECK, CheckOutcome, CheckParams, TargetGate

if TYPE_CHECKING:
    from modelwright.stages.check._run import run_check
else:
    __getattr__ = lazy_names(__name__, run_check="_run")

__all__ = ["CHECK", "CheckOutcome", "CheckParams", "TargetGate", "run_check"]
