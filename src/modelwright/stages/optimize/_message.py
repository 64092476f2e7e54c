"""A graph of one level, edited as the message that it is.

Objects of 10,000 nodes (`onnx_ir`) and a message of them again take as long as onnxruntime's passes on them. Here is
what most models need, with the objects' answers, byte for byte (`tests/ep/optimize/test_at_once.py`); where it is not
enough the answer is None or False, nothing has changed, and whoever asked makes objects.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from modelwright._lazy import lazy
from modelwright.graph import data_range, is_external, is_streamed, stored_bytes
from modelwright.stages.optimize._shapes import REDUCTIONS
from modelwright.stages.optimize._tied import WORTH_A_NODE, turned_twins

if TYPE_CHECKING:
    import numpy as np
    import onnx
else:
    np = lazy("numpy")
    onnx = lazy("onnx")

# What each of these begins with: where the graph has none of it, it changes nothing.
_SEEKS: Mapping[str, frozenset[str]] = {
    "remove_identity": frozenset({"Identity"}),
    "remove_dropout": frozenset({"Dropout"}),
    "lift_constants": frozenset({"Constant"}),
    "swish_in_one_batch": frozenset({"LayerNormalization"}),
    "reduce_fewer_axes": REDUCTIONS,
}
_MAYBE_EMPTY = ("producer_name", "producer_version", "domain", "model_version", "doc_string")
_TEXT = 8  # TensorProto.STRING
# Enough of a tensor to tell most pairs apart without reading the rest.
_HEAD = 2048


def is_plain(model: onnx.ModelProto) -> bool:
    """Whether the functions below may be asked: one level, and nothing written in an unusual way."""
    graph = model.graph
    domains = [item.domain for item in model.opset_import]
    rare = (
        model.functions, model.training_info, model.configuration, graph.sparse_initializer,
        graph.quantization_annotation,
    )  # fmt: skip
    if any(rare) or "ai.onnx" in domains or len(set(domains)) < len(domains):
        return False
    outputs = {value.name for value in graph.output}
    names = {tensor.name for tensor in graph.initializer}
    if len(names) < len(graph.initializer) or "" in names or not names.isdisjoint(outputs):
        return False
    return all(map(_is_plain_weight, graph.initializer)) and all(map(_is_plain_node, graph.node))


def _is_plain_weight(tensor: onnx.TensorProto) -> bool:
    if tensor.metadata_props or tensor.doc_string:
        return False
    return is_external(tensor) or tensor.data_type == _TEXT or tensor.HasField("raw_data")


def _is_plain_node(node: onnx.NodeProto) -> bool:
    outputs = node.output[:]
    if node.domain == "ai.onnx" or not outputs or not outputs[-1] or node.device_configurations:
        return False
    if not node.attribute:
        return True
    kinds = onnx.AttributeProto
    odd = (kinds.UNDEFINED, kinds.GRAPH, kinds.GRAPHS)
    return not any(item.type in odd or item.ref_attr_name for item in node.attribute)


def step_aside(model: onnx.ModelProto, known: Container[str]) -> None:
    """Rename the initializers that are not known, so that a later session can use their names."""
    weights = model.graph.initializer
    taken = {tensor.name for tensor in weights}
    renamed: dict[str, str] = {}
    for name in [tensor.name for tensor in weights if tensor.name not in known]:
        new = f"opt_{name}"
        while new in taken:
            new = f"opt_{new}"
        taken.remove(name)
        taken.add(new)
        renamed[name] = new
    if not renamed:
        return
    tensors = sorted(weights, key=lambda tensor: tensor.name in renamed)
    for tensor in tensors:
        tensor.name = renamed.get(tensor.name, tensor.name)
    _read_instead(model, renamed)
    del weights[:]
    weights.extend(tensors)


def edit(model: onnx.ModelProto, data: Path, name: str) -> int | None:
    """How many things this edit changed. `data` is the folder of its external data."""
    if name in _SEEKS:
        return 0 if _SEEKS[name].isdisjoint([node.op_type for node in model.graph.node]) else None
    if name == "dedupe_initializers":
        return None if may_tie(model, data) else _dedupe(model, data)
    return _remove_unused(model) if name == "remove_unused" else None


def may_tie(model: onnx.ModelProto, data: Path) -> bool:
    """Whether a stored weight looks like another one turned."""
    inputs = {value.name for value in model.graph.input}
    found = (tensor for tensor in model.graph.initializer if len(tensor.dims) == 2 and tensor.name not in inputs)
    big = [item for item in found if (stored_bytes(item.data_type, item.dims) or 0) >= WORTH_A_NODE]
    if any((stored_bytes(item.data_type, (8,)) or 0) < 8 for item in big):
        return True  # half bytes have no arrays of their size
    return len(big) > 1 and turned_twins([_array(tensor, data) for tensor in big])


def _dedupe(model: onnx.ModelProto, data: Path) -> int:
    inputs = {value.name for value in model.graph.input}
    seen: dict[tuple[object, ...], list[onnx.TensorProto]] = {}
    twins: dict[str, str] = {}
    for tensor in model.graph.initializer:
        kind = tensor.data_type
        if kind == _TEXT or tensor.name in inputs:
            continue
        key = kind, tuple(tensor.dims[:]), content(tensor, data, _HEAD)
        alike = seen.setdefault(key, [])
        twin = next((other for other in alike if content(other, data) == content(tensor, data)), None)
        if twin is None:
            alike.append(tensor)
        else:
            twins[tensor.name] = twin.name
    if twins:
        _read_instead(model, twins)
        _keep_weights(model, [tensor for tensor in model.graph.initializer if tensor.name not in twins])
    return len(twins)


def _remove_unused(model: onnx.ModelProto) -> int | None:
    graph = model.graph
    outputs = {value.name for value in graph.output}
    inputs = [node.input[:] for node in graph.node]
    read = outputs.union(*inputs)
    if not all(_is_read(node, read) for node in graph.node):
        return None
    for node in (node for node, names in zip(graph.node, inputs, strict=True) if names and not names[-1]):
        while node.input and not node.input[-1]:
            del node.input[-1]
    read.update(value.name for value in graph.input)
    weights = [tensor for tensor in graph.initializer if tensor.name in read]
    domains = {"", *(node.domain for node in graph.node)}
    opsets = [item for item in model.opset_import if item.domain in domains]
    gone = len(graph.initializer) - len(weights) + len(model.opset_import) - len(opsets)
    if len(weights) < len(graph.initializer):
        _keep_weights(model, weights)
    del model.opset_import[:]
    model.opset_import.extend(opsets)
    return gone


def _is_read(node: onnx.NodeProto, read: set[str]) -> bool:
    """All of it, and it is none whose outputs say how it computes."""
    outputs = [name for name in node.output[:] if name]
    if node.domain:
        return any(name in read for name in outputs)
    if node.op_type == "BatchNormalization" and any(item.name == "training_mode" for item in node.attribute):
        return False
    return bool(outputs) and read.issuperset(outputs)


def tidy(model: onnx.ModelProto) -> bool:
    """No traces of who wrote it, and in the order in which it is to be written: False where nodes must move."""
    graph = model.graph
    if not _in_order(graph):
        return False
    for name in _MAYBE_EMPTY:
        if not getattr(model, name):
            model.ClearField(name)
    for item in model.opset_import:
        item.domain = item.domain  # also the empty one is written
    for node in graph.node:
        _strip(node)
    for value in (*graph.input, *graph.output):
        if not value.doc_string:
            value.ClearField("doc_string")
    for name in ("doc_string", "metadata_props"):
        graph.ClearField(name)
    notes = sorted({item.key: item.value for item in model.metadata_props}.items())
    del model.metadata_props[:]
    for key, value in notes:
        model.metadata_props.add(key=key, value=value)
    graph.initializer.sort(key=lambda tensor: tensor.name)
    values = list(_values(graph))
    del graph.value_info[:]
    graph.value_info.extend(values)
    return True


def _strip(node: onnx.NodeProto) -> None:
    node.ClearField("doc_string")
    node.ClearField("metadata_props")
    for name in ("name", "domain", "overload"):
        if not getattr(node, name):
            node.ClearField(name)
    for attribute in node.attribute if node.attribute else ():
        if not attribute.doc_string:
            attribute.ClearField("doc_string")


def _in_order(graph: onnx.GraphProto) -> bool:
    """Every node after those whose values it reads; a value that nobody makes is for others to complain about."""
    left = {name for node in graph.node for name in node.output[:]}
    for node in graph.node:
        if not left.isdisjoint(node.input[:]):
            return False
        left.difference_update(node.output[:])
    return True


def _values(graph: onnx.GraphProto) -> Iterator[onnx.ValueInfoProto]:
    """What is known of values: of the weights that stand in the graph, then of what nodes make but do not give out."""
    said = {value.name: value for value in graph.value_info}
    inputs = {value.name for value in graph.input}
    outputs = {value.name for value in graph.output}
    for tensor in graph.initializer:
        if tensor.name not in inputs and not is_streamed(tensor):
            yield said.get(tensor.name) or _typed(tensor)
    for node in graph.node:
        for name in node.output[:]:
            value = said.get(name) if name not in outputs else None
            if value is not None and value.type.WhichOneof("value"):
                yield value


def _typed(tensor: onnx.TensorProto) -> onnx.ValueInfoProto:
    value = onnx.ValueInfoProto(name=tensor.name)
    kind = value.type.tensor_type
    kind.elem_type = tensor.data_type
    kind.shape.ClearField("dim")
    for size in tensor.dims:
        kind.shape.dim.add(dim_value=size)
    return value


def _read_instead(model: onnx.ModelProto, names: Mapping[str, str]) -> None:
    for node in model.graph.node:
        for place, name in enumerate(node.input):
            if name in names:
                node.input[place] = names[name]


def _keep_weights(model: onnx.ModelProto, weights: list[onnx.TensorProto]) -> None:
    del model.graph.initializer[:]
    model.graph.initializer.extend(weights)


def content(tensor: onnx.TensorProto, data: Path, most: int | None = None) -> bytes:
    """The bytes of a weight, or the first of them."""
    if not is_external(tensor):
        whole: bytes = tensor.raw_data
        return whole[:most]
    location, span = data_range(tensor)
    with (data / location).open("rb") as file:
        file.seek(span.offset)
        return file.read(span.length if most is None else min(most, span.length))


def _array(tensor: onnx.TensorProto, data: Path) -> np.ndarray:
    """The weight as numbers; those of a file are not read before somebody looks at them."""
    dtype, shape = onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type), tuple(tensor.dims)
    if not is_external(tensor):
        return np.frombuffer(tensor.raw_data, dtype).reshape(shape)
    location, span = data_range(tensor)
    return np.memmap(data / location, dtype, "r", span.offset, shape)
