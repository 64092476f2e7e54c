"""Runs a command and prints what it cost; a process of its own, with no memory worth mentioning.

    python -S _launch.py LOG CPU_SECONDS COMMAND...

A child's peak begins with the memory of whoever started it, so nothing large may start it. Prints as JSON: CPU seconds
of the command and all it waited for, the largest resident set among its processes (kept by the kernel), the most memory
that the system could not have taken back from all of them together (looked at a hundred times a second), the exit code.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import subprocess
import sys
import threading
from pathlib import Path

# Pages of mapped files are not among them: they are on disk, and the system takes them back when it needs to.
_HELD = ("RssAnon:", "RssShmem:")


def main(log: str, limit_s: str, *command: str) -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (int(limit_s), -1))
    with Path(log).open("wb") as file:
        child = subprocess.Popen(command, stdout=file, stderr=file)
    held, over = [0], threading.Event()
    watching = threading.Thread(target=_watch, args=(child.pid, held, over))
    watching.start()
    _, status, used = os.wait4(child.pid, 0)
    over.set()
    watching.join()
    cpu_s, code = used.ru_utime + used.ru_stime, os.waitstatus_to_exitcode(status)
    print(json.dumps([cpu_s, used.ru_maxrss * 1024, held[0], code]))


def _watch(root: int, held: list[int], over: threading.Event) -> None:
    while not over.wait(0.01):
        held[0] = max(held[0], sum(map(_held, _tree(root))))


def _tree(root: int) -> list[int]:
    found = [root]
    for process in found:
        # Processes and threads end while they are looked at. Each thread has its own children.
        with contextlib.suppress(OSError):
            for thread in os.listdir(f"/proc/{process}/task"):  # noqa: PTH208 - a glob raises halfway
                with contextlib.suppress(OSError):
                    found += map(int, Path(f"/proc/{process}/task/{thread}/children").read_text().split())
    return found


def _held(process: int) -> int:
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith(_HELD))


if __name__ == "__main__":
    main(*sys.argv[1:])
