"""Whether what `advise` recommends holds: accuracy by the model's own metric, time and memory by a bare loop.

And whether it is the right one: bare loops of all offers take turns in one process each, and none that holds may be
faster than what was recommended.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import modelwright as mw
from bench import zoo
from bench.zoo._images import upright
from modelwright.answers import held

# An orientation of 120 pages is decided by a drop of 7.7 points; pages can be drawn, so as many as 3 points take.
MODELS = {
    "digits": partial(zoo.trained, "digits"),
    "fashion": partial(zoo.trained, "fashion"),
    "orientation": partial(upright, 640),
}
LATENCY_MS, MEMORY = 200.0, 800 << 20
ROUNDS, FASTER = 9, 0.97
_LOOP = """
import json, sys, time
import numpy as np, onnxruntime as ort
options = ort.SessionOptions()
options.intra_op_num_threads = 1
session = ort.InferenceSession(sys.argv[1], options, providers=["CPUExecutionProvider"])
feeds = dict(np.load(sys.argv[2]))
for _ in range(20):
    session.run(None, feeds)
began, runs, times = time.process_time(), 0, []
while runs < 100 or time.process_time() - began < 0.3:
    start = time.perf_counter()
    session.run(None, feeds)
    times.append(1000 * (time.perf_counter() - start))
    runs += 1
cpu = 1000 * (time.process_time() - began) / runs
# Not ru_maxrss: it begins with what the process that forked this one had.
peak = next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM")) * 1024
print(json.dumps([float(np.percentile(times, 90)), peak, cpu]))
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
    bare_cpu_ms: dict[str, float]
    holds: bool
    none_that_holds_is_faster: bool
    undecided: bool
    reasons: tuple[str, ...]
    replay_changed: tuple[str, ...]
    record: str | None


def checked(name: str) -> Checked:
    trained = MODELS[name]()
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder, "labelled.npz")
        arrays: dict[str, Any] = dict(trained.labelled)
        np.savez(data, **arrays)
        asked: dict[str, Any] = {
            "max_drop": trained.bound, "latency_ms": LATENCY_MS, "memory": MEMORY, "data": mw.Data(str(data)),
            "task": trained.task, "threads": 1, "budget_s": 60.0,
        }  # fmt: skip
        found = mw.advise(str(trained.path), "cpu", **asked)
        again = mw.advise(str(trained.path), "cpu", **asked, replay=found.record_id)
        for offer in found.offers:
            output = Path(folder, offer.precision)
            mw.build(str(trained.path), "cpu", precision=offer.precision, data=mw.Data(str(data)), output=output)
        return _compared(trained, found, again, Path(folder))


def _compared(trained: zoo.Trained, found: Any, again: Any, folder: Path) -> Checked:
    built = {offer.precision: folder / offer.precision / "model.onnx" for offer in found.offers}
    loops = _bare(built, trained.judged[0], folder)
    cpu = {name: float(np.median([cpu for _, _, cpu in rounds])) for name, rounds in loops.items()}
    took = found.chosen.partition(" ")[0] if found.chosen else "fp32"
    values = [trained.value(trained.score(zoo.answers(path))) for path in (trained.path, built[took])]
    nine_of_ten, peak = (min(column) for column in list(zip(*loops[took], strict=True))[:2])
    lost = values[0] - values[1]
    holds = found.chosen is not None and lost <= trained.bound and nine_of_ten <= LATENCY_MS and peak <= MEMORY
    rivals = [offer.precision for offer in found.offers if held(offer, found.wanted)]
    return Checked(
        name=trained.name,
        chosen=found.chosen,
        allowed_drop=trained.bound,
        own_metric=trained.metric,
        float_value=float(values[0]),
        chosen_value=float(values[1]),
        bare_nine_of_ten_ms=nine_of_ten,
        bare_peak_bytes=int(peak),
        bare_cpu_ms=cpu,
        holds=bool(holds),
        none_that_holds_is_faster=all(cpu[rival] >= FASTER * cpu[took] for rival in rivals),
        undecided=found.undecided,
        reasons=found.reasons,
        replay_changed=again.changed,
        record=found.record_id,
    )


def _bare(models: dict[str, Path], sample: Any, folder: Path) -> dict[str, list[tuple[float, float, float]]]:
    """Each in turn, `ROUNDS` times: what nine of ten runs take, the peak in bytes, and the CPU time of a run."""
    arrays: dict[str, Any] = dict(sample)
    np.savez(folder / "one.npz", **arrays)
    found: dict[str, list[tuple[float, float, float]]] = {name: [] for name in models}
    for _ in range(ROUNDS):
        for name, model in models.items():
            command = [sys.executable, "-c", _LOOP, str(model), str(folder / "one.npz")]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            found[name].append(tuple(json.loads(done.stdout)))
    return found


def run(*names: str) -> dict[str, Any]:
    rows = [checked(name) for name in names or MODELS]
    right = [row.holds and row.none_that_holds_is_faster and not row.undecided for row in rows]
    return {
        "asked": {"latency_ms": LATENCY_MS, "memory_bytes": MEMORY},
        "models": [asdict(row) for row in rows],
        "held": f"{sum(row.holds for row in rows)} of {len(rows)}",
        "right": f"{sum(right)} of {len(rows)}",
        "met": all(right),
    }
