"""The quantize stage: fp16, dynamic int8, static QDQ and int4, with ranges found one sample at a time."""

from typing import TYPE_CHECKING

from modelwright._lazy import lazy_names
from modelwright.stages.quantize._params import (
    QUANTIZE,
    Calibration,
    Clipped,
    Effort,
    Gain,
    Method,
    Pairs,
    QuantizeOutcome,
    QuantizeParams,
    ReducedOps,
    TensorOverride,
    Widened,
)
from modelwright.stages.quantize._precision import (
    ALIASES,
    REFUSED,
    STEPS,
    Step,
    canonical,
    integer_products,
    precision_words,
    reduces_range,
    steps_of,
)

if TYPE_CHECKING:
    from modelwright.stages.quantize._check import saturating
    from modelwright.stages.quantize._names import all_named, name_all
    from modelwright.stages.quantize._rescaled import rescaled
    from modelwright.stages.quantize._run import run_quantize
    from modelwright.stages.quantize._scope import WORKERS, static_operators
else:
    __getattr__ = lazy_names(
        __name__,
        WORKERS="_scope",
        all_named="_names",
        name_all="_names",
        rescaled="_rescaled",
        run_quantize="_run",
        saturating="_check",
        static_operators="_scope",
    )

__all__ = [
    "ALIASES",
    "QUANTIZE",
    "REFUSED",
    "STEPS",
    "WORKERS",
    "Calibration",
    "Clipped",
    "Effort",
    "Gain",
    "Method",
    "Pairs",
    "QuantizeOutcome",
    "QuantizeParams",
    "ReducedOps",
    "Step",
    "TensorOverride",
    "Widened",
    "all_named",
    "canonical",
    "integer_products",
    "name_all",
    "precision_words",
    "reduces_range",
    "rescaled",
    "run_quantize",
    "saturating",
    "static_operators",
    "steps_of",
]
