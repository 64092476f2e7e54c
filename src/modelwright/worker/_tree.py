"""The processes below this one: who they are, what they use, and how to end all of them (POSIX)."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from modelwright._dataclass import dataclass

# Windows has its own (`_windows`); a checker for it looks no further.
assert sys.platform != "win32"

_PROC = Path("/proc")
_LINUX: bool = sys.platform == "linux"


@dataclass(frozen=True)
class Usage:
    """CPU time (with that of reaped children) and resident memory of some processes."""

    cpu_s: float
    rss_bytes: int


def descendants(runner: int) -> list[int]:
    """Every live process below us. macOS cannot adopt orphans, so there the runner's group stands in."""
    if _LINUX:
        return _walk(os.getpid())
    return [row.pid for row in _ps() if runner in (row.pid, row.group)]


def usage(runner: int) -> Usage:
    if _LINUX:
        pids = _walk(os.getpid())
        return Usage(sum(map(_cpu_s, pids)), sum(map(_rss_bytes, pids)))
    rows = [row for row in _ps() if runner in (row.pid, row.group)]
    return Usage(sum(row.cpu_s for row in rows), sum(row.rss_bytes for row in rows))


def waits_for_cpu(runner: int) -> bool:
    """Is a thread of the tree running or queued for a core? On a loaded machine that is not idleness."""
    return _LINUX and any(state == "R" for pid in descendants(runner) for state in _states(pid))


def held_bytes(runner: int) -> int:
    """Memory that the system cannot take back: shared pages count once, those of mapped files not at all. Slower, so
    only asked when `usage` looks too high."""
    if _LINUX:
        return sum(map(_held_bytes, _walk(os.getpid())))
    return usage(runner).rss_bytes


def kill_all(pids: Iterable[int], number: int) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def _walk(root: int) -> list[int]:
    """Below `root`. May miss one that is being born: whoever kills walks again until nothing is left."""
    listed = Path(f"/proc/{root}/task/{root}/children").exists()
    parents = {} if listed else dict(_scan())
    found: list[int] = []
    waiting = [root]
    while waiting:
        pid = waiting.pop()
        children = list(_children(pid)) if listed else [one for one, parent in parents.items() if parent == pid]
        found += children
        waiting += children
    return found


def _scan() -> Iterator[tuple[int, int]]:
    """(pid, parent) of every process, for kernels built without the list of children."""
    for entry in _PROC.iterdir():
        if entry.name.isdecimal() and (text := _read(entry / "stat")):
            yield int(entry.name), int(text[text.rfind(")") + 2 :].split()[1])


def _children(pid: int) -> Iterator[int]:
    # The kernel lists children per thread. The process may end while we read.
    with contextlib.suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208 names are enough, and this runs often
            yield from map(int, Path(f"/proc/{pid}/task/{thread}/children").read_text().split())


def _states(pid: int) -> Iterator[str]:
    for thread in _PROC.glob(f"{pid}/task/*/stat"):
        text = _read(thread)
        yield text[text.rfind(")") + 2 :][:1]


def _cpu_s(pid: int) -> float:
    text = _read(_PROC / str(pid) / "stat")
    fields = text[text.rfind(")") + 2 :].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK") if fields else 0.0


def _rss_bytes(pid: int) -> int:
    fields = _read(_PROC / str(pid) / "statm").split()
    return int(fields[1]) * os.sysconf("SC_PAGE_SIZE") if fields else 0


def _held_bytes(pid: int) -> int:
    found = re.findall(r"^Pss_(?:Anon|Shmem):\s+(\d+) kB", _read(_PROC / str(pid) / "smaps_rollup"), re.MULTILINE)
    return sum(map(int, found)) * 1024 if found else _rss_bytes(pid)


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""


@dataclass(frozen=True)
class _Row:
    pid: int
    group: int
    rss_bytes: int
    cpu_s: float


def _ps() -> list[_Row]:
    """The process table where there is no /proc."""
    command = ["ps", "-A", "-o", "pid=,pgid=,rss=,time="]
    table = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False).stdout
    return [_row(*line.split()) for line in table.splitlines()]


def _row(pid: str, group: str, kib: str, time: str) -> _Row:
    days, _, clock = time.rpartition("-")
    seconds = 0.0
    for part in clock.split(":"):
        seconds = seconds * 60 + float(part)
    return _Row(int(pid), int(group), int(kib) * 1024, seconds + 86400 * int(days or 0))
