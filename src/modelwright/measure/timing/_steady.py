"""When a session is warm: it has stopped getting faster."""

from __future__ import annotations

_GAIN = 0.02
_IN_A_ROW = 2


class Steadiness:
    """Two windows in a row whose median is less than 2 % below the best window before them.

    Only getting faster counts: noise and throttling make windows slower, and waiting for them to end would not.
    """

    def __init__(self) -> None:
        self._best: float | None = None
        self._calm = 0

    def reached(self, median: float) -> bool:
        """Take the median of the next window; True when the session is warm."""
        faster = self._best is None or median < self._best * (1 - _GAIN)
        self._calm = 0 if faster else self._calm + 1
        self._best = median if self._best is None else min(self._best, median)
        return self._calm >= _IN_A_ROW
