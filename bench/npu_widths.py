"""What lies between the products of a w8a8 build for an NPU: floats, 8 bits or 16, on trained models.

Every row is a static w8a8 graph as the recipe for `qnn-npu` makes it (8-bit weights, a pair for every tensor of the
scope) from the same float graph and samples, computed as it is written: `float` leaves operators between products
float, `8 bits` gives all that QNN computes on integers 8, `16 bits` gives them 16 with the products at 8 (what `scope =
"qnn"` does), `noisy products` also 16 to the few products that make most of the noise (`wide_where_noisy`, as recipes
say). SQNR is over the first output of 40 held-out samples; the drop of the task's metric has 95 % bounds of resampled
pairs; `cpu_s` is the CPU time of the stage. `python -m bench.npu_widths [MODEL …]` writes
`bench/results/npu_widths.json`, model by model.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from bench.ptq import COMPARED, _float, sqnr
from bench.written import read, write
from bench.zoo import Answer, Sample, Trained, answers, drop, models
from modelwright.data import DataSource
from modelwright.stages.quantize import QUANTIZE, QuantizeParams, run_quantize
from modelwright.targets import adapter_of, open_as_meant
from modelwright.vocabulary import Data

NAMES = ("fashion", "lite0", "nudenet", "ppocr-rec", "wakeword", "minilm")
BASE = QuantizeParams("w8a8", reduce_range=False, pairs="all")
WORKING = ("AveragePool", "Clip", "Conv", "ConvTranspose", "Flatten", "Gemm", "MatMul", "MaxPool", "Relu", "Reshape")
MOVING = ("Resize", "Slice", "Squeeze", "Transpose", "Unsqueeze")


def run(names: Sequence[str] = NAMES) -> dict[str, Any]:
    found = dict(read("npu_widths").get("models", {}))
    for item in models(*names):
        with tempfile.TemporaryDirectory() as folder:
            found[item.name] = _rows(item, Path(folder))
        write("npu_widths", {"quantize": QUANTIZE.version, "models": found})
    return found


def variants() -> Mapping[str, QuantizeParams]:
    taken = adapter_of("qnn").operators(8)
    assert taken is not None
    return {
        "float": BASE,
        "8 bits": replace(BASE, op_types=tuple(sorted({*taken.integers, *WORKING, *MOVING}))),
        "16 bits": replace(BASE, scope="qnn"),
        "noisy products": replace(BASE, scope="qnn", wide_where_noisy=True),
    }


def _rows(trained: Trained, folder: Path) -> dict[str, Any]:
    calibration = Data(str(trained.write_calibration(folder)))
    whole = _float(trained, calibration, folder)
    before = answers(whole)
    scores = trained.score(before)
    found: dict[str, Any] = {"metric": trained.metric, "float_model": trained.value(scores)}
    for number, (name, params) in enumerate(variants().items()):
        work = folder / str(number)
        work.mkdir()
        began = time.process_time()
        outcome = run_quantize(str(whole), str(work), params, DataSource(calibration))
        spent = time.process_time() - began
        after = _as_written(work / "model.onnx")
        lost = drop(trained, scores, trained.score(after))
        found[name] = {
            "sqnr_db": round(sqnr(before, after, trained.judged[:COMPARED]), 2),
            "drop": [round(value, 4) for value in (lost.drop, lost.low, lost.high)],
            "measured": outcome.measured,
            "between": outcome.between,
            "bytes": outcome.output_bytes,
            "cpu_s": round(spent, 2),
            "widened": None if outcome.widened is None else asdict(outcome.widened),
        }
        sys.stderr.write(f"{trained.name}: {name}: {found[name]}\n")
    return found


def _as_written(path: Path) -> Answer:
    session = open_as_meant(str(path))

    def answer(sample: Sample) -> list[Any]:
        return list(session.run(dict(sample)).values())

    return answer


if __name__ == "__main__":
    run(sys.argv[1:] or NAMES)
