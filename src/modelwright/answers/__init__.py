"""Answers instead of numbers: what is wrong and what cures it. Computed from what other rooms found, by rules."""

from modelwright.answers._errors import (
    ErrorText,
    error_texts,
)
from modelwright.answers._log import (
    LogCause,
    LogLine,
    LogReading,
    read_lines,
    read_log,
)
from modelwright.answers._types import (
    DIAGNOSE_PROTOCOL,
    SYMPTOMS,
    Cause,
    Diagnosis,
    LookedAt,
    SmallestModel,
    Symptom,
    TriedCure,
)

__all__ = [
    "DIAGNOSE_PROTOCOL",
    "SYMPTOMS",
    "Cause",
    "Diagnosis",
    "ErrorText",
    "LogCause",
    "LogLine",
    "LogReading",
    "LookedAt",
    "SmallestModel",
    "Symptom",
    "TriedCure",
    "error_texts",
    "read_lines",
    "read_log",
]
