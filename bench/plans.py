"""What planning, a build with nothing to do, and several targets at once cost.

- `planning`: what a build of 1,000 models for 8 targets each would do, models read from disk, with an empty store.
- `warm`: CPU seconds of a build of which the store has everything, beside an earlier version, interleaved. Its `wright`
  is named in MODELWRIGHT_BENCH_OLD; without it this part is left out.
- `parallel`: wall time of one build for 4 targets, nodes side by side and one at a time. Only a quiet machine
  answers that; `at_once`, how many nodes were at work on average (their times by the build's), holds on any.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper, save

from bench.build_cost import measure
from bench.nets import layers
from modelwright.models import OnnxSource
from modelwright.pipeline import BuildResult, RecipeChoices, build_all, plan_all, resolve_recipe
from modelwright.plans import LocalExecutor
from modelwright.store import Store
from modelwright.targets import parse_target

OLD = "MODELWRIGHT_BENCH_OLD"
WRIGHT = str(Path(sys.executable).with_name("wright"))
EIGHT = ("qnn-npu", "qnn-gpu", "openvino-cpu", "openvino-npu", "openvino-gpu", "cpu", "dml-gpu", "vitisai-npu")
MODELS, PLANNING_S = 1000, 6.0
WARM_ROUNDS, WARM_RATIO = 5, 0.5
# What four targets do not share is what can run side by side: each of these is quantized in a way of its own.
FOUR = {"cpu": "w8a8", "cpu:isa=vnni": "w8a8", "cpu:isa=dotprod": "dynamic", "qnn-npu:htp_arch=75": "w8a8"}
DEPTH, PARALLEL_ROUNDS, SPEEDUP = 24, 3, 1.6


def run(parts: tuple[str, ...] = ("planning", "warm", "parallel")) -> dict[str, Any]:
    result: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        for part in parts:
            result[part] = {"planning": planning, "warm": warm, "parallel": parallel}[part](Path(folder))
    return {**result, "met": all(part["met"] is not False for part in result.values())}


def planning(folder: Path) -> dict[str, Any]:
    sources = [OnnxSource(str(_tiny(folder, number))) for number in range(MODELS)]
    began, used, steps = time.perf_counter(), time.process_time(), 0
    with Store(folder / "planning/store", read_only=True) as store:
        for source in sources:
            recipes = [resolve_recipe(source, parse_target(name), planning=True) for name in EIGHT]
            steps += sum(len(found) for found in plan_all(source, recipes, store=store))
    seconds, cpu_s = time.perf_counter() - began, time.process_time() - used
    facts = {"models": MODELS, "targets": len(EIGHT), "stages": steps, "seconds": round(seconds, 2)}
    # One process on one core: what it waits for others on a busy machine is not its cost.
    return {**facts, "cpu_s": round(cpu_s, 2), "limit_s": PLANNING_S, "met": cpu_s <= PLANNING_S}


def _tiny(folder: Path, number: int) -> Path:
    weight = numpy_helper.from_array(np.full((4, 4), number, np.float32), "w")
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 4]) for name in ("x", "y")]
    graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["y"])], "tiny", values[:1], values[1:], [weight])
    path = folder / f"{number}.onnx"
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), str(path))
    return path


def warm(folder: Path) -> dict[str, Any]:
    old = os.environ.get(OLD)
    if old is None:
        return {"met": None, "reason": f"{OLD} names no earlier wright"}
    model = layers(folder / "layers.onnx", 8)
    cases = {}
    for name, words in {"cpu fp32": ["--target", "cpu"], "qnn-npu": ["--target", "qnn-npu"]}.items():
        used: dict[str, list[float]] = {"old": [], "new": []}
        for number in range(WARM_ROUNDS + 1):
            for side, wright in (("old", old), ("new", WRIGHT)):
                home = {"MODELWRIGHT_HOME": str(folder / side)}
                found = measure(
                    [wright, "build", "-m", str(model), *words, "-o", str(folder / f"{side}-out"), "-q"], home
                )
                used[side] += [found["cpu_s"]] if number else []
        old_s, new_s = (statistics.median(used[side]) for side in ("old", "new"))
        cases[name] = {"old_cpu_s": round(old_s, 3), "new_cpu_s": round(new_s, 3), "ratio": round(new_s / old_s, 3)}
    met = all(case["ratio"] <= WARM_RATIO for case in cases.values())
    return {"cases": cases, "rounds": WARM_ROUNDS, "limit": WARM_RATIO, "met": met}


def parallel(folder: Path) -> dict[str, Any]:
    """The same plan with one core for nodes and with all of them, in fresh stores, in alternating order."""
    source = OnnxSource(str(layers(folder / "deep.onnx", DEPTH, width=256)))
    recipes = [
        resolve_recipe(source, parse_target(name), RecipeChoices(precision=precision))
        for name, precision in FOUR.items()
    ]
    cores = len(os.sched_getaffinity(0))
    took: dict[str, list[float]] = {"side by side": [], "one at a time": []}
    at_once: dict[str, list[float]] = {way: [] for way in took}
    for number in range(PARALLEL_ROUNDS):
        for way in sorted(took, reverse=bool(number % 2)):
            executor = LocalExecutor(cores=cores if way == "side by side" else 1)
            with Store(folder / f"parallel-{number}-{way}/store") as store:
                began = time.perf_counter()
                results = build_all(source, recipes, store=store, executor=executor)
                took[way].append(time.perf_counter() - began)
            built = [result for result in results if isinstance(result, BuildResult) and result.passed is not False]
            if len(built) < len(FOUR):
                raise RuntimeError(f"not everything was built: {results}")
            at_once[way].append(_working_s(built) / took[way][-1])
    best = {way: statistics.median(found) for way, found in took.items()}
    speedup = best["one at a time"] / best["side by side"]
    return {
        "targets": FOUR,
        "cores": cores,
        "seconds": {way: [round(value, 2) for value in found] for way, found in took.items()},
        "at_once": {way: [round(value, 2) for value in found] for way, found in at_once.items()},
        "speedup": round(speedup, 2),
        "limit": SPEEDUP,
        "met": speedup >= SPEEDUP,
    }


def _working_s(builds: list[BuildResult]) -> float:
    """What all nodes took, those that targets share once."""
    stages = {stage.key: stage for build in builds for part in build.components for stage in part.stages}
    return sum(stage.seconds or 0.0 for stage in stages.values())


if __name__ == "__main__":
    print(json.dumps(run(tuple(sys.argv[1:]) or ("planning", "warm", "parallel")), indent=2))
