"""Hugging Face models to ONNX: several strategies, each checked against PyTorch before it counts."""

from typing import TYPE_CHECKING

from modelwright._lazy import lazy_names
from modelwright.stages.export._family import GENERAL, ModelFamily, family_place
from modelwright.stages.export._values import (
    DEFAULT_OPSET,
    EXPORT,
    Attempt,
    Component,
    ExportOutcome,
    ExportParams,
    LeftOut,
    Link,
    Parity,
)

if TYPE_CHECKING:
    from modelwright.stages.export._load import load_model
    from modelwright.stages.export._owed import UNKNOWN_REASON
    from modelwright.stages.export._rehearse import ExportOutline, count_parameters, outline_export, rehearse_export
    from modelwright.stages.export._run import run_export
    from modelwright.stages.export._stock import StockAsked, StockPart, StockSeen, run_stock
else:
    __getattr__ = lazy_names(
        __name__,
        ExportOutline="_rehearse",
        load_model="_load",
        count_parameters="_rehearse",
        outline_export="_rehearse",
        rehearse_export="_rehearse",
        run_export="_run",
        run_stock="_stock",
        StockAsked="_stock",
        StockPart="_stock",
        StockSeen="_stock",
        UNKNOWN_REASON="_owed",
    )

__all__ = [
    "DEFAULT_OPSET",
    "EXPORT",
    "GENERAL",
    "UNKNOWN_REASON",
    "Attempt",
    "Component",
    "ExportOutcome",
    "ExportOutline",
    "ExportParams",
    "LeftOut",
    "Link",
    "ModelFamily",
    "Parity",
    "StockAsked",
    "StockPart",
    "StockSeen",
    "count_parameters",
    "family_place",
    "load_model",
    "outline_export",
    "rehearse_export",
    "run_export",
    "run_stock",
]
