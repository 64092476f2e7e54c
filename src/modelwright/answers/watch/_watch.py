"""A suite on two sides."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime

from modelwright.answers.watch._case import Race, case_subjects, watch_case
from modelwright.answers.watch._suite import content_of
from modelwright.answers.watch._types import (
    HERE,
    ChangedVersion,
    WatchCase,
    WatchedModel,
    WatchResult,
    WatchRow,
    WatchSuite,
)
from modelwright.targets import catalogue
from modelwright.vocabulary import OnProgress
from modelwright.worker import find_runtime

_ALSO = ("numpy", "protobuf", "flatbuffers")


def watch(suite: WatchSuite, race: Race, tell: OnProgress) -> WatchResult:
    """What a case cannot be fed with is told before anything is measured, not an hour later."""
    ready = [(case, case_subjects(case)) for case in suite.cases]
    cases = tuple(_unchanged(case, watch_case(suite, case, subjects, race, tell)) for case, subjects in ready)
    made_at = datetime.now(UTC).isoformat(timespec="seconds")
    return WatchResult(suite, tuple(changed_versions(suite.old, suite.new)), cases, made_at)


def _unchanged(case: WatchedModel, found: WatchCase) -> WatchCase:
    """A file that became another one meanwhile was measured as two: nothing is told of it."""
    if content_of(case.model) == case.sha256:
        return found
    words = "its file was changed while it was watched"
    row = WatchRow("runs", None, words, fix="bring the pinned one back and watch it again")
    return replace(found, rows=(row,), speed=None, memory=None, operators=None, moved=())


def changed_versions(old: str, new: str) -> Iterator[ChangedVersion]:
    """Packages that compute, and are not the same on both sides."""
    before, now = _versions(old), _versions(new)
    for name in (*catalogue().packages(), *_ALSO):
        if before.get(name) != now.get(name):
            yield ChangedVersion(name, before.get(name), now.get(name))


def _versions(side: str) -> dict[str, str]:
    if side != HERE:
        return {name.lower(): version for name, version in find_runtime(side).versions}
    return {str(one.name).lower(): one.version for one in importlib.metadata.distributions() if one.name}
