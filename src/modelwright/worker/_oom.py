"""Did the kernel kill for memory, and how much does it grant? Its own files are the evidence."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from modelwright._dataclass import dataclass

_CGROUPS = Path("/sys/fs/cgroup")
_CEILINGS = ("memory.max", "memory.limit_in_bytes")


@dataclass(frozen=True)
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


def group_ceilings() -> list[int]:
    """The memory limits of our cgroup and of those around it, in bytes."""
    found = []
    for mount, inside in _groups():
        folders = [mount / inside, *(mount / inside).parents]
        for folder in folders[: folders.index(mount) + 1]:
            texts = [text for name in _CEILINGS for text in _lines(folder / name)[:1]]
            found += [int(text) for text in texts if text.isdecimal()]
    return found


def _candidates() -> Iterator[Path]:
    for mount, inside in _groups():
        # cgroup v2: the root group has no such file, and a container may see itself as the root.
        if mount.name != "memory":
            yield mount / inside / "memory.events"
        else:
            yield mount / inside / "memory.oom_control"
            yield mount / "memory.oom_control"
    yield Path("/proc/vmstat")


def _groups() -> Iterator[tuple[Path, str]]:
    """Where a hierarchy with memory is mounted, and the name of our group in it; version 2 and version 1."""
    for line in _lines(Path("/proc/self/cgroup")):
        _, controllers, group = line.split(":", 2)
        inside = group.lstrip("/")
        if controllers == "":
            yield from ((mount, inside) for mount in (_CGROUPS, _CGROUPS / "unified"))
        elif "memory" in controllers.split(","):
            yield _CGROUPS / "memory", inside


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
