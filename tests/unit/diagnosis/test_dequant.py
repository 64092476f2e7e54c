"""Quantized integers as real numbers: nothing wraps around, every layout of scales means what ONNX says."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelwright.diagnosis._dequant import dequantize, make_grid, round_trip, unpack_nbits


@given(st.integers(0, 255), st.integers(0, 255), st.floats(1e-6, 1e3))
def test_unsigned_integers_do_not_wrap_around(stored, zero, scale):
    grid = make_grid(np.float32(scale), np.uint8(zero), "uint8")
    expected = (stored - zero) * float(np.float32(scale))
    assert dequantize(np.array([stored], np.uint8), grid)[0] == pytest.approx(expected, abs=1e-12)


def test_a_missing_zero_point_is_zero():
    grid = make_grid(np.array(0.5), None, "int8")
    assert dequantize(np.array([-3], np.int8), grid).tolist() == [-1.5]


def test_the_axis_is_1_unless_said():
    values = np.array([[1, 1], [1, 1]], np.int8)
    scales = np.array([1.0, 10.0])
    assert dequantize(values, make_grid(scales, None, "int8")).tolist() == [[1, 10], [1, 10]]
    assert dequantize(values, make_grid(scales, None, "int8", axis=0)).tolist() == [[1, 1], [10, 10]]
    assert dequantize(values, make_grid(scales, None, "int8", axis=-1)).tolist() == [[1, 10], [1, 10]]


def test_blocks_share_a_scale_and_the_last_one_may_be_short():
    values = np.ones((5, 2), np.int8)
    grid = make_grid(np.array([[1.0, 2.0], [10.0, 20.0], [100.0, 200.0]]), None, "int4", axis=0, block=2)
    assert dequantize(values, grid).tolist() == [[1, 2], [1, 2], [10, 20], [10, 20], [100, 200]]
    assert grid.granularity == "block 2"


def test_a_scale_of_one_element_is_per_tensor_whatever_its_rank():
    grid = make_grid(np.array([0.25]), np.array([2], np.uint8), "uint8")
    assert dequantize(np.array([[4, 2]], np.uint8), grid).tolist() == [[0.5, 0.0]]


@given(st.lists(st.floats(-1e4, 1e4), min_size=1, max_size=20), st.floats(1e-3, 10.0), st.integers(0, 255))
def test_a_round_trip_stays_within_half_a_step_or_clips(values, scale, zero):
    grid = make_grid(np.float64(scale), np.uint8(zero), "uint8")
    array = np.array(values)
    low, high = grid.reach()
    inside = np.clip(array, low, high)
    assert np.abs(round_trip(array, grid) - inside).max() <= scale / 2 * (1 + 1e-9)


def test_halves_round_to_even():
    grid = make_grid(np.float64(1.0), np.uint8(0), "uint8")
    assert round_trip(np.array([0.5, 1.5, 2.5]), grid).tolist() == [0.0, 2.0, 2.0]


def test_packed_nibbles_come_lowest_first():
    assert unpack_nbits(np.array([[0x21, 0x43]], np.uint8), 4, 3).tolist() == [[1, 2, 3]]
    assert unpack_nbits(np.array([[0b11_10_01_00]], np.uint8), 2, 4).tolist() == [[0, 1, 2, 3]]
