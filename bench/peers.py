"""Post-training int8 for the CPU beside NNCF's and onnxruntime's defaults: same models, calibration and labels.

All start from the float build of a trained model of `bench.zoo`. For each: the drop of the task's metric with 95 %
bounds of paired resampling, CPU time of inference as a ratio to float (one thread, taking turns), and CPU seconds and
peak memory of the process that made it. NNCF lives in an environment of its own, which is made when it is missing
(about 720 MB, `MODELWRIGHT_NNCF` moves it). `python -m bench.peers NAME ...` does the named models only, and writes
nothing.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from bench import zoo
from bench.build_cost import measure
from bench.passed import FLOAT, Made, builds

MODELS = ("fashion", "magika", "minilm", "ppocr-rec", "ppocr-cls", "wakeword")
NNCF = ("nncf==3.4.0", "openvino", "onnxruntime", "onnx")
TURNS, RUNS = 15, 4
OURS, DYNAMIC = "wright", "onnxruntime dynamic"

WRIGHT = "from modelwright.cli import main; main()"
SAMPLES = """
import sys
import numpy as np
model, data, out, kind = sys.argv[1:]
held = np.load(data)
rows = [{name: held[name][row] for name in held.files} for row in range(len(held[held.files[0]]))]
"""
STATIC = """
from onnxruntime.quantization import CalibrationDataReader, quantize_static
class Reader(CalibrationDataReader):
    left = iter(rows)
    def get_next(self):
        return next(self.left, None)
quantize_static(model, out, Reader())
"""
DYNAMIC_CODE = """
from onnxruntime.quantization import quantize_dynamic
quantize_dynamic(model, out)
"""
NNCF_CODE = """
import nncf, onnx
from onnx import version_converter
loaded = onnx.load(model)
if loaded.opset_import[0].version < 13:
    loaded = version_converter.convert_version(loaded, 13)
more = {"model_type": nncf.ModelType.TRANSFORMER} if kind == "embedding" else {}
onnx.save(nncf.quantize(loaded, nncf.Dataset(rows), subset_size=len(rows), **more), out)
"""


def run(*names: str) -> dict[str, Any]:
    found = {trained.name: _case(trained) for trained in zoo.models(*(names or MODELS))}
    return {
        "models": found,
        "threads": 1,
        "no_worse_than_best_peer": {name: case["no_worse"] for name, case in found.items()},
        "faster_than_float": {name: case["faster"] for name, case in found.items()},
        "met": all(case["no_worse"] and case["faster"] for case in found.values()),
    }


def _case(trained: zoo.Trained) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        (whole,) = builds(trained, (FLOAT,), folder)
        if not isinstance(whole, Made):
            raise whole
        files, costs = _files(trained, whole.model, folder)
        scores = {arm: trained.score(zoo.answers(file)) for arm, file in {"float": whole.model, **files}.items()}
        times = _times(trained, {"float": whole.model, **files})
    lost = {arm: zoo.drop(trained, scores["float"], scores[arm]) for arm in files}
    arms = {arm: {**_rounded(asdict(lost[arm])), "time_of_float": times[arm], **costs[arm]} for arm in files}
    best = min((arm for arm in files if arm != OURS), key=lambda arm: lost[arm].drop)
    beside = zoo.drop(trained, scores[best], scores[OURS])
    case = {
        "metric": trained.metric,
        "labels": trained.labels,
        "samples": len(scores["float"]),
        "float": round(trained.value(scores["float"]), 4),
        "arms": {**arms, **{arm: costs[arm] for arm in costs if arm not in files}},
        "best_peer": best,
        "lost_beside_best_peer": _rounded(asdict(beside)),
        "no_worse": lost[OURS].drop <= lost[best].drop or beside.low <= 0,
        "faster": times[OURS] < 1,
    }
    sys.stderr.write(json.dumps({trained.name: case}) + "\n")
    return case


def _files(trained: zoo.Trained, model: Path, folder: Path) -> tuple[dict[str, Path], dict[str, dict[str, Any]]]:
    """The file of each arm that made one, and what it cost; an arm that fell over says how."""
    data = str(trained.write_calibration(folder))
    ready = [str(model), data]
    commands = {
        OURS: _wright(trained, data, folder),
        "onnxruntime static": [sys.executable, "-c", SAMPLES + STATIC, *ready, str(folder / "static.onnx"), "-"],
        DYNAMIC: [sys.executable, "-c", SAMPLES + DYNAMIC_CODE, *ready, str(folder / "dynamic.onnx"), "-"],
        "nncf": [_nncf(), "-c", SAMPLES + NNCF_CODE, *ready, str(folder / "nncf.onnx"), trained.kind],
    }
    places = {OURS: folder / OURS, "onnxruntime static": folder / "static.onnx", DYNAMIC: folder / "dynamic.onnx"}
    places["nncf"] = folder / "nncf.onnx"
    files: dict[str, Path] = {}
    costs: dict[str, dict[str, Any]] = {}
    for arm, command in commands.items():
        try:
            used = measure(command, {"MODELWRIGHT_HOME": str(folder / "home"), "PYTHONWARNINGS": "ignore"})
            file = next(places[arm].rglob("*.onnx")) if arm == OURS else places[arm]
            zoo.answers(file)
        except Exception as error:  # noqa: BLE001 - whatever a peer falls over is its result.
            costs[arm] = {"failed": str(error).strip().splitlines()[-1][-200:]}
            continue
        files[arm] = file
        costs[arm] = {"build_cpu_s": round(used["cpu_s"], 1), "peak_mb": round(used["peak_mb"]), "exit": used["code"]}
    return files, costs


def _wright(trained: zoo.Trained, data: str, folder: Path) -> list[str]:
    recipe = folder / "recipe.toml"
    lines = [f"{name} = {value}" for layer in trained.sizes.values() for name, value in layer.items()]
    recipe.write_text("\n".join(["[export]", *lines]))
    words = ["build", "-m", str(trained.path), "--target", "cpu", "--precision", "w8a8", "--data", data, "-q"]
    words += ["-r", str(recipe)] if trained.sizes else []
    return [sys.executable, "-c", WRIGHT, *words, "-o", str(folder / OURS)]


def _nncf() -> str:
    folder = Path(os.environ.get("MODELWRIGHT_NNCF", zoo.cache() / "nncf-environment"))
    python = folder / "bin" / "python"
    if not (folder / ".installed").exists():
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *NNCF], check=True)
        (folder / ".installed").touch()
    return str(python)


def _times(trained: zoo.Trained, files: dict[str, Path]) -> dict[str, float]:
    """CPU time of a few runs of each arm in turns, as the median ratio to the float runs of the same turn."""
    runners = {arm: zoo.answers(file) for arm, file in files.items()}
    spent: dict[str, list[float]] = {arm: [] for arm in files}
    for turn in range(TURNS):
        for arm, answer in runners.items():
            began = time.process_time()
            for row in range(RUNS):
                answer(trained.judged[(turn * RUNS + row) % len(trained.judged)])
            spent[arm].append(time.process_time() - began)
    ratios = {arm: np.divide(spent[arm][1:], spent["float"][1:]) for arm in files}
    return {arm: round(statistics.median(ratios[arm].tolist()), 3) for arm in files}


def _rounded(values: dict[str, float]) -> dict[str, float]:
    return {name: round(value, 4) for name, value in values.items()}


if __name__ == "__main__":
    print(json.dumps(run(*sys.argv[1:]), indent=2))
