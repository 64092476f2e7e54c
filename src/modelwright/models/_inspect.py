"""What is inside a model, and what two models do not share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from modelwright._dataclass import dataclass
from modelwright._json import plain
from modelwright.errors import WrightError
from modelwright.graph import (
    Graph,
    Macs,
    ModelDifference,
    ModelSummary,
    StoredWeight,
    ValueSpec,
    count_macs,
    difference,
    fingerprint,
    load,
    stored_weights,
    summary,
)
from modelwright.models._resolve import onnx_of
from modelwright.vocabulary import Result
from modelwright.worker import run, task

_BIGGEST = 10
_INFER_S = 120.0


@dataclass(frozen=True)
class Inspection(Result):
    """The fingerprint is the same for two files that hold the same graph and weights. `biggest` are the largest stored
    tensors."""

    kind: ClassVar[str] = "inspect"

    fingerprint: str
    model: ModelSummary
    macs: Macs
    biggest: tuple[StoredWeight, ...]

    def content(self) -> dict[str, Any]:
        own = {"fingerprint": self.fingerprint, "macs": plain(self.macs), "biggest": plain(self.biggest)}
        return {**plain(self.model), **own}


@dataclass(frozen=True)
class PairInspection(Result):
    """`same`: the graphs and all weights are equal, whatever their names and layout."""

    kind: ClassVar[str] = "inspect"

    same: bool
    first: Inspection
    second: Inspection
    difference: ModelDifference

    def content(self) -> dict[str, Any]:
        sides = {"first": self.first.content(), "second": self.second.content()}
        return {"same": self.same, **sides, "difference": plain(self.difference)}


def inspect(model: str | Path, component: str | None = None, dims: Mapping[str, int] | None = None) -> Inspection:
    """Read the model; weights in external files are checked and hashed, never loaded. `dims` are sizes of dynamic
    dimensions, for counting what a run costs."""
    return _inspect(model, load(onnx_of(model, component)), dims or {})


def inspect_pair(
    first: str | Path,
    second: str | Path,
    component: str | None = None,
    dims: Mapping[str, int] | None = None,
) -> PairInspection:
    graphs = load(onnx_of(first, component)), load(onnx_of(second, component))
    mine, theirs = (_inspect(name, graph, dims or {}) for name, graph in zip((first, second), graphs, strict=True))
    found = difference(mine.model, theirs.model, (stored_weights(graphs[0]), stored_weights(graphs[1])))
    return PairInspection(mine.fingerprint == theirs.fingerprint, mine, theirs, found)


def _inspect(name: str | Path, graph: Graph, dims: Mapping[str, int]) -> Inspection:
    """Under the name the user gave it."""
    found = replace(summary(graph), path=Path(name))
    biggest = stored_weights(graph)[:_BIGGEST]
    return Inspection(fingerprint(graph), found, _macs(graph, found.inputs, dims), biggest)


def _macs(graph: Graph, inputs: tuple[ValueSpec, ...], dims: Mapping[str, int]) -> Macs:
    """From what the model declares; where that does not do, from shapes inferred in a child."""
    declared = count_macs(graph)
    if not declared.shapes_missing:
        return declared
    loose = [dim for value in inputs for dim in value.shape or (None,) if not isinstance(dim, int) and dim not in dims]
    if loose:
        # Nothing could be inferred that does not depend on it.
        why = "a dimension of an input is not known" if loose[0] is None else f"the dimension {loose[0]} is not fixed"
        return _without_shapes(declared, why)
    try:
        return run(inferred_macs.call(str(graph.path), dict(dims)), timeout=_INFER_S, size=graph.file_bytes).unwrap()
    except WrightError as error:
        words = f"the shapes around it are not known, and inferring them failed: {error.cause or error.problem}"
        return _without_shapes(declared, words)


def _without_shapes(declared: Macs, why: str) -> Macs:
    return replace(declared, uncounted=tuple(replace(item, reason=why) for item in declared.uncounted))


@task
def inferred_macs(path: str, dims: Mapping[str, int]) -> Macs:
    return count_macs(load(path), dims, infer=True)
