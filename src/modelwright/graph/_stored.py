"""Which names in a body are stored tensors, and which node makes each of the others."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Container, Mapping
from typing import TYPE_CHECKING, TypeVar, cast

from modelwright._dataclass import dataclass
from modelwright.graph._bodies import Body

if TYPE_CHECKING:
    import onnx

T = TypeVar("T")
# Operators that move elements without computing with them; what they read is what they write.
_MOVERS = frozenset({"Identity", "Reshape", "Transpose", "Squeeze", "Unsqueeze", "Flatten", "Slice"})
_LOOKUP = "Gather"
_HANDED_ON = _MOVERS | {"QuantizeLinear", "DequantizeLinear", "Expand"}
_ADDING = frozenset({"Add", "Sub", "Sum"})


@dataclass(frozen=True)
class Names:
    """Names visible in one body: stored tensors (initializers and Constant nodes) and producing nodes. `own` are the
    tensors stored in the body itself."""

    own: Mapping[str, onnx.TensorProto]
    stored: Mapping[str, onnx.TensorProto]
    producers: Mapping[str, onnx.NodeProto]

    def tensor(self, node: onnx.NodeProto, index: int) -> onnx.TensorProto | None:
        """The stored tensor at an input, or None when it is computed or absent."""
        return self.stored.get(node.input[index]) if index < len(node.input) and node.input[index] else None

    def origin(self, name: str, *, through_gather: bool) -> str:
        """The value a name was moved from; movers are looked through.

        A lookup in a table of integers still reads weights; one in a table of floats makes an activation.
        """
        movers = _MOVERS | {_LOOKUP} if through_gather else _MOVERS
        seen: set[str] = set()
        while name not in self.stored and name not in seen:
            seen.add(name)
            node = self.producers.get(name)
            if node is None or node.op_type not in movers or not node.input:
                break
            name = node.input[0]
        return name


def names_of(bodies: tuple[Body, ...]) -> dict[int, Names]:
    """By identity of the body. Parents come first, so a child finds its parent's names."""
    found: dict[int, Names] = {}
    for body in bodies:
        stored = {tensor.name: tensor for tensor in body.initializers} | _constants(body)
        producers = {name: node for node in body.nodes for name in node.output[:] if name}
        outer = found[id(body.parent)] if body.parent else None
        found[id(body)] = Names(
            stored,
            stored if outer is None else _inside(outer.stored, stored),
            producers if outer is None else _inside(outer.producers, producers),
        )
    return found


def _inside(outer: Mapping[str, T], own: dict[str, T]) -> Mapping[str, T]:
    return ChainMap(own, *(outer.maps if isinstance(outer, ChainMap) else [cast(dict[str, T], outer)]))


def added_tensors(bodies: tuple[Body, ...], names: dict[int, Names]) -> set[int]:
    """Identities of the stored tensors that are added to values that move, and read by nobody else.

    Looked through are operators that move elements, and pairs. What is added to a weight is a part of that weight.
    Vectors are none of them: what they are is clear without.
    """
    added: dict[int, bool] = {}
    handed_on = {name for body in bodies for node in body.nodes if node.op_type in _HANDED_ON for name in node.output}
    adding = [(names[id(body)], node) for body in bodies for node in body.nodes if node.op_type in _ADDING]
    if not any(_reads_matrix(node, visible, handed_on) for visible, node in adding):
        return set()
    for body in bodies:
        visible, fixed = names[id(body)], set[str]()
        for node in body.nodes:
            read, kind = [name for name in node.input[:] if name], node.op_type
            still = bool(read) and all(name in visible.stored or name in fixed for name in read)
            if still:
                fixed.update(node.output)
            if kind in _HANDED_ON:
                continue
            for name in read:
                tensor = _behind(name, visible, handed_on)
                if tensor is not None:
                    adds = kind in _ADDING and not still
                    added[id(tensor)] = added.get(id(tensor), True) and adds
    return {tensor for tensor, only in added.items() if only}


def _reads_matrix(node: onnx.NodeProto, names: Names, handed_on: Container[str]) -> bool:
    for name in node.input[:]:
        tensor = _behind(name, names, handed_on)
        if tensor is not None and len(tensor.dims) > 1:
            return True
    return False


def _behind(name: str, names: Names, handed_on: Container[str]) -> onnx.TensorProto | None:
    """The stored tensor that a value has its elements from. Only names in `handed_on` can have them from elsewhere."""
    return names.stored.get(name) or (names.stored.get(_handed_on(names, name)) if name in handed_on else None)


def _handed_on(names: Names, name: str) -> str:
    """The value that a name has its elements from."""
    seen: set[str] = set()
    while name not in names.stored and name not in seen:
        node = names.producers.get(name)
        if node is None or node.op_type not in _HANDED_ON or not node.input:
            break
        seen.add(name)
        name = node.input[0]
    return name


def _constants(body: Body) -> dict[str, onnx.TensorProto]:
    return {
        node.output[0]: attribute.t
        for node in body.nodes
        if node.op_type == "Constant" and node.output
        for attribute in node.attribute
        if attribute.name == "value"
    }
