"""Hugging Face models to ONNX: several strategies, each checked against PyTorch before it counts."""

from typing import TYPE_CHECKING

from modelwright._lazy import lazy_names
from modelwright.stages.export._family import ModelFamily
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
    from modelwright.stages.export._rehearse import ExportOutline, outline_export, rehearse_export
    from modelwright.stages.export._run import run_export
else:
    __getattr__ = lazy_names(
        __name__,
        ExportOutline="_rehearse",
        load_model="_load",
        outline_export="_rehearse",
        rehearse_export="_rehearse",
        run_export="_run",
    )

__all__ = [
    "DEFAULT_OPSET",
    "EXPORT",
    "Attempt",
    "Component",
    "ExportOutcome",
    "ExportOutline",
    "ExportParams",
    "LeftOut",
    "Link",
    "ModelFamily",
    "Parity",
    "load_model",
    "outline_export",
    "rehearse_export",
    "run_export",
]
