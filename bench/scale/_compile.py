"""The row about compiling for an NPU that is not there."""

from __future__ import annotations

import contextlib
import itertools
import json
from pathlib import Path

from bench.scale._bare import COMPILE
from bench.scale._models import convolutions
from bench.scale._places import Cost, Place, Row, beside, in_turns, place
from bench.zoo import Gone, Trained, trained


def compiling() -> Row:
    """For a Snapdragon X Elite: a float graph that the simulator computes in a second, so that what any compilation
    costs beside is seen, and a trained detector of text, as floats and quantized. The dearest counts.

    Bare is compiling, loading back and running on the simulator: once, and twice where the check must (quantized). Ours
    also computes the answers of the CPU, and asks the simulator in a process that did not compile.
    """
    with place() as here:
        rows = {"convolutions": _beside(here, convolutions(here.folder / "model.onnx"), 1)}
        with contextlib.suppress(Gone):
            detector = trained("ppocr-det")
            data = detector.write_calibration(here.folder)
            rows["ppocr-det"] = _beside(here, _ready(here, detector, data, "fp32"), 1, "--data", data)
            rows["ppocr-det w8a16"] = _beside(here, _ready(here, detector, data, "w8a16"), 2, "--data", data)
    return {**rows, "cpu_ratio": max(row["cpu_ratio"] for row in rows.values()), "limits": {"cpu_ratio": 1.2}}


def _ready(here: Place, model: Trained, data: Path, precision: str) -> Path:
    """As its build is before it is compiled."""
    out = here.folder / precision
    words = ("--target", "qnn-npu", "--precision", precision, "--data", data, "--no-compile", "-o", out)
    here.wright("build", model.path, *words)
    return out / "model.onnx"


def _beside(here: Place, model: Path, runs: int, *words: object) -> Row:
    alone = here.bare(COMPILE, model, here.folder / f"alone-{model.parent.name}.onnx", 0)
    fresh = (here.folder / f"bare-{model.parent.name}-{number}.onnx" for number in itertools.count())
    bare, ours = in_turns(
        lambda: here.bare(COMPILE, model, next(fresh), runs), lambda: _compiled(here, model, *words), 3
    )
    extra = round(ours.cpu_s - bare.cpu_s, 2)
    return {
        "bare_compile_cpu_s": round(alone.cpu_s, 2), "bare_runs": runs,
        **beside(ours, bare), "extra_cpu_s": extra, **_stages(here),
    }  # fmt: skip


def _compiled(here: Place, model: Path, *words: object) -> Cost:
    """Into an empty store."""
    here.forget()
    where = ("-o", here.folder / "out", "--overwrite", "--json")
    return here.wright("compile", model, "--target", "qnn-npu", *words, *where)


def _stages(here: Place) -> Row:
    """What each stage took, and how often the check ran the simulator: the log has the answer, among other lines."""
    text = (here.folder / "log.txt").read_text()
    answer, _ = json.JSONDecoder().raw_decode(text, text.index('{\n  "schema_version"'))
    stages = {stage["stage"]: stage for stage in answer["builds"][0]["components"][0]["stages"]}
    spent = {f"{name}_cpu_s": round(found["cpu_seconds"], 2) for name, found in stages.items() if found["cpu_seconds"]}
    return {**spent, "simulated_runs": stages["check"]["outcome"]["samples"]}
