"""The gate: nothing is called built before it has been checked against what it was made from."""

from modelwright.stages.validate._run import LIBRARIES, STAGE, VERSION, run_validate
from modelwright.stages.validate._types import (
    Claim,
    Fidelity,
    GateCheck,
    Kernels,
    OutputParity,
    ValidateOutcome,
    ValidateParams,
    cosine_bound,
    top1_bound,
)

__all__ = [
    "LIBRARIES",
    "STAGE",
    "VERSION",
    "Claim",
    "Fidelity",
    "GateCheck",
    "Kernels",
    "OutputParity",
    "ValidateOutcome",
    "ValidateParams",
    "cosine_bound",
    "run_validate",
    "top1_bound",
]
