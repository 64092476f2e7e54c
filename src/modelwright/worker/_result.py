"""What came of one call in a child: a value, or a typed failure."""

from __future__ import annotations

from pathlib import Path
from typing import Generic, Literal, TypeVar, cast

from modelwright._dataclass import dataclass
from modelwright.errors import ExecutionError, WrightError

T_co = TypeVar("T_co", covariant=True)

FailureKind = Literal["crash", "timeout", "stalled", "oom", "import_error", "raised"]

_FIXES: dict[FailureKind, str] = {
    "crash": "Look for the native library named last in the log",
    "timeout": "Give it more time with `timeout`, or look in the log for where it stood",
    "stalled": "Look in the log for where it stood still",
    "oom": "Allow more with `memory`, if the machine has it, or use a smaller model or batch; details are in the log",
    "import_error": "Install or repair the package; details are in the log",
    "raised": "The traceback is in the log",
}


_ENDS: tuple[FailureKind, ...] = ("crash", "timeout", "stalled", "oom")


class ChildError(ExecutionError):
    """A child process gave no value; `kind` says how it ended, `log` where its output is."""

    def __init__(self, problem: str, *, cause: str, fix: str, kind: FailureKind, log: str | None = None) -> None:
        super().__init__(problem, cause=cause, fix=fix)
        self.kind = kind
        self.log = log

    def __reduce__(self) -> tuple[object, ...]:
        return _child_error, (self.problem, self.cause, self.fix, self.kind, self.log)

    @property
    def died(self) -> bool:
        """The process is gone, by itself or because of a limit."""
        return self.kind in _ENDS


def _child_error(problem: str, cause: str, fix: str, kind: FailureKind, log: str | None) -> ChildError:
    return ChildError(problem, cause=cause, fix=fix, kind=kind, log=log)


@dataclass(frozen=True)
class Failure:
    """Why a call gave no value. `name` is the decoded signal or status, `error` the child's WrightError."""

    kind: FailureKind
    message: str
    signal: int | None = None
    exit_code: int | None = None
    name: str | None = None
    error: WrightError | None = None
    traceback: str | None = None

    @property
    def died(self) -> bool:
        """The process is gone; what it had found so far may still be there."""
        return self.kind in _ENDS

    @property
    def words(self) -> str:
        return self.message if self.error is None else str(self.error)

    @property
    def advice(self) -> str:
        return _FIXES[self.kind]


@dataclass(frozen=True)
class CallResult(Generic[T_co]):
    """A finished call. `peak_rss_bytes` is that of the largest process; unknown is None."""

    task: str
    value: T_co | None
    failure: Failure | None
    duration_s: float
    cpu_s: float | None
    peak_rss_bytes: int | None
    log: Path | None

    @property
    def ok(self) -> bool:
        return self.failure is None

    def unwrap(self) -> T_co:
        """The value; or the child's own WrightError, or an ExecutionError that says how the child ended."""
        if self.failure is None:
            return cast(T_co, self.value)
        if self.failure.error is not None:
            raise self.failure.error
        advice = self.failure.advice
        raise ChildError(
            f"The worker process of {self.task} failed.",
            cause=self.failure.message,
            fix=f"{advice}: {self.log}" if self.log else f"{advice}.",
            kind=self.failure.kind,
            log=None if self.log is None else str(self.log),
        )
