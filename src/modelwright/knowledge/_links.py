"""Which node feeds which, in the main graph of a model."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from modelwright._lazy import lazy
from modelwright.graph import Graph

if TYPE_CHECKING:
    import onnx
    from onnx import NodeProto
else:
    onnx = lazy("onnx")

_OURS = ("", "ai.onnx", "com.microsoft")


class NodeLinks:
    """Who makes and who takes each value. A constant is one that needs no run: an initializer or a Constant node."""

    def __init__(self, graph: Graph) -> None:
        body = graph.bodies[0]
        self.nodes = [node for node in body.nodes if node.domain in _OURS]
        self._made = {name: node for node in body.nodes for name in node.output if name}
        self._taken: dict[str, list[NodeProto]] = defaultdict(list)
        for node in body.nodes:
            for name in filter(None, node.input):
                self._taken[name].append(node)
        self._weights = {tensor.name: tensor for tensor in body.initializers}
        self._asked = {value.name for value in graph.model.graph.output}

    def of(self, *types: str) -> list[NodeProto]:
        return [node for node in self.nodes if node.op_type in types]

    def maker(self, name: str, *types: str) -> NodeProto | None:
        """Who makes a value, if it is one of these."""
        node = self._made.get(name)
        return node if node is not None and node.op_type in types else None

    def makers(self, node: NodeProto, *types: str) -> list[NodeProto]:
        """Of any of its inputs."""
        found = (self.maker(name, *types) for name in node.input)
        return [one for one in found if one is not None]

    def takers(self, node: NodeProto, *types: str) -> list[NodeProto]:
        return [one for name in node.output for one in self._taken[name] if one.op_type in types]

    def sole(self, node: NodeProto, *types: str) -> NodeProto | None:
        """The one who takes its result, where nobody else does."""
        name = node.output[0] if node.output else ""
        takers = self._taken[name]
        alone = len(takers) == 1 and name not in self._asked and takers[0].op_type in types
        return takers[0] if alone else None

    def is_constant(self, name: str) -> bool:
        return self.constant(name) is not None

    def constant(self, name: str) -> onnx.TensorProto | None:
        if name in self._weights:
            return self._weights[name]
        node = self.maker(name, "Constant")
        return None if node is None else next((item.t for item in node.attribute if item.name == "value"), None)

    def numbers(self, name: str) -> list[float] | None:
        """Of a small constant."""
        tensor = self.constant(name)
        if tensor is None or _size(tensor) > 16:
            return None
        return [float(number) for number in onnx.numpy_helper.to_array(tensor).reshape(-1)]

    def scalar(self, node: NodeProto) -> float | None:
        """The one constant number among its inputs."""
        for name in node.input:
            found = self.numbers(name)
            if found is not None and len(found) == 1:
                return found[0]
        return None

    def computed(self, node: NodeProto) -> list[str]:
        """Its inputs that are no constants."""
        return [name for name in node.input if name and not self.is_constant(name)]


def attribute(node: NodeProto, name: str) -> list[int]:
    return next((list(item.ints) for item in node.attribute if item.name == name), [])


def _size(tensor: onnx.TensorProto) -> int:
    size = 1
    for dim in tensor.dims:
        size *= dim
    return size
