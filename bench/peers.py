"""Post-training int8 for the CPU beside NNCF's and onnxruntime's defaults: same models, calibration and labels.

All start from the float build of a trained model of `bench.zoo`. For each: the drop of the task's metric with 95 %
bounds of paired resampling, how near what is used of its answers is to float's (SQNR in dB over some 40 samples, spread
over all that are judged; no interval), CPU time of inference as a ratio to float (one thread, taking turns, 95 % bounds
of the median), and CPU seconds and peak memory of the process that made it. NNCF lives in an environment of its own,
which is made when it is missing (about 720 MB, `MODELWRIGHT_NNCF` moves it).

`met`: five models or more on which the default build loses no more than the best of the peers, is faster than float
and passes its own gate. Every further one stands beside them under `beside`, with what is not so and whether the build
says that it is not faster.

What was made and judged is kept beside the zoo for as long as the code is the same, and a row that the same stages made
is not made again: a run that was cut short goes on where it was. `python -m bench.peers NAME ...` does the named models
only, `python -m bench.peers make NAME ...` makes and judges them without taking times, which want a quiet machine.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from bench import zoo
from bench.build_cost import measure
from bench.passed import FLOAT, MADE_BY, Made, builds
from bench.ptq import COMPARED, sqnr, used
from bench.written import read, write

MODELS = (
    "fashion",
    "magika",
    "ppocr-cls",
    "wakeword",
    "slider-seg",
    "orientation",
    "lite0",
    "nudenet",
    "minilm",
    "ppocr-rec",
)
NNCF = ("nncf==3.4.0", "openvino", "onnxruntime", "onnx")
FEWEST = 5
SAYS = "int8 brings no speed here"
TURNS, RUNS = 15, 4
OURS, DYNAMIC = "wright", "onnxruntime dynamic"
SOURCES = Path(__file__).parents[1]

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
    kept = read("peers").get("models", {}).items()
    found = {name: case for name, case in kept if name in MODELS and case.get("made_by") == MADE_BY}
    for name in names or [name for name in MODELS if name not in found]:
        found |= {trained.name: _case(trained) for trained in zoo.models(name)}
        write("peers", _summed(found))
    return _summed(found)


def make(*names: str) -> None:
    for name in names or MODELS:
        for trained in zoo.models(name):
            _kept(trained)


def _summed(found: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    rows = {name: found[name] for name in MODELS if name in found}
    lacks = {name: [word for word in ("no_worse", "faster", "gate_passed") if not rows[name][word]] for name in rows}
    kept = [name for name in rows if not lacks[name]]
    return {
        "models": rows,
        "threads": 1,
        "left": [name for name in MODELS if name not in found],
        "no_worse_faster_and_passed": kept,
        "beside": {
            name: {"not_so": words, "says_no_faster": rows[name]["says_no_faster"]}
            for name, words in lacks.items()
            if words
        },
        "met": len(kept) >= FEWEST,
    }


def _case(trained: zoo.Trained) -> dict[str, Any]:
    """Made and judged once for the same code; timed now."""
    folder = _kept(trained)
    case: dict[str, Any] = json.loads((folder / "case.json").read_text())
    files = {arm: folder / file for arm, file in case.pop("files").items()}
    for arm, times in _times(trained, files).items():
        if arm in case["arms"]:
            case["arms"][arm] |= times
    ours = case["arms"][OURS]
    manifest = next((folder / OURS).rglob("wright.json")).read_text()
    case |= {"faster": bool(ours["time_bounds"][1] < 1), "says_no_faster": SAYS in manifest}
    case |= {"gate_passed": ours["exit"] == 0, "made_by": MADE_BY}
    sys.stderr.write(json.dumps({trained.name: case}) + "\n")
    return case


def _kept(trained: zoo.Trained) -> Path:
    folder: Path = zoo.cache() / "peers" / _code() / trained.name
    if not (folder / "case.json").exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        (folder / "case.json").write_text(json.dumps(_made(trained, folder)))
    return folder


def _code() -> str:
    """Of everything that decides what is made and how it is judged."""
    places = [SOURCES / "src", SOURCES / "bench" / "zoo", Path(__file__)]
    files = [file for place in places for file in ([place] if place.is_file() else sorted(place.rglob("*.py")))]
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:16]


def _made(trained: zoo.Trained, folder: Path) -> dict[str, Any]:
    (whole,) = builds(trained, (FLOAT,), folder)
    if not isinstance(whole, Made):
        raise whole
    files, costs = _files(trained, whole.model, folder)
    scores = {arm: trained.score(zoo.answers(file)) for arm, file in {"float": whole.model, **files}.items()}
    lost = {arm: zoo.drop(trained, scores["float"], scores[arm]) for arm in files}
    near = {arm: _nearness(trained, whole.model, file) for arm, file in files.items()}
    arms = {arm: {**_rounded(asdict(lost[arm])), "sqnr_db": near[arm], **costs[arm]} for arm in files}
    best = min((arm for arm in files if arm != OURS), key=lambda arm: lost[arm].drop)
    beside = zoo.drop(trained, scores[best], scores[OURS])
    return {
        "metric": trained.metric,
        "labels": trained.labels,
        "samples": len(scores["float"]),
        "float": round(trained.value(scores["float"]), 4),
        "arms": {**arms, **{arm: costs[arm] for arm in costs if arm not in files}},
        "best_peer": best,
        "lost_beside_best_peer": _rounded(asdict(beside)),
        "no_worse": lost[OURS].drop <= lost[best].drop or beside.low <= 0,
        "files": {arm: str(file.relative_to(folder)) for arm, file in {"float": whole.model, **files}.items()},
    }


def _nearness(trained: zoo.Trained, whole: Path, other: Path) -> float:
    spread = trained.judged[:: max(1, len(trained.judged) // COMPARED)]
    return round(sqnr(*(used(trained, zoo.answers(file)) for file in (whole, other)), spread), 2)


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


def _times(trained: zoo.Trained, files: dict[str, Path]) -> dict[str, dict[str, Any]]:
    """CPU time of a few runs of each arm in turns, as the median ratio to the float runs of the same turn."""
    runners = {arm: zoo.answers(file) for arm, file in files.items()}
    spent: dict[str, list[float]] = {arm: [] for arm in files}
    for turn in range(TURNS):
        for arm, answer in runners.items():
            began = time.process_time()
            for row in range(RUNS):
                answer(trained.judged[(turn * RUNS + row) % len(trained.judged)])
            spent[arm].append(time.process_time() - began)
    return {arm: _ratio(np.divide(spent[arm][1:], spent["float"][1:])) for arm in files}


def _ratio(turns: Any) -> dict[str, Any]:
    drawn = np.random.default_rng(0).choice(turns, (2000, len(turns)))
    low, high = np.quantile(np.median(drawn, axis=1), (0.025, 0.975))
    return {"time_of_float": round(float(np.median(turns)), 3), "time_bounds": [round(low, 3), round(high, 3)]}


def _rounded(values: dict[str, float]) -> dict[str, float]:
    return {name: round(value, 4) for name, value in values.items()}


if __name__ == "__main__":
    if sys.argv[1:2] == ["make"]:
        make(*sys.argv[2:])
    else:
        print(json.dumps(run(*sys.argv[1:]), indent=2))
