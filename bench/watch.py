"""A watched upgrade: onnxruntime 1.24 against the one here on six models, a planted slow operator, and A/A.

    python -m bench.watch PART      # upgrade, planted, real_aa or simulated_aa; prints what it found

The plant is a runtime with the same onnxruntime in which every session is opened without packed weights: MatMul alone
gets slower, by about a quarter. The convolution beside it must not be blamed. A/A: 80 suites of three cases on eight
kinds of simulated devices (drift, two clocks, heavy tails …), through the judges that `watch` asks, and 12 real ones.
A false alarm is a suite in which anything regressed. The parts run one after the other: side by side each would keep
the others from deciding. Three models of the upgrade are made by code, three are trained.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from onnx import TensorProto, helper, load, numpy_helper, save

import modelwright as mw
from bench import zoo
from bench.nets import layers, residual
from modelwright.answers.watch import content_of
from modelwright.judge import Judge, Race
from modelwright.worker import create_runtime, find_runtime, runtime_names

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from support.simdevice import HOSTILE, measure_units  # noqa: E402

OLD, PLANTED = "bench-ort-124", "bench-planted"
TRAINED = ("fashion", "wakeword", "magika")
BUDGET_S = float(os.environ.get("BENCH_WATCH_BUDGET_S", "300"))
SUITES, UNITS, REAL = 80, 30, 12
REAL_BUDGET_S = float(os.environ.get("BENCH_WATCH_REAL_S", "30"))
_PLANT = """
# Planted by bench/watch.py: no weights are packed, so MatMul packs them in every run.
import onnxruntime.capi.onnxruntime_inference_collection as _collection

_opened = _collection.InferenceSession.__init__


def _planted(self, path_or_bytes, sess_options=None, *args, **kwargs):
    sess_options = sess_options or SessionOptions()
    sess_options.add_session_config_entry("session.disable_prepacking", "1")
    _opened(self, path_or_bytes, sess_options, *args, **kwargs)


_collection.InferenceSession.__init__ = _planted
"""


def run() -> dict[str, object]:
    found = {name: part() for name, part in PARTS.items()}
    return {**found, "budget_s": BUDGET_S, "met": all(part["met"] for part in found.values())}


def upgrade() -> dict[str, object]:
    """Whatever the answers are, each is one: `met` is that every aspect of every model is decided."""
    if OLD not in runtime_names():
        create_runtime(OLD, ["onnxruntime==1.24.2"])
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        nets = [
            layers(folder / "layers.onnx", 12, 192),
            conv(folder / "conv.onnx"),
            residual(folder / "residual.onnx", 20),
            *(_with_samples(zoo.trained(name), folder / f"{name}.onnx") for name in TRAINED),
        ]
        found = _watched(folder, nets, OLD, "here", BUDGET_S)
    cases = _said(found)
    return {
        "changed": [vars(one) for one in found.changed],
        "cases": cases,
        "passed": found.passed,
        "met": len(cases) >= 3 and found.passed is not None,
    }


def _with_samples(trained: zoo.Trained, path: Path) -> Path:
    """The same model, and real inputs beside it."""
    save(load(trained.path), str(path))
    rows = [trained.judged[place] for place in range(8)]
    arrays: dict[str, Any] = {name: np.stack([row[name][0] for row in rows]) for name in rows[0]}
    np.savez(path.with_suffix(".npz"), **arrays)
    return path


def planted() -> dict[str, object]:
    if PLANTED not in runtime_names():
        create_runtime(PLANTED, [f"onnxruntime=={version('onnxruntime')}"])
    _plant()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        slow = _watched(folder, [layers(folder / "layers.onnx", 12, 192)], "here", PLANTED, BUDGET_S)
        other = _watched(folder, [conv(folder / "conv.onnx")], "here", PLANTED, BUDGET_S / 4)
    speeds = [next(row.word for row in found.cases[0].rows if row.aspect == "speed") for found in (slow, other)]
    proven, likely = slow.cases[0].blamed[:1], slow.cases[0].suspected
    named = proven == ("MatMul",) or (likely is not None and likely[0] == "MatMul")
    innocent = speeds[1] != "REGRESSED" and not other.cases[0].blamed
    how = {"blamed_by_proof": list(proven), "suspected": likely}
    return {"cases": {**_said(slow), **_said(other)}, **how, "met": speeds[0] == "REGRESSED" and named and innocent}


def real_aa() -> dict[str, object]:
    words: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        nets = [layers(folder / "layers.onnx", 4, 64)]
        for _ in range(REAL):
            found = _watched(folder, nets, "here", "here", REAL_BUDGET_S)
            words[{True: "green", False: "regressed", None: "undecided"}[found.passed]] += 1
    return {"suites": REAL, "answers": dict(words), "budget_s": REAL_BUDGET_S, "met": words["regressed"] == 0}


def simulated_aa() -> dict[str, object]:
    """Three cases with the judges of `watch` at their share of alpha; speed by p10 and p50, memory by one number."""
    alarms: Counter[str] = Counter()
    answers: Counter[str] = Counter()
    for number in range(SUITES):
        device = HOSTILE[number % len(HOSTILE)]
        draw = np.random.default_rng([7, number])
        speeds = [_raced(device, draw) for _ in range(3)]
        memories = [_grown(draw) for _ in range(3)]
        every = [*speeds, *memories]
        alarms[device.name] += False in every
        answers["regressed" if False in every else "undecided" if None in every else "green"] += 1
    false = sum(alarms.values())
    return {"suites": SUITES, "answers": dict(answers), "false_alarms": false, "by_device": dict(alarms),
            "met": false <= 0.05 * SUITES}  # fmt: skip


def _raced(device: object, draw: np.random.Generator) -> bool | None:
    race = Race(["new"], 0.05 / 6, max_slowdown=0.05)
    units = measure_units(device, 1, UNITS, draw)  # type: ignore[arg-type]
    for base, arm in zip(units.base[0], units.arm[0], strict=True):
        race.add("new", base=base, arm=arm)
        if not race.alive:
            break
    return race.within("new")


def _grown(draw: np.random.Generator) -> bool | None:
    judge = Judge(0.05, 0.05 / 6)
    for _ in range(UNITS):
        if judge.within(0.1) is not None:
            break
        base, arm = 70.0 * np.exp(0.01 * draw.standard_normal(2) + 0.05 * (draw.random(2) < 0.05))
        judge.add(base=[float(base)], arm=[float(arm)])
    return judge.within(0.1)


def _watched(folder: Path, nets: list[Path], old: str, new: str, budget_s: float) -> mw.Result:
    cases = "".join(map(_case, nets))
    (folder / "suite.toml").write_text(f'[watch]\nold = "{old}"\nnew = "{new}"\nbudget_s = {budget_s}\n{cases}')
    return mw.watch(folder / "suite.toml", store=mw.Store(folder / "store"))


def _case(net: Path) -> str:
    samples = net.with_suffix(".npz")
    data = f'data = "{samples.name}"\n' if samples.exists() else ""
    return f'[[case]]\nmodel = "{net.name}"\nthreads = 1\nsha256 = "{content_of(net)}"\n{data}'


def _said(found: mw.Result) -> dict[str, object]:
    return {
        case.name: {
            "old": case.old,
            "new": case.new,
            "aspects": {row.aspect: [row.word, row.sentence] for row in case.rows},
            "blamed": [[one.op_type, round(one.difference_ms, 4), one.slower] for one in case.operators.changes[:4]]
            if case.operators
            else [],
        }
        for case in found.cases
    }


def conv(path: Path) -> Path:
    """Six convolutions: kernels of their own, whose weights are laid out by an optimizer and not by packing."""
    draw, nodes, weights, source = np.random.default_rng(1), [], [], "x"
    for index in range(6):
        kernel = draw.standard_normal((32, 32, 3, 3)).astype(np.float32) * (2 / 288) ** 0.5
        weights.append(numpy_helper.from_array(kernel, f"k{index}"))
        nodes.append(helper.make_node("Conv", [source, f"k{index}"], [f"c{index}"], pads=[1] * 4))
        nodes.append(helper.make_node("Relu", [f"c{index}"], [source := "y" if index == 5 else f"r{index}"]))
    sides = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 32, 14, 14]) for name in ("x", "y")]
    graph = helper.make_graph(nodes, "conv", sides[:1], sides[1:], weights)
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), str(path))
    return path


def _plant() -> None:
    python = find_runtime(PLANTED).python
    words = [str(python), "-c", "import onnxruntime; print(onnxruntime.__file__)"]
    init = Path(subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip().split("\n")[-1])
    if "Planted by" not in init.read_text(encoding="utf-8"):
        init.write_text(init.read_text(encoding="utf-8") + _PLANT, encoding="utf-8")


PARTS = {"upgrade": upgrade, "planted": planted, "real_aa": real_aa, "simulated_aa": simulated_aa}

if __name__ == "__main__":
    print(json.dumps(PARTS[sys.argv[1]](), indent=2))
