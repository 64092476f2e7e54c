"""The model while it is being worked on, and the record of what was done to it."""

from __future__ import annotations

import time
from collections.abc import Callable, Container, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from modelwright import graph as graphs
from modelwright._lazy import lazy
from modelwright.errors import InputError
from modelwright.stages.optimize import _message as messages
from modelwright.stages.optimize._at_once import OptimizedAtOnce, at_once, inserted_casts
from modelwright.stages.optimize._edits import edit_of
from modelwright.stages.optimize._files import SourceModel, forget_domains, forget_origin, objects, put_in_order
from modelwright.stages.optimize._interface import convert_opset, fix_dims, true_metadata
from modelwright.stages.optimize._inventory import Snapshot, effect, every_node, operators_of, snapshot
from modelwright.stages.optimize._ort import CARELESS, OrtRequest, optimize_bytes, step_aside
from modelwright.stages.optimize._table import find_pass
from modelwright.stages.optimize._tied import tie_transposed
from modelwright.stages.optimize._trace import (
    FOLDING,
    Probe,
    Start,
    Trace,
    full_probe,
    probe_without_weights,
    trace,
    trace_of_log,
)
from modelwright.stages.optimize._transformers import fuse, loaded_proto
from modelwright.stages.optimize._types import ORT_IMPORT, OptimizeParams, PassEffect
from modelwright.stages.optimize._unchanged import say_the_same
from modelwright.stages.optimize._without_weights import nodes_of, with_weights, without_weights

if TYPE_CHECKING:
    import onnx
    import onnx_ir as ir
else:
    onnx = lazy("onnx")
    ir = lazy("onnx_ir")

TIED = "tied_weights"


class WorkingModel:
    """Holds the only reference to the model, so that its weights can go before a library loads its own.

    It is a message as long as that will do, and objects from the first pass on that needs them.
    """

    def __init__(self, source: SourceModel) -> None:
        self._message: onnx.ModelProto | None = source.message()
        self._model: ir.Model | None = None
        self._origin = source.path
        self._plain = False
        self.steps: list[PassEffect] = []
        self.session_seconds: float | None = None

    @property
    def model(self) -> ir.Model:
        """As objects."""
        if self._message is not None:
            self._model, self._message = objects(self._message, self._origin), None
        if self._model is None:
            raise RuntimeError("the model was given away")
        return self._model

    @property
    def found(self) -> Snapshot:
        if self._message is None:
            return snapshot(self.model)
        return operators_of(self._message.graph.node if self._plain else nodes_of(self._message))

    @property
    def opset(self) -> int:
        if self._message is None:
            return self.model.opset_imports.get("", 0)
        return next((item.version for item in self._message.opset_import if item.domain in ("", "ai.onnx")), 0)

    def is_still(self, source: SourceModel) -> bool:
        """Whether it says what its source says, as far as messages of one level tell."""
        if any(step.fired for step in self.steps):
            return False
        return say_the_same(self._as_message(), source.message(), self._folder)

    def write(self, folder: Path, stays: Callable[[str], bool]) -> None:
        """Uses the model up."""
        if self._message is None:
            graphs.write_model(self.model, folder, stays)
        else:
            graphs.write_message(self._message, self._folder, folder)
        self._model = self._message = None

    @property
    def _folder(self) -> Path:
        """Where the weights are that the model leaves on disk."""
        return self._origin.parent

    def declare(self, params: OptimizeParams) -> None:
        """What the parameters say about the interface, before any pass sees the graph."""
        start = time.perf_counter()
        if self._message is not None and graphs.freeze_weights(self._message):
            self._note("freeze_weights", self.found, True, start)  # no node of it is another
        if params.fix_dims:
            before, start = self.found, time.perf_counter()
            changed = fix_dims(self.model, dict(params.fix_dims))
            self._note("fix_dims", before, bool(changed), start)
            if true_metadata(self.model):
                self._note("metadata", before, True, start)
        if params.opset is not None:
            before, start = self.found, time.perf_counter()
            differs = self.opset != params.opset
            if differs:
                self._model = convert_opset(self.model, params.opset)
            self._note("opset", before, differs, start)

    def run_ort(self, names: Sequence[str], scratch: Path) -> None:
        """All of them in one session, which also says what each did; where it does not say, smaller ones are asked."""
        began, request, before = time.perf_counter(), OrtRequest.of(names), self.found
        done = at_once(self._as_message(), self._folder, scratch, request)
        if done is None:
            self._run_apart(names, scratch, before, request)
        else:
            self._take(done, time.perf_counter() - began)
            probe = probe_without_weights(scratch, request)
            start = Start(done.loaded, lambda: probe(without_weights(self._objects(done.source), scratch), ()))
            found = self._attributed(names, start, done.log, probe)
            if found is None:
                found = trace(names, start.model, full_probe(done.source, self._folder, scratch, request))
            self.steps.append(effect(ORT_IMPORT, before, start.found, fired=before.ops != start.found.ops))
            self.steps.extend(found.effects)
            self._tie(names)

    def _as_message(self) -> onnx.ModelProto:
        return ir.to_proto(self.model) if self._message is None else self._message

    def _objects(self, message: bytes) -> ir.Model:
        return objects(onnx.ModelProto.FromString(message), self._origin)

    def _take(self, done: OptimizedAtOnce, seconds: float) -> None:
        """What onnxruntime made takes the place of the model."""
        self._message, self._model, self.session_seconds = done.model, None, seconds
        if messages.is_plain(done.model):
            self._plain = True
            messages.step_aside(done.model, done.names)
        else:
            step_aside(self.model, [name for name in self.model.graph.initializers if name not in done.names])

    def _run_apart(self, names: Sequence[str], scratch: Path, before: Snapshot, request: OrtRequest) -> None:
        """Loading first, so that what it does by itself is not taken for the work of a pass."""
        began = time.perf_counter()
        # A model that onnxruntime has optimized before.
        step_aside(self.model, [name for name in self.model.graph.initializers if name.startswith(CARELESS)])
        probe = probe_without_weights(scratch, request)
        imported = probe(without_weights(self.model, scratch), ())
        if casts := inserted_casts(imported.names):
            self._leave_out(names, before, casts)
            return
        self.steps.append(effect(ORT_IMPORT, before, imported.found, fired=before.ops != imported.found.ops))
        full, output = ir.to_proto(with_weights(imported, self.model)).SerializeToString(), scratch / "ort.onnx"
        large, declared = graphs.needs_data_file(self.model), set(self.model.opset_imports)
        self._model = None
        self._model, said = self._optimized(full, output, request, large=large)
        forget_domains(self._model, declared)
        step_aside(self._model, [name for name in self._model.graph.initializers if name not in imported.names])
        self.session_seconds = time.perf_counter() - began
        if casts := inserted_casts(value.name or "" for node in every_node(self._model) for value in node.outputs):
            self._model = self._objects(full)
            self._leave_out(names, imported.found, casts)
            return
        start = Start(imported.found, lambda: imported)
        found = self._attributed(names, start, said, probe)
        if found is None:
            # A value inside a big weight decided something, so only the real model can tell.
            found = trace(names, imported, full_probe(full, self._folder, scratch, request))
        self.steps.extend(found.effects)
        self._tie(names)

    def _optimized(self, model: bytes, output: Path, request: OrtRequest, *, large: bool) -> tuple[ir.Model, str]:
        """And what onnxruntime says. Weights that stay as they are stay where they are. Of a large model the others may
        be too much for one file: then all of them are written."""
        try:
            said = optimize_bytes(model, self._folder, output, request)
        except InputError:
            if not large:
                raise
            said = optimize_bytes(model, self._folder, output, request, beside=True)
            return ir.load(output), said
        optimized = ir.load(output)
        ir.external_data.set_base_dir(optimized.graph, self._folder)
        return optimized, said

    def _attributed(self, names: Sequence[str], start: Start, log: str, probe: Probe) -> Trace | None:
        """Which pass did what, without weights: by the log, else by asking about all. None: not what happened."""
        final = self.found
        found = trace_of_log(names, start, final, log, probe)
        if found.final.ops != final.ops:
            found = trace(names, start.model, probe)
        return found if found.final.ops == final.ops else None

    def _tie(self, names: Container[str]) -> None:
        """Folding must not store a weight a second time."""
        if FOLDING not in names or (
            self._message is not None and self._plain and not messages.may_tie(self._message, self._folder)
        ):
            return
        before, start = self.found, time.perf_counter()
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
        before = self.found
        for name in names:
            start = time.perf_counter()
            changed = self._edit(name)
            before = self._note(name, before, bool(changed), start)

    def _edit(self, name: str) -> int:
        """On the message where that will do."""
        changed = messages.edit(self._message, self._folder, name) if self._message and self._plain else None
        return edit_of(name)(self.model) if changed is None else changed

    def tidy(self) -> None:
        message = self._message
        if message and self._plain and graphs.fits_one_file(message) and messages.tidy(message):
            return
        forget_origin(self.model)
        put_in_order(self.model)
        weights = self.model.graph.initializers
        # onnxruntime keeps them in hash tables, whose order is its own affair.
        for key, value in sorted(weights.items()):
            del weights[key]
            weights[key] = value

    def _note(self, name: str, before: Snapshot, fired: bool, start: float) -> Snapshot:
        after = self.found if fired else before
        self.steps.append(effect(name, before, after, fired=fired, seconds=time.perf_counter() - start))
        return after
