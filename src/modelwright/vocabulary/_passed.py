"""Answers to yes-or-no questions that somebody may not be able to answer."""

from __future__ import annotations

from collections.abc import Iterable


def weakest(answers: Iterable[bool | None]) -> bool | None:
    """What several answers come to: False beats None (nobody knows), None beats True. Of none at all it is True."""
    found = set(answers)
    return False if False in found else None if None in found else True
