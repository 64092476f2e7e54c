"""Rows about many nodes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from bench.scale._bare import OPTIMIZE, PLACE, QUANTIZE
from bench.scale._models import long
from bench.scale._places import Place, Row, beside, place

# onnxruntime's own quantizer takes longer on 10,000 nodes: this decides, and nobody waits for the rest.
_DECIDES_S = 240


def nodes(name: str, limit: float) -> Row:
    """The same work on 1,000 and on 10,000 nodes."""
    sizes: Row = {}
    for count in (1_000, 10_000):
        with place() as here:
            sizes[str(count)] = _ON_NODES[name](here, long(here.folder / "model.onnx", count))
    growth = sizes["10000"]["ours_cpu_s"] / sizes["1000"]["ours_cpu_s"]
    ratio = sizes["10000"]["cpu_ratio"]
    return {**sizes, "cpu_ratio": ratio, "growth": round(growth, 1), "limits": {"cpu_ratio": limit, "growth": 12}}


def _optimize(here: Place, model: Path) -> Row:
    bare = here.bare(OPTIMIZE, model, here.folder / "optimized.onnx", "inside")
    return beside(here.wright("optimize", model, "-o", here.folder / "out"), bare)


def _quantize(here: Place, model: Path) -> Row:
    bare = here.bare(QUANTIZE, model, here.folder / "quantized.onnx", longest_s=_DECIDES_S)
    words = ("quantize", model, "--precision", "w8a8", "--samples", 4, "-o", here.folder / "out")
    return beside(here.wright(*words, good=(0, 1)), bare)


def _analyze(here: Place, model: Path) -> Row:
    bare = here.bare(PLACE, model)
    return beside(here.wright("analyze", model, "--target", "cpu", good=(0, 1)), bare)


_ON_NODES: Mapping[str, Callable[[Place, Path], Row]] = {
    "optimize": _optimize,
    "quantize": _quantize,
    "analyze": _analyze,
}
