"""`modelwright.inspect`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from modelwright import models
from modelwright.api._kept import kept
from modelwright.models import Inspection, PairInspection


def inspect(
    model: str | Path,
    other: str | Path | None = None,
    *,
    component: str | None = None,
    dims: Mapping[str, int] | None = None,
) -> Inspection | PairInspection:
    """What is inside a model: I/O, operators, measured precision, what a run costs, external data, fingerprint.

    With `other`, what the two do not share. `dims` are sizes of dynamic dimensions."""
    if other is None:
        return kept(models.inspect(model, component, dims))
    return kept(models.inspect_pair(model, other, component, dims))
