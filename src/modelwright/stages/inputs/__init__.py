"""Image inputs as a camera gives them: bytes, channels last, normalized by the model itself."""

from modelwright.stages.inputs._types import INPUTS, ChangedInput, InputsOutcome

__all__ = ["INPUTS", "ChangedInput", "InputsOutcome"]
