"""What no runtime can use, found while the file is read: the part of onnx's checker that needs no operator schemas.

Wiring (cycles, values nobody makes) is checked where nodes are put in order; files beside the model where they are
looked up.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import TYPE_CHECKING

from modelwright.graph._bodies import Body, domain_of
from modelwright.graph._calls import call_flaw
from modelwright.graph._skeleton import ByteRange
from modelwright.graph._stored_flaws import sparse_flaw, tensor_flaw
from modelwright.graph._types import STRING, dtype_bits

if TYPE_CHECKING:
    import onnx

_FIRST_IR_WITH_TYPES = 2


def first_flaw(model: onnx.ModelProto, bodies: tuple[Body, ...], on_disk: Mapping[int, ByteRange]) -> str | None:
    """The first thing that is wrong, in words, or None."""
    found = chain(
        _version_flaws(model),
        _value_flaws(model.graph, bodies[0]),
        chain.from_iterable(_tensor_flaws(body, on_disk if body.kind == "graph" else {}) for body in bodies),
        chain.from_iterable(_body_flaws(body, model.ir_version) for body in bodies),
        _function_flaws(model),
    )
    return next(found, None)


def _version_flaws(model: onnx.ModelProto) -> Iterator[str]:
    if model.ir_version < 1:
        yield f"it is of IR version {model.ir_version}"
    versions: dict[str, int] = {}
    for item in model.opset_import:
        domain = domain_of(item.domain)
        if item.version < 1:
            yield f"it imports version {item.version} of the operators of {domain or 'ai.onnx'}"
        if versions.setdefault(domain, item.version) != item.version:
            yield f"it imports two versions of the operators of {domain or 'ai.onnx'}"


def _value_flaws(graph: onnx.GraphProto, body: Body) -> Iterator[str]:
    twice = _twice(value.name for value in graph.input)
    if twice is not None:
        yield f"two inputs have the name '{twice}'"
    for value in (*graph.input, *graph.output):
        if not value.name:
            yield "an input or output has no name"
        code = value.type.tensor_type.elem_type if value.type.HasField("tensor_type") else 0
        if code and dtype_bits(code) is None and code != STRING:
            yield f"'{value.name}' has the element type {code}, and there is none"
    stored = {tensor.name for tensor in graph.initializer} | {item.values.name for item in graph.sparse_initializer}
    taken = stored | {value.name for value in graph.input}
    for name in () if taken.isdisjoint(body.made) else body.made:
        if name in taken:
            yield f"a node writes '{name}', which is {'a weight' if name in stored else 'an input'}"


def _tensor_flaws(body: Body, on_disk: Mapping[int, ByteRange]) -> Iterator[str]:
    # The first are the initializers, and only they can be on disk.
    for index, tensor in enumerate(body.tensors()):
        span = on_disk.get(index) if index < len(body.initializers) else None
        flaw = tensor_flaw(tensor, span.length if span else None)
        if flaw is not None:
            yield flaw
    for sparse in body.sparse_initializers:
        flaw = sparse_flaw(sparse)
        if flaw is not None:
            yield flaw
    names = chain(
        (tensor.name for tensor in body.initializers), (item.values.name for item in body.sparse_initializers)
    )
    twice = _twice(names)
    if twice is not None:
        yield f"two weights have the name '{twice}'"


def _body_flaws(body: Body, ir_version: int) -> Iterator[str]:
    twice = _twice(body.made)
    if twice is not None:
        yield f"two nodes write the value '{twice}'"
    for node in body.nodes:
        if not node.op_type:
            yield f"node '{node.name}' has no operator"
        if not node.attribute:
            continue
        attributes = node.attribute[:]
        names = [attribute.name for attribute in attributes]
        if "" in names:
            yield f"an attribute of {node.op_type} has no name"
        twice = _twice(names)
        if twice is not None:
            yield f"{node.op_type} has the attribute '{twice}' twice"
        # Protobuf drops a type it does not know.
        if ir_version >= _FIRST_IR_WITH_TYPES and 0 in [attribute.type for attribute in attributes]:
            yield f"an attribute of {node.op_type} has no type, or one that does not exist"


def _function_flaws(model: onnx.ModelProto) -> Iterator[str]:
    twice = _twice("::".join((domain_of(item.domain), item.name, item.overload)) for item in model.functions)
    if twice is not None:
        yield f"the function {twice.rstrip(':')} is defined twice"
    for function in model.functions:
        if _twice(function.input) is not None:
            yield f"two parameters of the function {function.name} have one name"
    if twice is None and model.functions:
        flaw = call_flaw(model)
        if flaw is not None:
            yield flaw


def _twice(names: Iterable[str]) -> str | None:
    """The first name that occurs a second time."""
    found, seen = tuple(names), set[str]()
    if len(set(found)) == len(found):
        return None
    for name in found:
        if name in seen:
            return name
        seen.add(name)
    return None
