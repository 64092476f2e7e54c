"""Trained models that everyday int8 settings destroy, and what `debug --fix` makes of them. Fetches about 130 MB once.

The models and the labels are those of `bench.zoo`: magika tells file types, judged on the files of this Python
installation; all-MiniLM-L6-v2 embeds texts, judged by the human scores of WordSim-353. The int8 build is what many
tools do by default: all operators, one scale for each tensor. Accuracy is measured on samples that the repair did not
see; the repair itself is only shown raw outputs (MiniLM) or other labelled files (magika).
"""

from __future__ import annotations

import json
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from bench import zoo
from modelwright.evaluation import EvalOptions, evaluate
from modelwright.judge import parse_allowance
from modelwright.models import resolve
from modelwright.pipeline import RecipeChoices, build, deliver, resolve_recipe
from modelwright.repairs import FixOptions, FixResult, fix
from modelwright.store import Store
from modelwright.targets import parse_target
from modelwright.vocabulary import Data

NAIVE = {"quantize": {"per_channel": False, "op_types": ["all"]}}
LIMITS = {"magika": "accuracy within 2 points of float", "minilm": "Spearman within 0.05 of float"}


def run() -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        found = {"magika": _magika(Path(folder)), "minilm": _minilm(Path(folder))}
    met = found["magika"]["lost_after"] <= 0.02 and found["minilm"]["lost_after"] <= 0.05
    return {"models": found, "limits": LIMITS, "met": met}


def _magika(folder: Path) -> dict[str, Any]:
    """Half of the labelled files choose the repair, the others judge it."""
    model = zoo.trained("magika")
    for name, part in (("repair", slice(None, None, 2)), ("judge", slice(1, None, 2))):
        np.savez(folder / f"{name}.npz", **{key: array[part] for key, array in model.labelled.items()})
    repair = Data(str(folder / "repair.npz"), samples=len(model.labelled["label"]))
    return _case(folder, model, FixOptions(data=repair, target_drop=parse_allowance("1pt")))


def _minilm(folder: Path) -> dict[str, Any]:
    model = zoo.trained("minilm")
    np.savez(folder / "judge.npz", **model.labelled)
    shown = zoo.write(model.calibration, folder / "repair.npz")
    return _case(folder, model, FixOptions(data=Data(str(shown), samples=32), target_sqnr=10.0))


def _case(folder: Path, model: zoo.Trained, wanted: FixOptions) -> dict[str, Any]:
    """Float, naive int8 and its repair, built by the normal pipeline and judged on the same samples."""
    started = time.perf_counter()
    source = resolve(str(model.path))
    calibration = str(zoo.write(model.calibration, folder / "calibration.npz"))

    def made(word: str, precision: str | None, **layers: Any) -> Path:
        choices = RecipeChoices(precision=precision, data=Data(calibration))
        recipe = resolve_recipe(source, parse_target("cpu"), choices, {**model.sizes, **layers})
        with Store(folder / "store") as store:
            return deliver(build(source, recipe, store=store), folder / f"{model.name}-{word}", store=store)

    whole = made("float", None)
    naive = made("naive", "w8a8", **NAIVE)
    as_is = {**NAIVE, "optimize": False, "compile": False}
    start = resolve_recipe(
        resolve(_model(whole)), parse_target("cpu"), RecipeChoices(precision="w8a8", data=Data(calibration)), as_is
    )
    with Store(folder / "store") as store:
        result = fix(_model(whole), start, wanted, store=store)
    changed = {name: getattr(result.quantize, name) for name in ("per_channel", "op_types", "nodes_to_exclude")}
    repaired = made("repaired", "w8a8", quantize={**NAIVE["quantize"], **changed})
    before, after = (
        evaluate(_model(item), _model(whole), Data(str(folder / "judge.npz")), model.task, EvalOptions())
        for item in (naive, repaired)
    )
    return {**_facts(result), **_judged(before, after), "seconds": round(time.perf_counter() - started, 1)}


def _facts(result: FixResult) -> dict[str, Any]:
    return {
        "status": result.status,
        "builds": result.builds,
        "raised": [f"{item.what} {item.tensor}" for item in result.raised],
        "file_bytes": {row.name: row.file_bytes for row in result.rows},
    }


def _judged(before: Any, after: Any) -> dict[str, Any]:
    return {
        "metric": after.metric.name,
        "samples": after.data.selected,
        "float": after.values.reference,
        "naive_int8": before.values.candidate,
        "repaired": after.values.candidate,
        "lost_before": before.values.drop,
        "lost_after": after.values.drop,
        "bounds_after_95": [after.comparison.low, after.comparison.high],
    }


def _model(folder: Path) -> Path:
    return next(folder.rglob("model.onnx"))


if __name__ == "__main__":
    print(json.dumps(run(), indent=2))
