"""All hostile models: named, made by code, each with the exit code that `inspect` (and `build`) owes it."""

from __future__ import annotations

from hostile import models_bytes, models_files, models_graphs, models_names, models_nested, models_tensors
from hostile.case import Case

CASES: tuple[Case, ...] = (
    *models_bytes.CASES,
    *models_files.CASES,
    *models_tensors.CASES,
    *models_names.CASES,
    *models_graphs.CASES,
    *models_nested.CASES,
)
