"""The catalogue: linted, and every entry that is a configuration built from nothing, two at a time.

`python -m bench recipes` (`make recipes`) is for every change of the catalogue: at most six minutes. `catalog` has the
trained models.
"""

from __future__ import annotations

import resource
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import modelwright as mw
from modelwright.recipes import CatalogEntry, own_folder, read_entries

AT_ONCE = 2
ROOT = Path(__file__).parent.parent
LIMIT_S, FEWEST = 360, 12


def run() -> dict[str, Any]:
    started, used = time.monotonic(), cpu_s()
    found = mw.catalog.lint()
    tiny = [one for one in read_entries(own_folder()) if one.kind == "folder"]
    with tempfile.TemporaryDirectory() as scratch, ThreadPoolExecutor(AT_ONCE) as pool:
        rows = list(pool.map(lambda entry: built(entry, Path(scratch)), tiny))
        review = reviewed(Path(scratch))
    bad = [row for row in rows if row["word"] not in ("built", "known to be bad")]
    seconds = time.monotonic() - started
    return {
        "entries": found.entries,
        "problems": len(found.problems),
        "rows": rows,
        "review": review,
        "seconds": round(seconds, 1),
        "cpu_seconds": round(cpu_s() - used, 1),
        "met": found.clean and not bad and review == "approve" and len(tiny) >= FEWEST and seconds <= LIMIT_S,
    }


def built(entry: CatalogEntry, scratch: Path, **more: Any) -> dict[str, Any]:
    """From a store that has nothing. What is known to be bad is tried too: it may have become good."""
    started = time.monotonic()
    bad = entry.said.known_bad is not None
    try:
        with mw.Store(scratch / entry.name) as store:
            found = mw.catalog.build(entry.name, store=store, anyway=True, **more)
        word = "built" if found.passed is not False and not found.failed else "its gate says no"
    except mw.WrightError as error:
        word = f"{error.problem}: {error.cause}"
    if bad:
        word = "known to be bad, and it is built now" if word == "built" else "known to be bad"
    return {"entry": entry.name, "word": word, "seconds": round(time.monotonic() - started, 1)}


def reviewed(scratch: Path) -> str:
    """One contribution, from the claim to the verdict: that the tool by itself takes the demo's model to L2. A tree
    that is no commit makes evidence that nobody else can have: then the rows count, and not that."""
    folder, model = scratch / "modelwright_fashion-cnn", ROOT / "demo/fashion_cnn.onnx"
    mw.support.run(model, folder, ceiling="L2")
    mw.support.report(folder)
    found = mw.support.review(folder, model=model)
    dirty = all(one.rule == "tool" and "no commit" in one.reason for one in found.findings)
    same = found.rows and all(row.found == row.claimed == "pass" for row in found.rows)
    return "approve" if found.approved or (dirty and same) else f"{found.verdict}: {found.reasons[:3]}"


def cpu_s() -> float:
    parts = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(part.ru_utime + part.ru_stime for part in parts)
