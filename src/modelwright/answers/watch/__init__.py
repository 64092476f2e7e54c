"""Pinned artifacts on an old and a new runtime, side by side: what regressed, and what is to blame."""

from modelwright.answers.watch._case import Race, memory_answer, placement_row, speed_answer, watch_case
from modelwright.answers.watch._history import add_to_history, read_history
from modelwright.answers.watch._suite import case_rows, content_of, read_suite
from modelwright.answers.watch._types import (
    HERE,
    CaseHistory,
    ChangedVersion,
    HistoryPoint,
    NewOldRatio,
    WatchCase,
    WatchedModel,
    WatchHistory,
    WatchResult,
    WatchRow,
    WatchSuite,
)
from modelwright.answers.watch._watch import watch

__all__ = [
    "HERE",
    "CaseHistory",
    "ChangedVersion",
    "HistoryPoint",
    "NewOldRatio",
    "Race",
    "WatchCase",
    "WatchHistory",
    "WatchResult",
    "WatchRow",
    "WatchSuite",
    "WatchedModel",
    "add_to_history",
    "case_rows",
    "content_of",
    "memory_answer",
    "placement_row",
    "read_history",
    "read_suite",
    "speed_answer",
    "watch",
    "watch_case",
]
