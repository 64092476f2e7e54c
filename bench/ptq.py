"""What each switch of the quantize stage brings on trained models: decibels, the metric of the task, and speed.

Every row is a static int8 build for `cpu` of the same float graph from the same calibration samples. SQNR is over the
first output as executed by onnxruntime's integer kernels; the drop of the metric has 95 % bounds of resampled pairs;
CPU time of one inference is against float, taking turns, one thread. `python -m bench.ptq [MODEL …]` prints the table.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from bench.zoo import Answer, Sample, Trained, answers, drop, models
from modelwright.data import DataSource
from modelwright.models import resolve
from modelwright.pipeline import RecipeChoices, build, deliver, resolve_recipe
from modelwright.stages.quantize import QuantizeParams, run_quantize
from modelwright.store import Store
from modelwright.targets import parse_target
from modelwright.vocabulary import Data

NAMES = ("fashion", "magika", "minilm", "ppocr-rec", "lite0")
BASE = QuantizeParams("w8a8", reduce_range=True, pairs="all", bias_correction=False)
SWITCHES: Mapping[str, Mapping[str, Any]] = {
    "none": {},
    "pairs": {"pairs": "needed"},
    "pairs, bias_correction (default)": {"pairs": "needed", "bias_correction": True},
    "default, mse": {"pairs": "needed", "bias_correction": True, "method": "mse"},
    "default, 8-bit weights": {"pairs": "needed", "bias_correction": True, "reduce_range": False},
}
COMPARED, TURNS, TURN_S = 40, 7, 0.05


def run(names: Sequence[str] = NAMES) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        return {"models": {item.name: _rows(item, Path(folder) / item.name) for item in models(*names)}}


def _rows(trained: Trained, folder: Path) -> dict[str, Any]:
    folder.mkdir()
    calibration = Data(str(trained.write_calibration(folder)))
    whole = _float(trained, calibration, folder)
    before = answers(whole)
    scores = trained.score(before)
    found: dict[str, Any] = {"metric": trained.metric, "float": trained.value(scores)}
    for number, (name, changed) in enumerate(SWITCHES.items()):
        work = folder / str(number)
        work.mkdir()
        run_quantize(str(whole), str(work), replace(BASE, **changed), DataSource(calibration))
        after = answers(work / "model.onnx")
        lost = drop(trained, scores, trained.score(after))
        found[name] = {
            "sqnr_db": round(sqnr(before, after, trained.judged[:COMPARED]), 2),
            "drop": [round(value, 4) for value in (lost.drop, lost.low, lost.high)],
            "cpu_time_of_float": round(_ratio(before, after, trained.judged[0]), 3),
        }
        sys.stderr.write(f"{trained.name}: {name}: {found[name]}\n")
    return found


def _float(trained: Trained, calibration: Data, folder: Path) -> Path:
    """The graph that a build quantizes."""
    source = resolve(str(trained.path))
    recipe = resolve_recipe(source, parse_target("cpu"), RecipeChoices(data=calibration), dict(trained.sizes))
    with Store(folder / "store") as store:
        return next(deliver(build(source, recipe, store=store), folder / "float", store=store).rglob("model.onnx"))


def used(trained: Trained, answer: Answer) -> Answer:
    """What somebody reads of the answers."""
    return lambda sample: [trained.used(answer(sample), sample)]


def sqnr(before: Answer, after: Answer, samples: Sequence[Sample]) -> float:
    signal = noise = 0.0
    for sample in samples:
        expected, found = (answer(sample)[0].astype(np.float64) for answer in (before, after))
        signal, noise = signal + np.square(expected).sum(), noise + np.square(expected - found).sum()
    return float(10 * np.log10(signal / max(noise, 1e-30)))


def _ratio(before: Answer, after: Answer, sample: Sample) -> float:
    """The median of turns: CPU time, which neighbours disturb less than the clock."""
    once = max(_cpu(before, sample, 2) / 2, 1e-5)
    _cpu(after, sample, 2)
    count = max(1, round(TURN_S / once))
    turns = [_cpu(after, sample, count) / _cpu(before, sample, count) for _ in range(TURNS)]
    return float(np.median(turns))


def _cpu(answer: Answer, sample: Sample, count: int) -> float:
    began = time.process_time()
    for _ in range(count):
        answer(sample)
    return time.process_time() - began


if __name__ == "__main__":
    print(json.dumps(run(sys.argv[1:] or NAMES), indent=2))
