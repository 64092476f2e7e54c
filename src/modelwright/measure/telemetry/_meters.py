"""Everything that can be watched on this machine while another process runs a model."""

from __future__ import annotations

import importlib.util
import sys
from typing import TYPE_CHECKING, Any

from modelwright._extensions import TELEMETRY, extensions, load_function
from modelwright._lazy import lazy
from modelwright.measure.telemetry._linux import Busy, device_meters, process_meters
from modelwright.measure.telemetry._types import Meter, NoMeter

if TYPE_CHECKING:
    import psutil
else:
    psutil = lazy("psutil")
pynvml = lazy("pynvml")  # optional, and it has no type stubs

_LINUX: bool = sys.platform == "linux"
_CPU_SENSORS = ("coretemp", "k10temp", "zenpower", "cpu_thermal", "acpitz")


def find_meters(pid: int) -> list[Meter | NoMeter]:
    """For this process and this machine; what cannot be read is there too, with the reason."""
    return [*_process(pid), *_system(), _clock(), _temperature(), *_accelerators(pid), *_nvidia(pid), *_outside(pid)]


def _outside(pid: int) -> list[Meter | NoMeter]:
    """What other packages can read: functions of the process that give meters, and the reasons for those missing."""
    found: list[Meter | NoMeter] = []
    for name in extensions(TELEMETRY):
        found += load_function(TELEMETRY, name)(pid)
    return found


def _process(pid: int) -> list[Meter | NoMeter]:
    process = psutil.Process(pid)
    busy = Busy(1.0)

    def cpu(now: float) -> float | None:
        times = process.cpu_times()
        return busy.percent(times.user + times.system, now)

    source = f"psutil, process {pid}"
    return [
        Meter("process_cpu", "% of one CPU", source, cpu),
        Meter("process_memory", "bytes", source, lambda _: float(process.memory_info().rss)),
    ]


def _system() -> list[Meter | NoMeter]:
    last: list[tuple[float, float]] = []

    def cpu(_: float) -> float | None:
        times = psutil.cpu_times()
        idle = times.idle + getattr(times, "iowait", 0.0)
        whole = sum(times) - getattr(times, "guest", 0.0) - getattr(times, "guest_nice", 0.0)
        before = last.pop() if last else None
        last.append((idle, whole))
        if before is None or whole <= before[1]:
            return None
        return 100 * max(0.0, 1 - (idle - before[0]) / (whole - before[1]))

    return [
        Meter("system_cpu", "%", "psutil, all CPUs", cpu),
        Meter("system_memory", "bytes", "psutil, used", lambda _: float(psutil.virtual_memory().used)),
    ]


def _clock() -> Meter | NoMeter:
    if not hasattr(psutil, "cpu_freq") or psutil.cpu_freq() is None:
        return NoMeter("cpu_clock", "MHz", "the operating system tells no CPU clock")

    def clock(_: float) -> float | None:
        found = psutil.cpu_freq()
        return float(found.current) if found and found.current else None

    return Meter("cpu_clock", "MHz", "psutil, mean of all CPUs", clock)


def _temperature() -> Meter | NoMeter:
    reason = "no way to read temperatures on this system yet"
    if sys.platform == "linux":
        name = next((name for name in _CPU_SENSORS if psutil.sensors_temperatures().get(name)), None)
        if name is not None:
            return Meter("cpu_temperature", "°C", f"sensor {name}, hottest", lambda _: _hottest(name))
        reason = "no CPU temperature sensor is visible"
    return NoMeter("cpu_temperature", "°C", reason)


if sys.platform == "linux":

    def _hottest(sensor: str) -> float | None:
        found = psutil.sensors_temperatures().get(sensor, [])
        return max((float(one.current) for one in found), default=None)


def _accelerators(pid: int) -> list[Meter | NoMeter]:
    if _LINUX:
        return [*process_meters(pid), *device_meters()]
    reason = f"no way to read it on {sys.platform} yet"
    return [NoMeter("gpu_busy", "%", reason), NoMeter("npu_busy", "%", reason)]


def _nvidia(pid: int) -> list[Meter | NoMeter]:
    """Nothing where there is no NVIDIA library: the absence of a GPU is told by the system's own list."""
    if importlib.util.find_spec("pynvml") is None:
        return []
    try:
        pynvml.nvmlInit()
        count = pynvml.nvmlDeviceGetCount()
    except pynvml.NVMLError as error:
        return [NoMeter("gpu_busy[nvidia]", "%", f"NVML: {error}")]
    return [meter for index in range(count) for meter in _nvidia_device(index, pid)]


def _nvidia_device(index: int, pid: int) -> list[Meter | NoMeter]:
    handle = pynvml.nvmlDeviceGetHandleByIndex(index)
    name, source = f"nvidia{index}", f"NVML device {index}"

    def ask(question: Any) -> float | None:
        try:
            return float(question())
        except pynvml.NVMLError:
            return None

    def own_memory() -> float:
        running = pynvml.nvmlDeviceGetComputeRunningProcesses(handle)
        return float(sum(item.usedGpuMemory or 0 for item in running if item.pid == pid))

    return [
        Meter(
            f"gpu_busy[{name}]",
            "%",
            source,
            lambda _: ask(lambda: pynvml.nvmlDeviceGetUtilizationRates(handle).gpu),
        ),
        Meter(
            f"gpu_memory[{name}]",
            "bytes",
            source,
            lambda _: ask(lambda: pynvml.nvmlDeviceGetMemoryInfo(handle).used),
        ),
        Meter(f"process_gpu_memory[{name}]", "bytes", source, lambda _: ask(own_memory)),
        Meter(
            f"gpu_temperature[{name}]",
            "°C",
            source,
            lambda _: ask(lambda: pynvml.nvmlDeviceGetTemperature(handle, pynvml.NVML_TEMPERATURE_GPU)),
        ),
    ]
