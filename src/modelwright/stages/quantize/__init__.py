"""The quantize stage: fp16, dynamic int8, static QDQ and int4, with ranges found one sample at a time."""

from modelwright.stages.quantize._check import REDUCED_BITS, weight_range_bits
from modelwright.stages.quantize._names import all_named, name_all
from modelwright.stages.quantize._params import (
    Calibration,
    Clipped,
    QuantizeOutcome,
    QuantizeParams,
    ReducedOps,
    TensorOverride,
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
from modelwright.stages.quantize._run import LIBRARIES, STAGE, VERSION, run_quantize
from modelwright.stages.quantize._scope import WORKERS, static_operators

__all__ = [
    "ALIASES",
    "LIBRARIES",
    "REDUCED_BITS",
    "REFUSED",
    "STAGE",
    "STEPS",
    "VERSION",
    "WORKERS",
    "Calibration",
    "Clipped",
    "QuantizeOutcome",
    "QuantizeParams",
    "ReducedOps",
    "Step",
    "TensorOverride",
    "all_named",
    "canonical",
    "integer_products",
    "name_all",
    "precision_words",
    "reduces_range",
    "run_quantize",
    "static_operators",
    "steps_of",
    "weight_range_bits",
]
