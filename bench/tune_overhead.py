"""What a search costs beside its builds and its legs: CPU time of the whole command, and the part that is neither.

`wright tune` of the demo's model with real sessions, in a home that has nothing. Builds are what goes through the
pipeline; legs are what opens sessions, asks them and times them. All else is the search: starting Python, choosing,
judging, the journal, fingerprints, the answer.
"""

from __future__ import annotations

import functools
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
WORDS = ("tune", str(ROOT / "demo/fashion_cnn.onnx"), "--budget", "60s", "--json")
BUILDS = ("made", "surroundings", "rebuilt", "file")
LEGS = ("unit", "facts", "answers", "differs", "placed", "renew", "arm")
LIMIT = 0.05


def run() -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="tune-overhead-") as home:
        settings = {**os.environ, "MODELWRIGHT_HOME": home}
        done = subprocess.run(
            [sys.executable, __file__, *WORDS], env=settings, capture_output=True, text=True, check=True
        )
    found: dict[str, Any] = json.loads(done.stderr.splitlines()[-1])
    answer = json.loads(done.stdout)
    share = round(found["beside_cpu_s"] / found["whole_cpu_s"], 4)
    return {**found, "units": answer["units"], "variants": len(answer["rows"]), "share": share, "met": share <= LIMIT}


class Meter:
    """CPU time of this process inside the calls it wraps; calls inside of calls count once."""

    def __init__(self) -> None:
        self.inside_s, self._depth = 0.0, 0

    def wrapped(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            self._depth += 1
            began = time.process_time()
            try:
                return function(*args, **kwargs)
            finally:
                self._depth -= 1
                if not self._depth:
                    self.inside_s += time.process_time() - began

        return wrapper


def _metered() -> None:
    from modelwright.cli import main
    from modelwright.search._workshop import Workshop

    meter = Meter()
    for name in (*BUILDS, *LEGS):
        setattr(Workshop, name, meter.wrapped(getattr(Workshop, name)))
    try:
        main()
    finally:
        own, children = time.process_time(), resource.getrusage(resource.RUSAGE_CHILDREN)
        whole = own + children.ru_utime + children.ru_stime
        beside = own - meter.inside_s
        print(json.dumps({"whole_cpu_s": round(whole, 2), "beside_cpu_s": round(beside, 2)}), file=sys.stderr)


if __name__ == "__main__":
    _metered()
