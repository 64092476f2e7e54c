"""A compiled model counts when it opens on its own EP, runs, and gives finite numbers."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from modelwright._dataclass import dataclass
from modelwright._lazy import lazy
from modelwright.data import generate
from modelwright.errors import ExecutionError
from modelwright.graph import Graph
from modelwright.models import specs_from_graph
from modelwright.targets import BoundSession, SessionFacts, SessionSpec, SessionTensor, Target, open_session
from modelwright.vocabulary import InputSpec

if TYPE_CHECKING:
    import numpy as np
else:
    np = lazy("numpy")

_SEED = 20_240_229


@dataclass(frozen=True)
class CompileCheck:
    facts: SessionFacts
    ran: bool
    run_s: float | None
    reason: str | None


def check(graph: Graph, target: Target, spec: SessionSpec, limit_s: float, inputs: InputSpec = ()) -> CompileCheck:
    """Open and run. Only a simulator may be too slow to end: then `reason` says so."""
    session = open_session(str(graph.path), target, spec)
    limit = limit_s if session.facts.simulated else None
    recorded = generate(specs_from_graph(graph, recorded=inputs), _SEED) if inputs else None
    run = _CheckRun(session, recorded or seeded_inputs(session.inputs))
    run.start()
    run.join(limit)
    if run.is_alive():
        # The native call cannot be stopped; the session stays open for it and dies with the process.
        return CompileCheck(session.facts, False, None, f"the simulated run did not end within {limit_s:g} s")
    session.close()
    if run.error is not None:
        raise run.error
    _require_finite(run.outputs, target)
    return CompileCheck(session.facts, True, run.seconds, None)


def seeded_inputs(specs: tuple[SessionTensor, ...]) -> dict[str, np.ndarray]:
    """Normal floats; ones for integers and flags, which are valid as ids, lengths and masks alike."""
    generator = np.random.default_rng(_SEED)
    return {spec.name: _values(spec, generator) for spec in specs}


class _CheckRun(threading.Thread):
    """One run beside the caller, who may stop waiting for it."""

    def __init__(self, session: BoundSession, feeds: Mapping[str, Any]) -> None:
        super().__init__(daemon=True)
        self.outputs: dict[str, np.ndarray] = {}
        self.error: BaseException | None = None
        self.seconds = 0.0
        self._session = session
        self._feeds = feeds

    def run(self) -> None:
        started = time.perf_counter()
        try:
            self.outputs = self._session.run(self._feeds)
        except BaseException as error:  # noqa: BLE001 - handed to the thread that waits, which raises it
            self.error = error
        self.seconds = time.perf_counter() - started


def _values(spec: SessionTensor, generator: np.random.Generator) -> np.ndarray:
    shape = [dim if isinstance(dim, int) else 1 for dim in spec.shape]
    if spec.dtype.startswith(("float", "bfloat")):
        return generator.standard_normal(shape).astype(spec.dtype)
    return np.ones(shape, dtype=spec.dtype)


def _require_finite(outputs: Mapping[str, np.ndarray], target: Target) -> None:
    for name, value in outputs.items():
        if np.issubdtype(value.dtype, np.floating) and not np.isfinite(value).all():
            broken = int(value.size - np.isfinite(value).sum())
            raise ExecutionError(
                f"the model compiled for {target} gives no numbers",
                cause=f"{broken} of {value.size} values of output '{name}' are NaN or infinite",
                fix="run the uncompiled model on the same inputs; a range may be too wide for the target",
            )
