"""8-bit weights whose products cannot saturate on x86 CPUs without VNNI.

Their kernels add the products of two neighbours in 16 bits: 255 · (w1 + w2) must fit, where the signs are the same.
7 bits for every weight are enough for that. But a large weight seldom stands beside another: each channel gets the
finest scale at which no two neighbours pass 128 together. Neighbours follow each other in the order in which
onnxruntime packs a weight: along the input channels, then along the places of the kernel. A depthwise kernel adds in
32 bits.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from modelwright._dataclass import dataclass
from modelwright._lazy import lazy

if TYPE_CHECKING:
    import numpy as np
    import onnx
    from numpy.typing import NDArray
else:
    np = lazy("numpy")
    onnx = lazy("onnx")

# 255 · 128 fits 16 bits with a sign. Rounding adds a half to each of the two.
_TOGETHER = 128
_LARGEST = 127
_PIECE = 1 << 20


@dataclass(frozen=True)
class Packing:
    """How a product reads its stored weight: the axis of its outputs, and whether its neighbours are added exactly."""

    axis: int
    exact: bool


def packing_of(node: onnx.NodeProto, rank: int, group_channels: int) -> Packing | None:
    """None for a weight whose neighbours are not known. `group_channels` are the input channels of one group."""
    if node.op_type == "Conv":
        groups = next((item.i for item in node.attribute if item.name == "group"), 1)
        return Packing(0, exact=groups > 1 and group_channels == 1)
    if node.op_type == "Gemm" and rank == 2:
        return Packing(0 if any(item.name == "transB" and item.i for item in node.attribute) else 1, exact=False)
    return Packing(1, exact=False) if node.op_type == "MatMul" and rank == 2 else None


def finest_scales(weight: NDArray[Any], packing: Packing) -> NDArray[Any]:
    """For each output channel the smallest scale that keeps its neighbours together within 16 bits."""
    return np.concatenate([_finest(part, packing) for part in _channels(weight, packing.axis)])


def _finest(weight: NDArray[Any], packing: Packing) -> NDArray[Any]:
    rows = np.moveaxis(weight, packing.axis, 0).reshape(weight.shape[packing.axis], -1)
    largest = np.abs(rows).max(axis=1)
    if not packing.exact:
        largest = np.maximum(largest, _together(weight, packing))
    found: NDArray[Any] = largest / _LARGEST
    return found


def fits(weight: NDArray[Any], packing: Packing) -> bool:
    """Do the products of these integer weights fit?"""
    parts = (part.astype(np.int32) for part in _channels(weight, packing.axis))
    return packing.exact or all(bool(_together(part, packing).max(initial=0) <= _TOGETHER) for part in parts)


def beyond(weight: NDArray[Any], packing: Packing) -> NDArray[Any]:
    """The output channels whose neighbours do not fit."""
    together = np.zeros(weight.shape[packing.axis]) if packing.exact else _together(weight.astype(np.int32), packing)
    found: NDArray[Any] = together > _TOGETHER
    return found


def _channels(weight: NDArray[Any], axis: int) -> Iterator[NDArray[Any]]:
    """Some of them at a time: what is compared is there several times over."""
    count = max(1, _PIECE * weight.shape[axis] // max(1, weight.size))
    rows = np.moveaxis(weight, axis, 0)
    for begin in range(0, len(rows), count):
        yield np.moveaxis(rows[begin : begin + count], 0, axis)


def _together(weight: NDArray[Any], packing: Packing) -> NDArray[Any]:
    """The largest sum of two neighbours with the same sign, by output channel."""
    return np.max([_largest_sum(rows) for rows in _packed(weight, packing)], axis=0)  # type: ignore[no-any-return]


def _packed(weight: NDArray[Any], packing: Packing) -> Iterator[NDArray[Any]]:
    """The orders in which kernels may read a channel: all in one row, or each place of the kernel by itself."""
    rows = np.moveaxis(weight, packing.axis, 0)
    rows = np.moveaxis(rows, 1, -1)
    yield rows.reshape(len(rows), -1)
    if rows.shape[-1] % 2 and rows.ndim > 2:
        padded = np.pad(rows, [(0, 0)] * (rows.ndim - 1) + [(0, 1)])
        yield padded.reshape(len(rows), -1)


def _largest_sum(rows: NDArray[Any]) -> NDArray[Any]:
    even = np.pad(rows, [(0, 0), (0, rows.shape[1] % 2)]).reshape(len(rows), -1, 2)
    up, down = np.maximum(even, 0).sum(axis=2), np.maximum(-even, 0).sum(axis=2)
    found: NDArray[Any] = np.maximum(up, down).max(axis=1)
    return found
