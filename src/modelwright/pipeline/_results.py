"""The answers about several targets, in the order in which they were asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

from modelwright._dataclass import dataclass
from modelwright._json import plain
from modelwright.pipeline._analyze import Analysis
from modelwright.pipeline._build import BuildFailure, BuildResult
from modelwright.pipeline._manifest import manifest
from modelwright.pipeline._memory import MemoryNeed
from modelwright.pipeline._plan import PlannedStage
from modelwright.pipeline._restored import build_form, build_of, failure_form, failure_of, folder_of
from modelwright.vocabulary import Result, weakest


@dataclass(frozen=True)
class Builds(Result):
    """A build for each target. `folders` are where they were written, None where they are only in the store.

    `failed` are targets that came to no build; the others are as good as without them.
    """

    kind: ClassVar[str] = "build"

    builds: tuple[BuildResult, ...]
    folders: tuple[Path | None, ...]
    failed: tuple[BuildFailure, ...] = ()

    @property
    def passed(self) -> bool | None:
        return False if self.failed else weakest(build.passed for build in self.builds)

    def content(self) -> dict[str, Any]:
        """The manifests, with where they were written and how long it took."""
        documents = [
            {**plain(manifest(build)), "folder": plain(folder), "seconds": build.seconds}
            for build, folder in zip(self.builds, self.folders, strict=True)
        ]
        for document in documents:
            del document["seal"]  # that of a file
        return {"passed": self.passed, "builds": documents, "failed": [failure_form(one) for one in self.failed]}

    def whole(self) -> dict[str, Any]:
        return {
            "builds": [build_form(build) for build in self.builds],
            "folders": plain(self.folders),
            "failed": [failure_form(one) for one in self.failed],
        }

    @classmethod
    def restored(cls, whole: Mapping[str, Any]) -> Builds:
        return cls(
            builds=tuple(map(build_of, whole["builds"])),
            folders=tuple(map(folder_of, whole["folders"])),
            failed=tuple(map(failure_of, whole["failed"])),
        )

    def __iter__(self) -> Iterator[BuildResult]:
        return iter(self.builds)

    def __len__(self) -> int:
        return len(self.builds)

    def __getitem__(self, place: int) -> BuildResult:
        return self.builds[place]


@dataclass(frozen=True)
class Plans(Result):
    """What a build would do for each target."""

    kind: ClassVar[str] = "build"

    plans: tuple[TargetPlan, ...]


@dataclass(frozen=True)
class TargetPlan:
    target: str
    stages: tuple[PlannedStage, ...]
    peak: MemoryNeed | None = None


@dataclass(frozen=True)
class Analyses(Result):
    """Where the nodes run on each target."""

    kind: ClassVar[str] = "analyze"

    analyses: tuple[Analysis, ...]
    max_fallback: float | None = None

    @property
    def accepted(self) -> bool | None:
        """What was asked for: no more left to other EPs than `max_fallback`, or nothing that a target should take."""
        if self.max_fallback is None:
            return self.supported
        shares = [analysis.fallback for analysis in self.analyses]
        return weakest(None if share is None else share <= self.max_fallback for share in shares)

    @property
    def supported(self) -> bool | None:
        """Whether every target takes all it should; one that does not decides, one that could not be asked is None."""
        return weakest(analysis.supported for analysis in self.analyses)

    def content(self) -> dict[str, Any]:
        documents = [_document(analysis) for analysis in self.analyses]
        return {"accepted": self.accepted, "max_fallback": self.max_fallback, "analyses": documents}

    def __iter__(self) -> Iterator[Analysis]:
        return iter(self.analyses)

    def __len__(self) -> int:
        return len(self.analyses)

    def __getitem__(self, place: int) -> Analysis:
        return self.analyses[place]


def _document(analysis: Analysis) -> dict[str, Any]:
    return {
        **plain(analysis),
        "supported": analysis.supported,
        "fallback": analysis.fallback,
        "unsupported_nodes": len(analysis.placement.unsupported),
        "copied_bytes": analysis.placement.copied_bytes,
    }
