"""The gate judges outputs as they are used: what is destroyed fails however small it is, and what is fine passes."""

import numpy as np
import pytest

from modelwright.stages.validate import Gate
from modelwright.stages.validate._outputs import Asked, parity

RNG = np.random.default_rng(0)


def judged(wanted, got, name="y", precision="w8a8", feeds=None, **gate):
    """One output over samples, of which the first axis is."""
    answers = [[{name: sample.astype(np.float32)} for sample in side] for side in (wanted, got)]
    asked = Asked(feeds or [{}] * len(wanted), Gate(precision=precision, **gate), random=False)
    (found,) = parity(*answers, asked)
    return found, [measure.name for measure in found.measures if not measure.passed]


def noisy(values, db, scale=None):
    """With an error so far below each number of `scale`, else below the values as a whole."""
    level = np.sqrt(np.mean(values**2)) if scale is None else scale
    return values + RNG.standard_normal(values.shape) * level * 10 ** (-db / 20)


def channels(*scales):
    return np.asarray(scales)[None, :, None, None] * RNG.standard_normal((1, len(scales), 8, 8))


def images(*scales):
    return np.stack([channels(*scales) for _ in range(4)])


@pytest.mark.parametrize("precision", ["fp32", "fp16", "w8a8"])
@pytest.mark.parametrize("what", ["zeros", "noise"])
def test_a_destroyed_head_of_one_percent_of_the_energy_fails(precision, what):
    wanted = images(*[1.0] * 16, *[0.1] * 16)
    got = wanted.copy()
    got[:, :, 16:] = 0 if what == "zeros" else 0.1 * RNG.standard_normal(got[:, :, 16:].shape)
    assert (wanted[:, :, 16:] ** 2).sum() < 0.011 * (wanted**2).sum()
    _, failed = judged(wanted, got, precision=precision)
    assert "worst of 32 slices" in failed
    if precision == "w8a8":
        assert "close to the export" not in failed


@pytest.mark.parametrize(("precision", "db"), [("fp32", 60), ("fp16", 40), ("w8a8", 15)])
@pytest.mark.parametrize("many", [1, 8])
def test_channels_that_differ_by_ten_thousand_pass_when_they_are_fine(precision, db, many):
    scales = np.array([1e4, 1.0, 1e2, 1e4] * many)
    wanted = images(*scales)
    assert judged(wanted, noisy(wanted, db, scales[:, None, None]), precision=precision)[1] == []


@pytest.mark.parametrize("name", ["y", "boxes", "present.0.key"])
def test_a_small_column_of_a_head_that_is_destroyed_fails(name):
    """Four columns in pixels and one around zero."""
    wanted = np.concatenate(
        [300 + 100 * RNG.standard_normal((4, 1, 60, 4)), 0.3 * RNG.standard_normal((4, 1, 60, 1))], axis=-1
    )
    got = noisy(wanted, 30, [100, 100, 100, 100, 0.3])
    assert judged(wanted, got, name)[1] == []
    got[..., 4] = 0.5
    assert judged(wanted, got, name)[1] == ["worst of 5 slices"]


def test_a_dead_channel_may_have_rounding_noise_and_nothing_else():
    wanted = images(1.0, 1.0, 0.0, 1.0)
    wanted[:, :, 2] = 7.0
    assert judged(wanted, wanted * (1 + 1e-7 * RNG.standard_normal(wanted.shape)), precision="fp32")[1] == []
    got = wanted.copy()
    got[:, :, 2] += RNG.standard_normal(got[:, :, 2].shape)
    assert judged(wanted, got, precision="fp32")[1] != []
    assert judged(wanted, got)[1] == ["worst of 4 slices"]


@pytest.mark.parametrize(("off", "passed"), [(0.0, True), (1e-8, True), (0.1, False)])
def test_zeros_are_compared_with_zeros(off, passed):
    wanted = np.zeros((4, 1, 10))
    assert (judged(wanted, wanted + off, precision="fp32")[1] == []) == passed


def test_a_wrong_size_is_seen_though_its_cosine_is_one():
    wanted = RNG.standard_normal((4, 1, 100))
    assert "close to the export" in judged(wanted, 3 * wanted)[1]


def detector(samples=2, places=2000):
    """As YOLO stacks them: boxes in pixels, then scores of 20 classes, few of them above zero."""
    boxes = RNG.uniform(100, 600, (samples, 1, 4, places))
    scores = 0.002 * RNG.random((samples, 1, 20, places))
    for sample in range(samples):
        for place in RNG.choice(places, 12, replace=False):
            scores[sample, 0, RNG.integers(20), place] = RNG.uniform(0.4, 0.95)
    return np.concatenate([boxes, scores], axis=2)


@pytest.mark.parametrize("last", [False, True])
def test_scores_beside_boxes_of_hundreds_are_judged_by_themselves(last):
    wanted = detector()
    good = noisy(wanted, 25, np.array([150.0] * 4 + [0.02] * 20)[:, None])
    bad = good.copy()
    bad[:, :, 4:] *= RNG.random(bad[:, :, 4:].shape) < 0.25
    turn = (lambda values: np.swapaxes(values, 2, 3)) if last else (lambda values: values)
    found, failed = judged(turn(wanted), turn(good))
    assert (found.kind, failed) == ("detections", [])
    found, failed = judged(turn(wanted), turn(bad))
    assert found.cosine > 0.995
    assert set(failed) == {"scores", "same detections"}


def logits(rows, classes=10):
    """As a trained classifier gives: one class stands out."""
    found = RNG.standard_normal((rows, 1, classes))
    found[np.arange(rows), 0, RNG.integers(0, classes, rows)] += 8
    return found


def test_one_flipped_near_tie_of_four_samples_does_not_decide():
    wanted = logits(4)
    wanted[0, 0] = [5.0, 4.9, *[0.0] * 8]
    got = noisy(wanted, 27)
    got[0, 0, :2] = 4.9, 5.0
    assert got[0].argmax() != wanted[0].argmax()
    assert judged(wanted, got, "logits")[1] == []


def test_classes_that_change_fail_although_the_numbers_are_close():
    wanted = logits(32)
    got = noisy(wanted, 25)
    for row in got[:6, 0]:
        row[row.argmax()], row[row.argmin()] = row.min(), row.max()
    found, failed = judged(wanted, got, "logits")
    assert found.kind == "scores"
    assert "same best class" in failed
    assert judged(wanted, noisy(wanted, 25), "logits")[1] == []


def reading(text, steps=40, classes=50, shift=0):
    """Rows of shares: a symbol every second step, nothing between them."""
    rows = np.full((1, steps, classes), 0.001)
    rows[0, :, 0] = 1.0
    for place, symbol in enumerate(text):
        rows[0, 2 * place + 1 + shift, [0, symbol]] = 0.001, 1.0
    return rows / rows.sum(axis=-1, keepdims=True)


def test_text_is_judged_by_what_is_read():
    texts = RNG.integers(1, 50, (8, 15))
    wanted = np.stack([reading(text) for text in texts])
    moved = np.stack([reading(text, shift=int(place == 0)) for place, text in enumerate(texts)])
    found, failed = judged(wanted, moved, "softmax_11.tmp_0")
    assert (found.kind, failed) == ("scores", [])
    texts[:, 0] = 1 + texts[:, 0] % 49
    assert "same reading" in judged(wanted, np.stack([reading(text) for text in texts]), "softmax_11.tmp_0")[1]


def test_embeddings_are_judged_by_who_is_near_whom():
    """What all share hides what tells them apart: the rows stay near, the ranking goes."""
    apart = RNG.standard_normal((16, 1, 64))
    wanted = 3.0 + apart
    bad = 3.0 + noisy(apart, 3)
    found, failed = judged(wanted, bad, "sentence_embedding")
    assert found.kind == "embeddings"
    assert failed == ["same neighbours"]
    assert judged(wanted, noisy(apart, 25) + 3.0, "sentence_embedding")[1] == []


def test_tokens_that_the_mask_leaves_out_do_not_count():
    wanted = RNG.standard_normal((16, 1, 8, 32))
    got = wanted.copy()
    got[:, :, 3:] = RNG.standard_normal(got[:, :, 3:].shape)
    feeds = [{"attention_mask": np.array([[1, 1, 1, 0, 0, 0, 0, 0]])}] * 16
    assert judged(wanted, got, "last_hidden_state", feeds=feeds)[1] == []
    assert judged(wanted, got, "last_hidden_state")[1] != []


def test_regions_of_a_map_are_judged_where_something_is():
    wanted = np.zeros((4, 1, 1, 40, 40))
    wanted[:, :, :, 10:20, 10:30] = 0.9
    got = wanted.copy()
    got[:, :, :, 10:20, 10:20] = 0.05
    assert judged(wanted, np.clip(noisy(wanted, 25), 0, 1), "sigmoid_0.tmp_0")[1] == []
    found, failed = judged(wanted, got, "sigmoid_0.tmp_0")
    assert (found.kind, "same regions" in failed) == ("maps", True)


def test_what_an_output_is_can_be_said():
    wanted = RNG.standard_normal((8, 1, 10))
    assert judged(wanted, wanted)[0].kind == "other"
    assert judged(wanted, wanted, outputs={"y": "scores"})[0].kind == "scores"


def chances(samples=8, keys=88):
    """As a transcriber of notes gives: few of many are likely, and for a while."""
    found = 0.05 + 0.03 * RNG.random((samples, 1, 100, keys))
    for sample in range(samples):
        for key in RNG.choice(keys, 3, replace=False):
            found[sample, 0, 20:80, key] = RNG.uniform(0.6, 0.95)
    return found


def test_rare_chances_are_judged_by_what_is_likely_not_by_the_zeros():
    wanted = chances()
    found, failed = judged(wanted, np.clip(noisy(wanted, 25), 0, 1), "StatefulPartitionedCall:1")
    assert (found.kind, failed) == ("chances", [])
    lost = wanted.copy()
    lost[:, :, 20:32] = np.minimum(lost[:, :, 20:32], 0.2)
    found, failed = judged(wanted, lost, "StatefulPartitionedCall:1")
    assert found.cosine > 0.85
    assert "same chances" in failed
    invented = wanted.copy()
    invented[:, :, 20:32, :10] = 0.7
    assert "same chances" in judged(wanted, invented)[1]


def test_a_chance_near_the_border_says_nothing():
    wanted = chances()
    wanted[:, :, 20:80] = np.where(wanted[:, :, 20:80] > 0.5, 0.31, wanted[:, :, 20:80])
    wanted[:, :, 80:] = np.where(wanted[:, :, 79:80] > 0.3, 0.9, wanted[:, :, 80:])
    got = np.where(np.abs(wanted - 0.31) < 1e-3, 0.29, wanted)
    assert judged(wanted, got)[1] == []


def seen_by_a_detector(samples=8, scale=1.0, columns=0, corners=False):
    """A YOLO that sees six things in each sample, each from three places."""
    places, found = 500, []
    for _ in range(samples):
        middle, size = RNG.uniform(40, 600, (2, places)), RNG.uniform(20, 60, (2, places))
        scores = 0.01 * RNG.random((5, places))
        for thing in range(6):
            near = slice(3 * thing, 3 * thing + 3)
            middle[:, near], size[:, near] = middle[:, 3 * thing, None], size[:, 3 * thing, None]
            scores[RNG.integers(5), near] = scale * RNG.uniform(0.5, 0.9)
        boxes = [middle - size / 2, middle + size / 2] if corners else [middle, size]
        found.append(np.concatenate([*boxes, scores, RNG.standard_normal((columns, places))])[None])
    return np.stack(found)


@pytest.mark.parametrize("corners", [False, True])
@pytest.mark.parametrize("columns", [0, 8])
def test_a_detector_is_judged_by_the_boxes_that_stay(columns, corners):
    wanted = seen_by_a_detector(columns=columns, corners=corners)
    found, failed = judged(wanted, wanted + 0.01 * RNG.standard_normal(wanted.shape) * (wanted < 2))
    assert (found.kind, failed) == ("detections", [])
    weaker = wanted.copy()
    weaker[:, :, 4:9, :3] *= 0.2
    assert "same detections" in judged(wanted, weaker)[1]
    moved = wanted.copy()
    moved[:, :, :4, :6] += 30
    assert "same detections" in judged(wanted, moved)[1]
    other = wanted.copy()
    other[:, :, 4:9, :6] = np.roll(other[:, :, 4:9, :6], 1, axis=2)
    assert "same detections" in judged(wanted, other)[1]


def test_one_of_three_places_that_see_the_same_thing_is_not_missed():
    wanted = seen_by_a_detector()
    got = wanted.copy()
    got[:, :, 4:, 0] = 0.24
    got[:, :, 4:, 0:18:3] *= 0.3
    assert judged(wanted, got, outputs={"y": "detections"})[1] in ([], ["scores"])


@pytest.mark.parametrize(("common", "read"), [(0, True), (49, True), (20, False)])
def test_only_what_is_mostly_the_first_or_the_last_class_is_read_as_text(common, read):
    """A frequent letter of a masked language model is no blank."""
    wanted = np.zeros((4, 1, 30, 50))
    best = np.where(RNG.uniform(size=(4, 30)) < 0.5, common, RNG.integers(5, 45, (4, 30)))
    np.put_along_axis(wanted[:, 0], best[:, :, None], 9.0, axis=2)
    names = [measure.name for measure in judged(wanted, wanted, "logits")[0].measures]
    assert ("same reading" in names) is read


def test_a_detector_that_says_where_before_it_says_what_is_read_so():
    """YOLOv5: classes are told of every place, the first score says whether anything is there."""
    wanted = seen_by_a_detector()
    there = wanted[:, :, 4:].max(axis=2, keepdims=True)
    wanted = np.concatenate([wanted[:, :, :4], there, RNG.uniform(0, 0.9, wanted[:, :, 4:].shape)], axis=2)
    got = wanted.copy()
    got[:, :, 4, :18] *= 0.1
    assert judged(wanted, wanted)[1] == []
    assert "same detections" in judged(wanted, got)[1]


def test_mask_coefficients_count_where_something_is_seen():
    wanted = seen_by_a_detector(columns=8)
    elsewhere, here = wanted.copy(), wanted.copy()
    elsewhere[:, :, 9:, 18:] = 0
    here[:, :, 9, :18] = 0
    assert judged(wanted, elsewhere, outputs={"y": "detections"})[1] in ([], ["close to the export"])
    assert "worst of 8 coefficients" in judged(wanted, here)[1]


def test_a_picture_in_which_nothing_is_seen_says_nothing_about_mask_coefficients():
    wanted = seen_by_a_detector(columns=8)
    wanted[1, :, 4:9] *= 0.01
    here = wanted.copy()
    here[:, :, 9, :18] = 0
    assert judged(wanted, wanted, outputs={"y": "detections"})[1] == []
    assert "worst of 8 coefficients" in judged(wanted, here, outputs={"y": "detections"})[1]


def test_a_mask_coefficient_that_is_hardly_used_does_not_decide():
    wanted = seen_by_a_detector(columns=8)
    wanted[:, :, 9] *= 0.12
    got = wanted.copy()
    got[:, :, 9] += np.std(wanted[:, :, 9, :18]) * RNG.choice([-1.0, 1.0], wanted[:, :, 9].shape)
    assert "worst of 8 coefficients" not in judged(wanted, got, outputs={"y": "detections"})[1]


def test_what_holds_nothing_finite_says_so():
    nothing = np.full((2, 1, 4), np.nan)
    found, _ = judged(nothing, nothing, precision="fp32")
    assert not found.finite
    assert judged(np.ones((2, 1, 4)), np.ones((2, 1, 4)), precision="fp32")[0].finite
