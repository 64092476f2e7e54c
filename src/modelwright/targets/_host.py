"""This machine's hardware, read from the operating system. What cannot be read is None with a reason."""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from modelwright._dataclass import dataclass
from modelwright._lazy import lazy
from modelwright.worker import cpu_share

if TYPE_CHECKING:
    import psutil
else:
    psutil = lazy("psutil")

# Instruction sets that change which kernels onnxruntime picks, by the names Linux and macOS give them.
_FEATURES = {
    "avx2": ("avx2",),
    "avx512": ("avx512f",),
    "avx_vnni": ("avx_vnni",),
    "avx512_vnni": ("avx512_vnni",),
    "avx512_bf16": ("avx512_bf16",),
    "amx_int8": ("amx_int8",),
    "neon": ("asimd", "feat_advsimd", "advsimd"),
    "dotprod": ("asimddp", "feat_dotprod"),
    "i8mm": ("i8mm", "feat_i8mm"),
    "sve": ("sve",),
    "sme": ("sme", "feat_sme"),
}
_PCI_VENDORS = {
    "0x8086": "Intel",
    "0x10de": "NVIDIA",
    "0x1002": "AMD",
    "0x1022": "AMD",
    "0x17cb": "Qualcomm",
    "0x5143": "Qualcomm",
}


@dataclass(frozen=True)
class Cpu:
    """`usable` is what this process may really use: affinity and cgroup quota, not what is soldered on."""

    model: str | None
    physical: int | None
    logical: int | None
    usable: float
    features: tuple[str, ...] | None
    features_reason: str | None = None


@dataclass(frozen=True)
class Accelerator:
    kind: str
    vendor: str | None
    name: str


@dataclass(frozen=True)
class Host:
    system: str
    machine: str
    python: str
    cpu: Cpu
    memory_bytes: int
    memory_available_bytes: int
    accelerators: tuple[Accelerator, ...] | None
    accelerators_reason: str | None = None

    @property
    def platform_key(self) -> str:
        """`linux-x86_64`, `win32-arm64`…: how the EP table names platforms."""
        return f"{sys.platform}-{self.machine.lower().replace('amd64', 'x86_64')}"


def read_host() -> Host:
    memory = psutil.virtual_memory()
    accelerators, reason = _accelerators()
    return Host(
        system=f"{platform.system()} {platform.release()}",
        machine=platform.machine(),
        python=platform.python_version(),
        cpu=read_cpu(),
        memory_bytes=memory.total,
        memory_available_bytes=memory.available,
        accelerators=accelerators,
        accelerators_reason=reason,
    )


def usable_cpus() -> float:
    """CPUs this process may use: its affinity, cut by a cgroup quota, and by what works beside it."""
    return min(float(_affinity()), _cgroup_quota() or float("inf"), cpu_share() or float("inf"))


def _affinity() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _cgroup_quota(root: Path = Path("/sys/fs/cgroup"), membership: Path = Path("/proc/self/cgroup")) -> float | None:
    """The tightest `cpu.max` from our cgroup up to the root (cgroup v2), in CPUs."""
    try:
        own = next(line.partition("::")[2] for line in membership.read_text().splitlines() if line.startswith("0::"))
    except (OSError, StopIteration):
        return None
    folder = root / own.lstrip("/")
    quotas = [_cpu_max(path / "cpu.max") for path in (folder, *folder.parents) if path.is_relative_to(root)]
    return min((quota for quota in quotas if quota is not None), default=None)


def _cpu_max(file: Path) -> float | None:
    try:
        quota, period = file.read_text().split()
    except (OSError, ValueError):
        return None
    return None if quota == "max" else int(quota) / int(period)


def read_cpu() -> Cpu:
    text = _cpu_text()
    flags = set(re.findall(r"[a-z0-9_]+", text.lower())) if text else None
    return Cpu(
        model=_cpu_model(text),
        physical=psutil.cpu_count(logical=False),
        logical=psutil.cpu_count(),
        usable=usable_cpus(),
        features=None if flags is None else tuple(name for name, keys in _FEATURES.items() if flags & set(keys)),
        features_reason=None if flags is not None else f"no way to read CPU flags on {platform.system()} yet",
    )


def _cpu_text() -> str | None:
    """The text the OS describes the CPU with: model name and flags of the first core."""
    if platform.system() == "Linux":
        return Path("/proc/cpuinfo").read_text().split("\n\n")[0]
    if platform.system() == "Darwin":
        found = subprocess.run(
            ["sysctl", "machdep.cpu", "hw.optional"], capture_output=True, text=True, timeout=5, check=False
        )
        on = [line for line in found.stdout.splitlines() if not line.endswith(": 0")]
        return "\n".join(on).replace("hw.optional.arm.", "").replace("hw.optional.", "")
    return None


def _cpu_model(text: str | None) -> str | None:
    found = re.search(r"(?:model name\s*|brand_string): (.+)", text or "")
    return found.group(1).strip() if found else (platform.processor() or None)


def _accelerators() -> tuple[tuple[Accelerator, ...] | None, str | None]:
    if sys.platform == "linux":
        gpus = _sysfs_devices("gpu", Path("/sys/class/drm"), "renderD*")
        found, reason = (*gpus, *_sysfs_devices("npu", Path("/sys/class/accel"), "accel*")), None
    else:
        found, reason = None, f"not listed by the OS on {platform.system()} yet; see the devices each EP reports"
    return found, reason


def _sysfs_devices(kind: str, folder: Path, pattern: str) -> list[Accelerator]:
    devices = []
    for entry in sorted(folder.glob(pattern)):
        vendor = _first_line(entry / "device/vendor")
        device = _first_line(entry / "device/device") or "unknown id"
        devices.append(Accelerator(kind, _PCI_VENDORS.get(vendor or ""), f"PCI {vendor or 'unknown'}:{device}"))
    return devices


def _first_line(file: Path) -> str | None:
    try:
        return file.read_text().strip()
    except OSError:
        return None
