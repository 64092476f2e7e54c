"""GELU written with Erf becomes one operator, because an NPU that has GELU may have no Erf.

Between pairs the five operators are no longer the pattern that an EP recognises, and a bare Erf is left to the CPU in
the middle of the model.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import TYPE_CHECKING

from modelwright._lazy import lazy
from modelwright.stages.quantize._pairs import Links

if TYPE_CHECKING:
    import onnx
else:
    onnx = lazy("onnx")

_DOMAIN = "com.microsoft"
_CLOSE = 1e-3
_INNER = 4  # of the five nodes all but the last


def fuse_gelu(model: onnx.ModelProto, asked: Collection[str] = ()) -> int:
    """x / √2, Erf, + 1, · x and · 0.5 in either order, in place; returns how many. Not where one of its nodes or
    tensors is `asked` about by name."""
    graph = model.graph
    constants = {
        tensor.name: float(onnx.numpy_helper.to_array(tensor).reshape(-1)[0])
        for tensor in graph.initializer
        # One of more axes would give what it is added to as many.
        if tensor.data_type == onnx.TensorProto.FLOAT and list(tensor.dims) in ([], [1])
    }
    erfs = [node for node in graph.node if node.op_type == "Erf"]
    gelu = _Gelu(Links.of(graph), constants) if erfs else None
    wholes = [whole for erf in erfs if gelu is not None and (whole := gelu.around(erf)) is not None]
    gone: set[str] = set()
    for source, nodes in wholes:
        *inner, last = nodes
        if any(node.name in asked or node.output[0] in asked for node in nodes):
            continue
        gone.update(node.output[0] for node in inner)
        last.CopyFrom(
            onnx.helper.make_node("Gelu", [source], [last.output[0]], name=f"{last.name}_gelu", domain=_DOMAIN)
        )
    for place in reversed([place for place, node in enumerate(graph.node) if gone.intersection(node.output)]):
        del graph.node[place]
    found = len(gone) // _INNER
    if found and not any(item.domain == _DOMAIN for item in model.opset_import):
        model.opset_import.add(domain=_DOMAIN, version=1)
    return found


class _Gelu:
    def __init__(self, links: Links, constants: dict[str, float]) -> None:
        self._links, self._constants = links, constants

    def around(self, erf: onnx.NodeProto) -> tuple[str, list[onnx.NodeProto]] | None:
        """What it reads, and its nodes, the last one last; nobody else may read what is between."""
        scaled = self._links.makers.get(erf.input[0])
        if scaled is None or not self._only_reader(scaled, erf):
            return None
        source = self._operand(scaled, "Div", math.sqrt(2)) or self._operand(scaled, "Mul", math.sqrt(0.5))
        add = self._next(erf)
        if source is None or add is None or self._operand(add, "Add", 1.0) != erf.output[0]:
            return None
        tail = self._product(add, source)
        return None if tail is None else (source, [scaled, erf, add, *tail])

    def _product(self, add: onnx.NodeProto, source: str) -> list[onnx.NodeProto] | None:
        """(1 + …) · x · 0.5, or (1 + …) · (x · 0.5), or (1 + …) · 0.5 · x."""
        first = self._next(add)
        if first is None or first.op_type != "Mul":
            return None
        other = next((name for name in first.input if name != add.output[0]), "")
        half = self._links.makers.get(other)
        if half is not None and self._operand(half, "Mul", 0.5) == source and self._only_reader(half, first):
            return [half, first]
        second = self._next(first)
        if second is None or second.op_type != "Mul":
            return None
        if other == source and self._operand(second, "Mul", 0.5) == first.output[0]:
            return [first, second]
        if self._operand(first, "Mul", 0.5) == add.output[0] and source in second.input:
            return [first, second]
        return None

    def _operand(self, node: onnx.NodeProto, operator: str, constant: float) -> str | None:
        """The other operand of such an operator with this constant; of a division the first."""
        if node.op_type != operator or len(node.input) != 2:
            return None
        left, right = node.input
        if abs(self._constants.get(right, math.inf) - constant) < _CLOSE:
            return str(left)
        swapped = operator != "Div" and abs(self._constants.get(left, math.inf) - constant) < _CLOSE
        return str(right) if swapped else None

    def _next(self, node: onnx.NodeProto) -> onnx.NodeProto | None:
        readers = self._links.readers.get(node.output[0], [])
        return readers[0] if len(readers) == 1 and node.output[0] not in self._links.shown else None

    def _only_reader(self, node: onnx.NodeProto, reader: onnx.NodeProto) -> bool:
        found = self._next(node)
        return found is not None and found.name == reader.name
