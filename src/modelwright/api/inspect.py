"""`modelwright.inspect`."""

from __future__ import annotations

from pathlib import Path

from modelwright import graph
from modelwright.api._kept import kept
from modelwright.graph import Inspection
from modelwright.models import Source, onnx_of


def inspect(model: str | Path | Source, *, component: str | None = None) -> Inspection:
    """What is inside a model: I/O, operators, measured precision, external data, fingerprint."""
    return kept(graph.inspect(onnx_of(model, component)))
