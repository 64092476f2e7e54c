"""A slowdown that was planted: 21 equal layers against 20, on this machine, through `compare` with its defaults.

    python -m bench.planted [--only found,aa] [--neighbour quiet,busy] [--runs 20] [--fresh]

Asked for: within 20 s the slowdown of 5 % is found in 18 of 20 comparisons or more, quiet and beside a busy neighbour,
and 40 comparisons of a model with itself end without a false verdict. About 25 minutes; needs the machine for itself.
Every comparison is kept as soon as it is done (bench/results/planted_runs.jsonl), so a call that was cut short goes on.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

import onnx

from bench.neighbour import neighbour
from bench.nets import residual
from modelwright.judge import JUDGE_VERSION
from modelwright.measure import CompareOptions, CompareResult, compare

RUNS = 20
FOUND = 18
# A unit that began inside the budget may end after it; 20 s are promised.
WITHIN_S, BUDGET_S = 20.0, 19.0
LAYERS = 20
KINDS = ("found", "aa")
HOSTS = ("quiet", "busy")
_KEPT = Path(__file__).with_name("results") / "planted_runs.jsonl"
_FALSE = {"found": ("improved", "equivalent", "mixed"), "aa": ("improved", "regressed", "mixed")}


@dataclass(frozen=True)
class Run:
    """One comparison: its word, those of its questions, and what it cost. `noise` is per question."""

    kind: str
    host: str
    number: int
    word: str
    by: tuple[str, ...]
    effect: tuple[float | None, ...]
    noise: tuple[float | None, ...]
    units: int
    seconds: float
    foreign_load: float | None
    seeds: tuple[int, ...]
    judge_version: int = JUDGE_VERSION


def run(only: tuple[str, ...] = KINDS, hosts: tuple[str, ...] = HOSTS, runs: int = RUNS) -> dict[str, object]:
    done = _kept()
    with tempfile.TemporaryDirectory() as folder:
        base, slow = (residual(Path(folder) / f"layers{count}.onnx", count) for count in (LAYERS, LAYERS + 1))
        operators = {path.stem: _operators(path) for path in (base, slow)}
        for number in range(runs):
            for kind in only:
                for host in hosts:
                    if not any((one.kind, one.host, one.number) == (kind, host, number) for one in done):
                        done.append(_one(kind, host, number, base, slow if kind == "found" else base))
    result = {"operators": operators, **summary(done)}
    if result["met"] is not None:
        _KEPT.unlink(missing_ok=True)  # complete: the next call measures anew
    return result


def summary(done: list[Run]) -> dict[str, object]:
    parts = {
        f"{kind}, {host}": _part([one for one in done if (one.kind, one.host) == (kind, host)])
        for kind in KINDS
        for host in HOSTS
    }
    false = sum(one.word in _FALSE[one.kind] for one in done)
    found = {
        host: sum(
            one.word == "regressed" and one.seconds <= WITHIN_S
            for one in done
            if (one.kind, one.host) == ("found", host)
        )
        for host in HOSTS
    }
    complete = all(part["runs"] >= RUNS for part in parts.values())
    return {
        "layers": [LAYERS, LAYERS + 1],
        "budget_s": BUDGET_S,
        "parts": parts,
        "false": false,
        "met": false == 0 and min(found.values()) >= FOUND if complete else None,
        "runs": [asdict(one) for one in done],
    }


def _one(kind: str, host: str, number: int, base: Path, arm: Path) -> Run:
    options = CompareOptions(threads=1, budget_s=BUDGET_S, measure_duplicates=True)
    with neighbour(busy=host == "busy"):
        time.sleep(0.2)
        result = compare([f"base={base}", f"arm={arm}"], options)
    made = _run(kind, host, number, result)
    with _KEPT.open("a", encoding="utf-8") as file:
        file.write(json.dumps(asdict(made)) + "\n")
    print(f"{kind} {host} {number + 1}: {made.seconds:.1f} s: {result.arms[1].sentence}", flush=True)
    return made


def _run(kind: str, host: str, number: int, result: CompareResult) -> Run:
    found = result.arms[1].verdict
    assert found is not None
    load = result.environment.foreign_load.value
    return Run(
        kind=kind,
        host=host,
        number=number,
        word=found.kind.value,
        by=tuple(verdict.kind.value for verdict in found.by),
        effect=tuple(verdict.effect for verdict in found.by),
        noise=tuple(verdict.noise for verdict in found.by),
        units=found.by[0].units,
        seconds=round(result.total_s, 1),
        foreign_load=load if isinstance(load, float) else None,
        seeds=result.seeds,
    )


def _part(done: list[Run]) -> dict[str, object]:
    noises = [[one.noise[place] or 0.0 for one in done] for place in (0, 1)]
    return {
        "runs": len(done),
        "words": dict(Counter(one.word for one in done)),
        "by": [dict(Counter(one.by[place] for one in done)) for place in (0, 1)],
        "median_seconds": median(one.seconds for one in done) if done else None,
        "median_units": median(one.units for one in done) if done else None,
        "median_noise": [round(median(values), 4) if values else None for values in noises],
    }


def _operators(path: Path) -> dict[str, int]:
    return dict(Counter(node.op_type for node in onnx.load(str(path)).graph.node))


def _kept() -> list[Run]:
    if not _KEPT.is_file():
        return []
    rows = [json.loads(line) for line in _KEPT.read_text("utf-8").splitlines()]
    tuples = {"by", "effect", "noise", "seeds"}
    kept = [Run(**{key: tuple(value) if key in tuples else value for key, value in row.items()}) for row in rows]
    return [one for one in kept if one.judge_version == JUDGE_VERSION]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.planted", description=__doc__)
    parser.add_argument("--only", default=",".join(KINDS))
    parser.add_argument("--neighbour", default=",".join(HOSTS))
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--fresh", action="store_true", help="forget the comparisons of earlier calls")
    given = parser.parse_args()
    if given.fresh:
        _KEPT.unlink(missing_ok=True)
    print(json.dumps(run(tuple(given.only.split(",")), tuple(given.neighbour.split(",")), given.runs), indent=2))


if __name__ == "__main__":
    main()
