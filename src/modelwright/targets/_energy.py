"""The energy that the CPU's packages take, as Linux counts it (powercap, RAPL; Intel and AMD alike).

A counter goes round at the end of its range. Imported by foreign interpreters too, so: standard library only.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from modelwright._dataclass import dataclass
from modelwright.errors import ExecutionError

POWERCAP = Path("/sys/class/powercap")
# `intel-rapl-mmio` counts the same packages once more, `psys` has the packages in it, `core` and `uncore` are in them.
_DRIVER, _PACKAGE, _MEMORY = "intel-rapl:", "package", "dram"
_COUNTER, _RANGE = "energy_uj", "max_energy_range_uj"
_UJ_PER_MJ = 1000.0
# A CPU at rest takes energy too, and its counter moves a thousand times a second.
_PATIENCE_S, _LOOK_S = 1.0, 0.005


@dataclass(frozen=True)
class EnergyZone:
    """One counter, in microjoules; after `range_uj` it begins anew."""

    name: str
    counter: str
    range_uj: int

    def read_uj(self) -> int:
        return int(Path(self.counter).read_text("ascii"))

    def since_uj(self, before: int) -> int:
        """What was added; the counter may have gone round once."""
        grown = self.read_uj() - before
        return grown if grown >= 0 else grown + self.range_uj


def energy_zones(root: Path | None = None) -> tuple[EnergyZone, ...]:
    """The packages of this machine, and their memory where that is counted beside them. Raises ExecutionError."""
    root = POWERCAP if root is None else root
    try:
        found = tuple(_zones(root))
        moving = _is_moving(found)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise _unreadable(
            f"{getattr(error, 'filename', None) or root}: {reason}",
            "run it as root, or let this user read the counters (chmod a+r energy_uj of each intel-rapl zone)",
        ) from None
    if not found:
        raise _unreadable(
            f"{root} has no intel-rapl package" if root.is_dir() else f"there is no {root}",
            "measure on a Linux machine with an Intel or AMD CPU that is not virtual, with the module intel_rapl_msr",
        )
    if not moving:
        raise _unreadable(
            f"{found[0].counter} did not move for {_PATIENCE_S:g} s",
            "measure on a machine whose counters count; those of a virtual machine often do not",
        )
    return found


class EnergyMeter:
    """What all zones take from one reading to the next."""

    def __init__(self, zones: Sequence[EnergyZone]) -> None:
        self._zones = zones
        self._before: list[int] = []

    def start(self) -> None:
        self._before = [zone.read_uj() for zone in self._zones]

    def taken_mj(self) -> float:
        """Since `start`, in millijoules."""
        return sum(zone.since_uj(was) for zone, was in zip(self._zones, self._before, strict=True)) / _UJ_PER_MJ


def _is_moving(zones: Sequence[EnergyZone]) -> bool:
    before, end = [zone.read_uj() for zone in zones], time.monotonic() + _PATIENCE_S
    while time.monotonic() < end:
        if [zone.read_uj() for zone in zones] != before:
            return True
        time.sleep(_LOOK_S)
    return False


def _zones(root: Path) -> Iterator[EnergyZone]:
    for folder in sorted(root.iterdir()) if root.is_dir() else []:
        if not folder.name.startswith(_DRIVER):
            continue
        name = (folder / "name").read_text("ascii").strip()
        if name.startswith(_PACKAGE) or name == _MEMORY:
            yield EnergyZone(name, str(folder / _COUNTER), int((folder / _RANGE).read_text("ascii")))


def _unreadable(cause: str, fix: str) -> ExecutionError:
    return ExecutionError("this machine does not tell how much energy its CPU takes", cause=cause, fix=fix)
