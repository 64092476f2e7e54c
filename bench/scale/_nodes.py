"""Rows about many nodes."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

from bench.scale._bare import OPEN, OPTIMIZE, PLACE, QUANTIZE
from bench.scale._models import long
from bench.scale._places import Cost, Place, Row, beside, in_turns, place

# onnxruntime's own quantizer takes longer on 10,000 nodes: this decides, and nobody waits for the rest.
_DECIDES_S = 240


def nodes(name: str, limit: float) -> Row:
    """The same work on 1,000 and on 10,000 nodes."""
    sizes: Row = {}
    for count in (1_000, 10_000):
        with place() as here:
            sizes[str(count)] = _ON_NODES[name](here, long(here.folder / "model.onnx", count))
    growth = sizes["10000"]["ours_cpu_s"] / sizes["1000"]["ours_cpu_s"]
    # Of what the gate's sessions take, which nobody but onnxruntime can make less.
    own = [row["ours_cpu_s"] - row.get("opening_cpu_s", 0.0) for row in (sizes["10000"], sizes["1000"])]
    found = {"growth": round(growth, 1), "growth_without_opening": round(own[0] / own[1], 1)}
    return {**sizes, "cpu_ratio": sizes["10000"]["cpu_ratio"], **found, "limits": {"cpu_ratio": limit, "growth": 12}}


def _optimize(here: Place, model: Path) -> Row:
    bare, ours = in_turns(
        lambda: here.bare(OPTIMIZE, model, here.folder / "optimized.onnx", "inside"),
        lambda: here.wright("optimize", model, "-o", _nowhere(here)),
    )
    return beside(ours, bare)


def _quantize(here: Place, model: Path) -> Row:
    """The bare call once: it takes minutes, and what it says is not close."""
    bare = here.bare(QUANTIZE, model, here.folder / "quantized.onnx", longest_s=_DECIDES_S)
    words = ("quantize", model, "--precision", "w8a8", "--samples", 4)
    runs = [here.wright(*words, "-o", _nowhere(here), good=(0, 1)) for _ in range(3)]
    ours = min(runs, key=lambda cost: cost.cpu_s)
    here.bare(OPEN, here.folder / "out/model.onnx")
    return {**beside(ours, bare), "opening_cpu_s": round(float((here.folder / "log.txt").read_text()), 2)}


def _nowhere(here: Place) -> Path:
    """A folder that is not there, and a store that knows nothing."""
    here.forget()
    shutil.rmtree(here.folder / "out", ignore_errors=True)
    return here.folder / "out"


def _analyze(here: Place, model: Path) -> Row:
    bare, ours = in_turns(lambda: here.bare(PLACE, model), lambda: _placed(here, model))
    return beside(ours, bare)


def _placed(here: Place, model: Path) -> Cost:
    here.forget()
    return here.wright("analyze", model, "--target", "cpu", good=(0, 1))


_ON_NODES: Mapping[str, Callable[[Place, Path], Row]] = {
    "optimize": _optimize,
    "quantize": _quantize,
    "analyze": _analyze,
}
