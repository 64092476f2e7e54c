"""What is watched, and what was found about it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar, Literal

from modelwright._dataclass import dataclass
from modelwright.judge import ChangePoint
from modelwright.measure import OperatorChanges
from modelwright.models import FileDigest
from modelwright.vocabulary import Result, weakest

Aspect = Literal["runs", "accuracy", "placement", "memory", "speed"]
HERE = "here"


@dataclass(frozen=True)
class WatchedModel:
    """An artifact by its content: `sha256` stands for all its files."""

    name: str
    model: Path
    sha256: str
    target: str = "cpu"
    data: str | None = None
    threads: int | None = None


@dataclass(frozen=True)
class WatchSuite:
    """`old` and `new` are runtimes by name, or `here`. A case is green when it is proven to be slower by no more than
    `max_slowdown` and to take no more memory than `max_growth` more. `alpha` is for the whole suite."""

    name: str
    old: str
    new: str
    cases: tuple[WatchedModel, ...]
    budget_s: float = 60.0
    max_slowdown: float = 0.05
    max_growth: float = 0.1
    alpha: float = 0.05

    @property
    def each_alpha(self) -> float:
        """Speed and memory of every case share it, so that all of them hold together."""
        return self.alpha / (2 * len(self.cases))


@dataclass(frozen=True)
class WatchRow:
    """The answer about one aspect of a case. None is undecided, which is never green; `fix` is then what decides it."""

    aspect: Aspect
    passed: bool | None
    sentence: str
    record: str | None = None
    fix: str | None = None

    @property
    def word(self) -> str:
        return {True: "ok", False: "REGRESSED", None: "undecided"}[self.passed]


@dataclass(frozen=True)
class NewOldRatio:
    """What the new side brings, base / arm - 1 as the judge has it: negative is slower, or more memory."""

    effect: float | None
    low: float | None
    high: float | None
    units: int


@dataclass(frozen=True)
class WatchCase:
    """`operators` are there where the new side is proven slower: which of them take longer. `moved` are operators that
    another EP has now."""

    name: str
    model: str
    target: str
    files: tuple[FileDigest, ...]
    old: str | None
    new: str | None
    rows: tuple[WatchRow, ...]
    speed: NewOldRatio | None = None
    memory: NewOldRatio | None = None
    operators: OperatorChanges | None = None
    moved: tuple[str, ...] = ()

    @property
    def passed(self) -> bool | None:
        return weakest(row.passed for row in self.rows)

    @property
    def blamed(self) -> tuple[str, ...]:
        """Operator types that are proven to take longer, the most that is lost first."""
        changes = self.operators.changes if self.operators is not None else ()
        return tuple(change.op_type for change in changes if change.slower)

    @property
    def suspected(self) -> tuple[str, float] | None:
        """Where the traces prove nothing: the type that has more than half of all the time that was lost, and its share
        of that."""
        changes = self.operators.changes if self.operators is not None and not self.blamed else ()
        lost = sum(max(0.0, change.difference_ms) for change in changes)
        most = max(changes, key=lambda change: change.difference_ms, default=None)
        if most is None or not lost or most.difference_ms <= lost / 2:
            return None
        return most.op_type, most.difference_ms / lost


@dataclass(frozen=True)
class ChangedVersion:
    """A package that is not the same on both sides; None is not installed."""

    package: str
    old: str | None
    new: str | None


@dataclass(frozen=True)
class WatchResult(Result):
    """A suite on two sides. `passed` is None while anything is undecided and nothing regressed."""

    kind: ClassVar[str] = "watch"

    suite: WatchSuite
    changed: tuple[ChangedVersion, ...]
    cases: tuple[WatchCase, ...]
    made_at: str

    @property
    def passed(self) -> bool | None:
        return weakest(case.passed for case in self.cases)

    def content(self) -> dict[str, Any]:
        cases = [
            {"passed": case.passed, "blamed": list(case.blamed), "suspected": case.suspected} for case in self.cases
        ]
        found = super().content()
        found["cases"] = [{**one, **more} for one, more in zip(found["cases"], cases, strict=True)]
        del found["made_at"]  # the record says when
        return {"passed": self.passed, "watched_at": self.made_at, **found}

    def whole(self) -> Any:
        return super().content()


@dataclass(frozen=True)
class HistoryPoint:
    """One case in one run: what the new side was, and how it compared with the same old one."""

    made_at: str
    new: str
    effect: float
    passed: bool | None


@dataclass(frozen=True)
class CaseHistory:
    """A case against one old side, over runs. `changes` say at which point the level of the speed is another."""

    suite: str
    case: str
    old: str
    points: tuple[HistoryPoint, ...]
    changes: tuple[ChangePoint, ...]


@dataclass(frozen=True)
class WatchHistory(Result):
    """What a history file says. `unread` lines are cut off or of something else."""

    kind: ClassVar[str] = "watch history"

    cases: tuple[CaseHistory, ...]
    unread: int
