"""The circumstances in which something was found. What this machine does not tell is None with a reason."""

from __future__ import annotations

import hashlib
import os
import platform
import sys
import time
from collections.abc import Mapping
from dataclasses import field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from modelwright import __version__
from modelwright._dataclass import dataclass
from modelwright._installed import installed
from modelwright._lazy import lazy
from modelwright.targets import Host, catalogue, read_host

if TYPE_CHECKING:
    import psutil
else:
    psutil = lazy("psutil")

_GOVERNORS = Path("/sys/devices/system/cpu")
_BUSY_SHARE = 0.1
_LIBRARIES = ("onnxruntime", "onnx", "numpy", "torch", "transformers")
_MACHINE_IDS = (Path("/etc/machine-id"), Path("/var/lib/dbus/machine-id"))
_PACKAGE_SENSORS = ("coretemp", "k10temp", "zenpower", "cpu_thermal", "acpitz")


@dataclass(frozen=True)
class Reading:
    """One number or word with its unit, or why there is none."""

    value: float | str | None
    unit: str | None = None
    reason: str | None = None


@dataclass(frozen=True)
class Environment:
    """Taken when the measurement starts, except what says otherwise. `packages` has the versions of onnxruntime, the
    EPs and what shapes a model; `machine` tells two machines apart and nothing else about them."""

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
    load: Reading = Reading(None, "processes that want a CPU, over a minute", "not taken")
    machine: str | None = None
    packages: Mapping[str, str] = field(default_factory=dict)


class EnvironmentProbe:
    """Reads before, and once more after; the difference is what others did meanwhile."""

    def __init__(self) -> None:
        self._taken_at = datetime.now(UTC).isoformat(timespec="seconds")
        self._host = read_host()
        self._before = (_governor(), *_clocks(), _temperature(), _power())
        self._load = _load()
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
            load=self._load,
            machine=_machine(),
            packages=_packages(),
        )

    def _foreign(self, children_s: float | None) -> Reading:
        unit = "CPUs busy with other work, on average"
        elapsed = time.monotonic() - self._started
        if children_s is None:
            return Reading(None, unit, "the CPU time of our own processes is not known")
        if elapsed < 0.5:
            return Reading(None, unit, "the measurement was too short to tell")
        busy = _busy_s() - self._cpu
        own = _own_s() - self._own + children_s
        return Reading(round(max(0.0, busy - own) / elapsed, 3), unit)


def read_environment() -> Environment:
    """As it is now, for what takes no times."""
    return EnvironmentProbe().finish(None)


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


def _load() -> Reading:
    unit = "processes that want a CPU, over a minute"
    try:
        return Reading(round(psutil.getloadavg()[0], 2), unit)
    except OSError as error:
        return Reading(None, unit, str(error))


def _machine() -> str:
    """A digest: the id itself is meant to stay on the machine."""
    files = (path.read_text() for path in _MACHINE_IDS if path.is_file())
    known = next(files, platform.node())
    return hashlib.sha256(f"modelwright {known.strip()}".encode()).hexdigest()[:16]


def _packages() -> dict[str, str]:
    names = dict.fromkeys((*_LIBRARIES, *catalogue().packages()))
    return {name: version for name in names if (version := installed(name)) is not None}
