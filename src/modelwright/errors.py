"""The one family of errors a user can meet. Programming errors stay tracebacks."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class WrightError(Exception):
    """What happened, why, and what to do next; the class decides the exit code."""

    exit_code = 4

    def __init__(self, problem: str, *, cause: str, fix: str) -> None:
        super().__init__(problem)
        self.problem = problem
        self.cause = cause
        self.fix = fix

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (type(self), self.problem, self.cause, self.fix)

    def __str__(self) -> str:
        return f"{self.problem} ({self.cause})"


class UsageError(WrightError):
    """The command or call was not understood."""

    exit_code = 2


class InputError(WrightError):
    """A bad model, data set or recipe."""

    exit_code = 3


class ExecutionError(WrightError):
    """A runtime, execution provider or child process failed."""

    exit_code = 4


class StoreError(WrightError):
    """The store or a feed is unavailable, full or damaged."""

    exit_code = 5


class NoRoomError(StoreError):
    """The disk is full, or a quota is used up."""


def did_you_mean(word: str, choices: Iterable[str]) -> str | None:
    """A next step for a misspelt word, or None when nothing is close."""
    close = difflib.get_close_matches(word, list(choices), n=2, cutoff=0.6)
    return f"did you mean {' or '.join(close)}?" if close else None


def _rebuild(kind: type[WrightError], problem: str, cause: str, fix: str) -> WrightError:
    return kind(problem, cause=cause, fix=fix)
