"""Rows about many nodes."""

from __future__ import annotations

import shutil
import statistics
from collections.abc import Callable, Mapping
from pathlib import Path

from bench.scale._bare import OPTIMIZE, PLACE, QUANTIZE
from bench.scale._models import long
from bench.scale._places import Cost, Place, Row, beside, place

# onnxruntime's own quantizer takes longer on 10,000 nodes: this decides, and nobody waits for the rest.
_DECIDES_S = 240
_FEW, _MANY = 1_000, 10_000
_TURNS = 5


def nodes(name: str, limit: float) -> Row:
    """The same work on 1,000 and on 10,000 nodes, bare and ours, all of it in turns; the cheapest of each counts, and
    of the growth the middle one. A bare call that takes minutes is made once."""
    bare, ours = _WORK[name]
    with place() as few, place() as many:
        places = {_FEW: few, _MANY: many}
        models = {count: long(here.folder / "model.onnx", count) for count, here in places.items()}
        costs: dict[int, list[tuple[Cost, Cost]]] = {_FEW: [], _MANY: []}
        for _ in range(_TURNS):
            for count, here in places.items():
                known = next((cost for cost, _ in costs[count] if cost.code), None)
                costs[count].append((known or bare(here, models[count]), ours(here, models[count])))
    growth = [after.cpu_s / before.cpu_s for (_, before), (_, after) in zip(*costs.values(), strict=True)]
    rows = {str(count): beside(*map(_cheapest, zip(*_turned(pairs), strict=True))) for count, pairs in costs.items()}
    found = {"cpu_ratio": rows[str(_MANY)]["cpu_ratio"], "growth": round(statistics.median(growth), 1)}
    return {**rows, **found, "growths": [round(one, 1) for one in growth], "limits": {"cpu_ratio": limit, "growth": 12}}


def _turned(pairs: list[tuple[Cost, Cost]]) -> list[tuple[Cost, Cost]]:
    return [(ours, bare) for bare, ours in pairs]


def _cheapest(costs: tuple[Cost, ...]) -> Cost:
    return min(costs, key=lambda cost: cost.cpu_s)


def _optimize_bare(here: Place, model: Path) -> Cost:
    return here.bare(OPTIMIZE, model, here.folder / "optimized.onnx", "inside")


def _optimize(here: Place, model: Path) -> Cost:
    return here.wright("optimize", model, "-o", _nowhere(here))


def _quantize_bare(here: Place, model: Path) -> Cost:
    return here.bare(QUANTIZE, model, here.folder / "quantized.onnx", longest_s=_DECIDES_S)


def _quantize(here: Place, model: Path) -> Cost:
    words = ("quantize", model, "--precision", "w8a8", "--samples", 4)
    return here.wright(*words, "-o", _nowhere(here), good=(0, 1))


def _analyze_bare(here: Place, model: Path) -> Cost:
    return here.bare(PLACE, model)


def _analyze(here: Place, model: Path) -> Cost:
    here.forget()
    return here.wright("analyze", model, "--target", "cpu", good=(0, 1))


def _nowhere(here: Place) -> Path:
    """A folder that is not there, and a store that knows nothing."""
    here.forget()
    shutil.rmtree(here.folder / "out", ignore_errors=True)
    return here.folder / "out"


Work = Callable[[Place, Path], Cost]
_WORK: Mapping[str, tuple[Work, Work]] = {
    "optimize": (_optimize_bare, _optimize),
    "quantize": (_quantize_bare, _quantize),
    "analyze": (_analyze_bare, _analyze),
}
