"""Honest contributions are approved: families from their tiny entries, made on one CPU, reviewed on all.

Each is run (claim, gate, ladder to L2) in a process of its own and reviewed; every other one is made on one CPU only.
Rows are kept as they come, and a row that the same tool made is not made again. `python -m bench.support_review NAME`
does the named entries only.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import modelwright as mw
from bench import written
from modelwright.recipes import own_folder, read_entries
from modelwright.support import this_tool

NAME, WANTED, SEEDS = "support_review", 20, 5
_MAKE = """
import sys, modelwright as mw
model, recipe, folder, seeds = sys.argv[1:]
mw.support.run(model, folder, recipe=recipe or None, random_weights=True, seeds=int(seeds), ceiling="L2")
mw.support.report(folder)
"""


def run(*names: str) -> dict[str, Any]:
    rows = {row["entry"]: row for row in written.read(NAME).get("rows", []) if row["tool"] == this_tool().digest}
    for number, entry in enumerate(one for one in read_entries(own_folder()) if one.kind == "folder"):
        if (not names or entry.name in names) and entry.name not in rows:
            rows[entry.name] = _row(entry.folder, pinned=number % 2 == 0)
            written.write(NAME, summed(list(rows.values())))
    return summed(list(rows.values()))


def summed(rows: list[dict[str, Any]]) -> dict[str, Any]:
    good = [row for row in rows if row["verdict"] == "approve"]
    return {
        "contributions": len(rows),
        "approved": len(good),
        "on_other_thread_counts": sum(row["threads_of_the_run"] == 1 for row in good),
        "rows": sorted(rows, key=lambda row: row["entry"]),
        "met": len(good) == len(rows) >= WANTED,
    }


def _row(entry: Path, *, pinned: bool) -> dict[str, Any]:
    """Claimed is that the tool does it by itself: what a recipe gains is another question."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place, entry.name)
        environment = {**os.environ, "MODELWRIGHT_HOME": str(Path(place, "home"))}
        words = [sys.executable, "-c", _MAKE, str(entry), "", str(folder), str(SEEDS)]
        pin = ["taskset", "-c", str(min(os.sched_getaffinity(0)))] if pinned else []
        done = subprocess.run([*pin, *words], env=environment, capture_output=True, text=True, check=False)
        row = {"entry": entry.name, "tool": this_tool().digest, "threads_of_the_run": 1 if pinned else os.cpu_count()}
        if done.returncode != 0:
            return {**row, "verdict": "no run", "reasons": [done.stderr.strip()[-300:]]}
        found = mw.support.review(folder, model=entry, seeds=SEEDS)
        words_of_rows = [f"{one.name} {one.word}" for one in found.rows]
        return {**row, "verdict": found.verdict, "reasons": list(found.reasons), "rows": words_of_rows}


if __name__ == "__main__":
    print(run(*sys.argv[1:]))
