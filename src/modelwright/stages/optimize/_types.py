"""What goes into the stage and what comes out of it."""

from __future__ import annotations

from modelwright._dataclass import dataclass
from modelwright._extensions import PASSES, extension_packages
from modelwright.stages.stage import Stage
from modelwright.worker import RemoteTask

ORT_IMPORT = "ort_import"


@dataclass(frozen=True)
class OptimizeParams:
    """The resolved request: `passes` as `resolve_passes` gives them, dimensions as (name, size) pairs."""

    passes: tuple[str, ...] = ()
    opset: int | None = None
    fix_dims: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True)
class PassEffect:
    """What one step did to the graph. `delta` holds the operators whose number changed, as (operator, difference).

    `seconds` is None for passes that shared one onnxruntime session. `problem` says what kept a
    pass from doing its work.
    """

    name: str
    fired: bool
    nodes_before: int
    nodes_after: int
    delta: tuple[tuple[str, int], ...]
    seconds: float | None
    problem: str | None = None


@dataclass(frozen=True)
class OptimizeOutcome:
    """`steps` also has what was not a pass: `fix_dims`, `metadata` (about sizes, made true again), `opset`, and
    `ort_import`, what loading and saving with onnxruntime does by itself (constants become initializers, functions
    without a CPU kernel are inlined), and `tied_weights` (a weight that folding turned is a Transpose again).
    """

    steps: tuple[PassEffect, ...]
    not_fired: tuple[str, ...]
    added: tuple[str, ...]
    host_specific: tuple[str, ...]
    nodes_before: int
    nodes_after: int
    ops_before: tuple[tuple[str, int], ...]
    ops_after: tuple[tuple[str, int], ...]
    opset: int
    session_seconds: float | None
    seconds: float


OPTIMIZE = Stage(
    name="optimize",
    version="9",
    params=OptimizeParams,
    outcome=OptimizeOutcome,
    task=RemoteTask("modelwright.stages.optimize._run:run_optimize"),
    packages=("onnxruntime", "onnx", "onnx-ir", *extension_packages(PASSES)),
    patience_s=600.0,
)
