"""float16: stored weights and the computation between them, inputs and outputs kept when asked."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from modelwright._dataclass import dataclass
from modelwright._lazy import lazy
from modelwright.graph import StreamedWeight, is_external, names_read, subgraphs_of
from modelwright.stages.quantize._params import Clipped, QuantizeParams
from modelwright.stages.quantize._weights import broken

if TYPE_CHECKING:
    import numpy as np
    import onnx
    import onnxruntime.transformers.float16 as float16
    from numpy.typing import NDArray
else:
    np = lazy("numpy")
    onnx = lazy("onnx")
    float16 = lazy("onnxruntime.transformers.float16")

_LARGEST = 65504.0
_SMALLEST = 5.96e-08
_PAIRS = frozenset({"QuantizeLinear", "DequantizeLinear"})


@dataclass(frozen=True)
class HalfResult:
    model: onnx.ModelProto
    clipping: _Clipping

    @property
    def clipped(self) -> Clipped:
        return self.clipping.total


def convert_to_half(
    model: onnx.ModelProto, params: QuantizeParams, weights: dict[str, StreamedWeight] | None = None
) -> HalfResult:
    """Convert everything but the blocked operators and what touches quantized tensors.

    `weights` are those that are not in memory: they are changed while they are written, and only then `clipped` counts
    what they lose.
    """
    streamed = weights if weights is not None else {}
    blocked = [*float16.DEFAULT_OP_BLOCK_LIST, *params.op_types_float, *sorted(_PAIRS)]
    alone = sorted({*params.nodes_to_exclude, *_around_pairs(model)})
    clipped = _Clipping()
    _count_clipped(model, set(blocked), set(alone), clipped)
    before = {node.name for node in model.graph.node}
    with _shapes_as_told():
        converted: onnx.ModelProto = float16.convert_float_to_float16(
            model,
            keep_io_types=params.keep_io_types,
            disable_shape_infer=True,
            op_block_list=blocked,
            node_block_list=alone,
        )
    _drop_twins(converted.graph, before)
    _drop_round_trips(converted.graph, before)
    for tensor in converted.graph.initializer:
        weight = streamed.get(tensor.name)
        if weight is not None and weight.data_type != tensor.data_type:
            streamed[tensor.name] = weight.changed(tensor.data_type, functools.partial(clipped.half, tensor.name))
    return HalfResult(converted, clipped)


@contextmanager
def _shapes_as_told() -> Iterator[None]:
    """The converter reads all values of a weight to learn its shape, which the weight says itself."""
    names, asked = float16.convert_float_to_float16.__globals__, "make_value_info_from_tensor"
    before = names[asked]
    names[asked] = lambda item: onnx.helper.make_tensor_value_info(item.name, item.data_type, list(item.dims))
    try:
        yield
    finally:
        names[asked] = before


class _Clipping:
    """Counts what float16 cannot hold, weight by weight."""

    def __init__(self) -> None:
        self._large = self._small = 0

    @property
    def total(self) -> Clipped:
        return Clipped(self._large, self._small)

    def count(self, values: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        """Which of them are too large and which too small for float16."""
        size = np.abs(values)
        large = (size > _LARGEST) & np.isfinite(size)
        small = (size > 0) & (size < _SMALLEST)
        self._large += int(np.count_nonzero(large))
        self._small += int(np.count_nonzero(small))
        return large, small

    def half(self, name: str, values: NDArray[Any]) -> NDArray[Any]:
        """What the converter does to weights in memory, without its many copies of them."""
        if np.isnan(values).any():
            raise broken(name)
        large, small = self.count(values)
        with np.errstate(over="ignore"):
            made: NDArray[Any] = values.astype(np.float16)
        for beyond, nearest in ((large, _LARGEST), (small, _SMALLEST)):
            made[beyond] = np.copysign(np.float16(nearest), values[beyond])
        return made


def _around_pairs(model: onnx.ModelProto) -> Iterable[str]:
    """Operators inside Q/DQ pairs stay as they are: a Cast between would break the pairs' meaning."""
    from_pair = {name for node in model.graph.node if node.op_type in _PAIRS for name in node.output}
    into_pair = {node.input[0] for node in model.graph.node if node.op_type in _PAIRS}
    for node in model.graph.node:
        if node.op_type not in _PAIRS and (from_pair.intersection(node.input) or into_pair.intersection(node.output)):
            yield node.name


def _drop_twins(graph: onnx.GraphProto, before: set[str]) -> None:
    """The converter casts what several blocked nodes read once for each of them, under one name."""
    seen: set[str] = set()
    for index in reversed(range(len(graph.node))):
        node = graph.node[index]
        if node.op_type != "Cast" or node.name in before:
            continue
        if node.output[0] in seen:
            del graph.node[index]
        seen.add(node.output[0])


def _drop_round_trips(graph: onnx.GraphProto, before: set[str]) -> None:
    """The converter casts to float16 and straight back between two blocked nodes; that only loses digits."""
    added = {node.output[0]: node for node in graph.node if node.op_type == "Cast" and node.name not in before}
    shown = {value.name for value in graph.output} | _read_inside(graph)
    replaced: dict[str, str] = {}
    for output, node in added.items():
        narrowed = added.get(node.input[0])
        if narrowed is not None and _target(narrowed) == onnx.TensorProto.FLOAT16:
            # An output, and what a subgraph reads, keeps its name, and a cast that changes nothing.
            node.input[0] = narrowed.input[0]
            if output not in shown:
                replaced[output] = narrowed.input[0]
    for node in graph.node:
        for position, name in enumerate(node.input):
            if name in replaced:
                node.input[position] = replaced[name]
    _drop_unused(graph, set(added) - shown)


def _read_inside(graph: onnx.GraphProto) -> set[str]:
    """What nodes with subgraphs read."""
    return {name for node in graph.node if subgraphs_of(node) for name in names_read(node)}


def _target(node: onnx.NodeProto) -> int:
    return int(next(item.i for item in node.attribute if item.name == "to"))


def _drop_unused(graph: onnx.GraphProto, names: set[str]) -> None:
    while True:
        used = {name for node in graph.node for name in names_read(node)} | {value.name for value in graph.output}
        dead = [i for i, node in enumerate(graph.node) if node.output[0] in names and node.output[0] not in used]
        if not dead:
            return
        for index in reversed(dead):
            del graph.node[index]


def _count_clipped(model: onnx.ModelProto, blocked: set[str], alone: set[str], clipped: _Clipping) -> None:
    """What the conversion will move: finite values beyond float16, and non-zero ones below its smallest."""
    used = {
        name
        for node in model.graph.node
        if node.op_type not in blocked and node.name not in alone
        for name in names_read(node)
    }
    for tensor in model.graph.initializer:
        if tensor.data_type == onnx.TensorProto.FLOAT and tensor.name in used and not is_external(tensor):
            clipped.count(onnx.numpy_helper.to_array(tensor))
