"""Answers instead of numbers: what is wrong and what cures it. Computed from what other rooms found, by rules."""

from modelwright.answers._advise import (
    ADVISE_PROTOCOL,
    AdviseOptions,
    Decision,
    Offer,
    WantedLimits,
    advise,
    differences,
    held,
    open_about,
)
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
    "ADVISE_PROTOCOL",
    "DIAGNOSE_PROTOCOL",
    "RULES",
    "SYMPTOMS",
    "AdviseOptions",
    "Cause",
    "Complaint",
    "Decision",
    "Diagnosis",
    "ErrorText",
    "LogCause",
    "LogLine",
    "LogReading",
    "LookedAt",
    "Offer",
    "SessionSettings",
    "SmallestModel",
    "Symptom",
    "TriedCure",
    "WantedLimits",
    "advise",
    "bug_report",
    "diagnose",
    "differences",
    "error_texts",
    "held",
    "open_about",
    "read_lines",
    "read_log",
    "write_bug_report",
]
