"""int8 builds of trained models on a CPU of 2013: qemu-user lends one with AVX2 and nothing newer.

The same files answer the same samples natively and under `qemu-x86_64 -cpu Haswell`, and both are held beside the
float model's answers on this CPU: the cosine of the worst output, and the bound that the gate has for it. Few samples:
an emulated run is some fifty times slower.
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
np.savez(out, *[np.stack(output) for output in zip(*found)])
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
        native = _worst(_answers((), small.model, data), wanted)
        haswell = _worst(_answers(CPU, small.model, data), wanted)
    bound = small.result.components[0].validation.bound
    sys.stderr.write(f"{trained.name}: {native} here, {haswell} there, the gate asks for {bound}\n")
    within = min(native, haswell) >= bound
    return {"passed": small.result.passed, "bound": bound, "native": native, "haswell": haswell, "met": within}


def _answers(cpu: tuple[str, ...], model: Path, data: Path) -> list[Any]:
    out = data.with_name("answers.npz")
    subprocess.run(
        [*cpu, sys.executable, "-c", ANSWER, str(model), str(data), str(out)], check=True, capture_output=True
    )
    with np.load(out) as held:
        return [held[name].astype(float).ravel() for name in held.files]


def _worst(found: list[Any], wanted: list[Any]) -> float:
    """The cosine of the worst output."""
    cosines = (
        one @ other / (np.linalg.norm(one) * np.linalg.norm(other)) for one, other in zip(found, wanted, strict=True)
    )
    return round(float(min(cosines)), 5)


if __name__ == "__main__":
    print(json.dumps(run(*sys.argv[1:]), indent=2))
