"""Rows about what a command costs whatever the model."""

from __future__ import annotations

import shutil
from pathlib import Path

from bench.scale._bare import HASH, OPTIMIZE
from bench.scale._models import heavy
from bench.scale._places import Cost, Place, Row, beside, in_turns, place


def warm() -> Row:
    found: Row = {"limits": {"50": 0.6, "450": 0.6}}
    for megabytes in (50, 450):
        with place() as here:
            model = heavy(here.folder / "model.onnx", megabytes)
            here.wright("build", model, "--target", "cpu", "-o", here.folder / "out")
            costs = [here.wright("build", model, "--target", "cpu", "-o", here.folder / "out") for _ in range(3)]
            found[str(megabytes)] = round(min(cost.cpu_s for cost in costs), 2)
    return found


def small() -> Row:
    with place() as here:
        model = heavy(here.folder / "model.onnx", 100)
        bare, ours = in_turns(
            lambda: here.bare(OPTIMIZE, model, here.folder / "optimized.onnx", "inside"), lambda: _built(here, model)
        )
        hashed = min(here.bare(HASH, model).cpu_s for _ in range(3))
        return {**beside(ours, bare), "sha256_cpu_s": round(hashed, 2), "limits": {"cpu_ratio": 2.0}}


def _built(here: Place, model: Path) -> Cost:
    """Into an empty store and a new folder: what an old one holds would be hashed before it is replaced."""
    here.forget()
    shutil.rmtree(here.folder / "out", ignore_errors=True)
    return here.wright("build", model, "--target", "cpu", "-o", here.folder / "out")
