"""Where a cell stands, what it is known to be, and why it failed, by class: the class decides what to do next."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, get_args

from modelwright._dataclass import dataclass
from modelwright._json import plain
from modelwright._typed import typed
from modelwright.errors import InputError, NoRoomError, StoreError, UsageError, WrightError
from modelwright.farm._cells import MatrixCell
from modelwright.farm._measured import CellAccuracy, CellPerf
from modelwright.farm.feeds import FeedError
from modelwright.pipeline import BuildResult
from modelwright.store import LedgerEvent
from modelwright.worker import ChildError

CellState = Literal["pending", "leased", "building", "built", "validated", "uploading", "published", "failed"]
STATES: tuple[CellState, ...] = get_args(CellState)
FailureClass = Literal[
    "input", "gate", "target", "crash", "timeout", "stalled", "oom", "import_error", "raised", "runtime", "disk",
    "store", "folder", "feed-auth", "feed-unavailable", "feed-unsupported", "feed-conflict", "feed-corrupt",
    "feed-refused",
]  # fmt: skip
CLASSES: tuple[FailureClass, ...] = get_args(FailureClass)
# Not about the model: the same may go well the next time, so the next run tries it again.
AROUND = ("disk", "store", "folder", *(kind for kind in CLASSES if kind.startswith("feed-")))
_DEBUG = "see where it loses accuracy with wright debug, or build it in another precision"


class FolderTakenError(UsageError):
    """A build that is good, and whose place in the folder for results is somebody else's."""


@dataclass(frozen=True)
class CellFailure:
    """Why a cell failed. `log` is where the output of the process is that ended."""

    kind: FailureClass
    problem: str
    cause: str
    fix: str
    log: str | None = None


@dataclass(frozen=True)
class CellFacts:
    """What a build turned out to be. `seconds`, `cpu_seconds` and `peak_rss_bytes` are of all its stages, then or now;
    `ran` and `reused` how many of them were done for it and found, `machines` the workers of a cluster that did.
    `gate`: the answer of the gate on the CPU, null where nobody could judge; `asked`: that of the target itself.
    Evidence are the keys of those answers in the store.
    """

    key: str
    digest: str
    bytes: int
    precision: str
    gate: bool | None
    asked: bool | None
    cosine: float | None
    nodes: int | None
    on_target: int | None
    simulated: bool
    compiled: bool
    reason: str | None
    seconds: float
    cpu_seconds: float
    peak_rss_bytes: int | None
    ran: int
    reused: int
    evidence: tuple[str, ...]
    machines: tuple[str, ...] = ()


@dataclass(frozen=True)
class CellStatus:
    """`worker` is who did the last thing, `at` when; `reference` is what the feed calls the package, `folder` where it
    was written. `perf` and `accuracy` are null where nobody asked for them."""

    cell: MatrixCell
    state: CellState = "pending"
    at: float | None = None
    worker: str | None = None
    attempt: int = 0
    facts: CellFacts | None = None
    failure: CellFailure | None = None
    feed: str | None = None
    reference: str | None = None
    folder: str | None = None
    perf: CellPerf | None = None
    accuracy: CellAccuracy | None = None

    @property
    def note(self) -> dict[str, Any]:
        """What an event of it says, beside the state."""
        known = {name: getattr(self, name) for name in _NOTED}
        return {name: plain(value) for name, value in known.items() if value is not None}

    @property
    def words(self) -> str:
        """The state; of a failure its class, and of a build that nobody could judge that."""
        if self.state == "failed" and self.failure is not None:
            return f"failed ({self.failure.kind})"
        return "built, unjudged" if self.state == "built" else self.state


_NOTED = ("attempt", "facts", "failure", "feed", "reference", "folder", "perf", "accuracy")


def classify(error: WrightError) -> CellFailure:
    """By its type and kind, never by its words."""
    log = getattr(error, "log", None)
    return CellFailure(_kind(error), error.problem, error.cause, error.fix, log)


def _kind(error: WrightError) -> FailureClass:
    if isinstance(error, FolderTakenError):
        return "folder"
    if isinstance(error, FeedError):
        return f"feed-{error.kind}"  # type: ignore[return-value]
    if isinstance(error, ChildError):
        return error.kind
    if isinstance(error, NoRoomError):
        return "disk"
    if isinstance(error, StoreError):
        return "store"
    if isinstance(error, InputError | UsageError):
        return "input"
    return "runtime"


def judged(result: BuildResult) -> CellFailure | None:
    """Why a finished build does not count: the gate says no, or the target does."""
    for part in result.components:
        if part.validation.passed is False:
            wrong = next((check for check in part.validation.checks if check.passed is False), None)
            cause = "the gate says no" if wrong is None else f"{wrong.name}: {wrong.detail}"
            return CellFailure("gate", f"{part.name} is not good enough", cause, _DEBUG)
        if part.check is not None and part.check.passed is False:
            cause, fix = part.check.reason or "it computes something else", part.check.fix or _DEBUG
            return CellFailure("target", f"{result.target} says no to {part.name}", cause, fix)
    if result.passed is False:
        return CellFailure("gate", "its parts together are not good enough", "they disagree", _DEBUG)
    return None


def facts_of_build(result: BuildResult, key: str, digest: str, size: int) -> CellFacts:
    parts = result.components
    stages = {stage.key.digest: stage for part in parts for stage in part.stages}.values()
    checks = [part.check for part in parts if part.check is not None]
    opened = [check for check in checks if check.opened]
    cosines = [part.validation.worst_cosine for part in parts if part.validation.worst_cosine is not None]
    peaks = [stage.peak_rss_bytes for stage in stages if stage.peak_rss_bytes is not None]
    unsaid = next((check.reason for check in checks if check.passed is None), None)
    gates = [part.validation.passed for part in parts]
    return CellFacts(
        key=key,
        digest=digest,
        bytes=size,
        precision=result.recipe.precision,
        gate=_weakest(gates),
        asked=_weakest([check.passed for check in checks]) if checks else None,
        cosine=min(cosines, default=None),
        nodes=sum(check.nodes for check in opened) if opened else None,
        on_target=sum(check.on_target for check in opened) if opened else None,
        simulated=any(check.simulated for check in checks),
        compiled=any(stage.stage == "compile" for stage in stages),
        reason=unsaid,
        seconds=sum(stage.seconds or 0.0 for stage in stages),
        cpu_seconds=sum(stage.cpu_seconds or 0.0 for stage in stages),
        peak_rss_bytes=max(peaks, default=None),
        ran=sum(stage.produced for stage in stages),
        reused=sum(not stage.produced for stage in stages),
        evidence=tuple(stage.key.digest for stage in stages if stage.stage in ("validate", "check", "agree")),
        machines=tuple(sorted({stage.machine for stage in stages if stage.machine is not None})),
    )


def _weakest(answers: Sequence[bool | None]) -> bool | None:
    return False if False in answers else None if None in answers else True


def told(cell: MatrixCell, last: LedgerEvent | None) -> CellStatus:
    """What the last event of a cell says: every event carries on what was known before it."""
    if last is None:
        return CellStatus(cell)
    note = last.note
    facts, failure = note.get("facts"), note.get("failure")
    perf, accuracy = note.get("perf"), note.get("accuracy")
    return CellStatus(
        cell=cell,
        state=last.state if last.state in STATES else "pending",
        at=last.at,
        worker=last.worker,
        attempt=int(note.get("attempt", 0)),
        facts=None if facts is None else typed(CellFacts, facts),
        failure=None if failure is None else typed(CellFailure, failure),
        feed=note.get("feed"),
        reference=note.get("reference"),
        folder=note.get("folder"),
        perf=None if perf is None else typed(CellPerf, perf),
        accuracy=None if accuracy is None else typed(CellAccuracy, accuracy),
    )
