"""A/A on this machine: identical arms through the real `compare`, real sessions, with other work going on.

Every comparison is a false alarm when it ends in "improved" or "regressed". At alpha = 5 % at most 9 of 100 may.
Run by `make proof`; `python -m bench.aa_real 20 12` runs 20 of 12 s each, for machines that are busy already.
"""

from __future__ import annotations

import json
import math
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from statistics import fmean, variance

from bench.neighbour import neighbour
from bench.nets import layers
from modelwright.measure import CompareOptions, CompareResult, InputChoice, UnitPlan, compare
from modelwright.vocabulary import Data

COMPARISONS = 100
ALLOWED = 9
BUDGET_S = 5.5
# Few and short bursts: the noise of a unit does not matter for false alarms, the number of looks does.
PLAN = UnitPlan(burst_s=0.01, burst_runs=3, guard_s=0.004, bursts_s=0.0, warmup_cap_s=0.02)


def run(comparisons: int = COMPARISONS, budget_s: float = BUDGET_S) -> dict[str, object]:
    started = time.monotonic()
    with neighbour(), tempfile.TemporaryDirectory() as folder:
        # A tenth of a millisecond: long enough not to fall into two modes when a neighbour shares the core.
        model = layers(Path(folder) / "model.onnx", count=12, width=192)
        results = [_one(model, seed, budget_s) for seed in range(comparisons)]
    verdicts = [result.arms[1].verdict for result in results]
    kinds = Counter(verdict.kind.value for verdict in verdicts if verdict is not None)
    false = kinds["improved"] + kinds["regressed"]
    false += kinds["mixed"]
    first = [verdict.by[0] for verdict in verdicts if verdict is not None]
    noises = sorted(verdict.noise for verdict in first if verdict.noise is not None)
    units = sorted(verdict.units for verdict in first)
    return {
        "comparisons": comparisons,
        "verdicts": dict(kinds),
        "false": false,
        "allowed": ALLOWED * comparisons // COMPARISONS,
        "median_units": units[len(units) // 2],
        "median_unit_noise": round(noises[len(noises) // 2], 4),
        "process_luck": _process_luck(results),
        "seconds": round(time.monotonic() - started),
        "met": false <= ALLOWED * comparisons / COMPARISONS,
    }


def _process_luck(results: list[CompareResult]) -> float | None:
    """How much two processes that run the same session differ for as long as they live: the standard deviation of
    ln(first slot / second slot) between comparisons, beyond what the units within them explain."""
    means, within = [], []
    for result in results:
        ratios = [math.log1p(unit.effect) for unit in result.units]
        slots = [ratio if unit.base_first else -ratio for ratio, unit in zip(ratios, result.units, strict=True)]
        if len(slots) > 2:
            means.append(fmean(slots))
            within.append(variance(slots) / len(slots))
    if len(means) < 3:
        return None
    return round(math.sqrt(max(0.0, variance(means) - fmean(within))), 5)


def _one(model: Path, seed: int, budget_s: float) -> CompareResult:
    options = CompareOptions(
        threads=1,
        budget_s=budget_s,
        seed=seed,
        min_effect=0.0001,  # so small that no arm is ever called equivalent, and every comparison uses its whole budget
        inputs=InputChoice(Data(seed=seed)),
        measure_duplicates=True,
        unit=PLAN,
    )
    return compare([f"first={model}", f"second={model}"], options)


if __name__ == "__main__":
    given = [kind(text) for kind, text in zip((int, float), sys.argv[1:], strict=False)]
    print(json.dumps(run(*given), indent=2))
