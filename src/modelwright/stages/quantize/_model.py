"""The input model made ready: refused when it cannot be quantized, named, typed and at a usable opset."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from modelwright._dataclass import dataclass
from modelwright._lazy import lazy
from modelwright.errors import InputError
from modelwright.graph import Graph, StreamedWeight, facts, freeze_weights, load
from modelwright.stages.quantize._tensor_types import infer_types
from modelwright.stages.quantize._turned import store_turned
from modelwright.stages.quantize._weights import (
    Detached,
    Region,
    detach,
    load_external,
    outside_weights,
    refuse_nan,
    stream,
)

if TYPE_CHECKING:
    import onnx
else:
    onnx = lazy("onnx")

# Scales per channel need the `axis` attribute of DequantizeLinear-13.
LOWEST_OPSET = 13
# Operators whose third input gets the scale of their other two.
_BIASED = {"Conv", "ConvTranspose", "Gemm", "InstanceNormalization", "LayerNormalization"}


@dataclass(frozen=True)
class Prepared:
    """A model whose large weights wait in a scratch file."""

    model: onnx.ModelProto
    weights: Detached


@dataclass(frozen=True)
class StreamedModel:
    """A model, and those of its weights that are read when they are written."""

    model: onnx.ModelProto
    weights: dict[str, StreamedWeight]


def open_model(path: str) -> Graph:
    """Read the model; compiled and already quantized ones are refused. Without the outputs that are inputs, which
    `hand_on` puts back: a quantizer would write them."""
    graph = load(path)
    seen = facts(graph.path)
    if seen.ep_context:
        raise InputError(
            f"{graph.path.name} is already compiled",
            cause="it holds EPContext nodes, whose insides cannot be changed",
            fix="Quantize the model it was compiled from.",
        )
    if seen.precision.quantized:
        raise InputError(
            f"{graph.path.name} is already quantized",
            cause=f"it measures as {seen.precision.label or seen.precision.reason}",
            fix="Quantize the float model it was made from.",
        )
    freeze_weights(graph.model)
    inputs = {value.name for value in graph.model.graph.input}
    made = [value for value in graph.model.graph.output if value.name not in inputs]
    if made:
        _set_outputs(graph.model, made)
    return graph


def hand_on(result: onnx.ModelProto, model: onnx.ModelProto) -> None:
    """The outputs of the model that are its inputs, at their places among the others."""
    made = {value.name: value for value in result.graph.output}
    _set_outputs(result, [made.get(value.name, value) for value in model.graph.output])


def _set_outputs(model: onnx.ModelProto, values: list[onnx.ValueInfoProto]) -> None:
    copies = [onnx.ValueInfoProto.FromString(value.SerializeToString()) for value in values]
    del model.graph.output[:]
    model.graph.output.extend(copies)


def prepare(graph: Graph, workdir: Path, *, integers: bool, raise_opset: bool) -> Prepared:
    """Weights out of memory, constants as initializers, every node named, every type known.

    `integers`: weights are to become some, also those that are read through a Transpose.
    """
    model = graph.model
    too_old = raise_opset and opset_of(model) < LOWEST_OPSET
    outside = load_external(graph, everything=too_old)
    if too_old:
        model = _at_opset(model, graph.path.name, LOWEST_OPSET)
    lift_constants(model)
    turned = outside_weights(model, outside)
    if integers:
        store_turned(model, turned)
    _flatten_biases(model)
    _own_biases(model, outside)
    turned = {name: weight for name, weight in turned.items() if name not in outside}
    weights = detach(model, outside, turned, workdir)
    name_nodes(model)
    infer_types(model, workdir)
    _clip_at_constants(model)
    return Prepared(model, weights)


def prepare_streamed(graph: Graph, workdir: Path, *, integers: bool) -> StreamedModel:
    """As `prepare`, for steps that change one weight after the other and run nothing: what they do not change is never
    in memory, and nothing is copied before it is written."""
    model = graph.model
    weights = stream(model, load_external(graph, everything=False), workdir)
    lift_constants(model)
    if integers:
        store_turned(model, weights)
    name_nodes(model)
    infer_types(model, workdir)
    for tensor in model.graph.initializer:
        if tensor.name not in weights:
            refuse_nan(tensor)
    return StreamedModel(model, weights)


def again(model: Path, workdir: Path) -> Prepared:
    """The input model made ready once more for static quantization: what was quantized is not what it was."""
    return prepare(open_model(str(model)), workdir, integers=True, raise_opset=True)


def copied(model: onnx.ModelProto) -> onnx.ModelProto:
    """Small, while the weights are outside."""
    found = onnx.ModelProto()
    found.CopyFrom(model)
    return found


def opset_of(model: onnx.ModelProto) -> int:
    return next((item.version for item in model.opset_import if item.domain in ("", "ai.onnx")), 1)


def name_nodes(model: onnx.ModelProto) -> None:
    """Exclusion works by name, so every node gets one, and no two the same."""
    taken = {node.name for node in model.graph.node}
    seen: set[str] = set()
    for index, node in enumerate(model.graph.node):
        if node.name and node.name not in seen:
            seen.add(node.name)
            continue
        name = f"{node.op_type}_{index}"
        while name in taken:
            name += "_"
        node.name = name
        taken.add(name)
        seen.add(name)


def _flatten_biases(model: onnx.ModelProto) -> None:
    """A Gemm bias of the shape (1, n) becomes (n): the same numbers, and the quantizer counts on one axis."""
    biases = {node.input[2] for node in model.graph.node if node.op_type == "Gemm" and len(node.input) > 2}
    elsewhere = {
        name
        for node in model.graph.node
        for place, name in enumerate(node.input)
        if node.op_type != "Gemm" or place != 2
    }
    changed = set()
    for tensor in model.graph.initializer:
        if tensor.name in biases - elsewhere and len(tensor.dims) == 2 and tensor.dims[0] == 1:
            tensor.dims[:] = [tensor.dims[1]]
            changed.add(tensor.name)
    stale = [index for index, value in enumerate(model.graph.value_info) if value.name in changed]
    for index in reversed(stale):
        del model.graph.value_info[index]


def _own_biases(model: onnx.ModelProto, outside: dict[str, Region]) -> None:
    """A bias of several operators becomes one for each, because onnxruntime copies it under names that may be taken."""
    graph = model.graph
    weights = {tensor.name: tensor for tensor in graph.initializer}
    taken = {*weights, *(name for node in graph.node for name in (*node.input, *node.output))}
    counts: dict[str, Iterator[int]] = defaultdict(itertools.count)
    # What is read elsewhere too (an Add) has another type there.
    seen = {
        name
        for node in graph.node
        for place, name in enumerate(node.input)
        if place != 2 or node.op_type not in _BIASED
    }
    for node in graph.node:
        bias = node.input[2] if node.op_type in _BIASED and len(node.input) > 2 else ""
        if bias not in weights or bias not in seen:
            seen.add(bias)
            continue
        # One count for each bias: thousands of operators may share it.
        name = next(name for name in (f"{bias}_{number}" for number in counts[bias]) if name not in taken)
        taken.add(name)
        graph.initializer.add().CopyFrom(weights[bias])
        graph.initializer[-1].name = node.input[2] = name
        if bias in outside:
            outside[name] = outside[bias]


def _clip_at_constants(model: onnx.ModelProto) -> None:
    """The larger of a value and a constant is a Clip, whose work the pair behind it does."""
    stored = {tensor.name: tensor for tensor in model.graph.initializer}
    known = {value.name: value.type.tensor_type for value in (*model.graph.value_info, *model.graph.input)}
    for node in model.graph.node:
        if node.op_type not in ("Max", "Min") or node.domain not in ("", "ai.onnx") or len(node.input) != 2:
            continue
        bound = next((stored[name] for name in node.input if name in stored), None)
        value = next((known[name] for name in node.input if name not in stored and name in known), None)
        if bound is None or value is None or not _bounds(bound, value):
            continue
        name = f"{node.name}_bound"
        limit = onnx.numpy_helper.from_array(onnx.numpy_helper.to_array(bound).reshape(()), name)
        model.graph.initializer.append(limit)
        (read,) = (item for item in node.input if item != bound.name)
        node.input[:] = [read, name] if node.op_type == "Max" else [read, "", name]
        node.op_type = "Clip"


def _bounds(bound: onnx.TensorProto, value: onnx.TypeProto.Tensor) -> bool:
    """One number, which gives the value no more dimensions than it has."""
    if bound.data_type != onnx.TensorProto.FLOAT or not value.HasField("shape"):
        return False
    return all(size == 1 for size in bound.dims) and len(bound.dims) <= len(value.shape.dim)


def lift_constants(model: onnx.ModelProto) -> None:
    """Constant nodes become initializers: only those are recognised as weights."""
    kept = []
    for node in model.graph.node:
        value = next((item.t for item in node.attribute if item.name == "value"), None)
        if node.op_type != "Constant" or node.domain not in ("", "ai.onnx") or value is None:
            kept.append(node)
            continue
        tensor = model.graph.initializer.add()
        tensor.CopyFrom(value)
        tensor.name = node.output[0]
    if len(kept) != len(model.graph.node):
        copies = [onnx.NodeProto.FromString(node.SerializeToString()) for node in kept]
        del model.graph.node[:]
        model.graph.node.extend(copies)


def _at_opset(model: onnx.ModelProto, name: str, version: int) -> onnx.ModelProto:
    try:
        return onnx.version_converter.convert_version(model, version)
    # The converter raises RuntimeError or its own ConvertError for operators it has no adapter for.
    except (RuntimeError, onnx.version_converter.ConvertError) as error:
        raise InputError(
            f"{name} cannot be raised to opset {version}",
            cause=f"static quantization needs it, and the converter failed: {str(error).splitlines()[0]}",
            fix=f"Export the model with opset {version} or newer.",
        ) from error
