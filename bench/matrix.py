"""Many models for many targets: what is shared, what it costs, and whether all of it comes back.

- `published`: a tiny model of each of the first 12 families of `bench.families` whose answers 8-bit weights could keep
  (`bench/_margin.py`: a control without anything of ours; what it passes over is listed), for the 8 default targets,
  into a real OCI registry on loopback. Every package is pulled into an empty folder with an empty store, checked,
  loaded and run (on this CPU: the other chips are not here). What is not published is listed with its class and why.
  Bytes in the registry and in the store stand beside what separate builds write.
- `one_model`: CPU seconds and bytes of a ResNet-50 for the 8 targets, beside single targets: the two that it is
  quantized for, and one of the other six, whose stages are the same.
- `workers`: wall time of 24 builds with 1 and with 2 workers. Only a quiet machine answers that.
- `simulated`: CPU seconds to plan 10,000 models for 8 targets, and of a new process that goes on with a run of all of
  them that is done.

`python -m bench.matrix PART …` measures those parts and keeps what is known of the others.
"""

from __future__ import annotations

import dataclasses
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort

import modelwright as mw
from bench._margin import lost_by_rounding
from bench.build_cost import measure
from bench.families import FAMILIES, Family
from bench.nets import layers
from bench.plans import EIGHT
from bench.plans import _tiny as tiny
from bench.written import read, write
from modelwright import farm
from modelwright.farm.feeds import PackageQuery, open_feed, pull
from modelwright.models import BuildFolder, check_build, read_build
from modelwright.store import Store

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from support.registry import registry

TWELVE = 12
SAMPLES = 40
SINGLE = ("qnn-npu", "openvino-npu", "cpu")
CPU_RATIO, BYTES_RATIO = 1.6, 2.5
BUILDS, WORKER_ROUNDS, SPEEDUP = 24, 3, 1.7
MODELS, PLANNING_S, RESUMING_S = 10_000, 60.0, 10.0
GO_ON = """
import sys
import modelwright as mw
done = mw.matrix(sys.argv[1])
sys.exit(done.totals.stages or dict(done.counts) != {"validated": int(sys.argv[2])} and 3)
"""
WRIGHT = str(Path(sys.executable).with_name("wright"))


def run(parts: tuple[str, ...] = ("published", "one_model", "workers", "simulated")) -> dict[str, Any]:
    known = {"published": published, "one_model": one_model, "workers": workers, "simulated": simulated}
    result = {part: found for part, found in read("matrix").items() if part in known}
    for part in parts:
        with tempfile.TemporaryDirectory(prefix="bench-matrix-") as folder:
            result[part] = known[part](Path(folder))
        write("matrix", {**result, "met": _met(result)})
    return {**result, "met": _met(result)}


def _met(result: Mapping[str, Any]) -> bool:
    return all(part["met"] for part in result.values())


def published(folder: Path) -> dict[str, Any]:
    rows, passed_over = _rows(folder)
    with registry(folder / "registry") as host, Store(folder / "home/store") as store:
        feed = open_feed(f"oci://{host}/team")
        done = mw.matrix(rows, to=feed, store=store)
        kept = _size(folder / "registry/data")
        odd = {f"{one.cell.model} {one.cell.target}": _why(one) for one in done if one.state != "published"}
        with Store(folder / "elsewhere/store") as empty:
            back = [_comes_back(feed, one, folder / "back", empty, number) for number, one in enumerate(done)]
    stages = dict(done.totals.stages)
    parts = [done.cells[start : start + len(EIGHT)] for start in range(0, len(done), len(EIGHT))]
    whole = [part[0].cell.model for part in parts if {one.state for one in part} == {"published"}]
    return {
        "models": [Path(row["model"]).name for row in rows],
        "passed_over": passed_over,
        "models_for_all_targets": len(whole),
        "targets": len(EIGHT),
        "cells": len(done),
        "published": sum(one.state == "published" for one in done),
        "not_published": odd,
        "pulled_loaded_and_run": sum(back),
        "stages_run": stages,
        "exports": stages.get("export", 0),
        "bytes": {
            "in_the_registry": kept,
            "in_the_store": done.disk.kept if done.disk else None,
            "of_separate_builds": done.totals.separate_bytes,
        },
        "cpu_s": round(done.totals.cpu_seconds, 1),
        "met": not odd and sum(back) == len(done) and stages.get("export") == len(rows),
    }


def _why(status: Any) -> str:
    return (
        status.words if status.failure is None else f"{status.words}: {status.failure.problem} ({status.failure.cause})"
    )


def _rows(folder: Path) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """The first of the list, in its order, that the control lets through, and what it says about those before."""
    rows: list[dict[str, Any]] = []
    passed_over: dict[str, str] = {}
    for family in FAMILIES:
        if len(rows) == TWELVE:
            break
        family.write(folder / family.name)
        inputs = _inputs(family)
        if (lost := lost_by_rounding(folder / family.name, inputs)) is not None:
            passed_over[family.name] = f"with its weights rounded to 8 bits and nothing else: {lost}"
            continue
        data = _saved(folder, family.name, inputs)
        rows.append({"model": str(folder / family.name), "random_weights": True, "data": data})
    return rows, passed_over


def _inputs(family: Family) -> dict[str, np.ndarray]:
    """Pictures of the size that its configuration names, or words of its vocabulary."""
    if "vocab_size" in family.config:
        words = np.random.default_rng(0).integers(3, family.config["vocab_size"], (SAMPLES, 64))
        ones = np.ones_like(words)
        kinds = {"token_type_ids": 0 * ones} if family.model_type == "bert" else {}
        return {"input_ids": words, "attention_mask": ones, **kinds}
    cut = family.processor.get("crop_size") or family.processor.get("size", {})
    size = family.config.get("image_size", [cut.get("height", 32), cut.get("width", 32)])
    sides = size if isinstance(size, list) else [size, size]
    return {"pixel_values": np.stack([_picture(seed, *sides) for seed in range(SAMPLES)])}


def _saved(folder: Path, name: str, inputs: Mapping[str, np.ndarray]) -> str:
    path = folder / f"{name}-data.npz"
    np.savez(path, **inputs)
    return str(path)


def _comes_back(feed: Any, status: Any, folder: Path, store: Store, number: int) -> bool:
    cell, place = status.cell, folder / str(number)
    if status.state != "published":
        return False
    pull(feed, PackageQuery(cell.model, cell.target, status.facts.precision), place, store=store)
    return check_build(place).whole and all(_runs(read_build(place), part.model) for part in read_build(place).parts)


def _runs(build: BuildFolder, model: str) -> bool:
    session = ort.InferenceSession(str(build.path / model), providers=["CPUExecutionProvider"])
    kinds = {"tensor(float)": np.float32, "tensor(int64)": np.int64, "tensor(float16)": np.float16}
    sized = {one.name: [size if isinstance(size, int) else 1 for size in one.shape] for one in session.get_inputs()}
    fed = {one.name: np.ones(sized[one.name], kinds[one.type]) for one in session.get_inputs()}
    return all(np.isfinite(found).all() for found in session.run(None, fed))


def one_model(folder: Path) -> dict[str, Any]:
    """A ResNet-50 from its configuration, with pictures to calibrate and judge with. White noise would do for neither:
    what comes out of an untrained network is then all but the same for every sample, and its gate refuses that."""
    family = next(family for family in FAMILIES if family.name == "resnet")
    source = folder / "resnet50"
    source.mkdir()
    config = {"architectures": [family.architecture], "model_type": "resnet", "num_labels": 1000}
    (source / "config.json").write_text(json.dumps(config))
    data = _saved(folder, "pixels", {"pixel_values": np.stack([_picture(seed) for seed in range(16)])})
    rows = folder / "models.json"
    rows.write_text(json.dumps([{"model": str(source), "random_weights": True, "data": data}]))
    together = _cost(folder, rows, "together", list(EIGHT))
    alone = {name: _cost(folder, rows, name, [name]) for name in SINGLE}
    dearest = max(SINGLE, key=lambda name: alone[name]["cpu_s"])
    largest = max(SINGLE, key=lambda name: alone[name]["bytes"])
    cpu, size = together["cpu_s"] / alone[dearest]["cpu_s"], together["bytes"] / alone[largest]["bytes"]
    return {
        "together": together,
        "alone": alone,
        "dearest": dearest,
        "cpu_ratio": round(cpu, 2),
        "cpu_limit": CPU_RATIO,
        "bytes_ratio": round(size, 2),
        "bytes_limit": BYTES_RATIO,
        "met": cpu <= CPU_RATIO and size <= BYTES_RATIO,
    }


def _picture(seed: int, height: int = 224, width: int = 224) -> np.ndarray:
    """Areas of four sizes, in a contrast and with colours of its own."""
    draw, found = np.random.default_rng(seed), np.zeros((3, height, width))
    for parts in (4, 8, 28, 112):
        side = -(-max(height, width) // parts)
        found += np.kron(draw.standard_normal((3, parts, parts)), np.ones((side, side)))[:, :height, :width]
    return (found * draw.uniform(0.2, 1.2) + draw.uniform(-1, 1, (3, 1, 1))).astype(np.float32)


def _cost(folder: Path, rows: Path, name: str, targets: list[str]) -> dict[str, float]:
    """Of a matrix run as a person types it: CPU seconds of all its processes, and what the feed then holds."""
    home, feed = folder / f"home-{name}", folder / f"feed-{name}"
    words = [word for target in targets for word in ("--target", target)]
    command = [WRIGHT, "matrix", "run", str(rows), *words, "--to", str(feed), "--unjudged", "-q"]
    cpu = measure(command, {"MODELWRIGHT_HOME": str(home)})["cpu_s"]
    with Store(home / "store", read_only=True) as store:
        found = mw.matrix_status(store=store)
    if {one.state for one in found} != {"published"}:
        raise RuntimeError(f"not everything was published: {[_why(one) for one in found if one.failure]}")
    return {"cpu_s": round(cpu, 1), "bytes": _size(feed)}


def workers(folder: Path) -> dict[str, Any]:
    """Models that share nothing, quantized, in fresh stores, in alternating order."""
    draw = np.random.default_rng(0)
    data = _saved(folder, "data", {"x": draw.standard_normal((SAMPLES, 16, 256)).astype(np.float32)})
    made = [layers(folder / f"m{number}.onnx", 8 + number, width=256) for number in range(BUILDS)]
    rows = [{"model": str(path), "precision": "w8a8", "data": data} for path in made]
    took: dict[int, list[float]] = {1: [], 2: []}
    for number in range(WORKER_ROUNDS):
        for count in sorted(took, reverse=bool(number % 2)):
            with Store(folder / f"{number}-{count}/store") as store:
                began = time.perf_counter()
                done = mw.matrix(rows, "cpu", workers=count, store=store)
                took[count].append(time.perf_counter() - began)
            if len(done) != BUILDS or {one.state for one in done} - {"validated"}:
                raise RuntimeError(f"not everything was built: {done.counts}")
    best = {count: statistics.median(found) for count, found in took.items()}
    speedup = best[1] / best[2]
    return {
        "builds": BUILDS,
        "cores": len(os.sched_getaffinity(0)),
        "seconds": {str(count): [round(value, 2) for value in found] for count, found in took.items()},
        "speedup": round(speedup, 2),
        "limit": SPEEDUP,
        "met": speedup >= SPEEDUP,
    }


def simulated(folder: Path) -> dict[str, Any]:
    """Nothing is built: the ledger is told that everything was."""
    (folder / "models").mkdir()
    rows = [str(tiny(folder / "models", number)) for number in range(MODELS)]
    listed, home = folder / "models.json", {"MODELWRIGHT_HOME": str(folder / "home")}
    listed.write_text(json.dumps(rows))
    with Store(folder / "home/store") as store:
        began = time.process_time()
        plan = mw.matrix_plan(listed, store=store)
        planning_s = time.process_time() - began
        _pretend(plan, store)
    # The first notes what was asked for and what the models are, as a run that is gone on with has done.
    for _ in range(2):
        resuming_s = measure([sys.executable, "-c", GO_ON, str(listed), str(len(plan.cells))], home)["cpu_s"]
    return {
        "models": MODELS,
        "cells": len(plan.cells),
        "planning_cpu_s": round(planning_s, 1),
        "planning_limit_s": PLANNING_S,
        "resuming_cpu_s": round(resuming_s, 1),
        "resuming_limit_s": RESUMING_S,
        # One process on one core: what it waits for others on a busy machine is not its cost.
        "met": planning_s <= PLANNING_S and resuming_s <= RESUMING_S,
    }


def _pretend(plan: Any, store: Store) -> None:
    said = dict.fromkeys(field.name for field in dataclasses.fields(farm.CellFacts))
    known = {"key": "0" * 64, "digest": "0" * 64, "bytes": 1, "precision": "fp32", "gate": True, "simulated": False}
    spent = {"compiled": False, "seconds": 1.0, "cpu_seconds": 1.0, "ran": 1, "reused": 0, "evidence": ()}
    facts = farm.CellFacts(**{**said, **known, **spent, "machines": ()})
    ledger = store.ledger()
    statuses = (farm.CellStatus(one.cell, "validated", facts=facts, attempt=1) for one in plan.cells)
    ledger.append_all((status.cell.id, "validated", status.note) for status in statuses)
    ledger.close()


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file() and not path.is_symlink())


if __name__ == "__main__":
    print(json.dumps(run(tuple(sys.argv[1:])), indent=2))
