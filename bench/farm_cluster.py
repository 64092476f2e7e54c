"""Twelve models for eight targets on a cluster of three worker processes, one of them killed in the middle of a stage.

The same matrix on this machine alone is what it is held against: the same content of every build, as many runs of
every stage, and no result that two machines made. Only one worker announces QNN. `overhead_ms` is the CPU time that the
cluster costs for each node: of the driver, the scheduler and the workers together, without the children that do the
work, and without what the driver alone takes for the same matrix. What scheduler and workers take by being there,
measured before, is taken off.
"""

from __future__ import annotations

import concurrent.futures
import json
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import numpy as np
import psutil
from onnx import helper

import modelwright as mw
from modelwright.farm import MatrixResult
from modelwright.store import Key, Store

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from support.lab import Lab, until
from support.models import mlp, model, save, value, weight

MACHINES: dict[str, tuple[str, ...]] = {"left": (), "right": (), "xelite": ("qnn-npu", "qnn-gpu")}
LIMIT_MS = 50.0
_BEFORE_THE_KILL = 12
_IDLE_S = 10.0


def run(models: int = 12) -> dict[str, object]:
    with tempfile.TemporaryDirectory(prefix="farm-cluster-") as folder:
        base = Path(folder)
        rows = _rows(base, models)
        before = time.process_time()
        with Store(base / "near" / "store") as near:
            alone = mw.matrix(rows, store=near)
        alone_s = time.process_time() - before
        with Lab(base / "lab", MACHINES) as lab:
            idle = _idle(lab)
            together, there = _together(lab, rows, base / "far")
            made = lab.made()
        same = _digests(together, base / "far") == _digests(alone, base / "near")
    nodes = sum(together.totals.stages.values()) if together.totals else 0
    taken = there["driver"] - alone_s + sum(there[name] for name in there if name not in ("driver", "seconds"))
    overhead = 1000 * (taken - idle * there["seconds"]) / nodes
    twice = [key for key, count in sum(made.values(), Counter()).items() if count > 1]
    asked = sorted(name for name, held in made.items() if any(stage == "check" for stage, _ in held))
    assert alone.totals is not None
    assert together.totals is not None
    missed = [one.cell.target for one in together if one.state != "validated"]
    met = same and not twice and not missed and together.totals.stages == alone.totals.stages and overhead < LIMIT_MS
    return {
        "what": __doc__.partition("\n")[0],
        "cells": len(together),
        "counts": dict(together.counts),
        "nodes": nodes,
        "stages": dict(together.totals.stages),
        "stages_alone": dict(alone.totals.stages),
        "same_digests": same,
        "made_twice": len(twice),
        "made_by": {name: sum(held.values()) for name, held in made.items()},
        "machines_with_checks": asked,
        "seconds": round(there["seconds"], 1),
        "cpu_s": {name: round(took, 2) for name, took in (there | {"alone": alone_s}).items() if name != "seconds"},
        "idle_cpu_s_per_s": round(idle, 4),
        "overhead_ms": round(overhead, 1),
        "limit_ms": LIMIT_MS,
        "met": met,
    }


def _together(lab: Lab, rows: list[dict[str, str]], home: Path) -> tuple[MatrixResult, dict[str, float]]:
    """The matrix with one kill in it, and the CPU seconds of every process that does no stage itself."""
    began, here, there = time.monotonic(), time.process_time(), _taken(lab)
    with Store(home / "store") as far, concurrent.futures.ThreadPoolExecutor(1) as pool:
        asked = pool.submit(mw.matrix, rows, scheduler=lab.address, tls=lab.tls, store=far)
        until(lambda: asked.done() or len(far.entries()) > _BEFORE_THE_KILL, 900)
        until(lambda: asked.done() or lab.is_making("left"), 900)
        there["left"] -= _taken(lab)["left"]  # what it took until its end, counted the other way round
        lab.kill("left")
        result = asked.result()
    after = _taken(lab)
    found = {name: after[name] - there[name] for name in after} | {"left": -there["left"]}
    return result, {**found, "driver": time.process_time() - here, "seconds": time.monotonic() - began}


def _taken(lab: Lab) -> dict[str, float]:
    """CPU seconds of the processes themselves, without their children."""
    found = {}
    for name, process in lab.processes.items():
        if process.poll() is None:
            times = psutil.Process(process.pid).cpu_times()
            found[name] = times.user + times.system
    return found


def _idle(lab: Lab) -> float:
    """CPU seconds per second of all of them together, with nothing to do."""
    before = sum(_taken(lab).values())
    time.sleep(_IDLE_S)
    return (sum(_taken(lab).values()) - before) / _IDLE_S


def _digests(result: MatrixResult, folder: Path) -> dict[str, dict[str, str]]:
    """Of every file of every build but the manifest, which says how long it took."""
    with Store(folder / "store", read_only=True) as store:
        found = {}
        for one in result:
            made = None if one.facts is None else store.get(Key(one.facts.key, "build"))
            if made is not None:
                found[one.cell.id] = {file.name: file.digest for file in made.files if file.name != "wright.json"}
        return found


def _rows(folder: Path, count: int) -> list[dict[str, str]]:
    rng, rows = np.random.default_rng(0), []
    for number in range(count):
        images = number % 2 == 0
        shape = (3, 8, 8) if images else (4,)
        np.savez(folder / f"m{number}.npz", x=rng.standard_normal((40, *shape)).astype(np.float32))
        place = save(_net(number) if images else mlp(8 + number), folder, f"m{number}.onnx")
        rows.append({"model": str(place), "data": str(folder / f"m{number}.npz")})
    return rows


def _net(number: int) -> object:
    nodes = [
        helper.make_node("Conv", ["x", "k"], ["c"], kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("GlobalAveragePool", ["r"], ["y"]),
    ]
    image, pooled = value("x", shape=[1, 3, 8, 8]), value("y", shape=[1, 4, 1, 1])
    return model(nodes, [image], [pooled], [weight("k", 4, 3, 3, 3, seed=number)])


if __name__ == "__main__":
    print(json.dumps(run(), indent=2))
