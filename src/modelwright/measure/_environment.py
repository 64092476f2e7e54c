"""The circumstances of a measurement. What this machine does not tell is None with a reason."""

from __future__ import annotations

import os
import platform
import sys
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from modelwright import __version__
from modelwright._lazy import lazy
from modelwright.targets import Host, read_host

if TYPE_CHECKING:
    import psutil
else:
    psutil = lazy("psutil")

_GOVERNORS = Path("/sys/devices/system/cpu")
_BUSY_SHARE = 0.1
_PACKAGE_SENSORS = ("coretemp", "k10temp", "zenpower", "cpu_thermal", "acpitz")


@dataclass(frozen=True)
class Reading:
    """One number or word with its unit, or why there is none."""

    value: float | str | None
    unit: str | None = None
    reason: str | None = None


@dataclass(frozen=True)
class Environment:
    """Taken when the measurement starts, except what says otherwise."""

    taken_at: str
    modelwright: str
    host: Host
    governor: Reading
    clock: Reading
    highest_clock: Reading
    temperature: Reading
    temperature_after: Reading
    power: Reading
    foreign_load: Reading


class EnvironmentProbe:
    """Reads before, and once more after; the difference is what others did meanwhile."""

    def __init__(self) -> None:
        self._taken_at = datetime.now(UTC).isoformat(timespec="seconds")
        self._host = read_host()
        self._before = (_governor(), *_clocks(), _temperature(), _power())
        self._cpu = _busy_s()
        self._own = _own_s()
        self._started = time.monotonic()

    def finish(self, children_s: float | None) -> Environment:
        """`children_s` is the CPU time our own children took."""
        governor, clock, highest, temperature, power = self._before
        return Environment(
            taken_at=self._taken_at,
            modelwright=__version__,
            host=self._host,
            governor=governor,
            clock=clock,
            highest_clock=highest,
            temperature=temperature,
            temperature_after=_temperature(),
            power=power,
            foreign_load=self._foreign(children_s),
        )

    def _foreign(self, children_s: float | None) -> Reading:
        unit = "CPUs busy with other work, on average"
        elapsed = time.monotonic() - self._started
        if children_s is None:
            return Reading(None, unit, "the CPU time of the measured process is not known")
        if elapsed < 0.5:
            return Reading(None, unit, "the measurement was too short to tell")
        busy = _busy_s() - self._cpu
        own = _own_s() - self._own + children_s
        return Reading(round(max(0.0, busy - own) / elapsed, 3), unit)


def busy_words(foreign_cpus: float | str | None, usable: float) -> str | None:
    """A sentence where others took so much of the machine that times say less than they seem to."""
    if not isinstance(foreign_cpus, float) or foreign_cpus <= _BUSY_SHARE * usable:
        return None
    return f"{foreign_cpus:.1f} of {usable:g} CPUs were busy with other work: measure on a quiet machine"


def _busy_s() -> float:
    times = psutil.cpu_times()
    idle = times.idle + getattr(times, "iowait", 0.0)
    # Guest time is part of user time already.
    total = sum(times) - getattr(times, "guest", 0.0) - getattr(times, "guest_nice", 0.0)
    return float(total - idle)


def _own_s() -> float:
    times = os.times()
    return times.user + times.system


def _governor() -> Reading:
    files = sorted(_GOVERNORS.glob("cpu[0-9]*/cpufreq/scaling_governor"))
    found = sorted({file.read_text().strip() for file in files})
    if found:
        return Reading(", ".join(found))
    where = "a virtual machine or container shows none" if sys.platform == "linux" else "not read on this system"
    return Reading(None, reason=f"no CPU frequency governor: {where}")


def _clocks() -> tuple[Reading, Reading]:
    try:
        frequency = psutil.cpu_freq()
    except (OSError, NotImplementedError, RuntimeError) as error:
        frequency, why = None, str(error)
    else:
        why = f"{platform.system()} reports none here"
    if frequency is None:
        return Reading(None, "MHz", why), Reading(None, "MHz", why)
    highest = frequency.max or None
    return Reading(round(frequency.current, 1), "MHz"), Reading(highest, "MHz", None if highest else why)


def _temperature() -> Reading:
    read = getattr(psutil, "sensors_temperatures", None)
    sensors = read() if read is not None else {}
    for name in _PACKAGE_SENSORS:
        if sensors.get(name):
            return Reading(round(max(entry.current for entry in sensors[name]), 1), "°C")
    return Reading(None, "°C", "no CPU temperature sensor is visible to this process")


def _power() -> Reading:
    read = getattr(psutil, "sensors_battery", None)
    battery = read() if read is not None else None
    if battery is None:
        return Reading(None, reason="no battery is visible: mains, or not told")
    return Reading("mains" if battery.power_plugged else "battery")
