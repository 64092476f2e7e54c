"""A model as it was written, opened to ask it for a few answers."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import importlib
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from modelwright._lazy import lazy
from modelwright.graph import Graph, facts, late, model_bytes, operators_in, shared, summary, with_weights_in_place
from modelwright.targets._binding import PLACEMENT, SessionSpec
from modelwright.targets._session import BoundSession, ModelBytes, open_session
from modelwright.targets._target import parse_target
from modelwright.targets._weights_as_floats import weights_as_floats

if TYPE_CHECKING:
    import onnx
else:
    onnx = lazy("onnx")

_IN_BLOCKS, _HALF, _TO_FLOAT = "MatMulNBits", "float16", "DequantizeLinear"
_INTEGER = ("QLinear", "QGemm", "QAttention", "MatMulInteger", "ConvInteger", "DynamicQuantize")
_EXACT = {"session.x64quantprecision": "1", "session.intra_op.allow_spinning": "0"}
# A plan of the memory is then one of all weights too, and for a run or two it is not worth what it takes to make.
_UNPACKED = {"session.disable_prepacking": "1", "enable_mem_pattern": "0"}
# The CPU has them all.
_UNCOUNTED = {PLACEMENT: "0"}
_WORTH_SORTING_BYTES = 16 << 20
_MANY_NODES = 2000
_M_MXFAST = 1  # malloc.h


def open_exact(path: str | Path, *, lean: bool = False) -> BoundSession:
    """On the CPU, optimized as for a user, with integer kernels that are slower and never saturate. `lean` leaves the
    weights in their files."""
    graph = shared(path)
    config = _EXACT | _UNPACKED if lean else _EXACT
    return _opened(graph, _each_its_own(with_weights_in_place(graph)), SessionSpec(config=config))


def open_as_meant(path: str | Path, *, lean: bool = False) -> BoundSession:
    """On the CPU, what a quantized graph says: pairs computed in float; integer operators, which have no float form,
    without saturating."""
    integers = any(name.startswith(_INTEGER) for name in operators_in(shared(path)))
    return open_exact(path, lean=lean) if integers else open_as_written(path)


def open_as_written(path: str | Path) -> BoundSession:
    """On the CPU, without graph optimization. For a run or two it is cheaper not to copy or repack the weights, but
    for those in blocks: without, every run unpacks all of them to floats. Pairs do that too, one weight at a time,
    unless there are thousands of small ones."""
    graph = shared(path)
    kinds = operators_in(graph)
    model = with_weights_in_place(graph)
    if _TO_FLOAT in kinds and model_bytes(path) < _WORTH_SORTING_BYTES:
        weights_as_floats(model)
    config = _UNCOUNTED if _IN_BLOCKS in kinds else _UNCOUNTED | _UNPACKED
    spec = SessionSpec(graph_optimization="disabled", config=config, frugal=_TO_FLOAT in kinds)
    return _opened(graph, model, spec)


def in_blocks(path: str | Path) -> bool:
    """Weights that every run would unpack to floats, if opening did not pack them anew."""
    return _IN_BLOCKS in operators_in(shared(path))


def open_in_place(path: str | Path) -> BoundSession:
    """On the CPU, as a user opens it; its weights are read where they are, instead of with the rest of the file."""
    return _in_place(shared(path), SessionSpec(config=_UNCOUNTED))


def open_lean(path: str | Path) -> BoundSession:
    """On the CPU, with the weights left in their files. Optimized as for a user, but for those of a half-precision
    model: the CPU has no kernels for it, and onnxruntime would keep a float copy of every weight."""
    graph = shared(path)
    half = not facts(path).quantized and any(total.dtype == _HALF for total in summary(graph).weights)
    return _in_place(
        graph, SessionSpec(config=_UNPACKED, graph_optimization="disabled" if half else "all", frugal=half)
    )


def _in_place(graph: Graph, spec: SessionSpec) -> BoundSession:
    return _opened(graph, with_weights_in_place(graph), spec)


def _opened(graph: Graph, model: onnx.ModelProto, spec: SessionSpec) -> BoundSession:
    config = {**(spec.config or {}), "session.intra_op.allow_spinning": "0"}
    # Where all floats together are few it is not worth it: onnxruntime sorts a long graph in this order more slowly.
    if spec.frugal and model_bytes(graph.path) >= _WORTH_SORTING_BYTES:
        # Without optimization and by priority, nodes run in the order in which they stand.
        stored = {tensor.name for tensor in model.graph.initializer}
        nodes = [onnx.NodeProto.FromString(node.SerializeToString()) for node in late(model.graph.node, stored)]
        del model.graph.node[:]
        model.graph.node.extend(nodes)
    data = ModelBytes(model.SerializeToString(), folder=str(graph.folder))
    _keep_small_blocks_together()
    with initialized_apart(len(model.graph.node)):
        return open_session(data, parse_target("cpu"), replace(spec, config=config))


@functools.cache
def _keep_small_blocks_together() -> None:
    """onnxruntime walks long lists of small blocks, which glibc hands out in the order in which others were freed, all
    over its memory. Without the bins in which it keeps those they lie side by side, and a quantized model of 10,000
    nodes opens in two thirds of the time. Not for sessions that are timed: a user's process has these bins."""
    if sys.platform == "linux":
        with contextlib.suppress(AttributeError):  # another C library
            ctypes.CDLL(None).mallopt(_M_MXFAST, 0)


@contextlib.contextmanager
def initialized_apart(nodes: int) -> Iterator[None]:
    """For sessions on thousands of nodes, onnxruntime's passes work in a thread of their own. glibc gives it memory of
    its own, in which reading the model has left no holes: small blocks lie side by side there, and a quantized model of
    10,000 nodes opens in three quarters of the time."""
    if nodes < _MANY_NODES:
        yield
        return
    native = importlib.import_module("onnxruntime.capi._pybind_state")
    theirs = native.InferenceSession
    vars(native)["InferenceSession"] = _apart(theirs)
    try:
        yield
    finally:
        vars(native)["InferenceSession"] = theirs


@functools.cache
def _apart(native: type[Any]) -> type[Any]:
    class Apart(native):  # type: ignore[misc]
        def initialize_session(self, *given: Any) -> None:
            with ThreadPoolExecutor(1) as thread:
                thread.submit(super().initialize_session, *given).result()

    return Apart


def _each_its_own(model: onnx.ModelProto) -> onnx.ModelProto:
    """Every reader of an int8 constant gets one of its own: for kernels that never saturate onnxruntime rewrites them
    to uint8, once for each reader and always under the same name, and does not open what two readers share."""
    stored = {item.name: item for item in model.graph.initializer if item.data_type == onnx.TensorProto.INT8}
    seen = set()
    for place, node in enumerate(model.graph.node):
        for slot, name in enumerate(node.input):
            if name in seen:
                copy = model.graph.initializer.add()
                copy.CopyFrom(stored[name])
                node.input[slot] = copy.name = f"{name}/{place}/{slot}"
            elif name in stored:
                seen.add(name)
    return model
