"""Scores of the trials that no task has: functions of (outputs, row), as `--metric` takes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np


def spoken(outputs: Mapping[str, Any], row: Mapping[str, Any]) -> float:
    """Whether a frame of sound is told right."""
    said = float(np.asarray(outputs["output"]).reshape(-1)[0]) > 0.5
    return float(said == (float(np.asarray(row["label"]).reshape(-1)[0]) > 0.5))


def read(outputs: Mapping[str, Any], row: Mapping[str, Any]) -> float:
    """Whether a line is read without an error: neighbours that repeat are one, and the first class is nothing."""
    scores = np.asarray(next(iter(outputs.values())))
    best = scores.reshape(-1, scores.shape[-1]).argmax(axis=-1)
    kept = best[np.insert(best[1:] != best[:-1], 0, True)]
    wanted = np.asarray(row["label"]).reshape(-1)
    return float(kept[kept > 0].tolist() == wanted[wanted > 0].tolist())


spoken.span = 1.0  # type: ignore[attr-defined]
read.span = 1.0  # type: ignore[attr-defined]
