"""Hugging Face models to ONNX: several strategies, each checked against PyTorch before it counts."""

from modelwright.stages.export._load import load_model
from modelwright.stages.export._rehearse import rehearse_export
from modelwright.stages.export._run import run_export
from modelwright.stages.export._values import (
    DEFAULT_OPSET,
    LIBRARIES,
    STAGE,
    VERSION,
    Attempt,
    Component,
    ExportOutcome,
    ExportParams,
    LeftOut,
    Link,
    Parity,
)

__all__ = [
    "DEFAULT_OPSET",
    "LIBRARIES",
    "STAGE",
    "VERSION",
    "Attempt",
    "Component",
    "ExportOutcome",
    "ExportParams",
    "LeftOut",
    "Link",
    "Parity",
    "load_model",
    "rehearse_export",
    "run_export",
]
