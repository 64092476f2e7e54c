"""Every metric is defined for every input, in float64, and agrees with plain numpy where plain numpy is right."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelwright.metrics import METRICS, Accumulator, compare

RNG = np.random.default_rng(0)
X = RNG.standard_normal((4, 10))
NOISY = X + 0.01 * RNG.standard_normal(X.shape)


def test_scores_equal_their_textbook_definitions():
    found = compare(X, NOISY)
    error = NOISY - X
    assert found.sqnr_db.value == pytest.approx(10 * math.log10((X**2).sum() / (error**2).sum()))
    assert found.psnr_db.value == pytest.approx(10 * math.log10(np.abs(X).max() ** 2 / (error**2).mean()))
    assert found.cosine.value == pytest.approx((X * NOISY).sum() / np.linalg.norm(X) / np.linalg.norm(NOISY))
    assert found.max_abs.value == pytest.approx(np.abs(error).max())
    assert found.relative_l2.value == pytest.approx(np.linalg.norm(error) / np.linalg.norm(X))
    assert found.top1.value == pytest.approx((X.argmax(1) == NOISY.argmax(1)).mean())


@pytest.mark.parametrize(
    ("reference", "candidate", "metric", "value", "reason"),
    [
        (X, X, "sqnr_db", None, "identical"),
        (X, X, "cosine", 1.0, None),
        (X, X, "relative_l2", 0.0, None),
        (np.zeros(5), np.zeros(5), "sqnr_db", None, "identical"),
        (np.zeros(5), np.ones(5), "sqnr_db", None, "the reference is all zeros"),
        (np.zeros(5), np.ones(5), "cosine", None, "one side is all zeros"),
        (np.zeros(5), np.ones(5), "max_abs", 1.0, None),
        (np.ones(5), np.zeros(5), "sqnr_db", 0.0, None),
        (np.ones((2, 3)), np.ones((3, 2)), "cosine", None, "shapes differ: [2, 3] and [3, 2]"),
        (np.ones(0), np.ones(0), "cosine", None, "the tensor is empty"),
        (np.ones(3), np.array([1, np.nan, 1]), "cosine", None, "the candidate has 1 NaN or infinite values"),
        (np.array([1, np.nan]), np.array([1, np.nan]), "sqnr_db", None, "identical"),
        (np.array([3, np.nan]), np.array([4, np.nan]), "max_abs", 1.0, None),
        (np.array([1, np.inf]), np.ones(2), "cosine", None, "the reference has 1 NaN or infinite values"),
        (np.array(2.0), np.array(2.5), "max_abs", 0.5, None),
        (np.array(2.0), np.array(2.5), "top1", None, "no rows of scores"),
        (np.array(["a"]), np.array(["a"], object), "sqnr_db", None, "identical"),
        (np.array(["a", "b"]), np.array(["a", "cd"]), "cosine", None, "texts differ: 'b' and 'cd'"),
        (np.array(["a"]), np.array(["a", "b"]), "cosine", None, "shapes differ: [1] and [2]"),
        (np.array(["a"]), np.array([1.0]), "cosine", None, "<U1 is not a number type"),
        (np.full(9, 300, np.float16), np.full(9, 301, np.float16), "sqnr_db", 20 * math.log10(300), None),
        (np.array([250], np.uint8), np.array([5], np.uint8), "max_abs", 245.0, None),
        (np.array([True, False]), np.array([True, True]), "max_abs", 1.0, None),
    ],
)
def test_odd_inputs_have_a_number_or_a_reason(reference, candidate, metric, value, reason):
    score = getattr(compare(reference, candidate), metric)
    assert (score.value, score.reason) == (pytest.approx(value) if value is not None else None, reason)


def test_masks_in_both_tensors_do_not_drown_the_signal():
    lowest = np.finfo(np.float32).min
    reference = np.array([1.0, 2.0, lowest, -np.inf], np.float32)
    candidate = np.array([1.1, 2.0, lowest * 0.999, -np.inf], np.float32)
    found = compare(reference, candidate)
    assert found.masked == 2
    assert found.sqnr_db.value == pytest.approx(10 * math.log10(5 / 0.1**2), abs=1e-3)


def test_a_mask_that_only_the_reference_has_is_an_error_not_a_mask():
    lowest = np.finfo(np.float32).min
    found = compare(np.array([1.0, lowest]), np.array([1.0, 0.0]))
    assert found.masked == 0
    assert found.sqnr_db.value == pytest.approx(0.0)


@pytest.mark.parametrize(("one", "other"), [(1e37, 5e37), (-1e31, -2e31), (1e31, np.inf)])
def test_large_numbers_that_differ_are_no_masks(one, other):
    reference, candidate = np.full(4, one, np.float32), np.full(4, other, np.float32)
    found = compare(reference, candidate)
    assert found.masked == 0
    assert not found.identical


@pytest.mark.parametrize(
    ("one", "other"), [(-1e30, -np.inf), (-1e32, -1.0001e32), (np.inf, np.inf), (-3.3895e38, -3.4e38)]
)
def test_what_both_write_as_a_mask_may_differ_in_its_digits_or_overflow(one, other):
    found = compare(np.array([1.0, one]), np.array([1.0, other]))
    assert found.masked == 1
    assert found.identical


@pytest.mark.parametrize("kind", [np.int64, np.uint64])
@pytest.mark.parametrize("sign", [1, -1])
def test_long_integers_that_differ_in_their_last_digit_are_not_identical(kind, sign):
    reference = np.full(4, 2**60, kind)
    candidate = reference + 1 if sign == 1 else reference - 1
    found = compare(reference, candidate.astype(kind))
    assert (found.identical, found.max_abs.value) == (False, 1.0)
    assert compare(reference, reference.copy()).identical


def test_integers_as_far_apart_as_they_can_be_do_not_wrap_around():
    ends = np.iinfo(np.int64)
    assert compare(np.array([ends.min]), np.array([ends.max])).max_abs.value == pytest.approx(2.0**64)


def test_two_empty_tensors_are_the_same_and_say_nothing():
    found = compare(np.ones((0, 3)), np.ones((0, 3)))
    assert (found.identical, found.problem, found.cosine.value, found.max_abs.value) == (True, None, None, None)
    sums = Accumulator()
    sums.add_all([(np.ones((0, 3)), np.ones((0, 3)))])
    sums.add(X, X)
    together = sums.aggregate()
    assert (together.failed, together.identical, together.cosine.worst) == (0, 2, 1.0)


def test_a_tie_in_the_reference_has_two_right_answers():
    assert compare(np.array([[1.0, 1.0, 0.0]]), np.array([[0.0, 1.0, 0.0]])).top1.value == 1.0


def test_samples_are_averaged_worst_kept_and_pooled():
    accumulator = Accumulator()
    for scale in (0.01, 0.1):
        accumulator.add(X, X + scale)
    found = accumulator.aggregate()
    each = [10 * math.log10((X**2).sum() / (X.size * scale**2)) for scale in (0.01, 0.1)]
    pooled = 10 * math.log10(2 * (X**2).sum() / (X.size * (0.01**2 + 0.1**2)))
    assert found.sqnr_db.mean == pytest.approx(np.mean(each))
    assert found.sqnr_db.worst == pytest.approx(min(each))
    assert found.sqnr_db.pooled == pytest.approx(pooled)
    assert found.max_abs.worst == pytest.approx(0.1)


def test_a_sample_that_cannot_be_scored_is_counted_and_named():
    accumulator = Accumulator()
    accumulator.add(X, NOISY)
    accumulator.add(X, X * np.nan)
    found = accumulator.aggregate()
    assert (found.samples, found.failed) == (2, 1)
    assert "NaN" in found.problem
    assert "NaN" in found.cosine.reason


def test_all_identical_is_said_and_is_not_a_number():
    accumulator = Accumulator()
    accumulator.add(X, X)
    found = accumulator.aggregate()
    assert (found.identical, found.sqnr_db.mean, found.sqnr_db.reason) == (1, None, "identical")
    assert found.cosine.pooled == 1.0


@pytest.mark.parametrize("shape", [(), (3,), (4, 5)])
def test_samples_that_come_together_score_as_they_do_alone(shape):
    rng = np.random.default_rng(0)
    wanted = rng.standard_normal((6, *shape)).astype(np.float32)
    got = (wanted + 0.1 * rng.standard_normal(wanted.shape)).astype(np.float16)
    got[1] = np.nan
    wanted[2] = got[2] = -np.inf
    wanted[3] = got[3]
    together, alone = Accumulator(), Accumulator()
    together.add_all(list(zip(wanted, got, strict=True)))
    for pair in zip(wanted, got, strict=True):
        alone.add(*pair)
    assert together.aggregate() == alone.aggregate()


def test_samples_of_several_shapes_can_come_together():
    accumulator = Accumulator()
    accumulator.add_all([(X, NOISY), (X[:1], NOISY[:1]), (X, X[:1])])
    found = accumulator.aggregate()
    assert (found.samples, found.failed) == (3, 1)
    assert "shapes differ" in found.problem


def test_no_samples_is_a_reason():
    assert Accumulator().aggregate().cosine.reason == "no samples"


@given(
    st.lists(st.floats(width=32), min_size=1, max_size=8),
    st.lists(st.floats(width=32), min_size=1, max_size=8),
)
def test_no_input_gives_nan_infinity_or_silence(left, right):
    found = compare(np.array(left), np.array(right))
    for name in METRICS:
        score = getattr(found, name)
        assert (score.value is None) != (score.reason is None)
        assert score.value is None or math.isfinite(score.value)
