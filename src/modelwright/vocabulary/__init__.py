"""Values that every room speaks."""

from modelwright.vocabulary._data import (
    RANDOM,
    Data,
    Layout,
    as_data,
)
from modelwright.vocabulary._progress import OnProgress, Progress, silent, within
from modelwright.vocabulary._result import RESULT_VERSION, Result
from modelwright.vocabulary._spec import (
    Fill,
    FillKind,
    InputSpec,
    TensorSpec,
    static,
)

__all__ = [
    "RANDOM",
    "RESULT_VERSION",
    "Data",
    "Fill",
    "FillKind",
    "InputSpec",
    "Layout",
    "OnProgress",
    "Progress",
    "Result",
    "TensorSpec",
    "as_data",
    "silent",
    "static",
    "within",
]
