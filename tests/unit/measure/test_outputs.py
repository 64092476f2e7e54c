"""An arm's answers are the base's, or the check says how they are not."""

import numpy as np
import pytest

from modelwright.graph import Precision
from modelwright.measure.races._outputs import check_outputs, tolerance

RNG = np.random.default_rng(0)
SCORES = RNG.standard_normal((4, 10)).astype(np.float32)
CLASSES = np.arange(20)


def different(base, arm, *tolerances):
    return check_outputs({"y": base}, {"y": arm}, *(tolerances or ("fp32",))).different


@pytest.mark.parametrize(
    ("base", "arm", "words"),
    [
        (SCORES, np.zeros_like(SCORES), "the arm answers only zeros"),
        (np.zeros_like(SCORES), SCORES, "the base answers only zeros"),
        (SCORES, np.ones_like(SCORES), "cosine"),
        (np.ones_like(SCORES), np.full_like(SCORES, 3.0), "y is 200.0% off, fp32 may be 1.4%"),
        (np.float32([5.0]), np.float32([6.0]), "y is 20.0% off"),
        (np.float32(5.0), np.float32(6.0), "y is 20.0% off"),
        (SCORES, SCORES * 1.1, "y is 10.0% off"),
        (SCORES, np.full_like(SCORES, np.nan), "the arm has 40 NaN or infinite values"),
        (np.full_like(SCORES, np.nan), SCORES, "the base has 40 NaN or infinite values"),
        (SCORES, SCORES[:2], "shape [2, 10], that of the base [4, 10]"),
        (SCORES, CLASSES[:10].reshape(1, 10).repeat(4, 0), "int64, that of the base float32"),
        (CLASSES, np.zeros_like(CLASSES), "5.0% of y equal, fp32 needs 100%"),
        (CLASSES > 9, CLASSES > 8, "95.0% of y equal"),
        (np.array(["cat", "dog"], object), np.array(["cat", "cow"], object), "50.0% of y equal"),
        ([SCORES, SCORES], [SCORES], "y.length"),
        ([SCORES, SCORES], [SCORES, np.zeros_like(SCORES)], "y[1]: the arm answers only zeros"),
        ([{1: 0.5, 2: 0.5}], [{1: 0.9, 2: 0.1}], "y[0][1] is 80.0% off"),
        ([{"a": 0.5}], [{"b": 0.5}], "its outputs are y.length, y[0]['b']"),
        (np.zeros((0, 4), np.float32), np.zeros((0, 4), np.float32), "nothing to compare"),
    ],
    ids=lambda value: value[:30] if isinstance(value, str) else "",
)
def test_other_answers_are_told_with_how_they_differ(base, arm, words):
    assert words in different(base, arm)
    assert not check_outputs({"y": base}, {"y": arm}, "fp32").nothing


SHARES = np.abs(RNG.standard_normal((1, 20_000))) ** 3
SHARES = (SHARES / SHARES.sum()).astype(np.float32)
CHANCES = (1e-8 * RNG.random((1, 1, 8, 8))).astype(np.float32)


@pytest.mark.parametrize(
    ("base", "arm", "precision", "nothing"),
    [
        (CHANCES, CHANCES[..., ::-1], "fp32", True),
        # Two sessions of one detector on noise; and an arm that does nothing at all, which nobody can tell from it.
        (CHANCES, np.zeros_like(CHANCES), "fp32", True),
        (CHANCES, CHANCES + np.float32(1e-4), "fp32", False),
        (CHANCES, CHANCES + RNG.random(CHANCES.shape, np.float32) * np.float32(1e-4), "w8a8", True),
        (CHANCES, CHANCES + np.float32(0.1), "w8a8", False),
        (CHANCES + np.float32(0.5), CHANCES, "w8a8", False),
        (CHANCES - np.float32(5e-9), CHANCES, "fp32", False),
        (SHARES, SHARES[:, ::-1], "w8a8", False),
    ],
)
def test_nobody_can_tell_answers_of_next_to_nothing_apart(base, arm, precision, nothing):
    found = check_outputs({"y": base}, {"y": arm}, precision)
    assert (found.different is not None, found.nothing) == (True, nothing)


def test_what_really_differs_is_told_before_what_nobody_can_tell():
    found = check_outputs({"a": CHANCES, "b": SCORES}, {"a": CHANCES[..., ::-1], "b": -SCORES}, "fp32")
    assert (found.different.split()[2:4], found.nothing) == (["of", "b,"], False)


@pytest.mark.parametrize(
    "answers",
    [
        SCORES,
        np.zeros_like(SCORES),
        np.ones_like(SCORES),
        np.float32(5.0),
        np.where(SCORES > 1, np.nan, SCORES),
        CLASSES,
        np.array([True, False]),
        np.array(["cat", "dog"], object),
        [SCORES, CLASSES],
        [{"a": 0.5}],
        {"a": SCORES},
    ],
    ids=lambda value: type(value).__name__,
)
def test_the_same_answers_are_the_same_whatever_their_kind(answers):
    assert different(answers, answers) is None


def test_masks_of_the_lowest_number_do_not_count():
    masked = np.where(SCORES > 1, -np.finfo(np.float32).max, SCORES)
    assert different(masked, masked * np.float32(0.99999)) is None


def test_the_precision_decides_how_much_may_differ():
    near = SCORES + 0.2 * RNG.standard_normal(SCORES.shape).astype(np.float32)
    assert different(SCORES, near, "fp32", "w8a8") is None
    assert "fp16 needs 0.999" in different(SCORES, near, "fp32", "fp16")
    one_of_twenty = np.where(CLASSES == 3, 4, CLASSES)
    assert different(CLASSES, one_of_twenty, "w8a8") is None
    assert different(CLASSES, one_of_twenty, "fp16") is not None


def test_other_outputs_are_told_by_name():
    check = check_outputs({"y": SCORES}, {"z": SCORES}, "fp32")
    assert check.different == "its outputs are z, those of the base y"


def test_the_worst_output_is_told_beside_the_best():
    check = check_outputs({"a": SCORES, "b": CLASSES}, {"a": SCORES * 1.001, "b": CLASSES}, "fp32")
    assert check.different is None
    assert check.cosine == pytest.approx(1.0)
    assert check.relative_error == pytest.approx(0.001, rel=1e-3)
    assert check.equal == 1.0


@pytest.mark.parametrize(
    ("label", "quantized", "word"),
    [
        ("fp32", False, "fp32"),
        ("fp64", False, "fp32"),
        (None, False, "fp32"),
        ("w8a16", True, "w8a16"),
        ("dynamic int8", True, "w8a8"),
        ("mixed(w8, a16)", True, "w8a8"),
        (None, None, "w8a8"),
    ],
)
def test_every_label_has_a_tolerance_and_what_is_not_quantized_has_the_strict_one(label, quantized, word):
    assert tolerance(Precision(label, None, None, None, quantized, None, (), (), ())) == word
