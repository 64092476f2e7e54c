"""The quantize stage: fp16, dynamic int8, static QDQ and int4, with ranges found one sample at a time."""

from modelwright.stages.quantize._params import (
    Calibration,
    Clipped,
    OpTally,
    QuantizeOutcome,
    QuantizeParams,
    TensorOverride,
)
from modelwright.stages.quantize._precision import ALIASES, REFUSED, STEPS, Step, canonical, steps_of
from modelwright.stages.quantize._run import LIBRARIES, STAGE, VERSION, run_quantize

__all__ = [
    "ALIASES",
    "LIBRARIES",
    "REFUSED",
    "STAGE",
    "STEPS",
    "VERSION",
    "Calibration",
    "Clipped",
    "OpTally",
    "QuantizeOutcome",
    "QuantizeParams",
    "Step",
    "TensorOverride",
    "canonical",
    "run_quantize",
    "steps_of",
]
