"""Where a target can be measured: on this machine, or on one of a cluster."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from modelwright._dataclass import dataclass
from modelwright._lazy import lazy
from modelwright.targets import Status, parse_target, survey

if TYPE_CHECKING:
    from modelwright.farm import cluster
    from modelwright.farm.cluster import ClusterWorker
else:
    cluster = lazy("modelwright.farm.cluster")

CPU = "cpu"


@dataclass(frozen=True)
class MeasuringPlace:
    """A machine of a cluster, or this one (None)."""

    machine: str | None = None
    simulated: bool = False


Places = Callable[[str], MeasuringPlace | str]
"""Where a target is, or why nowhere. The same for every cell of a target: their times can be compared."""


def places_for(scheduler: str | None, tls: Path | None) -> Places:
    """Of the cluster where there is one; this machine then measures nothing."""
    if scheduler is None:
        return _here()
    with cluster.Cluster(scheduler, tls=tls) as found:
        return places_there(found.workers(fresh=True))


def _here() -> Places:
    rows = {row.ep: row for row in survey().eps}

    def place(target: str) -> MeasuringPlace | str:
        asked = parse_target(target)
        row = rows.get(asked.ep)
        if row is None or asked.word not in row.targets or row.status not in (Status.USABLE, Status.SIMULATOR):
            if row is None or row.status in (Status.USABLE, Status.SIMULATOR):
                return "this machine has no such device"
            return row.reason or row.status.value
        return MeasuringPlace(simulated=row.status is Status.SIMULATOR)

    return place


def places_there(workers: Sequence[ClusterWorker]) -> Places:
    """The first by name that has the device itself, else the first that simulates it."""
    there = sorted(workers, key=lambda one: one.name)

    def place(target: str) -> MeasuringPlace | str:
        word = parse_target(target).word
        able = [one for one in there if one.has_device(word)]
        if not able:
            return "no worker of the cluster has it"
        found = [MeasuringPlace(one.name, word in one.facts.simulated) for one in able]
        return next((one for one in found if not one.simulated), found[0])

    return place
