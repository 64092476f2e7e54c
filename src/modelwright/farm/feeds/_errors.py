"""What can go wrong with a feed, by kind: whoever publishes many packages decides by it whether to go on."""

from __future__ import annotations

from typing import Literal

from modelwright.errors import InputError, StoreError

FeedFault = Literal["auth", "conflict", "unavailable", "corrupt", "refused", "unsupported"]
"""`auth`: who we are is not known or not allowed. `unavailable`: nobody answers, or not in time. Both are about the
whole feed. The others are about one package: its name stands for other content (`conflict`), what the feed holds is not
what was published (`corrupt`), the feed will not take or does not have it (`refused`). `unsupported`: this installation
cannot speak to such a feed."""

_EXIT_CODES = {"conflict": InputError.exit_code, "refused": InputError.exit_code}


class FeedError(StoreError):
    """A feed did not do what was asked. `kind` says why, by status codes and by asking it, never by its prose."""

    def __init__(self, problem: str, *, kind: FeedFault, cause: str, fix: str) -> None:
        super().__init__(problem, cause=cause, fix=fix)
        self.kind = kind
        self.exit_code = _EXIT_CODES.get(kind, StoreError.exit_code)

    @property
    def stops_all(self) -> bool:
        """Would the next package meet the same? Then going on is of no use."""
        return self.kind in ("auth", "unavailable", "unsupported")

    def __reduce__(self) -> tuple[object, ...]:
        return _again, (self.problem, self.kind, self.cause, self.fix)


def _again(problem: str, kind: FeedFault, cause: str, fix: str) -> FeedError:
    return FeedError(problem, kind=kind, cause=cause, fix=fix)


def corrupt(problem: str, cause: str) -> FeedError:
    fix = "publish it again from where it was built; what is local stays"
    return FeedError(problem, kind="corrupt", cause=cause, fix=fix)
