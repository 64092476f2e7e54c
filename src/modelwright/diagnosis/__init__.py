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
from modelwright.diagnosis._stream_data import (
    Feed,
    Sample,
    data_source,
    make_feed,
)
from modelwright.diagnosis._types import (
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
)

__all__ = [
    "Activation",
    "DataFacts",
    "DebugInterrupted",
    "DebugOptions",
    "DebugReport",
    "DebugRequest",
    "DebugSummary",
    "DecibelSpread",
    "Feed",
    "NoiseShare",
    "OutputScore",
    "Sample",
    "Unmatched",
    "View",
    "WeightScore",
    "data_source",
    "debug",
    "label",
    "make_feed",
    "run_debug",
    "view",
]
