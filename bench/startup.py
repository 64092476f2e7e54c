"""`wright --help` and `import modelwright` against `python -c pass`, as whole processes, interleaved."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from pathlib import Path

RUNS = 40
TARGET = 4.0
IMPORT_TARGET = 1.5


def seconds(command: list[str]) -> float:
    start = time.perf_counter()
    subprocess.run(command, capture_output=True, check=True)
    return time.perf_counter() - start


def run() -> dict[str, object]:
    wright = str(Path(sys.executable).with_name("wright"))
    arms: dict[str, list[str]] = {
        "python -c pass": [sys.executable, "-c", "pass"],
        "import modelwright": [sys.executable, "-c", "import modelwright"],
        "wright --help": [wright, "--help"],
        "wright sys --help": [wright, "sys", "--help"],
    }
    times: dict[str, list[float]] = {name: [] for name in arms}
    for _ in range(RUNS):
        for name, command in arms.items():
            times[name].append(seconds(command))
    medians = {name: statistics.median(values) for name, values in times.items()}
    ratios = {name: round(value / medians["python -c pass"], 2) for name, value in medians.items()}
    return {
        "ratio_to_python_c_pass": ratios,
        "runs": RUNS,
        "target": f"wright --help <= {TARGET}, import modelwright <= {IMPORT_TARGET}",
        "met": ratios["wright --help"] <= TARGET and ratios["import modelwright"] <= IMPORT_TARGET,
    }


if __name__ == "__main__":
    print(run())
