"""`make test` beside eight processes that never rest, on as many cores as there are.

Run in a clean clone: `python -m bench busy_test` takes forty minutes or more on two cores. Every run is added to those
that were written; three in a row without a failure are needed.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

from bench.written import read

NAME = "busy_test"
ROOT = Path(__file__).resolve().parent.parent
BUSY, IN_A_ROW = 8, 3
SPIN = "while True: pass"


def run() -> dict[str, Any]:
    runs = [*read(NAME).get("runs", []), tested()]
    last = runs[-IN_A_ROW:]
    met = len(last) == IN_A_ROW and all(made["exit"] == 0 for made in last)
    return {"busy_processes": BUSY, "runs": runs, "met": met}


def tested() -> dict[str, Any]:
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
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    return {
        "commit": commit.stdout.strip(),
        "load_average": {"least": round(min(loads, default=0.0), 1), "most": round(max(loads, default=0.0), 1)},
        "exit": tests.returncode,
        "pytest": ended,
        "failed": re.findall(r"^FAILED (\S+)", tests.stdout, re.MULTILINE),
    }


def _watch(loads: list[float], over: threading.Event) -> None:
    """The load of every minute but the first ones, in which the average still rises."""
    while not over.wait(60):
        loads.append(os.getloadavg()[0])
