"""What each technique of the effort `best` brings on trained models, alone and together: an ablation.

Every row is a w8a8 graph from the same float graph and samples: for `cpu` as executed by onnxruntime's integer kernels,
for `qnn-npu` as it is written, without the widths that are given by measured noise. `normal` is without any technique;
the next rows force one whether it helps or not; `best` is what the product does. All numbers are of held-out samples:
SQNR of what somebody reads of the answers of 40; by how many decibels the noise fell against `normal`, sample by
sample, with two standard errors below and above (`gain_db`, as this CPU executes both; of an embedding, whose padding
nobody reads, of that); `told_db` is what `best` says of the model's own outputs, from its own judges; the drop of the
task's metric with 95 % bounds of resampled pairs. CPU seconds are those of quantizing. `by_technique` names the models
that are surely better, surely worse, neither.

`python -m bench.effort [MODEL …]` writes `bench/results/effort.json` row by row, and does not measure again what is
there of the same stage.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from bench.npu_widths import _as_written
from bench.ptq import COMPARED, _float, sqnr, used
from bench.written import read, write
from bench.zoo import Answer, Trained, answers, drop, models
from modelwright.data import DataSource, samples
from modelwright.graph import load
from modelwright.stages.quantize import QUANTIZE, QuantizeParams, run_quantize, steps_of
from modelwright.stages.quantize._best import TECHNIQUES, gain_of, quantize_with
from modelwright.stages.quantize._model import open_model, prepare
from modelwright.stages.quantize._noise import NoiseMeter
from modelwright.stages.quantize._save import save
from modelwright.stages.quantize._static import CalibrationSamples
from modelwright.vocabulary import Data

NAMES = ("fashion", "magika", "ppocr-cls", "wakeword", "minilm", "lite0")
TARGETS: Mapping[str, QuantizeParams] = {
    "cpu": QuantizeParams("w8a8", reduce_range=True, pairs="needed", float_where_faster=True),
    "qnn-npu": QuantizeParams("w8a8", reduce_range=False, pairs="all", scope="qnn"),
}
NORMAL, BEST = "normal", "best"
ARMS = (NORMAL, *TECHNIQUES, BEST)


def run(names: Sequence[str] = NAMES) -> dict[str, Any]:
    for name in names:
        if not _complete(_kept().get(name, {})):
            for item in models(name):
                with tempfile.TemporaryDirectory() as folder:
                    _measure(item, Path(folder))
    return _summed(_kept())


def _kept() -> dict[str, Any]:
    rows = read("effort").get("models", {})
    return {name: row for name, row in rows.items() if row["quantize"] == QUANTIZE.version}


def _complete(row: Mapping[str, Any]) -> bool:
    return all(arm in row.get(target, {}) for target in TARGETS for arm in ARMS)


def _write(name: str, target: str, arm: str, found: Mapping[str, Any], facts: Mapping[str, Any]) -> None:
    """Other models may have been written meanwhile."""
    rows = _kept()
    row = rows.setdefault(name, {"quantize": QUANTIZE.version, **facts})
    row.setdefault(target, {})[arm] = dict(found)
    sys.stderr.write(f"{name}: {target}: {arm}: {found}\n")
    write("effort", _summed(rows))


def _summed(rows: Mapping[str, Any]) -> dict[str, Any]:
    whole = {name: row for name, row in rows.items() if _complete(row)}
    return {
        "models": {name: rows[name] for name in (*NAMES, *rows) if name in rows},
        "complete": list(whole),
        "by_technique": {target: {arm: _sides(whole, target, arm) for arm in ARMS[1:]} for target in TARGETS},
    }


def _sides(rows: Mapping[str, Any], target: str, arm: str) -> dict[str, list[str]]:
    gains = {name: row[target][arm].get("gain_db") for name, row in rows.items()}
    told = {name: gain for name, gain in gains.items() if gain is not None}
    return {
        "better": [name for name, gain in told.items() if gain[1] > 0],
        "worse": [name for name, gain in told.items() if gain[2] < 0],
        "neither": [name for name, gain in told.items() if gain[1] <= 0 <= gain[2]],
        "no_place": [name for name in gains if name not in told],
    }


def _measure(trained: Trained, folder: Path) -> None:
    calibration = Data(str(trained.write_calibration(folder)))
    whole = _float(trained, calibration, folder)
    before = answers(whole)
    scores = trained.score(before)
    facts = {"metric": trained.metric, "float_model": trained.value(scores)}
    meter = NoiseMeter.over(_ready(whole, folder / "meter"), trained.judged[:COMPARED], folder)
    for target, params in TARGETS.items():
        plain = None
        for arm in ARMS:
            have = _kept().get(trained.name, {}).get(target, {})
            if arm in have and arm != NORMAL:
                continue
            work = folder / f"{target}-{arm}"
            work.mkdir()
            began = time.process_time()
            told = _made(arm, whole, params, DataSource(calibration), work)
            spent = round(time.process_time() - began, 1)
            if told is None:
                _write(trained.name, target, arm, {"places": 0}, facts)
                continue
            after: Answer = (answers if target == "cpu" else _as_written)(work / "model.onnx")
            noise = _noise(trained, meter, work / "model.onnx", (before, after))
            plain = noise if arm == NORMAL else plain
            if arm in have:
                continue
            gain = gain_of(arm, 0, plain, noise) if arm != NORMAL and noise is not None else None
            lost = drop(trained, scores, trained.score(after))
            row = {
                "sqnr_db": round(sqnr(used(trained, before), used(trained, after), trained.judged[:COMPARED]), 2),
                **({"gain_db": [gain.decibels, gain.low, gain.high]} if gain is not None else {}),
                "drop": [round(value, 4) for value in (lost.drop, lost.low, lost.high)],
                "cpu_s": spent,
            }
            _write(trained.name, target, arm, {**row, **told}, facts)


def _noise(trained: Trained, meter: NoiseMeter, path: Path, sides: tuple[Answer, Answer]) -> Any:
    """As `best` looks at it, but of an embedding what is made of the answers: they hold states of padding."""
    if trained.kind != "embedding":
        return meter.noise(onnx.load(path))
    wanted, found = ([used(trained, side)(sample)[0] for sample in trained.judged[:COMPARED]] for side in sides)
    lost = [np.square(one - other).sum() for one, other in zip(wanted, found, strict=True)]
    return np.array(lost) / np.mean([np.square(one).sum() for one in wanted])


def _ready(whole: Path, work: Path) -> onnx.ModelProto:
    """With the names that the quantizer gives."""
    work.mkdir()
    prepared = prepare(open_model(str(whole)), work, integers=True, raise_opset=True)
    prepared.weights.attach(prepared.model)
    return prepared.model


def _made(arm: str, whole: Path, params: QuantizeParams, data: DataSource, work: Path) -> dict[str, Any] | None:
    """None where the technique finds no place in this model."""
    if arm == NORMAL:
        run_quantize(str(whole), str(work), params, data)
        return {}
    if arm == BEST:
        gains = run_quantize(str(whole), str(work), replace(params, effort="best"), data).gains
        told = {item.technique: [item.places, item.decibels, item.low, item.high, item.kept] for item in gains}
        judges = max((item.samples for item in gains), default=0)
        return {
            "told": told,
            "judges": judges,
            "told_db": round(sum(item.decibels for item in gains if item.kept), 2),
        }
    source = CalibrationSamples(samples(data, load(whole), params.samples), random=False)
    trial = quantize_with((arm,), whole, steps_of(params.precision)[0], params, source, work)
    save(trial.model, work)
    return {"places": trial.places} if trial.places else None


if __name__ == "__main__":
    run(sys.argv[1:] or NAMES)
