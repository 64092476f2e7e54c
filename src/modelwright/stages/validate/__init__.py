"""The gate: nothing is called built before it has been checked against what it was made from."""

from typing import TYPE_CHECKING

from modelwright._lazy import lazy_names
from modelwright.stages.validate._types import (
    CLOSE,
    LARGE_BYTES,
    UNKNOWN,
    VALIDATE,
    Fidelity,
    Gate,
    GateCheck,
    Kernels,
    Measure,
    OutputKind,
    OutputParity,
    ValidateOutcome,
    ValidateParams,
    cosine_bound,
    is_quantized,
    judged_as,
    top1_bound,
)

if TYPE_CHECKING:
    from modelwright.stages.validate._kinds import are_classes, slice_axis, tells_nothing
    from modelwright.stages.validate._listed import picked_outputs
    from modelwright.stages.validate._outputs import Asked, parity
    from modelwright.stages.validate._run import run_validate
    from modelwright.stages.validate._slices import FEWEST
else:
    __getattr__ = lazy_names(
        __name__,
        FEWEST="_slices",
        Asked="_outputs",
        are_classes="_kinds",
        parity="_outputs",
        picked_outputs="_listed",
        run_validate="_run",
        slice_axis="_kinds",
        tells_nothing="_kinds",
    )

__all__ = [
    "CLOSE",
    "FEWEST",
    "LARGE_BYTES",
    "UNKNOWN",
    "VALIDATE",
    "Asked",
    "Fidelity",
    "Gate",
    "GateCheck",
    "Kernels",
    "Measure",
    "OutputKind",
    "OutputParity",
    "ValidateOutcome",
    "ValidateParams",
    "are_classes",
    "cosine_bound",
    "is_quantized",
    "judged_as",
    "parity",
    "picked_outputs",
    "run_validate",
    "slice_axis",
    "tells_nothing",
    "top1_bound",
]
