"""Answers instead of numbers: what is wrong and what cures it. Computed from what other rooms found, by rules."""

from modelwright.answers._bug_report import (
    bug_report,
    write_bug_report,
)
from modelwright.answers._diagnose import (
    RULES,
    diagnose,
)
from modelwright.answers._errors import (
    ErrorText,
    error_texts,
)
from modelwright.answers._gather import (
    Complaint,
    SessionSettings,
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
    "RULES",
    "SYMPTOMS",
    "Cause",
    "Complaint",
    "Diagnosis",
    "ErrorText",
    "LogCause",
    "LogLine",
    "LogReading",
    "LookedAt",
    "SessionSettings",
    "SmallestModel",
    "Symptom",
    "TriedCure",
    "bug_report",
    "diagnose",
    "error_texts",
    "read_lines",
    "read_log",
    "write_bug_report",
]
