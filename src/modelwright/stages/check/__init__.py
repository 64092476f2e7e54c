"""The finished artifact on its target: opened, placed, and its answers compared with the CPU's."""

from typing import TYPE_CHECKING

from modelwright._lazy import lazy_names
from modelwright.stages.check._types import (
    CHECK,
    OPENS,
    Avoided,
    CheckOutcome,
    CheckParams,
    FailingPart,
    TargetGate,
)

if TYPE_CHECKING:
    from modelwright.stages.check._compute import Computed
    from modelwright.stages.check._cut import Cuttable, told
    from modelwright.stages.check._part import run_look
    from modelwright.stages.check._run import run_check
else:
    __getattr__ = lazy_names(
        __name__, Computed="_compute", Cuttable="_cut", told="_cut", run_check="_run", run_look="_part"
    )

__all__ = [
    "CHECK",
    "OPENS",
    "Avoided",
    "CheckOutcome",
    "CheckParams",
    "Computed",
    "Cuttable",
    "FailingPart",
    "TargetGate",
    "run_check",
    "run_look",
    "told",
]
