"""Did the kernel kill for memory? Its own counters are the evidence."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_CGROUPS = Path("/sys/fs/cgroup")


@dataclass(frozen=True, slots=True)
class OomCounter:
    """OOM kills counted so far in one file of the kernel."""

    file: Path
    kills: int

    @classmethod
    def read(cls) -> OomCounter | None:
        """The counter of our memory cgroup, else that of the machine; None where the kernel has neither."""
        for file in _candidates():
            kills = _oom_kills(file)
            if kills is not None:
                return cls(file, kills)
        return None

    def increase(self) -> int:
        return (_oom_kills(self.file) or 0) - self.kills


def _candidates() -> Iterator[Path]:
    for line in _lines(Path("/proc/self/cgroup")):
        _, controllers, group = line.split(":", 2)
        inside = group.lstrip("/")
        if controllers == "":
            # cgroup v2: the root group has no such file, and a container may see itself as the root.
            for mount in (_CGROUPS, _CGROUPS / "unified"):
                yield mount / inside / "memory.events"
        elif "memory" in controllers.split(","):
            yield _CGROUPS / "memory" / inside / "memory.oom_control"
            yield _CGROUPS / "memory" / "memory.oom_control"
    yield Path("/proc/vmstat")


def _oom_kills(file: Path) -> int | None:
    for line in _lines(file):
        key, _, value = line.partition(" ")
        if key == "oom_kill":
            return int(value)
    return None


def _lines(file: Path) -> list[str]:
    try:
        return file.read_text().splitlines()
    except OSError:
        return []
