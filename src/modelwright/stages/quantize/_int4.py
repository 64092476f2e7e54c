"""4-bit weights in blocks: MatMul becomes MatMulNBits, activations stay float."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from modelwright._dataclass import dataclass
from modelwright._lazy import lazy
from modelwright.errors import InputError
from modelwright.graph import StreamedWeight, subgraphs_of
from modelwright.stages.quantize._blocks import BITS, PackedBlocks, block_shapes, pack_asymmetric, pack_symmetric
from modelwright.stages.quantize._order import drop_named
from modelwright.stages.quantize._params import QuantizeParams
from modelwright.stages.quantize._turned import names_in_use
from modelwright.stages.quantize._weights import broken, leave_outside
from modelwright.worker import progress

if TYPE_CHECKING:
    import numpy as np
    import onnx
    from numpy.typing import NDArray
else:
    np = lazy("numpy")
    onnx = lazy("onnx")

_BLOCKS = (16, 32, 64, 128, 256)
_DOMAIN = "com.microsoft"


def quantize_int4(model: onnx.ModelProto, params: QuantizeParams, weights: dict[str, StreamedWeight]) -> None:
    """Round to nearest, a scale per block of `block_size` inputs; in place.

    `weights` holds those initializers of the main graph that are not in memory; the new ones are among them
    afterwards, and none is computed before it is asked for.
    """
    _refuse(params)
    work = _Int4Work(model, params, weights)
    work.graph(model.graph, ())
    work.forget_unread()
    if work.replaced and not any(item.domain == _DOMAIN for item in model.opset_import):
        model.opset_import.append(onnx.helper.make_opsetid(_DOMAIN, 1))


def settle(model: onnx.ModelProto, weights: dict[str, StreamedWeight]) -> None:
    """All of them into memory."""
    for tensor in model.graph.initializer:
        if tensor.name in weights:
            values = np.ascontiguousarray(weights[tensor.name].values())
            tensor.CopyFrom(onnx.numpy_helper.from_array(values, tensor.name))


@dataclass(frozen=True, eq=False)
class _Matrix:
    """A stored matrix (rows, columns), whatever single dimensions stand before them, and the graph that it is in."""

    name: str
    weight: StreamedWeight
    owner: onnx.GraphProto

    @property
    def shape(self) -> tuple[int, int]:
        return self.weight.shape[-2], self.weight.shape[-1]

    def values(self) -> NDArray[Any]:
        return self.weight.values().reshape(self.shape)


class _Int4Work:
    def __init__(self, model: onnx.ModelProto, params: QuantizeParams, weights: dict[str, StreamedWeight]) -> None:
        self._main, self._params, self._weights = model.graph, params, weights
        self._left_out = frozenset(params.nodes_to_exclude)
        self._made: dict[tuple[int, str], list[str]] = {}
        self._stored: dict[int, tuple[onnx.GraphProto, dict[str, onnx.TensorProto]]] = {}
        self._ranks = {
            value.name: len(value.type.tensor_type.shape.dim)
            for value in (*model.graph.input, *model.graph.value_info)
            if value.type.tensor_type.HasField("shape")
        }
        self.replaced = False

    def graph(self, graph: onnx.GraphProto, above: tuple[onnx.GraphProto, ...]) -> None:
        # Kept with the graph itself: the number of an object that is gone may be another's.
        self._stored[id(graph)] = graph, {tensor.name: tensor for tensor in graph.initializer}
        for node in graph.node:
            for inner in subgraphs_of(node):
                self.graph(inner, (graph, *above))
            matrix = self._matrix(node, (graph, *above))
            if matrix is not None:
                self._replace(node, matrix)

    def _matrix(self, node: onnx.NodeProto, graphs: tuple[onnx.GraphProto, ...]) -> _Matrix | None:
        """What the product is with, if that is stored and can be packed."""
        if node.op_type != "MatMul" or node.domain not in ("", "ai.onnx") or node.name in self._left_out:
            return None
        owner = next((graph for graph in graphs if node.input[1] in self._stored[id(graph)][1]), None)
        if owner is None:
            return None
        tensor = self._stored[id(owner)][1][node.input[1]]
        weight = self._weights.get(tensor.name) if owner is self._main else None
        matrix = _Matrix(tensor.name, weight or _in_memory(tensor), owner)
        return matrix if self._fits(node, matrix.weight) else None

    def _fits(self, node: onnx.NodeProto, weight: StreamedWeight) -> bool:
        kinds = (onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16, onnx.TensorProto.BFLOAT16)
        rank = len(weight.shape)
        if weight.data_type not in kinds or rank < 2 or 0 in weight.shape or set(weight.shape[:-2]) - {1}:
            return False
        # A matrix with more dimensions than what it is multiplied with would add some to the result.
        return rank == 2 or self._ranks.get(node.input[0], 0) >= rank

    def _replace(self, node: onnx.NodeProto, matrix: _Matrix) -> None:
        self.replaced = True
        rows, columns = matrix.shape
        inputs = [node.input[0], *self._packed(matrix)]
        size, name = self._params.block_size, f"{node.name}_Q{BITS}" if node.name else ""
        made = onnx.helper.make_node(
            "MatMulNBits", inputs, list(node.output), name, domain=_DOMAIN, K=rows, N=columns, bits=BITS,
            block_size=size,
        )  # fmt: skip
        node.CopyFrom(made)

    def _packed(self, matrix: _Matrix) -> list[str]:
        """The names of its parts; they are there once for all who read the matrix."""
        key = id(matrix.owner), matrix.name
        if key not in self._made:
            self._made[key] = [self._store(matrix, suffix, item) for suffix, item in self._parts(matrix)]
            drop_named(matrix.owner.input, {matrix.name})
        return self._made[key]

    def _parts(self, matrix: _Matrix) -> Iterator[tuple[str, StreamedWeight]]:
        shapes = block_shapes(*matrix.shape, self._params.block_size)
        made = _Packing(matrix, self._params)
        yield f"_Q{BITS}", StreamedWeight(onnx.TensorProto.UINT8, shapes[0], made.packed)
        yield "_scales", StreamedWeight(matrix.weight.data_type, shapes[1], made.scales)
        if not self._params.symmetric_weights:
            yield "_zero_points", StreamedWeight(onnx.TensorProto.UINT8, shapes[2], made.zeros)

    def _store(self, matrix: _Matrix, suffix: str, weight: StreamedWeight) -> str:
        stored, name = self._stored[id(matrix.owner)][1], matrix.name + suffix
        while name in stored:
            name += "_"
        stored[name] = matrix.owner.initializer.add(name=name, data_type=weight.data_type, dims=weight.shape)
        if matrix.owner is self._main:
            self._weights[name] = weight
            leave_outside(stored[name])
        else:
            stored[name].raw_data = np.ascontiguousarray(weight.values()).tobytes()
        return name

    def forget_unread(self) -> None:
        """Matrices that nothing reads any more."""
        used, replaced = names_in_use(self._main), self._made.keys()
        for key, (graph, _) in self._stored.items():
            gone = {name for owner, name in replaced if owner == key} - used
            drop_named(graph.initializer, gone)
            for name in gone if graph is self._main else ():
                self._weights.pop(name, None)


class _Packing:
    """Made when its first part is asked for, and gone with the last: they are written one after the other."""

    def __init__(self, matrix: _Matrix, params: QuantizeParams) -> None:
        self._matrix, self._size, self._symmetric = matrix, params.block_size, params.symmetric_weights
        self._found: PackedBlocks | None = None

    def packed(self) -> NDArray[Any]:
        return self._made().packed

    def scales(self) -> NDArray[Any]:
        made = self._made()
        if self._symmetric:
            self._found = None
        return made.scales

    def zeros(self) -> NDArray[Any]:
        made, self._found = self._made(), None
        assert made.zeros is not None, "these blocks are not symmetric"
        return made.zeros

    def _made(self) -> PackedBlocks:
        if self._found is None:
            progress(f"packing {self._matrix.name}")
            self._found = (pack_symmetric if self._symmetric else pack_asymmetric)(self._matrix.values(), self._size)
            if np.isnan(self._found.scales).any():
                raise broken(self._matrix.name)
        return self._found


def _in_memory(tensor: onnx.TensorProto) -> StreamedWeight:
    return StreamedWeight(tensor.data_type, tuple(tensor.dims), lambda: onnx.numpy_helper.to_array(tensor))


def _refuse(params: QuantizeParams) -> None:
    if params.block_size not in _BLOCKS:
        raise InputError(
            f"a block of {params.block_size} is not possible",
            cause=f"MatMulNBits takes blocks of {', '.join(map(str, _BLOCKS))}",
            fix="Choose one of them; smaller is more accurate and larger is smaller.",
        )
    if params.overrides or (params.op_types and params.op_types != ("MatMul",)):
        raise InputError(
            "int4 quantizes the stored weights of MatMul and nothing else",
            cause="op_types or overrides ask for more",
            fix="Leave them out; exclude single nodes with nodes_to_exclude.",
        )
