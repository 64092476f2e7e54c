"""Do the samples stay where calibration has been? What lies beyond the range of an input is cut off."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from modelwright._lazy import lazy
from modelwright.graph import Graph

if TYPE_CHECKING:
    import numpy as np
    import onnx
else:
    np = lazy("numpy")
    onnx = lazy("onnx")

# A few values beyond it are what any other sample has.
_FEW = 1e-3


def beyond_calibration(graph: Graph, feeds: Sequence[Mapping[str, Any]]) -> str | None:
    """The input of which the largest share is cut off, where that is more than a few values."""
    shares = {name: _share([feed[name] for feed in feeds], *ends) for name, ends in _ranges(graph)}
    name = max(shares, key=lambda one: shares[one], default=None)
    if name is None or shares[name] <= _FEW:
        return None
    words = f"{shares[name]:.1%} of the values of input {name} lie beyond the range that calibration found"
    return f"{words} and are cut off: calibrate with samples like those that are judged"


def _ranges(graph: Graph) -> Iterator[tuple[str, tuple[float, float]]]:
    """Of inputs that are quantized with one scale."""
    inputs = {value.name for value in graph.model.graph.input}
    small = {
        tensor.name: tensor for tensor in graph.model.graph.initializer if not tensor.dims or [*tensor.dims] == [1]
    }
    for node in graph.model.graph.node:
        if node.op_type != "QuantizeLinear" or node.input[0] not in inputs or len(node.input) < 3:
            continue
        if node.input[1] in small and node.input[2] in small:
            scale, zero = (onnx.numpy_helper.to_array(small[name]).reshape(()) for name in node.input[1:3])
            limits = np.iinfo(zero.dtype) if zero.dtype.kind in "iu" else None
            if limits is not None:
                low, high = (float(scale) * (end - int(zero)) for end in (limits.min, limits.max))
                yield node.input[0], (low - float(scale), high + float(scale))


def _share(values: Sequence[Any], low: float, high: float) -> float:
    outside = sum(int(((one < low) | (one > high)).sum()) for one in values)
    return outside / max(sum(int(one.size) for one in values), 1)
