"""What each technique of the effort `best` brings on trained models, alone and together: an ablation.

Every row is a w8a8 graph from the same float graph and samples: for `cpu` as executed by onnxruntime's integer kernels,
for `qnn-npu` as it is written. `normal` is without any; the next rows force one technique whether it helps or not;
`best` is what the product does. SQNR is over the first output of 40 held-out samples; the drop of the task's metric has
95 % bounds of resampled pairs; CPU seconds are those of quantizing. `python -m bench.effort [MODEL …]` writes
`bench/results/effort.json`, model by model, and does not measure again what is there of the same stage.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from bench.npu_widths import _as_written
from bench.ptq import COMPARED, _float, _sqnr
from bench.written import read, write
from bench.zoo import Answer, Trained, answers, drop, models
from modelwright.data import DataSource, samples
from modelwright.graph import load
from modelwright.stages.quantize import QUANTIZE, QuantizeParams, run_quantize, steps_of
from modelwright.stages.quantize._best import TECHNIQUES, quantize_with
from modelwright.stages.quantize._save import save
from modelwright.stages.quantize._static import CalibrationSamples
from modelwright.vocabulary import Data

NAMES = ("fashion", "magika", "ppocr-cls", "wakeword", "minilm", "lite0")
TARGETS: Mapping[str, QuantizeParams] = {
    "cpu": QuantizeParams("w8a8", reduce_range=True, pairs="needed", float_where_faster=True),
    "qnn-npu": QuantizeParams("w8a8", reduce_range=False, pairs="all", scope="qnn"),
}


def run(names: Sequence[str] = NAMES) -> dict[str, Any]:
    found = dict(read("effort").get("models", {}))
    known = {name for name, rows in found.items() if rows["quantize"] == QUANTIZE.version}
    for item in models(*names) if set(names) - known else ():
        with tempfile.TemporaryDirectory() as folder:
            rows = {"quantize": QUANTIZE.version, **_rows(item, Path(folder))}
        # Other models may have been written meanwhile.
        found = {**read("effort").get("models", {}), item.name: rows}
        write("effort", {"models": found})
    return {"models": found}


def _rows(trained: Trained, folder: Path) -> dict[str, Any]:
    calibration = Data(str(trained.write_calibration(folder)))
    whole = _float(trained, calibration, folder)
    before = answers(whole)
    scores = trained.score(before)
    found: dict[str, Any] = {"metric": trained.metric, "float_model": trained.value(scores)}
    for target, params in TARGETS.items():
        for name in ("normal", *TECHNIQUES, "best"):
            work = folder / f"{target}-{name}"
            work.mkdir()
            began = time.process_time()
            told = _made(name, whole, params, DataSource(calibration), work)
            spent = time.process_time() - began
            if told is None:
                continue
            after: Answer = (answers if target == "cpu" else _as_written)(work / "model.onnx")
            lost = drop(trained, scores, trained.score(after))
            found.setdefault(target, {})[name] = {
                "sqnr_db": round(_sqnr(before, after, trained.judged[:COMPARED]), 2),
                "drop": [round(value, 4) for value in (lost.drop, lost.low, lost.high)],
                "cpu_s": round(spent, 1),
                **told,
            }
            sys.stderr.write(f"{trained.name}: {target}: {name}: {found[target][name]}\n")
    return found


def _made(name: str, whole: Path, params: QuantizeParams, data: DataSource, work: Path) -> dict[str, Any] | None:
    """None where the technique finds no place in this model."""
    if name == "normal":
        run_quantize(str(whole), str(work), params, data)
        return {}
    if name == "best":
        outcome = run_quantize(str(whole), str(work), replace(params, effort="best"), data)
        return {"gains": {item.technique: [item.places, item.decibels, item.kept] for item in outcome.gains}}
    source = CalibrationSamples(samples(data, load(whole), params.samples), random=False)
    trial = quantize_with((name,), whole, steps_of(params.precision)[0], params, source, work)
    save(trial.model, work)
    return {"places": trial.places} if trial.places else None


if __name__ == "__main__":
    run(sys.argv[1:] or NAMES)
