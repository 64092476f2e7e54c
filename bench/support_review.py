"""Honest contributions are approved: families as graphs and as configurations, every other one made on one CPU.

Each is run (claim, gate, ladder to L2) in a process of its own, reported, and reviewed on all CPUs. A graph of a family
is what its tiny entry becomes with made-up weights; with `fp16` it is halved by the tool. Rows are kept as they come,
and a row that the same tool made is not made again. `python -m bench.support_review NAME ...` does the named ones only.
Run it in a tree that is its commit: evidence of any other is stale.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import modelwright as mw
from bench import written
from bench.recipes import ROOT, cpu_s
from modelwright.models import onnx_of
from modelwright.recipes import own_folder
from modelwright.support import this_tool

NAME, WANTED, FAMILIES, SEEDS = "support_review", 20, 10, 2
_GRAPHS = (
    "bert", "vit", "resnet", "convnext", "distilbert", "electra",
    "roberta", "layoutlm", "segformer", "wav2vec2",
)  # fmt: skip
_HALVED = ("bert", "vit", "resnet", "electra", "distilbert", "roberta", "segformer", "convnext", "wav2vec2", "layoutlm")
_CONFIGURED = ("bert", "resnet", "vit", "t5", "electra", "convnext", "distilbert", "bart", "qwen3", "segformer")
_MAKE = """
import json, sys, modelwright as mw
model, folder, said = sys.argv[1:]
mw.support.run(model, folder, ceiling="L2", **json.loads(said))
mw.support.report(folder)
"""


@dataclass(frozen=True)
class Contributed:
    """`precision` is None where the source is a folder with a configuration; else it is a graph."""

    family: str
    precision: str | None = None

    @property
    def name(self) -> str:
        return f"{self.family} {'configuration' if self.precision is None else f'graph {self.precision}'}"


def everything() -> Iterator[Contributed]:
    yield Contributed("fashion-cnn", "fp32")
    yield from (Contributed(family, "fp32") for family in _GRAPHS)
    yield from (Contributed(family, "fp16") for family in _HALVED)
    yield from map(Contributed, _CONFIGURED)


def run(*names: str) -> dict[str, Any]:
    rows = {row["contribution"]: row for row in written.read(NAME).get("rows", [])}
    rows = {name: row for name, row in rows.items() if row["tool"] == this_tool().digest}
    for number, one in enumerate(everything()):
        if one.name not in rows and (not names or one.name in names):
            rows[one.name] = _row(one, pinned=number % 2 == 0)
            written.write(NAME, summed(list(rows.values())))
    return summed(list(rows.values()))


def summed(rows: list[dict[str, Any]]) -> dict[str, Any]:
    good = [row for row in rows if row["verdict"] == "approve"]
    families = sorted({row["family"] for row in good})
    pinned = sum(row["cpus_of_the_run"] == 1 for row in good)
    ratio = sum(row["review_cpu_s"] for row in good) / max(1e-9, sum(row["run_cpu_s"] for row in good))
    return {
        "contributions": len(rows),
        "approved": len(good),
        "families": families,
        "on_another_number_of_cpus": pinned,
        "review_to_run_cpu": round(ratio, 2),
        "rows": sorted(rows, key=lambda row: str(row["contribution"])),
        "met": len(good) == len(rows) >= WANTED
        and len(families) >= FAMILIES
        and pinned * 2 >= len(rows)
        and ratio <= 2,
    }


def _row(one: Contributed, *, pinned: bool) -> dict[str, Any]:
    """Claimed is that the tool does it by itself: what a recipe gains is another question."""
    with tempfile.TemporaryDirectory() as place:
        model, said = _source(one, Path(place))
        folder, cpus = Path(place, f"honest_{one.family}"), sorted(os.sched_getaffinity(0))
        pin = ["taskset", "-c", str(cpus[0])] if pinned else []
        environment = {**os.environ, "MODELWRIGHT_HOME": str(Path(place, "home"))}
        call = [*pin, sys.executable, "-c", _MAKE, str(model), str(folder), json.dumps({**said, "seeds": SEEDS})]
        used = cpu_s()
        done = subprocess.run(call, env=environment, capture_output=True, text=True, check=False)
        row = {"contribution": one.name, "family": one.family, "cpus_of_the_run": 1 if pinned else len(cpus)}
        row |= {"tool": this_tool().digest, "commit": this_tool().commit, "run_cpu_s": round(cpu_s() - used, 1)}
        if done.returncode != 0:
            return {**row, "verdict": "no run", "reasons": [done.stderr.strip()[-300:]]}
        used = cpu_s()
        found = mw.support.review(folder, model=model, seeds=SEEDS)
        words = [f"{each.name} {each.word}" for each in found.rows]
        row["review_cpu_s"] = round(cpu_s() - used, 1)
        return {**row, "verdict": found.verdict, "reasons": list(found.reasons), "rows": words}


def _source(one: Contributed, place: Path) -> tuple[Path, dict[str, Any]]:
    if one.family == "fashion-cnn":
        return ROOT / "demo/fashion_cnn.onnx", {}
    entry = own_folder() / f"tiny_{one.family}"
    if one.precision is None:
        return entry, {"random_weights": True}
    mw.build(entry, "cpu", recipe=entry / "recipe.toml", precision="fp32", random_weights=True, output=place / "made")
    return onnx_of(place / "made"), {"precisions": [one.precision]}


if __name__ == "__main__":
    print(json.dumps(run(*sys.argv[1:]), indent=1))
