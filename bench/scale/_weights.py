"""Rows about big weights."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np

from bench.scale._bare import HASH, INT4, OPTIMIZE
from bench.scale._models import heavy
from bench.scale._places import Cost, Place, Row, beside, bytes_in, in_turns, place


def external(megabytes: int = 2400) -> Row:
    """fp32 build of a model whose weights are in a file of their own."""
    with place() as here:
        model = heavy(here.folder / "model.onnx", megabytes, external=True, width=4096)
        size = bytes_in(here.folder)
        optimized = here.folder / "optimized.onnx", here.folder / "optimized.data"

        def alone() -> Cost:
            for file in optimized:
                file.unlink(missing_ok=True)
            return here.bare(OPTIMIZE, model, optimized[0], "external")

        # What the kernel charges for pages of gigabytes differs by a third from one run to the next.
        bare, ours = in_turns(alone, lambda: _for_targets(here, model, "cpu"), 3)
        written = sum(file.stat().st_size for file in optimized)
        warm = here.wright("build", model, "--target", "cpu", "-o", here.folder / "out")
        hashed = here.bare(HASH, model, model.with_suffix(".data"))
        return {
            "model_bytes": size, **beside(ours, bare), "sha256_cpu_s": round(hashed.cpu_s, 2),
            "stored_bytes": here.stored(), "bare_bytes": written, "stored_ratio": round(here.stored() / written, 3),
            "peak_of_model": round(ours.held_bytes / size, 3),
            "warm_cpu_s": round(warm.cpu_s, 2),
            "limits": {"cpu_ratio": 1.3, "stored_ratio": 1.05, "peak_of_model": 0.6, "warm_cpu_s": 0.6},
        }  # fmt: skip


TARGETS = ("cpu", "openvino-cpu", "openvino-gpu", "openvino-npu", "dml-gpu", "cuda-gpu", "qnn-npu", "webgpu-gpu")


def eight(megabytes: int = 200) -> Row:
    """Eight targets in one command with `--shared`, beside the dearest of them alone."""
    with place() as here:
        model = heavy(here.folder / "model.onnx", megabytes)
        alone: dict[str, Cost] = {}
        sizes: dict[str, int] = {}
        for target in TARGETS:
            alone[target] = _for_targets(here, model, target)
            sizes[target] = bytes_in(here.folder / "out")
        dearest = max(alone, key=lambda target: alone[target].cpu_s)
        alone[dearest], ours = in_turns(
            lambda: _for_targets(here, model, dearest), lambda: _for_targets(here, model, *TARGETS), 3
        )
        return {
            **{f"{target}_cpu_s": round(cost.cpu_s, 2) for target, cost in alone.items()},
            "dearest": dearest, "ours_cpu_s": round(ours.cpu_s, 2),
            "cpu_ratio": round(ours.cpu_s / alone[dearest].cpu_s, 2),
            "largest_bytes": max(sizes.values()), "written_bytes": bytes_in(here.folder / "out"),
            "bytes_ratio": round(bytes_in(here.folder / "out") / max(sizes.values()), 3),
            "limits": {"cpu_ratio": 1.25, "bytes_ratio": 1.3},
        }  # fmt: skip


def _for_targets(here: Place, model: Path, *targets: str) -> Cost:
    """Into an empty store and a new folder."""
    here.forget()
    shutil.rmtree(here.folder / "out", ignore_errors=True)
    words = [word for target in targets for word in ("--target", target)]
    shared = ["--shared"] if len(targets) > 1 else []
    return here.wright("build", model, *words, *shared, "-o", here.folder / "out")


def streams(megabytes: int = 1400) -> Row:
    """What a plan says of the peak, and what it is, where weights are changed one after the other; the same of `debug`,
    which says it before it compares."""
    found: Row = {"limits": {"off": 0.2, "peak_of_model": 0.34}}
    for precision in ("fp32", "fp16", "int4", "w8a8"):
        with place() as here:
            static = precision == "w8a8"
            model = heavy(here.folder / "model.onnx", megabytes, external=True, width=4096, biases=static)
            words = ["build", model, "--target", "cpu", "--precision", precision]
            # With real samples biases are corrected too.
            words += ["--data", _rows(here.folder / "rows")] if static else []
            planned = here.answer(*words, "--plan")["plans"][0]["peak"]["held_bytes"]
            size, cost = bytes_in(here.folder), here.wright(*words, "-o", here.folder / "out")
            found[precision] = _peak(planned, cost, size)
            if static:
                told = here.folder / "debug.json"
                cost = here.wright("debug", here.folder / "out", "--reference", model, "--save", told)
                found["debug of w8a8"] = _peak(json.loads(told.read_text())["planned_bytes"], cost, size)
    kinds = [row for name, row in found.items() if name != "limits"]
    return {**found, **{name: max(row[name] for row in kinds) for name in ("off", "peak_of_model")}}


def _rows(folder: Path, count: int = 8, width: int = 4096) -> Path:
    folder.mkdir()
    for index in range(count):
        np.savez(folder / f"{index}.npz", x=np.random.default_rng(index).standard_normal((4, width), dtype=np.float32))
    return folder


def _peak(planned: int, cost: Cost, size: int) -> Row:
    return {
        "planned_bytes": planned, "held_bytes": cost.held_bytes, "model_bytes": size,
        "cpu_s": round(cost.cpu_s, 2), "off": round(abs(planned - cost.held_bytes) / cost.held_bytes, 3),
        "peak_of_model": round(cost.held_bytes / size, 3),
    }  # fmt: skip


def int4(megabytes: int = 500) -> Row:
    """Few layers, so that 4 bits keep it near enough for its gate."""
    with place() as here:
        model = heavy(here.folder / "model.onnx", megabytes, width=4096)
        bare = here.bare(INT4, model, here.folder / "int4.onnx")
        words = ("quantize", model, "--precision", "int4", "-o", here.folder / "out")
        ours = here.wright(*words)
        memory = round(ours.held_bytes / bare.held_bytes, 2)
        return {**beside(ours, bare), "memory_ratio": memory, "limits": {"cpu_ratio": 1.1, "memory_ratio": 0.5}}
