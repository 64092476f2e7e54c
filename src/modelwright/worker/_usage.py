"""CPU time and peak memory of this process."""

from __future__ import annotations

import contextlib
import os
import re
import sys
from pathlib import Path

if sys.platform == "win32":
    from modelwright.worker import _windows
else:
    import resource

_LINUX: bool = sys.platform == "linux"
_STATUS = Path("/proc/self/status")
_RESET = Path("/proc/self/clear_refs")


if sys.platform == "win32":

    def cpu_s() -> float:
        """User and system time of this process."""
        times = os.times()
        return times.user + times.system

    def peak_rss_bytes() -> int | None:
        return _windows.peak_working_set(_windows.THIS_PROCESS)

else:

    def cpu_s() -> float:
        """User and system time of this process and its finished children."""
        both = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
        return sum(usage.ru_utime + usage.ru_stime for usage in both)

    def peak_rss_bytes() -> int | None:
        if not _LINUX:
            return maxrss_bytes(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
        # Not ru_maxrss: resetting does not lower it in every kernel.
        found = re.search(r"^VmHWM:\s+(\d+) kB", _STATUS.read_text(), re.MULTILINE)
        return int(found[1]) * 1024 if found else None


def reset_peak_rss() -> None:
    """Start a new peak where the system can (Linux); elsewhere the peak is that of the whole life."""
    if _LINUX:
        with contextlib.suppress(OSError):
            _RESET.write_text("5")


def maxrss_bytes(maxrss: int) -> int:
    """`ru_maxrss` in bytes: macOS counts bytes, everyone else KiB."""
    return maxrss if sys.platform == "darwin" else maxrss * 1024
