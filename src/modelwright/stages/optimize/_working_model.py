"""The model while it is being worked on, and the record of what was done to it."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from modelwright import graph as graphs
from modelwright._lazy import lazy
from modelwright.errors import InputError
from modelwright.stages.optimize._edits import edit_of
from modelwright.stages.optimize._files import forget_origin, put_in_order
from modelwright.stages.optimize._interface import convert_opset, fix_dims, freeze_weights, true_metadata
from modelwright.stages.optimize._inventory import Snapshot, effect, every_node, snapshot
from modelwright.stages.optimize._ort import CARELESS, OrtRequest, optimize_bytes, step_aside
from modelwright.stages.optimize._table import find_pass
from modelwright.stages.optimize._tied import tie_transposed
from modelwright.stages.optimize._trace import (
    FOLDING,
    Probe,
    Trace,
    full_probe,
    probe_without_weights,
    trace,
    trace_of_log,
)
from modelwright.stages.optimize._transformers import fuse, loaded_proto
from modelwright.stages.optimize._types import OptimizeParams, PassEffect
from modelwright.stages.optimize._without_weights import WeightlessModel, with_weights, without_weights

if TYPE_CHECKING:
    import onnx
    import onnx_ir as ir
else:
    onnx = lazy("onnx")
    ir = lazy("onnx_ir")

ORT_IMPORT = "ort_import"
TIED = "tied_weights"
_INSERTED_CAST = "InsertedPrecisionFreeCast_"


class WorkingModel:
    """Holds the only reference to the model, so that its weights can go before a library loads its own.

    `folder` is where the weights are that the model leaves on disk.
    """

    def __init__(self, model: ir.Model, folder: Path) -> None:
        self._model: ir.Model | None = model
        self._folder = folder
        self.steps: list[PassEffect] = []
        self.session_seconds: float | None = None

    @property
    def model(self) -> ir.Model:
        if self._model is None:
            raise RuntimeError("the model was given away")
        return self._model

    @property
    def opset(self) -> int:
        return self.model.opset_imports.get("", 0)

    def close(self) -> None:
        """Let go of files that the model still maps into memory."""
        self._model = None

    def declare(self, params: OptimizeParams) -> None:
        """What the parameters say about the interface, before any pass sees the graph."""
        before, start = snapshot(self.model), time.perf_counter()
        if freeze_weights(self.model):
            self._note("freeze_weights", before, True, start)
        if params.fix_dims:
            before, start = snapshot(self.model), time.perf_counter()
            changed = fix_dims(self.model, dict(params.fix_dims))
            self._note("fix_dims", before, bool(changed), start)
            if true_metadata(self.model):
                self._note("metadata", before, True, start)
        if params.opset is not None:
            before, start = snapshot(self.model), time.perf_counter()
            differs = self.opset != params.opset
            if differs:
                self._model = convert_opset(self.model, params.opset)
            self._note("opset", before, differs, start)

    def run_ort(self, names: Sequence[str], scratch: Path) -> None:
        """All of them in one session; what each did is found out afterwards on a copy without weights."""
        start = time.perf_counter()
        before, request = snapshot(self.model), OrtRequest.of(names)
        # A model that onnxruntime has optimized before.
        step_aside(self.model, [name for name in self.model.graph.initializers if name.startswith(CARELESS)])
        probe = probe_without_weights(scratch, request)
        imported = probe(without_weights(self.model, scratch), ())
        if casts := _inserted_casts(imported.names):
            self._leave_out(names, before, casts)
            return
        self.steps.append(effect(ORT_IMPORT, before, imported.found, fired=before.ops != imported.found.ops))
        full, output = ir.to_proto(with_weights(imported, self.model)).SerializeToString(), scratch / "ort.onnx"
        log = scratch / "log.txt"
        large = graphs.needs_data_file(self.model)
        self._model = None
        self._model = self._optimized(full, output, request, log, large=large)
        step_aside(self._model, [name for name in self._model.graph.initializers if name not in imported.names])
        self.session_seconds = time.perf_counter() - start
        if casts := _inserted_casts(value.name or "" for node in every_node(self._model) for value in node.outputs):
            self._model = ir.from_proto(onnx.ModelProto.FromString(full))
            ir.external_data.set_base_dir(self._model.graph, self._folder)
            self._leave_out(names, imported.found, casts)
            return
        found = self._attributed(names, imported, log.read_text(errors="replace"), probe)
        if found is None:
            # A value inside a big weight decided something, so only the real model can tell.
            found = trace(names, imported, full_probe(full, self._folder, scratch, request))
        self.steps.extend(found.effects)
        if FOLDING in names:
            self._tie()

    def _optimized(self, model: bytes, output: Path, request: OrtRequest, log: Path, *, large: bool) -> ir.Model:
        """Weights that stay as they are stay where they are. Of a large model the others may be too much for one file:
        then all of them are written."""
        try:
            optimize_bytes(model, self._folder, output, request, log=log)
        except InputError:
            if not large:
                raise
            optimize_bytes(model, self._folder, output, request, beside=True, log=log)
            return ir.load(output)
        optimized = ir.load(output)
        ir.external_data.set_base_dir(optimized.graph, self._folder)
        return optimized

    def _attributed(self, names: Sequence[str], base: WeightlessModel, log: str, probe: Probe) -> Trace | None:
        """Which pass did what, without weights: by the log, else by asking about all. None: not what happened."""
        final = snapshot(self.model)
        found = trace_of_log(names, base, final, log, probe)
        if found.final.ops != final.ops:
            found = trace(names, base, probe)
        return found if found.final.ops == final.ops else None

    def _tie(self) -> None:
        """Folding must not store a weight a second time."""
        before, start = snapshot(self.model), time.perf_counter()
        if tie_transposed(self.model):
            self._note(TIED, before, True, start)

    def _leave_out(self, names: Sequence[str], found: Snapshot, casts: int) -> None:
        """onnxruntime wraps what its CPU EP cannot compute in float16 into casts, which would stay in the file."""
        problem = f"onnxruntime's CPU EP has no float16 kernels for the model, and would add {casts} casts to it"
        self.steps.extend(effect(name, found, found, fired=False, problem=problem) for name in names)

    def run_fusions(self, names: Sequence[str]) -> None:
        proto = loaded_proto(self.model)
        self._model = None
        before = snapshot(ir.from_proto(proto))
        for name in names:
            start = time.perf_counter()
            done = fuse(proto, find_pass(name))
            after, seconds = snapshot(ir.from_proto(proto)), time.perf_counter() - start
            self.steps.append(effect(name, before, after, fired=done.fired, seconds=seconds, problem=done.problem))
            before = after
        self._model = ir.from_proto(proto)

    def run_edits(self, names: Iterable[str]) -> None:
        before = snapshot(self.model)
        for name in names:
            start = time.perf_counter()
            changed = edit_of(name)(self.model)
            before = self._note(name, before, bool(changed), start)

    def tidy(self) -> None:
        forget_origin(self.model)
        put_in_order(self.model)
        weights = self.model.graph.initializers
        # onnxruntime keeps them in hash tables, whose order is its own affair.
        for key, value in sorted(weights.items()):
            del weights[key]
            weights[key] = value

    def _note(self, name: str, before: Snapshot, fired: bool, start: float) -> Snapshot:
        after = snapshot(self.model) if fired else before
        self.steps.append(effect(name, before, after, fired=fired, seconds=time.perf_counter() - start))
        return after


def _inserted_casts(names: Iterable[str]) -> int:
    return sum(name.startswith(_INSERTED_CAST) for name in names)
