"""`make test` beside eight processes that never rest, on as many cores as there are.

Run in a clean clone: `python -m bench busy_test` takes an hour or more on two cores.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
BUSY = 8
SPIN = "while True: pass"


def run() -> dict[str, Any]:
    loads: list[float] = []
    over = threading.Event()
    watch = threading.Thread(target=_watch, args=(loads, over))
    busy = [subprocess.Popen([sys.executable, "-c", SPIN]) for _ in range(BUSY)]
    try:
        watch.start()
        tests = subprocess.run(["make", "test"], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    finally:
        over.set()
        for process in busy:
            process.kill()
            process.wait()
    watch.join()
    ended = re.findall(r"^.*\b(?:passed|failed)\b.* in .*$", tests.stdout, re.MULTILINE)
    return {
        "busy_processes": BUSY,
        "cores": len(os.sched_getaffinity(0)),
        "load_average": {"least": min(loads), "most": max(loads)},
        "exit": tests.returncode,
        "pytest": ended,
        "failed": re.findall(r"^FAILED (\S+)", tests.stdout, re.MULTILINE),
        "met": tests.returncode == 0,
    }


def _watch(loads: list[float], over: threading.Event) -> None:
    """The load of every minute but the first ones, in which the average still rises."""
    while not over.wait(60):
        loads.append(os.getloadavg()[0])
