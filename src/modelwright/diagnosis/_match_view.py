"""A model's main graph with who makes and who reads each tensor, and its weights on demand."""

from __future__ import annotations

from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from modelwright._dataclass import dataclass
from modelwright._lazy import lazy
from modelwright.graph import ExternalTensor, Graph, external_data, load, mapped
from modelwright.stages.quantize import rescaled

if TYPE_CHECKING:
    import numpy as np
    import onnx
    from numpy.typing import NDArray
else:
    np = lazy("numpy")
    onnx = lazy("onnx")

RESCALED = "factors were moved between it and its neighbours before it was quantized (effort best)"
QUANTIZE, DEQUANTIZE = "QuantizeLinear", "DequantizeLinear"


@dataclass(frozen=True)
class Use:
    """One place where a tensor is read."""

    node: int
    position: int


@dataclass(frozen=True, eq=False)
class View:
    """Nodes by index; tensors by name. `stored` are initializers and Constant nodes. What is `rescaled` holds other
    numbers than in the float model by intention."""

    graph: Graph
    nodes: tuple[onnx.NodeProto, ...]
    makers: dict[str, Use]
    uses: dict[str, tuple[Use, ...]]
    stored: dict[str, onnx.TensorProto]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    by_name: dict[str, int]
    rescaled: frozenset[str] = frozenset()
    _outside: dict[str, ExternalTensor] = field(default_factory=dict)
    _inside: dict[str, int] = field(default_factory=dict)

    def has(self, tensor: str) -> bool:
        """True for what is computed or fed, false for what is stored."""
        return tensor in self.makers or tensor in self.inputs

    def maker(self, tensor: str) -> onnx.NodeProto | None:
        use = self.makers.get(tensor)
        return None if use is None else self.nodes[use.node]

    def readers(self, tensor: str) -> tuple[onnx.NodeProto, ...]:
        return tuple(self.nodes[use.node] for use in self.uses.get(tensor, ()))

    def folded_behind(self, tensor: str, got: View) -> onnx.NodeProto | None:
        """A batch normalization that reads this tensor and is gone in `got`: whoever makes the tensor took it in."""
        norms = (node for node in self.readers(tensor) if node.op_type == "BatchNormalization")
        return next((node for node in norms if node.name not in got.by_name), None)

    def shape(self, stored: str) -> tuple[int, ...]:
        return tuple(self.stored[stored].dims)

    def values(self, stored: str) -> NDArray[Any]:
        """A stored tensor's numbers, mapped from its file when they are not in memory."""
        tensor, place = self.stored[stored], self._place(stored)
        if place is None:
            return np.asarray(onnx.numpy_helper.to_array(tensor))
        found = np.asarray(mapped(*place, tensor).values())
        if found.dtype.isbuiltin and found.shape == tuple(tensor.dims):
            return found
        # Types that numpy does not have.
        filled = onnx.TensorProto(name=stored, data_type=tensor.data_type, dims=tensor.dims, raw_data=found.tobytes())
        return np.asarray(onnx.numpy_helper.to_array(filled))

    def _place(self, stored: str) -> tuple[Path, int, int] | None:
        if stored in self._outside:
            place = self._outside[stored]
            return place.path, place.offset, place.length
        if stored in self._inside:
            span = self.graph.on_disk[self._inside[stored]]
            return self.graph.path, span.offset, span.length
        return None


def view(path: str) -> View:
    """Read a model's graph; its large weights stay on disk."""
    graph = load(path)
    proto = graph.model.graph
    stored = {tensor.name: tensor for tensor in proto.initializer}
    stored |= _constants(proto)
    outside = {item.name: item for item in external_data(graph) if item.name in stored}
    inside = {proto.initializer[index].name: index for index in graph.on_disk}
    makers, uses = _links(proto)
    return View(
        graph=graph,
        nodes=tuple(proto.node),
        makers={name: use for name, use in makers.items() if name not in stored},
        uses=uses,
        stored=stored,
        inputs=tuple(value.name for value in proto.input if value.name not in stored),
        outputs=tuple(value.name for value in proto.output),
        by_name={node.name: index for index, node in reversed(list(enumerate(proto.node))) if node.name},
        rescaled=rescaled(graph.model),
        _outside=outside,
        _inside=inside,
    )


def label(node: onnx.NodeProto) -> str:
    """The node's name, or what can stand for it."""
    return node.name or f"{node.op_type}({next((name for name in node.output if name), '')})"


def attribute(node: onnx.NodeProto, name: str, default: int) -> int:
    return next((int(item.i) for item in node.attribute if item.name == name), default)


def _links(proto: onnx.GraphProto) -> tuple[dict[str, Use], dict[str, tuple[Use, ...]]]:
    makers: dict[str, Use] = {}
    uses: dict[str, list[Use]] = {}
    for index, node in enumerate(proto.node):
        for position, name in enumerate(node.output):
            if name:
                makers[name] = Use(index, position)
        for position, name in enumerate(node.input):
            if name:
                uses.setdefault(name, []).append(Use(index, position))
    return makers, {name: tuple(found) for name, found in uses.items()}


def _constants(proto: onnx.GraphProto) -> dict[str, onnx.TensorProto]:
    return {
        node.output[0]: item.t
        for node in proto.node
        if node.op_type == "Constant" and node.output
        for item in node.attribute
        if item.name == "value"
    }
