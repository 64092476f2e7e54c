"""A suite on two sides."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Iterator
from datetime import UTC, datetime

from modelwright.answers.watch._case import Race, watch_case
from modelwright.answers.watch._types import HERE, ChangedVersion, WatchResult, WatchSuite
from modelwright.targets import catalogue
from modelwright.vocabulary import OnProgress
from modelwright.worker import find_runtime

_ALSO = ("numpy", "protobuf", "flatbuffers")


def watch(suite: WatchSuite, race: Race, tell: OnProgress) -> WatchResult:
    cases = tuple(watch_case(suite, case, race, tell) for case in suite.cases)
    made_at = datetime.now(UTC).isoformat(timespec="seconds")
    return WatchResult(suite, tuple(changed_versions(suite.old, suite.new)), cases, made_at)


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
