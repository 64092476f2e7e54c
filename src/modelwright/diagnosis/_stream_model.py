"""Models that show what is inside them: a part of a graph with chosen tensors as outputs, weights left on disk."""

from __future__ import annotations

import mmap
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from modelwright._dataclass import dataclass
from modelwright._lazy import lazy
from modelwright.diagnosis._match_view import View
from modelwright.graph import external_data, late, names_read, point_at, subgraphs_of
from modelwright.targets import ModelBytes, mapped_data

if TYPE_CHECKING:
    import onnx
else:
    onnx = lazy("onnx")

SHADOW, FED = "shadow/", "fed/"
_CODES = {"float32": 1, "float16": 10, "float64": 11}


@dataclass(frozen=True, eq=False)
class Shadow:
    """Float nodes that are run again on what the other model computed.

    `fed` are the tensors they get from there, `nodes` the float nodes behind each wanted tensor.
    """

    fed: tuple[str, ...]
    nodes: dict[str, tuple[int, ...]]


def shadow_of(view: View, tensors: Sequence[str], known: frozenset[str]) -> Shadow:
    """For each tensor: the nodes between it and the nearest tensors that both models have."""
    fed: dict[str, None] = {}
    regions: dict[str, tuple[int, ...]] = {}
    for tensor in tensors:
        region: set[int] = set()
        pending = [tensor]
        while pending:
            name = pending.pop()
            use = view.makers.get(name)
            if use is None or use.node in region:
                continue
            region.add(use.node)
            for read in names_read(view.nodes[use.node]):
                if read in known:
                    fed[read] = None
                else:
                    pending.append(read)
        regions[tensor] = tuple(sorted(region))
    return Shadow(tuple(fed), regions)


def shown(
    view: View, outputs: Sequence[str], shadow: Shadow | None = None, types: Mapping[str, str] | None = None
) -> ModelBytes:
    """The part of the model that makes `outputs`; with a shadow, also `shadow/<tensor>` for each of its tensors."""
    kept = _ancestors(view, outputs)
    nodes = [view.nodes[index] for index in sorted(kept)]
    names = list(dict.fromkeys(outputs))
    extra: list[onnx.ValueInfoProto] = []
    if shadow is not None and types is not None:
        nodes += _shadow_nodes(view, shadow)
        names += [SHADOW + tensor for tensor in shadow.nodes]
        extra = [onnx.helper.make_tensor_value_info(FED + name, _CODES[types[name]], None) for name in shadow.fed]
    return _assembled(view, nodes, names, extra)


def sized(view: View, tensors: Sequence[str]) -> ModelBytes:
    """The model with the number of elements of every tensor as its outputs, each made behind the tensor."""
    nodes, wanted = list[onnx.NodeProto](), frozenset(tensors)
    for index in sorted(_ancestors(view, tensors)):
        nodes.append(view.nodes[index])
        made = (name for name in view.nodes[index].output if name in wanted)
        nodes += [onnx.helper.make_node("Size", [name], [f"{name}::size"], name=f"{name}::size") for name in made]
    return _assembled(view, nodes, [f"{name}::size" for name in tensors], [])


def _ancestors(view: View, outputs: Iterable[str]) -> set[int]:
    kept: set[int] = set()
    pending = list(outputs)
    while pending:
        use = view.makers.get(pending.pop())
        if use is not None and use.node not in kept:
            kept.add(use.node)
            pending.extend(names_read(view.nodes[use.node]))
    return kept


def _shadow_nodes(view: View, shadow: Shadow) -> list[onnx.NodeProto]:
    fed = frozenset(shadow.fed)
    indices = sorted({index for region in shadow.nodes.values() for index in region})
    return [_renamed(view.nodes[index], view, fed) for index in indices]


def _renamed(node: onnx.NodeProto, view: View, fed: frozenset[str]) -> onnx.NodeProto:
    copy = onnx.NodeProto()
    copy.CopyFrom(node)
    if copy.name:
        copy.name = SHADOW + copy.name
    _rename_reads(copy, view, fed)
    for place, name in enumerate(copy.output):
        if name:
            copy.output[place] = SHADOW + name
    return copy


def _rename_reads(node: onnx.NodeProto, view: View, fed: frozenset[str]) -> None:
    for place, name in enumerate(node.input):
        if name in fed:
            node.input[place] = FED + name
        elif name in view.makers:
            node.input[place] = SHADOW + name
    for subgraph in subgraphs_of(node):
        for inner in subgraph.node:
            _rename_reads(inner, view, fed)


def _assembled(
    view: View, nodes: Sequence[onnx.NodeProto], outputs: Sequence[str], extra: Sequence[onnx.ValueInfoProto]
) -> ModelBytes:
    source = view.graph.model
    model = onnx.ModelProto(ir_version=source.ir_version)
    model.opset_import.extend(source.opset_import)
    model.functions.extend(source.functions)
    model.graph.name = source.graph.name or "part"
    model.graph.node.extend(late(nodes, view.stored))
    model.graph.input.extend(item for item in source.graph.input if item.name in view.inputs)
    model.graph.input.extend(extra)
    model.graph.output.extend(_output(view, name) for name in outputs)
    needed = {name for node in nodes for name in names_read(node)} | set(outputs)
    on_disk = {source.graph.initializer[index].name: span for index, span in view.graph.on_disk.items()}
    for name in sorted(needed & view.stored.keys()):
        tensor = model.graph.initializer.add()
        tensor.CopyFrom(view.stored[name])
        tensor.name = name
        if name in on_disk:
            point_at(tensor, view.graph.path.name, on_disk[name])
    data = model.SerializeToString()
    if _together(view):
        return ModelBytes(data, folder=str(view.graph.folder))
    files: dict[str, Any] = dict(mapped_data(view.graph))
    if on_disk:
        files[view.graph.path.name] = _mapped(view)
    return ModelBytes(data, files)


def _together(view: View) -> bool:
    """All files lie in one folder; onnxruntime follows no link that leads out of it."""
    folder = view.graph.folder.resolve()
    used = {view.graph.path, *(place.path for place in external_data(view.graph))}
    return all(path.resolve().is_relative_to(folder) for path in used)


def _output(view: View, name: str) -> onnx.ValueInfoProto:
    """An input that is also an output needs its type; for the rest onnxruntime finds it."""
    declared = next((item for item in view.graph.model.graph.input if item.name == name), None)
    return declared if declared is not None else onnx.ValueInfoProto(name=name)


def _mapped(view: View) -> mmap.mmap:
    with view.graph.path.open("rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
