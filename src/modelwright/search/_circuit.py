"""A graph that takes its process down is not opened again on that EP; the device is asked whether it still works."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from modelwright.search._contender import Contender
from modelwright.search._events import DeviceCrashed, DeviceProbed, ProbeDevice, SearchDone, VariantDropped
from modelwright.search._variant import BASELINE

# Without the baseline there is nothing to hold anything against, so it gets a second try.
_BASELINE_CRASHES = 2


class Circuit:
    """What broke so far. Between a crash and the answer of the device nothing else is asked."""

    def __init__(self, contenders: Mapping[str, Contender]) -> None:
        self._contenders, self._crashes = contenders, Counter[str]()
        self._open: dict[str, str] = {}
        self._unasked: str | None = None
        self.lost: str | None = None

    def crashed(self, event: DeviceCrashed) -> None:
        self._unasked = event.label
        self._crashes[event.label] += 1
        if event.label == BASELINE and self._crashes[BASELINE] < _BASELINE_CRASHES:
            return
        broken = self._contenders[event.label]
        broken.dropped = VariantDropped(event.label, "crashed", event.reason)
        graph = _graph(broken)
        # The baseline's own graph runs: there it is the setting of the session that breaks.
        if graph and graph != _graph(self._contenders[BASELINE]):
            self._open[graph] = event.label
        for one in self._contenders.values():
            one.dropped = one.dropped or self.blocked(one)

    def probed(self, event: DeviceProbed) -> None:
        self._unasked, self.lost = None, event.fails

    def next(self) -> ProbeDevice | SearchDone | None:
        if self._unasked is not None:
            return ProbeDevice(self._unasked)
        if self.lost is not None:
            return SearchDone(BASELINE, f"the device does not work any more: {self.lost}", lost=True)
        return None

    def blocked(self, one: Contender) -> VariantDropped | None:
        """A graph that broke once is not opened again, whatever the session is like."""
        broken = self._open.get(_graph(one))
        if broken is None:
            return None
        reason = f"the same graph broke its process as {broken}: it is not opened again on this device"
        return VariantDropped(one.label, "crashed", reason)


def _graph(one: Contender) -> str:
    return one.made.graph if one.made is not None else ""
