"""Where a quantized model loses its accuracy, tensor by tensor."""

from modelwright.diagnosis._debug import (
    DebugOptions,
    debug,
)
from modelwright.diagnosis._match_view import (
    View,
    label,
    view,
)
from modelwright.diagnosis._run import (
    DebugRequest,
    run_debug,
)
from modelwright.diagnosis._types import (
    INPUT,
    Activation,
    DataFacts,
    DebugInterrupted,
    DebugReport,
    DebugSummary,
    DecibelSpread,
    NoiseShare,
    OutputScore,
    Unmatched,
    WeightScore,
    operator_words,
)

__all__ = [
    "INPUT",
    "Activation",
    "DataFacts",
    "DebugInterrupted",
    "DebugOptions",
    "DebugReport",
    "DebugRequest",
    "DebugSummary",
    "DecibelSpread",
    "NoiseShare",
    "OutputScore",
    "Unmatched",
    "View",
    "WeightScore",
    "debug",
    "label",
    "operator_words",
    "run_debug",
    "view",
]
