"""Rows about many nodes."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

from bench.scale._bare import OPEN, OPTIMIZE, PLACE, QUANTIZE
from bench.scale._models import long
from bench.scale._places import Place, Row, beside, place

# onnxruntime's own quantizer takes longer on 10,000 nodes: this decides, and nobody waits for the rest.
_DECIDES_S = 240


def nodes(name: str, limit: float) -> Row:
    """The same work on 1,000 and on 10,000 nodes; the smaller one, which is soon over, the cheapest time of three."""
    sizes: Row = {}
    for count, times in ((1_000, 3), (10_000, 1)):
        with place() as here:
            model = long(here.folder / "model.onnx", count)
            rows = [_ON_NODES[name](here, model) for _ in range(times)]
            sizes[str(count)] = min(rows, key=lambda row: row["ours_cpu_s"])
    growth = sizes["10000"]["ours_cpu_s"] / sizes["1000"]["ours_cpu_s"]
    # Of what the gate's sessions take, which nobody but onnxruntime can make less.
    own = [row["ours_cpu_s"] - row.get("opening_cpu_s", 0.0) for row in (sizes["10000"], sizes["1000"])]
    found = {"growth": round(growth, 1), "growth_without_opening": round(own[0] / own[1], 1)}
    return {**sizes, "cpu_ratio": sizes["10000"]["cpu_ratio"], **found, "limits": {"cpu_ratio": limit, "growth": 12}}


def _optimize(here: Place, model: Path) -> Row:
    bare = here.bare(OPTIMIZE, model, here.folder / "optimized.onnx", "inside")
    return beside(here.wright("optimize", model, "-o", _nowhere(here)), bare)


def _quantize(here: Place, model: Path) -> Row:
    bare = here.bare(QUANTIZE, model, here.folder / "quantized.onnx", longest_s=_DECIDES_S)
    words = ("quantize", model, "--precision", "w8a8", "--samples", 4, "-o", _nowhere(here))
    ours = here.wright(*words, good=(0, 1))
    here.bare(OPEN, here.folder / "out/model.onnx")
    return {**beside(ours, bare), "opening_cpu_s": round(float((here.folder / "log.txt").read_text()), 2)}


def _nowhere(here: Place) -> Path:
    """A folder that is not there, and a store that knows nothing."""
    here.forget()
    shutil.rmtree(here.folder / "out", ignore_errors=True)
    return here.folder / "out"


def _analyze(here: Place, model: Path) -> Row:
    bare = here.bare(PLACE, model)
    here.forget()
    return beside(here.wright("analyze", model, "--target", "cpu", good=(0, 1)), bare)


_ON_NODES: Mapping[str, Callable[[Place, Path], Row]] = {
    "optimize": _optimize,
    "quantize": _quantize,
    "analyze": _analyze,
}
