"""A weight and its transpose are one weight: embeddings that are also the last layer.

Folding constants turns `MatMul(x, Transpose(w))` into a product with a second, turned copy of `w`, although another
node still reads `w` itself. The copy becomes a Transpose again, which every runtime folds when it loads the model.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from modelwright._lazy import lazy

if TYPE_CHECKING:
    import numpy as np
    import onnx_ir as ir
else:
    np = lazy("numpy")
    ir = lazy("onnx_ir")

# A smaller one costs less than the node that would stand for it.
WORTH_A_NODE = 16 * 1024
# Enough of a tensor to tell most pairs apart without reading the rest.
_HEAD = 512


def tie_transposed(model: ir.Model) -> int:
    """Stored weights that are another one turned become a Transpose of it; how many did."""
    return sum(_tie(graph) for graph in model.graphs())


def turned_twins(arrays: Sequence[np.ndarray]) -> bool:
    """Whether one of them looks like another one turned."""
    keys = Counter(map(_key, arrays))
    return any(keys[key] > (key == _key(array)) for array in arrays if (key := _key(array.T)) in keys)


def _tie(graph: ir.Graph) -> int:
    kept: dict[tuple[object, ...], list[ir.Value]] = {}
    count = 0
    for value, array in sorted(_matrices(graph), key=_place):
        alike = kept.get(_key(array.T), ())
        twin = next((other for other in alike if _is_turned(other, array)), None)
        if twin is None or value.is_graph_output():
            kept.setdefault(_key(array), []).append(value)
            continue
        _turn(graph, value, twin)
        count += 1
    return count


def _place(found: tuple[ir.Value, np.ndarray]) -> tuple[bool, str]:
    """Tables first: a product takes a turned weight, a look-up of rows had better not."""
    value, _ = found
    return all(node.op_type != "Gather" for node, _ in value.uses()), value.name or ""


def _matrices(graph: ir.Graph) -> Iterator[tuple[ir.Value, np.ndarray]]:
    for value in list(graph.initializers.values()):
        tensor = value.const_value
        if tensor is None or value.is_graph_input() or tensor.dtype == ir.DataType.STRING or not value.uses():
            continue
        if len(tensor.shape) == 2 and tensor.nbytes >= WORTH_A_NODE:
            yield value, tensor.numpy()


def _key(array: np.ndarray) -> tuple[object, ...]:
    return array.dtype, array.shape, array[0, :_HEAD].tobytes(), array[:_HEAD, 0].tobytes()


def _is_turned(value: ir.Value, array: np.ndarray) -> bool:
    """Bit by bit, as where equal weights are looked for."""
    return value.const_value is not None and value.const_value.tobytes() == np.ascontiguousarray(array.T).tobytes()


def _turn(graph: ir.Graph, value: ir.Value, twin: ir.Value) -> None:
    name = value.name or ""
    node = ir.node("Transpose", [twin], {"perm": [1, 0]}, name=f"{name}_tied")
    turned = node.outputs[0]
    turned.type, turned.shape = value.type, value.shape
    value.replace_all_uses_with(turned)
    del graph.initializers[name]
    turned.name = name
    graph.insert_before(graph[0], node)
