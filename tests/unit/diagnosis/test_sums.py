"""Sums over blocks say what the metric library says, without its memory."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelwright.diagnosis._dequant import make_grid, round_trip
from modelwright.diagnosis._stream_sums import NoiseTally, local_noise
from modelwright.metrics import blocked_compare, compare

RNG = np.random.default_rng(0)
LONG = RNG.standard_normal(70_000).astype(np.float32)
METRICS = ("sqnr_db", "cosine", "max_abs", "relative_l2", "psnr_db")


@pytest.mark.parametrize("size", [1e-25, 1e-10, 1.0, 1e10, 1e25])
@pytest.mark.parametrize("noise", [1e-7, 1e-3, 0.5])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_blocks_give_the_numbers_of_the_library(size, noise, dtype):
    one = (LONG * size).astype(dtype)
    other = (one + size * noise * RNG.standard_normal(one.size)).astype(dtype)
    wanted, got = compare(one, other), blocked_compare(one, other)
    for name in METRICS:
        assert getattr(got, name).value == pytest.approx(getattr(wanted, name).value, rel=1e-5), name


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (LONG, LONG),
        (np.zeros(5, np.float32), np.zeros(5, np.float32)),
        (np.zeros(5, np.float32), np.ones(5, np.float32)),
        (np.array([np.nan, 1], np.float32), np.ones(2, np.float32)),
        (np.array([np.inf, 1], np.float32), np.array([np.inf, 1.1], np.float32)),
        (np.full(4, np.finfo(np.float32).min), np.full(4, np.finfo(np.float32).min)),
        (np.array([np.finfo(np.float32).min, 2], np.float32), np.array([np.finfo(np.float32).min, 1], np.float32)),
        (np.ones(3, np.float32), np.ones(4, np.float32)),
        (np.ones(0, np.float32), np.ones(0, np.float32)),
        (np.array(2.0, np.float32), np.array(1.0, np.float32)),
        (np.full(9, 300, np.float16), np.full(9, 301, np.float16)),
        (np.arange(4), np.arange(4)),
    ],
)
def test_odd_tensors_end_up_where_the_library_puts_them(one, other):
    wanted, got = compare(one, other), blocked_compare(one, other)
    assert got.problem == wanted.problem
    assert got.sqnr_db.reason == wanted.sqnr_db.reason
    assert (got.sqnr_db.value is None) == (wanted.sqnr_db.value is None)
    if wanted.sqnr_db.value is not None:
        assert got.sqnr_db.value == pytest.approx(wanted.sqnr_db.value, rel=1e-6)


@given(st.floats(1e-4, 1.0), st.integers(0, 255), st.sampled_from(["uint8", "int8", "uint16"]))
def test_local_noise_is_that_of_one_round_trip(scale, zero, dtype):
    grid = make_grid(np.float32(scale), np.array(zero if dtype != "int8" else 0), dtype)
    values = LONG[:9_000]
    found = local_noise(values, grid)
    after = round_trip(values, grid)
    assert found.scores.sqnr_db.value == pytest.approx(compare(values, after).sqnr_db.value, abs=1e-3)
    low, high = grid.reach()
    outside = (values < low - scale) | (values > high + scale)
    assert found.clipped >= outside.sum()
    assert found.clip_noise <= found.scores.moments.noise * (1 + 1e-5)


def test_scales_along_an_axis_are_honoured():
    values = np.array([[0.6, 6.0], [0.6, 6.0]], np.float32)
    found = local_noise(values, make_grid(np.array([1.0, 10.0]), np.zeros(2), "int8", axis=1))
    assert found.scores.sqnr_db.value == pytest.approx(compare(values, np.array([[1.0, 10.0]] * 2)).sqnr_db.value)


def test_a_sample_that_cannot_be_scored_is_never_averaged_away():
    tally = NoiseTally()
    tally.add(blocked_compare(LONG, LONG + np.float32(0.1)))
    tally.add(blocked_compare(LONG, np.full_like(LONG, np.nan)))
    assert tally.sqnr_db is None
    assert "NaN" in tally.reason
    assert (tally.samples, tally.failed) == (2, 1)


def test_pooled_mean_and_worst_are_told_apart():
    tally = NoiseTally()
    for noise in (0.1, 0.001):
        tally.add(blocked_compare(LONG, LONG * np.float32(1 + noise)))
    assert tally.worst_db == pytest.approx(20, abs=0.01)
    assert tally.mean_db == pytest.approx(40, abs=0.1)
    assert tally.sqnr_db == pytest.approx(23.0, abs=0.1)
