"""Values that every room speaks."""

from modelwright.vocabulary._spec import (
    Fill,
    FillKind,
    InputSpec,
    TensorSpec,
    static,
)

__all__ = [
    "Fill",
    "FillKind",
    "InputSpec",
    "TensorSpec",
    "static",
]
