"""8-bit weights whose products fit 16 bits, with scales as fine as that allows."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import helper

from modelwright.stages.quantize._neighbours import Packing, finest_scales, fits, packing_of

CONV = helper.make_node("Conv", ["x", "w"], ["y"])
DEPTHWISE = helper.make_node("Conv", ["x", "w"], ["y"], group=8)
GEMM = helper.make_node("Gemm", ["x", "w"], ["y"], transB=1)
MATMUL = helper.make_node("MatMul", ["x", "w"], ["y"])


def integers(weight: np.ndarray, packing: Packing) -> np.ndarray:
    shape = [-1 if axis == packing.axis else 1 for axis in range(weight.ndim)]
    return np.clip(np.rint(weight / finest_scales(weight, packing).reshape(shape)), -128, 127).astype(np.int8)


def worst_sum(columns: np.ndarray) -> int:
    """The largest or smallest sum of two products that a kernel holds in 16 bits, over neighbours of one channel."""
    wide = columns.astype(int)
    sums = [255 * (max(a, 0) + max(b, 0)) for a, b in zip(wide[::2], wide[1::2], strict=False)]
    sums += [255 * (max(-a, 0) + max(-b, 0)) for a, b in zip(wide[::2], wide[1::2], strict=False)]
    return max(sums)


@pytest.mark.parametrize("channels", [3, 4, 7])
@pytest.mark.parametrize("seed", range(5))
def test_no_two_neighbours_of_a_convolution_pass_16_bits_and_they_use_more_than_7(channels, seed):
    weight = np.random.default_rng(seed).standard_normal((6, channels, 3, 3)).astype(np.float32)
    packing = packing_of(CONV, 4, channels)
    found = integers(weight, packing)
    assert fits(found, packing)
    for row in found:
        flat = np.moveaxis(row, 0, -1)
        assert worst_sum(flat.reshape(-1)) <= 32767
        assert all(worst_sum(place) <= 32767 for place in flat.reshape(9, channels))
    assert np.abs(found.astype(int)).max() > 64


@pytest.mark.parametrize(("node", "axis"), [(GEMM, 0), (MATMUL, 1)])
def test_a_product_pairs_the_values_it_sums_over(node, axis):
    weight = np.zeros((8, 8), np.float32)
    summed = weight if axis == 0 else weight.T
    summed[:, 0] = 0.1
    summed[0, 2:4] = 1.0
    summed[1, 3:5] = 1.0
    summed[2, 2:4] = 1.0, -1.0
    packing = packing_of(node, 2, 8)
    found = integers(weight, packing) if axis == 0 else integers(weight, packing).T
    # Neighbours that begin at an odd place are never added, and those of two signs take from each other.
    assert [int(abs(row).max()) for row in found[:3].astype(int)] == [64, 127, 127]


def test_a_depthwise_kernel_adds_in_32_bits_so_its_weights_have_all_8():
    weight = np.ones((8, 1, 3, 3), np.float32)
    packing = packing_of(DEPTHWISE, 4, 1)
    assert integers(weight, packing).min() == 127
    assert fits(np.full((8, 1, 3, 3), 127, np.int8), packing)
    assert not fits(np.full((8, 8, 3, 3), 127, np.int8), packing_of(CONV, 4, 8))


def test_weights_that_are_read_in_an_unknown_order_have_no_layout():
    assert packing_of(MATMUL, 3, 8) is None
    assert packing_of(helper.make_node("Gather", ["w", "i"], ["y"]), 2, 8) is None
