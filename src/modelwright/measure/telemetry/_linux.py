"""GPU and NPU numbers as Linux tells them: sysfs for devices, fdinfo for one process."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from modelwright._dataclass import dataclass
from modelwright.measure.telemetry._types import Meter, NoMeter

_DRM, _ACCEL, _PROC = Path("/sys/class/drm"), Path("/sys/class/accel"), Path("/proc")
_CARD = re.compile(r"^card\d+$")
_SIZES = {"": 1, "B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
_US_PER_S, _NS_PER_S = 1_000_000, 1_000_000_000
# Newer kernels write what is resident; older ones only what is reserved.
_MEMORY_KEYS = ("drm-resident-", "drm-memory-", "drm-total-")


class Busy:
    """The share of time a growing counter grew, in percent; None at the first look."""

    def __init__(self, per_second: float) -> None:
        self._per_second = per_second
        self._last: tuple[float, float] | None = None

    def percent(self, counter: float, now: float) -> float | None:
        before, self._last = self._last, (counter, now)
        if before is None or now <= before[1] or counter < before[0]:
            return None
        return 100 * (counter - before[0]) / self._per_second / (now - before[1])


@dataclass(frozen=True)
class DrmClient:
    """One open device file of a process. Engines count ns; where the driver counts cycles, (used, of all)."""

    driver: str | None
    client: str
    engines_ns: Mapping[str, int]
    engines_cycles: Mapping[str, tuple[int, int]]
    memory_bytes: int | None


def parse_fdinfo(text: str) -> DrmClient | None:
    """None where the file is no GPU or NPU."""
    fields = dict(_fields(text))
    client = fields.get("drm-client-id")
    if client is None:
        return None
    engines = _engines(fields, "drm-engine-", exclude="drm-engine-capacity-")
    used = _engines(fields, "drm-cycles-")
    whole = _engines(fields, "drm-total-cycles-")
    cycles = {name: (count, whole[name]) for name, count in used.items() if name in whole}
    place = fields.get("drm-pdev", "")
    return DrmClient(fields.get("drm-driver"), f"{place} {client}".strip(), engines, cycles, _memory(fields))


def _fields(text: str) -> Iterator[tuple[str, str]]:
    for line in text.splitlines():
        key, colon, value = line.partition(":")
        if colon:
            yield key.strip(), value.strip()


def _engines(fields: Mapping[str, str], prefix: str, exclude: str | None = None) -> dict[str, int]:
    found = {}
    for key, value in fields.items():
        number = value.split()[0] if value else ""
        if key.startswith(prefix) and not (exclude and key.startswith(exclude)) and number.isdigit():
            found[key.removeprefix(prefix)] = int(number)
    return found


def _memory(fields: Mapping[str, str]) -> int | None:
    for prefix in _MEMORY_KEYS:
        sizes = [_size(value) for key, value in fields.items() if key.startswith(prefix)]
        known = [size for size in sizes if size is not None]
        if known:
            return sum(known)
    return None


def _size(text: str) -> int | None:
    number, _, unit = text.partition(" ")
    return int(number) * _SIZES[unit.strip()] if number.isdigit() and unit.strip() in _SIZES else None


class ProcessGpu:
    """What one process does on all GPUs and NPUs: the busiest engine, and memory."""

    def __init__(self, pid: int, proc: Path = _PROC) -> None:
        self._folder = proc / str(pid)
        self._engines: dict[str, Busy] = {}
        self._cycles: dict[str, tuple[int, int]] = {}

    def busy_percent(self, now: float) -> float | None:
        found: list[float] = []
        for client in self._clients():
            for name, ns in client.engines_ns.items():
                meter = self._engines.setdefault(f"{client.client} {name}", Busy(_NS_PER_S))
                found.append(_known(meter.percent(ns, now)))
            for name, counts in client.engines_cycles.items():
                found.append(_known(self._cycle_share(f"{client.client} {name}", counts)))
        real = [value for value in found if value >= 0]
        return max(real) if real else None

    def memory_bytes(self, _: float) -> float | None:
        sizes = [client.memory_bytes for client in self._clients() if client.memory_bytes is not None]
        return float(sum(sizes)) if sizes else None

    def _cycle_share(self, key: str, counts: tuple[int, int]) -> float | None:
        before = self._cycles.get(key)
        self._cycles[key] = counts
        if before is None or counts[1] <= before[1]:
            return None
        return 100 * (counts[0] - before[0]) / (counts[1] - before[1])

    def _clients(self) -> Iterable[DrmClient]:
        """Each once: several descriptors of one device share a client."""
        found: dict[str, DrmClient] = {}
        for descriptor in sorted((self._folder / "fd").iterdir()):
            try:
                if not str(descriptor.readlink()).startswith(("/dev/dri/", "/dev/accel/")):
                    continue
                client = parse_fdinfo((self._folder / "fdinfo" / descriptor.name).read_text())
            except FileNotFoundError:
                continue
            if client is not None:
                found.setdefault(client.client, client)
        return found.values()


def _known(value: float | None) -> float:
    return -1.0 if value is None else value


def device_meters(drm: Path = _DRM, accel: Path = _ACCEL) -> list[Meter | NoMeter]:
    """Whole devices, whoever uses them. Several of a kind each get a series of their own."""
    cards = [card for card in sorted(_entries(drm)) if _CARD.match(card.name)]
    npus = sorted(_entries(accel))
    found: list[Meter | NoMeter] = []
    for card in cards:
        found.extend(_gpu(card))
    if not cards:
        found.append(NoMeter("gpu_busy", "%", f"no GPU in {drm}"))
    for npu in npus:
        found.append(_npu(npu))
    if not npus:
        found.append(NoMeter("npu_busy", "%", f"no NPU in {accel}"))
    return found


def process_meters(pid: int, drm: Path = _DRM, accel: Path = _ACCEL) -> list[Meter | NoMeter]:
    if not _entries(drm) and not _entries(accel):
        return [NoMeter("process_gpu_busy", "%", "no GPU or NPU is visible to the operating system")]
    gpu = ProcessGpu(pid)
    source = f"/proc/{pid}/fdinfo"
    return [
        Meter("process_gpu_busy", "%", source, gpu.busy_percent),
        Meter("process_gpu_memory", "bytes", source, gpu.memory_bytes),
    ]


def _gpu(card: Path) -> list[Meter | NoMeter]:
    """amdgpu tells; others only through fdinfo or the vendor's library."""
    busy, memory = card / "device/gpu_busy_percent", card / "device/mem_info_vram_used"
    name = f"gpu_busy[{card.name}]"
    if not busy.is_file():
        return [NoMeter(name, "%", f"the driver of {card.name} has no gpu_busy_percent")]
    found: list[Meter | NoMeter] = [Meter(name, "%", str(busy), lambda _: _number(busy))]
    if memory.is_file():
        found.append(Meter(f"gpu_memory[{card.name}]", "bytes", str(memory), lambda _: _number(memory)))
    return found


def _npu(device: Path) -> Meter | NoMeter:
    counter = device / "device/npu_busy_time_us"
    name = f"npu_busy[{device.name}]"
    if not counter.is_file():
        return NoMeter(name, "%", f"the driver of {device.name} has no npu_busy_time_us")
    busy = Busy(_US_PER_S)

    def read(now: float) -> float | None:
        value = _number(counter)
        return None if value is None else busy.percent(value, now)

    return Meter(name, "%", str(counter), read)


def _number(file: Path) -> float | None:
    text = file.read_text().strip()
    return float(text) if text.isdigit() else None


def _entries(folder: Path) -> list[Path]:
    return list(folder.iterdir()) if folder.is_dir() else []
