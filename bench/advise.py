"""Whether what `advise` recommends holds: accuracy by the model's own metric, time and memory by a bare loop."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

import modelwright as mw
from bench import zoo

MODELS = ("digits", "fashion", "orientation")
LATENCY_MS, MEMORY = 200.0, 800 << 20
_LOOP = """
import json, resource, sys, time
import numpy as np, onnxruntime as ort
options = ort.SessionOptions()
options.intra_op_num_threads = 1
session = ort.InferenceSession(sys.argv[1], options, providers=["CPUExecutionProvider"])
feeds = dict(np.load(sys.argv[2]))
times = []
for _ in range(120):
    began = time.perf_counter()
    session.run(None, feeds)
    times.append(1000 * (time.perf_counter() - began))
print(json.dumps([float(np.percentile(times[20:], 90)), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024]))
"""


@dataclass(frozen=True)
class Checked:
    """One model: what was chosen, and what somebody else measures of it."""

    name: str
    chosen: str | None
    allowed_drop: float
    own_metric: str
    float_value: float
    chosen_value: float
    bare_nine_of_ten_ms: float
    bare_peak_bytes: int
    holds: bool
    replay_changed: tuple[str, ...]
    record: str | None


def checked(name: str) -> Checked:
    trained = zoo.trained(name)
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder, "labelled.npz")
        arrays: dict[str, Any] = dict(trained.labelled)
        np.savez(data, **arrays)
        asked: dict[str, Any] = {
            "max_drop": trained.bound, "latency_ms": LATENCY_MS, "memory": MEMORY, "data": mw.Data(str(data)),
            "task": trained.task, "threads": 1, "budget_s": 30.0,
        }  # fmt: skip
        found = mw.advise(str(trained.path), "cpu", **asked)
        again = mw.advise(str(trained.path), "cpu", **asked, replay=found.record_id)
        precision = (found.chosen or "fp32").partition(" ")[0]
        mw.build(str(trained.path), "cpu", precision=precision, data=mw.Data(str(data)), output=Path(folder, "b"))
        return _compared(trained, found, again, Path(folder))


def _compared(trained: zoo.Trained, found: Any, again: Any, folder: Path) -> Checked:
    model = folder / "b" / "model.onnx"
    values = [trained.value(trained.score(zoo.answers(path))) for path in (trained.path, model)]
    nine_of_ten, peak = _bare(model, trained.judged[0], folder)
    lost = values[0] - values[1]
    holds = found.chosen is not None and lost <= trained.bound and nine_of_ten <= LATENCY_MS and peak <= MEMORY
    return Checked(
        name=trained.name,
        chosen=found.chosen,
        allowed_drop=trained.bound,
        own_metric=trained.metric,
        float_value=float(values[0]),
        chosen_value=float(values[1]),
        bare_nine_of_ten_ms=nine_of_ten,
        bare_peak_bytes=peak,
        holds=bool(holds),
        replay_changed=again.changed,
        record=found.record_id,
    )


def _bare(model: Path, sample: Any, folder: Path) -> tuple[float, int]:
    arrays: dict[str, Any] = dict(sample)
    np.savez(folder / "one.npz", **arrays)
    command = [sys.executable, "-c", _LOOP, str(model), str(folder / "one.npz")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    nine_of_ten, peak = json.loads(done.stdout)
    return float(nine_of_ten), int(peak)


def run() -> dict[str, Any]:
    rows = [checked(name) for name in MODELS]
    return {
        "asked": {"latency_ms": LATENCY_MS, "memory_bytes": MEMORY},
        "models": [asdict(row) for row in rows],
        "held": f"{sum(row.holds for row in rows)} of {len(rows)}",
        "met": all(row.holds for row in rows),
    }
