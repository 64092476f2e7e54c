"""Real searches on this CPU: a proven winner over what onnxruntime does by itself, found twice, confirmed by others.

    python -m bench.tune_real [--budget 10m] [MODEL ...]

For each model of `bench.zoo` (default: lite0 and minilm) `wright tune` runs twice, each time in a home that has
nothing, with labelled data and what may be lost as `--max-drop`. Then: do both name the same champion, or does
`wright compare` prove the two within 2 %? How much faster than the baseline is the champion in a bare loop of
onnxruntime that shares no code with us, the two taking turns? What is left of the task's metric, scored by the zoo?
`python -m bench tune_real` writes bench/results/tune_real.json.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from bench import zoo

NAMES = ("lite0", "minilm")
# What may be lost: the zoo's bound, but for labels that prove no less (321 pairs of words decide about 0.085).
BOUNDS = {"minilm": 0.1}
BUDGET = "10m"
LOOP = Path(__file__).with_name("_bare_loop.py")
WRIGHT = (sys.executable, "-c", "from modelwright.cli import main; main()")
Found = dict[str, Any]
_EQUAL = ("equivalent", "noop")


def run(budget: str = BUDGET, names: tuple[str, ...] = NAMES) -> Found:
    rows = []
    for trained in zoo.models(*names):
        with tempfile.TemporaryDirectory(prefix="tune-real-") as folder:
            rows.append(_case(trained, Path(folder), budget))
            print(table(rows), file=sys.stderr, flush=True)
    return {"budget": budget, "models": rows, "met": bool(rows) and all(row["met"] for row in rows)}


def _case(trained: zoo.Trained, folder: Path, budget: str) -> Found:
    data, recipe = folder / "labelled.npz", folder / "sizes.json"
    bound = BOUNDS.get(trained.name, trained.bound)
    np.savez(data, **trained.labelled)
    recipe.write_text(json.dumps(dict(trained.sizes)))
    said = ("--data", str(data), "--task", str(trained.task), "--max-drop", str(bound), "-r", str(recipe))
    first, second = (_tuned(trained, folder / f"home{turn}", budget, said) for turn in (1, 2))
    baseline = folder / "baseline"
    _wright(folder / "home1", "build", str(trained.path), "-r", str(recipe), "--data", str(data), "-o", str(baseline))
    agree = first["champion"] == second["champion"]
    apart = None if agree else _compared(folder / "home1", _arm(first, "one"), _arm(second, "two"))
    gain = None if first["champion"] == "baseline" else _bare(trained, folder, baseline, first)
    lost = None if gain is None else _lost(trained, baseline, Path(first["folder"]))
    return {
        "model": trained.name,
        "champions": [first["champion"], second["champion"]],
        "sentences": [first["sentence"], second["sentence"]],
        "agree": agree,
        "proven_equivalent": None if apart is None else apart in _EQUAL,
        "compare_says": apart,
        "tune_says": _effect(first),
        "bare_loop": gain,
        "metric": trained.metric,
        "metric_lost": lost,
        "bound": bound,
        "spent_s": [round(found["spent_s"]) for found in (first, second)],
        "units": [found["units"] for found in (first, second)],
        "rows": [{row["label"]: _row(row) for row in found["rows"]} for found in (first, second)],
        "decided": first["needed_s"] is None and second["needed_s"] is None,
        "met": first["needed_s"] is None
        and second["needed_s"] is None
        and (agree or apart in _EQUAL)
        and (gain is None or gain["low"] > 1.0)
        and (lost is None or lost <= bound),
    }


def _tuned(trained: zoo.Trained, home: Path, budget: str, said: tuple[str, ...]) -> Found:
    output = home.with_name(f"{home.name}-champion")
    return _wright(home, "tune", str(trained.path), "--budget", budget, *said, "-o", str(output))


def _wright(home: Path, *words: str) -> Found:
    """The answer as JSON. A gate that says no is an answer too."""
    settings = {**os.environ, "MODELWRIGHT_HOME": str(home)}
    done = subprocess.run([*WRIGHT, *words, "--json"], env=settings, capture_output=True, text=True, check=False)
    if not done.stdout:
        raise SystemExit(f"wright {' '.join(words)} failed with {done.returncode}:\n{done.stderr}")
    found: Found = json.loads(done.stdout)
    return found


def _arm(found: Found, name: str) -> str:
    settings = ",".join(f"{key}={value}" for key, value in found["settings"].items())
    return f"{name}={found['folder']}/model.onnx" + (f"@{settings}" if settings else "")


def _compared(home: Path, one: str, other: str) -> str:
    """Identical files with equal settings are `noop`, which is as good as equal."""
    found = _wright(home, "compare", one, other, "--by", "p50", "--budget", "300", "--no-operators")
    verdict = found["arms"][1]["verdict"]
    return str(verdict["kind"]) if verdict is not None else str(found["arms"][1]["failure"])


def _bare(trained: zoo.Trained, folder: Path, baseline: Path, found: Found) -> Found:
    sample = folder / "sample.npz"
    np.savez(sample, **trained.calibration[0])
    words = [str(baseline / "model.onnx"), f"{found['folder']}/model.onnx", str(sample), json.dumps(found["settings"])]
    done = subprocess.run([sys.executable, str(LOOP), *words], capture_output=True, text=True, check=True)
    answer: Found = json.loads(done.stdout)
    return answer


def _lost(trained: zoo.Trained, baseline: Path, champion: Path) -> float:
    before, after = (
        trained.value(trained.score(zoo.answers(place / "model.onnx", threads=0))) for place in (baseline, champion)
    )
    return round(before - after, 4)


def _effect(found: Found) -> Found | None:
    if found["finding"] is None:
        return None
    return {f"p{100 * one['quantile']:g}": [one["low"], one["effect"], one["high"]] for one in found["finding"]["by"]}


def _row(row: Found) -> str:
    return row["word"] if row["effect"] is None else f"{row['word']} {row['effect']:+.1%}"


def table(rows: list[Found]) -> str:
    lines = [
        "| model | champions | agree | tune says (p50) | bare loop | metric lost (bound) | met |",
        "|" + "---|" * 7,
    ]
    for row in rows:
        said, bare = row["tune_says"], row["bare_loop"]
        same = "yes" if row["agree"] else f"compare: {row['compare_says']}"
        gain = (
            "-"
            if said is None
            else " … ".join("?" if part is None else f"{part:+.1%}" for part in list(said.values())[-1])
        )
        loop = "-" if bare is None else f"{bare['ratio']:.3f} x ({bare['low']:.3f} … {bare['high']:.3f})"
        lost = "-" if row["metric_lost"] is None else f"{row['metric_lost']:+.4f} ({row['bound']})"
        lines.append(
            f"| {row['model']} | {' / '.join(row['champions'])} | {same} | {gain} | {loop} | {lost} | {row['met']} |"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m bench.tune_real", description=__doc__)
    parser.add_argument("names", nargs="*", default=list(NAMES))
    parser.add_argument("--budget", default=BUDGET)
    asked = parser.parse_args()
    print(json.dumps(run(asked.budget, tuple(asked.names)), indent=2))
