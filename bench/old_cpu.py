"""int8 builds of trained models on a CPU of 2013: qemu-user lends one with AVX2 and nothing newer.

The same files answer the same samples natively and under `qemu-x86_64 -cpu Haswell`, and both are held beside the
float model's answers on this CPU by all the measures of the gate. Few samples: an emulated run is some fifty times
slower.
`python -m bench.old_cpu NAME ...` does the named models only, and writes nothing.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from bench import zoo
from bench.passed import FLOAT, Made, builds
from modelwright.stages.validate import Asked, Gate, parity

MODELS = ("fashion", "magika", "ppocr-cls", "wakeword")
SAMPLES = 6
CPU = ("qemu-x86_64", "-cpu", "Haswell")
ANSWER = """
import sys
import numpy as np
import onnxruntime as ort
model, data, out = sys.argv[1:]
options = ort.SessionOptions()
options.intra_op_num_threads = 1
session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
held = np.load(data)
wanted = [value.name for value in session.get_inputs()]
rows = range(len(held[wanted[0]]))
found = [session.run(None, {name: held[name][row] for name in wanted}) for row in rows]
names = [value.name for value in session.get_outputs()]
np.savez(out, **{name: np.stack(output) for name, output in zip(names, zip(*found))})
"""


def run(*names: str) -> dict[str, Any]:
    if shutil.which(CPU[0]) is None:
        return {"skipped": "qemu-user is not installed", "met": None}
    found = {trained.name: _case(trained) for trained in zoo.models(*(names or MODELS))}
    within = [case["met"] for case in found.values() if "refused" not in case]
    return {"cpu": CPU[2], "samples": SAMPLES, "models": found, "met": all(within)}


def _case(trained: zoo.Trained) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        whole, small = builds(trained, (FLOAT, ("cpu", "w8a8")), folder)
        if not isinstance(whole, Made) or not isinstance(small, Made):
            return {"refused": str(small if isinstance(whole, Made) else whole)}
        step = max(1, len(trained.judged) // SAMPLES)
        data = zoo.write(trained.judged[::step][:SAMPLES], folder / "judged.npz")
        wanted = _answers((), whole.model, data)
        native = _judged(_answers((), small.model, data), wanted)
        haswell = _judged(_answers(CPU, small.model, data), wanted)
    sys.stderr.write(f"{trained.name}: {native} here, {haswell} there\n")
    within = not native["says_no"] and not haswell["says_no"]
    return {"passed": small.result.passed, "native": native, "haswell": haswell, "met": within}


def _answers(cpu: tuple[str, ...], model: Path, data: Path) -> list[dict[str, Any]]:
    """Sample by sample."""
    out = data.with_name("answers.npz")
    subprocess.run(
        [*cpu, sys.executable, "-c", ANSWER, str(model), str(data), str(out)], check=True, capture_output=True
    )
    with np.load(out) as held:
        arrays = {name: held[name] for name in held.files}
    count = len(next(iter(arrays.values())))
    return [{name: array[row] for name, array in arrays.items()} for row in range(count)]


def _judged(found: list[dict[str, Any]], wanted: list[dict[str, Any]]) -> dict[str, Any]:
    """The cosine of the worst output over all samples, and what the gate would say no to."""
    outputs = parity(wanted, found, Asked([{}] * len(wanted), Gate(precision="w8a8"), random=False))
    measures = [measure for item in outputs for measure in item.measures]
    cosines = [measure.value for measure in measures if measure.name == "close to the export" and measure.value]
    refused = [f"{measure.name}: {measure.detail}" for measure in measures if not measure.passed]
    return {"cosine": round(min(cosines), 5), "says_no": refused}


if __name__ == "__main__":
    print(json.dumps(run(*sys.argv[1:]), indent=2))
