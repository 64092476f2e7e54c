"""Names in ONNX are UTF-8. Protobuf does not check that, so one damaged byte would surface far from here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from modelwright.graph._bodies import Body

if TYPE_CHECKING:
    import onnx

# AttributeProto.AttributeType: numbers, a string, lists of them, and tensors, whose names are those of the body.
_WITHOUT_NAMES = frozenset({1, 2, 3, 4, 6, 7, 8, 9})


def damaged_name(model: onnx.ModelProto, bodies: tuple[Body, ...]) -> str | None:
    """What stands where a name should, or None when every name we ever look at is text."""
    try:
        names = list(_names(model, bodies))
        # Some protobuf runtimes hand out bytes for such a name, others raise.
        if set(map(type, names)) <= {str}:
            return None
        return next(repr(name)[:60] for name in names if type(name) is not str)
    except UnicodeDecodeError as error:
        return repr(error.object)[:60]


def _names(model: onnx.ModelProto, bodies: tuple[Body, ...]) -> Iterator[str]:
    yield from (model.producer_name, model.producer_version, model.graph.name)
    yield from (item.domain for item in model.opset_import)
    yield from _value_names((*model.graph.input, *model.graph.output))
    for function in model.functions:
        yield from (function.domain, function.name, function.overload)
        yield from (*function.input, *function.output, *function.attribute)
        yield from (item.domain for item in function.opset_import)
        yield from (item.name for item in function.attribute_proto)
    for body in bodies:
        yield from _node_names(body.nodes)
        for tensor in body.tensors():
            yield tensor.name
            for entry in tensor.external_data:
                yield from (entry.key, entry.value)


def _node_names(nodes: Iterable[onnx.NodeProto]) -> list[str]:
    """Of thousands of nodes, reading each name takes longer than to parse the model: those that are nothing but ASCII
    hold no other names."""
    found: list[str] = []
    for node in nodes:
        if not node.attribute and node.SerializeToString().isascii():
            continue
        found += (node.op_type, node.domain, node.name, node.overload, *node.input[:], *node.output[:])
        for attribute in node.attribute:
            found += (attribute.name, attribute.ref_attr_name)
            if attribute.type not in _WITHOUT_NAMES:
                found += _inner_names(attribute)
    return found


def _inner_names(attribute: onnx.AttributeProto) -> Iterator[str]:
    if attribute.HasField("g"):
        yield from _value_names((*attribute.g.input, *attribute.g.output))
    for graph in attribute.graphs:
        yield from _value_names((*graph.input, *graph.output))
    if attribute.HasField("tp"):
        yield from _type_names(attribute.tp)
    for declared in attribute.type_protos:
        yield from _type_names(declared)


def _value_names(values: Iterable[onnx.ValueInfoProto]) -> Iterator[str]:
    for value in values:
        yield value.name
        yield from _type_names(value.type)


def _type_names(declared: onnx.TypeProto) -> Iterator[str]:
    kind = declared.WhichOneof("value")
    if kind in ("tensor_type", "sparse_tensor_type"):
        yield from (dim.dim_param for dim in getattr(declared, kind).shape.dim)
    elif kind in ("sequence_type", "optional_type"):
        yield from _type_names(getattr(declared, kind).elem_type)
    elif kind == "map_type":
        yield from _type_names(declared.map_type.value_type)
