"""No float between the products of an NPU: what lies there is computed on 16-bit integers.

8 bits for every operator ruin transformers and detectors (a residual, a norm, a list of boxes and scores has no levels
to spare), and floats between integers cost an NPU conversions and its slow units. 16 bits lose next to nothing, and
where a product reads such a tensor it is converted to 8.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import field
from typing import TYPE_CHECKING

from modelwright._dataclass import dataclass
from modelwright._lazy import lazy
from modelwright.stages.quantize._pairs import Links
from modelwright.stages.quantize._params import QuantizeParams
from modelwright.stages.quantize._scope import MOVERS, WIDE, WORKERS
from modelwright.stages.quantize._tensor_types import element_types
from modelwright.targets import adapter_of

if TYPE_CHECKING:
    import onnx
else:
    onnx = lazy("onnx")


@dataclass(frozen=True)
class Widths:
    """Tensors that carry 16 bits among those of 8, and for tensors of either the nodes that read the other width."""

    wide: frozenset[str] = frozenset()
    converted: Mapping[str, frozenset[str]] = field(default_factory=dict)

    @property
    def count(self) -> int:
        return len(self.wide)


def island_widths(
    model: onnx.ModelProto, params: QuantizeParams, operators: Container[str], excluded: Container[str]
) -> Widths:
    """16 bits for what lies between products, as far as the EP of the scope takes that, and what was asked for."""
    taken = adapter_of(params.scope).operators(WIDE) if params.scope is not None else None
    if taken is None:
        return Widths()
    nodes = {node.name: node for node in model.graph.node if node.op_type in operators and node.name not in excluded}
    islands = frozenset(
        name for name, node in nodes.items() if node.op_type in taken.integers - MOVERS - WORKERS and node.output[0]
    )
    types, stored = element_types(model), {tensor.name for tensor in model.graph.initializer}
    said = {item.tensor: item.dtype.endswith("16") for item in params.overrides}
    # What computes in 16 bits because that was asked for is no other: what moves values from it and to it is as wide.
    islands |= {name for name, node in nodes.items() if said.get(node.output[0], False)}
    found = _Islands(Links.of(model.graph), frozenset(nodes), islands)
    floats = {name for name, code in types.items() if code == onnx.TensorProto.FLOAT}
    wide = {name for name in found.tensors(model.graph) if name in floats - stored and said.get(name, True)}
    wide |= {name for name, is_wide in said.items() if is_wide}
    wide |= found.constants(model.graph, floats & stored - said.keys())
    return Widths(frozenset(wide), _converted(nodes.values(), wide, floats - stored))


def _converted(nodes: Iterable[onnx.NodeProto], wide: set[str], moving: set[str]) -> dict[str, frozenset[str]]:
    """An operator computes in the width of what it writes; what it reads of the other width is converted."""
    found: dict[str, set[str]] = {}
    for node in nodes:
        for name in node.input:
            if name in moving and (name in wide) != (node.output[0] in wide):
                found.setdefault(name, set()).add(node.name)
    return {name: frozenset(readers) for name, readers in found.items()}


class _Islands:
    """Which tensors are written and read by operators between products, directly or through such as move values."""

    def __init__(self, links: Links, scope: frozenset[str], islands: frozenset[str]) -> None:
        self._links, self._scope, self._islands = links, scope, islands
        self._known: dict[str, bool] = {}

    def tensors(self, graph: onnx.GraphProto) -> Iterator[str]:
        wide: set[str] = set()
        for node in graph.node:
            # What comes from outside of the scope has been float until here.
            wide |= {name for name in node.input if self._comes_in(name)}
            if node.name in self._islands:
                wide.update(node.output)
            elif self._moves(node) and node.input[0] in wide and self._leads_on(node.output[0]):
                wide.add(node.output[0])
        yield from sorted(wide)

    def constants(self, graph: onnx.GraphProto, stored: set[str]) -> set[str]:
        """Stored operands that only such operators read; a norm has a form of its own for what it stores, and what a
        product stores are weights."""
        return {
            name
            for node in graph.node
            if node.name in self._islands and not node.op_type.endswith("Normalization") and node.op_type not in WORKERS
            for name in node.input
            if name in stored and all(reader.name in self._islands for reader in self._links.readers[name])
        }

    def _comes_in(self, name: str) -> bool:
        maker = self._links.makers.get(name)
        return (maker is None or maker.name not in self._scope) and self._leads_on(name)

    def _moves(self, node: onnx.NodeProto) -> bool:
        return node.op_type in MOVERS and node.name in self._scope

    def _leads_on(self, name: str) -> bool:
        """Does an operator between products read it?"""
        if name not in self._known:
            self._known[name] = any(
                reader.name in self._islands
                or (self._moves(reader) and reader.input[0] == name and self._leads_on(reader.output[0]))
                for reader in self._links.readers.get(name, ())
            )
        return self._known[name]
