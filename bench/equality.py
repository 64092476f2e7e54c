"""How often two arms are called equal that are not: odd sessions, clocks that tick too seldom; and what that costs.

Simulated and seeded. `before` is the rule this one replaced: the median of a leg, units with two modes set aside, equal
as soon as the interval lies inside the margin. `now` is one question (p50) at the same level, `compare` is what
`wright compare` asks: p10 and p50 at half the level each, equal only when both are. Looks after every unit, up to 40.
"""

from __future__ import annotations

import json
import math
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from modelwright.judge import JUDGE_VERSION, Judge, min_units  # noqa: E402
from modelwright.judge._evidence import log_evidence  # noqa: E402
from modelwright.judge._legs import is_bimodal, unit  # noqa: E402
from support.looks import first_look, looks  # noqa: E402
from support.simdevice import Units, odd_sessions  # noqa: E402

Row = dict[str, float | str | None]
ALPHA, MARGIN, UNITS, RUNS = 0.05, 0.02, 40, 400
BURSTS = 4
SLOWER = 0.035
ODD = [(share, slow) for share in (0.2, 0.3, 0.5) for slow in (0.3, 0.5, 1.0)]
RARE = [(share, slow) for share in (0.05, 0.1) for slow in (0.5, 1.0)]
TICKS = (1, 3, 30, 300, 900)


@dataclass(frozen=True)
class Said:
    """Units after which each run was called equal, by each rule; infinite when never."""

    before: np.ndarray
    now: np.ndarray
    compare: np.ndarray

    def shares(self) -> Row:
        return {name: round(float(np.isfinite(when).mean()), 4) for name, when in vars(self).items()}

    def medians(self) -> Row:
        middle = {name: float(np.median(when)) for name, when in vars(self).items()}
        return {f"{name}_units": units if math.isfinite(units) else None for name, units in middle.items()}


def run(runs: int = RUNS) -> dict[str, object]:
    odd = [_odd_row(index, share, slow, runs) for index, (share, slow) in enumerate(ODD)]
    rare = [_odd_row(100 + index, share, slow, runs) for index, (share, slow) in enumerate(RARE)]
    coarse = [_coarse_row(ticks, slower, min(runs, 100)) for ticks in TICKS for slower in (0.05, 0.10)]
    equal = [_equal_row(index, noise, runs) for index, noise in enumerate((0.0025, 0.005, 0.01, 0.015))]
    limit = ALPHA + 2 * math.sqrt(ALPHA * (1 - ALPHA) / runs)
    worst = max(float(row[rule] or 0) for row in (*odd, *coarse) for rule in ("now", "compare") if rule in row)
    return {
        "judge_version": JUDGE_VERSION,
        "comparisons_per_row": runs,
        "slower_on_average": SLOWER,
        "false_equal_odd_sessions": odd,
        "false_equal_coarse_clock": coarse,
        "equal_arms_proven_equal": equal,
        "rarer_than_promised": rare,
        "limit": round(limit, 4),
        "met": worst <= limit,
    }


def _odd_row(seed: int, share: float, slow_runs: float, runs: int) -> Row:
    """A share of the arm's sessions has so many slow runs that the arm is 3.5 % slower on average."""
    factor = 1 + SLOWER / (share * slow_runs)
    units = odd_sessions(
        share, slow_runs, factor, runs, UNITS, np.random.default_rng([1, seed]), bursts=BURSTS, samples=25
    )
    return {"odd_sessions": share, "slow_runs": slow_runs, "factor": round(factor, 3), **_said(units).shares()}


def _equal_row(seed: int, noise: float, runs: int) -> Row:
    """Arms of the same speed: what the rules cost. `noise` is that of a unit."""
    rng = np.random.default_rng([2, seed])
    shape = (2, runs, UNITS, BURSTS, 25)
    luck = noise / math.sqrt(2) * rng.standard_normal((*shape[:3], 1, 1))
    legs = np.exp(luck + 0.01 * rng.standard_normal(shape))
    said = _said(Units(legs[0], legs[1]))
    return {"noise": noise, **said.shares(), **said.medians()}


def _coarse_row(ticks: int, slower: float, runs: int) -> Row:
    """A clock that ticks so often during a run of the base, and an arm that is truly slower."""
    rng = np.random.default_rng([3, ticks])
    kinds, before = [], 0
    for _ in range(runs):
        judge, ratios = Judge(MARGIN, ALPHA), []
        for _ in range(25):
            base, arm = _ticked(ticks, rng), _ticked(ticks * (1 + slower), rng)
            judge.add(base, arm)
            ratios.append(math.log(float(np.median(base)) / float(np.median(arm))))
        kinds.append(judge.verdict().kind.value)
        before += math.isfinite(_before(np.array(ratios), np.zeros(25, dtype=bool)))
    return {
        "ticks": ticks,
        "slower": slower,
        "before": before / runs,
        "now": kinds.count("equivalent") / runs,
        "refused": kinds.count("invalid") / runs,
    }


def _ticked(length: float, rng: np.random.Generator) -> np.ndarray:
    """Runs of so many ticks, each begun anywhere between two of them; what shows no tick at all shows one."""
    true = length * np.exp(0.01 * rng.standard_normal(200))
    return np.maximum(np.floor(true + rng.random(200)), 1.0)


def _said(units: Units) -> Said:
    modes = np.array([_modes(*legs) for legs in zip(units.base, units.arm, strict=True)])
    typical, averages, work = units.log_ratios(), units.log_averages(), units.log_ratios(0.1)
    # More than a quarter with two modes: no verdict on the typical run.
    valid = np.cumsum(modes, axis=-1) <= 0.25 * np.arange(1, modes.shape[-1] + 1)
    half = ALPHA / 2
    both = looks(typical, MARGIN, half, averages).equivalent & valid & looks(work, MARGIN, half).equivalent
    return Said(
        before=np.array([_before(ratios, odd) for ratios, odd in zip(typical, modes, strict=True)]),
        now=first_look(looks(typical, MARGIN, ALPHA, averages).equivalent & valid),
        compare=first_look(both),
    )


def _modes(base: np.ndarray, arm: np.ndarray) -> list[bool]:
    legs = [unit(one, other, ("base", "arm")) for one, other in zip(base, arm, strict=True)]
    return [is_bimodal(one, other) or is_bimodal(other, one) for one, other in legs]


def _before(ratios: np.ndarray, modes: np.ndarray) -> float:
    """Units after which the rule before this one called a run equal."""
    kept = ratios[~modes]
    if len(kept) < min_units(ALPHA):
        return math.inf
    line = math.log(2 / ALPHA)
    above = np.maximum.accumulate(log_evidence(kept, math.log1p(-MARGIN))[0] >= line)
    below = np.maximum.accumulate(log_evidence(kept, math.log1p(MARGIN))[1] >= line)
    count = np.flatnonzero(~modes) + 1
    enough = (np.arange(1, len(kept) + 1) >= min_units(ALPHA)) & (count - np.arange(1, len(kept) + 1) <= 0.25 * count)
    said = above & below & enough
    return float(count[said.argmax()]) if said.any() else math.inf


if __name__ == "__main__":
    print(json.dumps(run(*map(int, sys.argv[1:2])), indent=2))
