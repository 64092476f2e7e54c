"""4 bits for each weight and a scale for each block of them, as MatMulNBits reads them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from modelwright._dataclass import dataclass
from modelwright._lazy import lazy

if TYPE_CHECKING:
    import numpy as np
    import onnxruntime.capi._pybind_state as native
    from numpy.typing import NDArray
else:
    np = lazy("numpy")
    native = lazy("onnxruntime.capi._pybind_state")

BITS = 4
_MIDDLE, _LARGEST = 8, 15
# So much is looked at together: it stays in the CPU's cache through all that is done to it.
_COLUMNS, _BLOCKS = 512, 4


@dataclass(frozen=True, eq=False)
class PackedBlocks:
    """Of a matrix (K, N): two weights in each byte of `packed` (N, blocks, half a block), the lower half first; `zeros`
    where the blocks are not symmetric."""

    packed: NDArray[Any]
    scales: NDArray[Any]
    zeros: NDArray[Any] | None = None


def block_shapes(rows: int, columns: int, size: int) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Of the packed weights, their scales and their zero points."""
    count = -(-rows // size)
    return (columns, count, size // 2), (columns, count), (columns, -(-count // 2))


def pack_symmetric(matrix: NDArray[Any], size: int) -> PackedBlocks:
    """Round to nearest, the same numbers as onnxruntime's quantizer gives: the value that is largest on either side
    becomes -8. `matrix` may be mapped from a file, also turned: it is read in parts."""
    rows, columns = matrix.shape
    shape, scaled, _ = block_shapes(rows, columns, size)
    # bfloat16 is computed with as float32, and its scales are rounded at last.
    narrow = np.float16 if matrix.dtype == np.float16 else np.float32
    packed, scales = np.empty(shape, np.uint8), np.empty(scaled, narrow)
    for left in range(0, columns, _COLUMNS):
        for block in range(0, shape[1], _BLOCKS):
            values = matrix[block * size : (block + _BLOCKS) * size, left : left + _COLUMNS]
            part = _part(values, size)
            here = slice(left, left + _COLUMNS), slice(block, block + len(part))
            scale = _scales(part).astype(narrow)
            scales[here] = scale.T
            packed[here] = _packed(part, scale.astype(np.float32), len(values)).transpose(2, 0, 1)
    return PackedBlocks(packed, scales.astype(matrix.dtype, copy=False))


def _part(values: NDArray[Any], size: int) -> NDArray[Any]:
    """As (blocks, values of a block, columns); what is missing in the last block is zero."""
    rows, columns = values.shape
    found = np.zeros((-(-rows // size), size, columns), np.float32)
    found.reshape(-1, columns)[:rows] = values
    return found


def _scales(part: NDArray[Any]) -> NDArray[Any]:
    high, low = part.max(1), part.min(1)
    largest: NDArray[Any] = np.where(np.abs(high) > np.abs(low), high, low)
    return largest / np.float32(-_MIDDLE)


def _packed(part: NDArray[Any], scale: NDArray[Any], rows: int) -> NDArray[Any]:
    """Uses `part` up, of which so many rows are the matrix's."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        part *= np.where(scale != 0, np.float32(1) / scale, np.float32(0))[:, None, :]
        part += np.float32(_MIDDLE)
        # Halves away from zero, as C's roundf: what is negative here becomes zero.
        part += np.float32(0.5)
        # Values of a block whose scale float16 holds badly may lie beyond.
        found = np.clip(part, np.float32(0), np.float32(_LARGEST), out=part).astype(np.uint8)
    # Bytes that hold nothing of the matrix are zero.
    found.reshape(-1, found.shape[-1])[rows + rows % 2 :] = 0
    joined: NDArray[Any] = found[:, 0::2] | (found[:, 1::2] << BITS)
    return joined


def pack_asymmetric(matrix: NDArray[Any], size: int) -> PackedBlocks:
    """With a zero point for each block; onnxruntime's own."""
    rows, columns = matrix.shape
    narrow = np.float16 if matrix.dtype == np.float16 else np.float32
    shapes = block_shapes(rows, columns, size)
    packed, scales = np.zeros(shapes[0], np.uint8), np.zeros(shapes[1], narrow)
    zeros, whole = np.zeros(shapes[2], np.uint8), np.zeros((shapes[0][1] * size, columns), narrow)
    whole[:rows] = matrix
    native.quantize_matmul_4bits(packed, whole, scales, zeros, size, columns, rows, False)
    return PackedBlocks(packed, scales.astype(matrix.dtype, copy=False), zeros)
