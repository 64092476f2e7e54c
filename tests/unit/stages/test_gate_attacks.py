"""Artifacts that are useless in a way that sums and shares hide, and good ones beside them."""

import numpy as np
import pytest

from modelwright.stages.validate import Gate
from modelwright.stages.validate._outputs import Asked, parity
from modelwright.stages.validate._run import _verdicts
from modelwright.stages.validate._types import Fidelity
from modelwright.stages.validate._ways import Ways
from modelwright.vocabulary import weakest

RNG = np.random.default_rng(0)


def passes(wanted, got, name="y", precision="w8a8", *, random=False):
    """What the gate says of an output, of samples along the first axis."""
    answers = [[{name: sample} for sample in side] for side in (wanted, got)]
    gate = Gate(precision=precision)
    outputs = parity(*answers, Asked([{}] * len(wanted), gate, random=random))
    nothing = Fidelity(None, None)
    checks = _verdicts(Ways(outputs, "as executed", nothing, nothing))
    return weakest(check.passed for check in checks)


def noisy(values, share):
    return (values + share * values.std() * RNG.standard_normal(values.shape)).astype(np.float32)


@pytest.mark.parametrize("shape", [(32, 1, 1), (32, 1), (32, 1, 1, 1)])
@pytest.mark.parametrize("name", ["age", "logits", "score"])
def test_a_level_that_no_longer_depends_on_the_input_fails(shape, name):
    wanted = (40 + 8 * RNG.standard_normal(shape)).astype(np.float32)
    assert passes(wanted, noisy(wanted, 0.2), name)
    assert not passes(wanted, np.full_like(wanted, 40), name)


NOTHING_SEEN = (1e-8 * np.random.default_rng(1).random((4, 1, 1, 16, 16))).astype(np.float32)


@pytest.mark.parametrize(
    ("precision", "off", "random", "passed"),
    [
        ("fp32", 1e-7, True, None),
        ("fp32", 1e-7, False, None),
        ("fp32", 1e-4, True, False),
        ("fp16", 1e-4, True, None),
        ("fp16", 1e-4, False, False),
        ("fp16", 1e-2, True, False),
        ("w8a8", 1e-4, True, None),
        ("w8a8", 1e-4, False, False),
    ],
)
def test_a_detector_that_sees_nothing_answers_rounding_and_that_is_no_fault(precision, off, random, passed):
    """PP-OCRv3 answers noise with 1e-8, and onnxruntime's own fusions make 1e-7 of it: it failed as floats."""
    got = NOTHING_SEEN + np.float32(off) * np.random.default_rng(2).random(NOTHING_SEEN.shape).astype(np.float32)
    assert passes(NOTHING_SEEN, got, precision=precision, random=random) is passed


def test_shares_of_a_whole_say_something_however_small_each_of_them_is():
    shares = np.random.default_rng(3).random((4, 1, 20_000))
    shares = (shares / shares.sum(axis=-1, keepdims=True)).astype(np.float32)
    assert passes(shares, shares[..., ::-1], "logits", precision="fp16", random=True) is False


def test_beside_something_that_is_seen_a_small_channel_counts():
    wanted = np.concatenate(
        [np.full((4, 1, 1, 16, 16), 0.9), 5e-4 * np.random.default_rng(4).random((4, 1, 1, 16, 16))], 2
    )
    wanted = (wanted * np.random.default_rng(5).random(wanted.shape)).astype(np.float32)
    broken = wanted.copy()
    broken[:, :, 1] = 0
    assert passes(wanted, broken, "mask", precision="fp16", random=True) is False


def test_small_numbers_of_both_signs_are_no_chances():
    small = NOTHING_SEEN - np.float32(5e-9)
    assert passes(small, 2 * small, precision="fp32", random=True) is False


@pytest.mark.parametrize("random", [True, False])
def test_a_thing_that_is_no_longer_seen_is_a_fault_however_little_else_there_is(random):
    wanted = NOTHING_SEEN.copy()
    wanted[1, 0, 0, 3:9, 4:12] = 0.9
    assert passes(wanted, NOTHING_SEEN, precision="fp32", random=random) is False
    assert passes(wanted, wanted + 1e-7, precision="fp32", random=random) is True


def queries(samples, places, found, classes=6):
    """Scores of a detector without an order: nearly every place says that nothing is there (the last class)."""
    scores = 0.3 * RNG.standard_normal((samples, 1, places, classes)).astype(np.float32)
    scores[..., -1] += 6
    for number in range(found):
        scores[number % samples, 0, 7 * (number + 1) % places, number % (classes - 1)] += 12
    return scores


@pytest.mark.parametrize("found", [5, 60])
@pytest.mark.parametrize("places", [100, 900])
@pytest.mark.parametrize("shares", [False, True])
def test_rare_things_that_are_all_missed_fail(found, places, shares):
    wanted = queries(16, places, found)
    blind = wanted.copy()
    blind[..., :-1] = np.minimum(blind[..., :-1], 1)
    good = noisy(wanted, 0.05)
    if shares:
        wanted, good, blind = (
            np.exp(side) / np.exp(side).sum(axis=-1, keepdims=True) for side in (wanted, good, blind)
        )
    assert passes(wanted, good, "logits")
    assert not passes(wanted, blind, "logits")


def regions(samples=4, size=64):
    """A picture of classes: background, and one thing of four in a hundred places."""
    found = np.zeros((samples, 1, size, size), np.int64)
    found[:, :, 20:33, 20:33] = 3
    return found


@pytest.mark.parametrize("kind", [np.int64, np.int32, np.uint8, np.bool_])
def test_a_picture_of_classes_without_its_only_thing_fails(kind):
    wanted = regions().astype(kind)
    near = wanted.copy()
    near[:, :, 20, 20:24] = 0
    assert passes(wanted, near)
    assert not passes(wanted, np.zeros_like(wanted))


def test_one_class_of_32_that_is_another_one_does_not_decide():
    wanted = RNG.integers(0, 10, (32, 1))
    got = wanted.copy()
    got[3] = (got[3] + 1) % 10
    assert passes(wanted, got)
    got[:8] = (wanted[:8] + 1) % 10
    assert not passes(wanted, got)
    assert not passes(wanted, got, precision="fp32")


def test_words_are_decided_together_too():
    wanted = np.array([[["cat", "dog", "hen"][number % 3]] for number in range(32)])
    got = wanted.copy()
    got[4] = "cow"
    assert passes(wanted, got)
    got[:] = "cat"
    assert not passes(wanted, got)


def tokens(samples=32, length=64, width=24):
    topic = RNG.standard_normal((samples, 1, 1, width))
    return (topic + RNG.standard_normal((samples, 1, length, width))).astype(np.float32)


def test_the_first_token_is_an_embedding_too():
    wanted = tokens()
    assert passes(wanted, noisy(wanted, 0.2), "last_hidden_state")
    got = noisy(wanted, 0.1)
    got[:, :, 0] = RNG.standard_normal(got[:, :, 0].shape)
    assert not passes(wanted, got, "last_hidden_state")


def test_four_embeddings_that_are_all_the_usual_one_fail():
    """Embeddings of text point nearly the same way: their mean is close to each of them."""
    usual = 3 * RNG.standard_normal((1, 1, 64))
    wanted = (usual + RNG.standard_normal((4, 1, 64))).astype(np.float32)
    assert passes(wanted, noisy(wanted, 0.1), "sentence_embedding")
    assert not passes(wanted, np.broadcast_to(wanted.mean(axis=0), wanted.shape), "sentence_embedding")


def pictures(low, high, samples=4, size=32):
    """Smooth, as pictures are."""
    waves = np.sin(np.arange(size)[:, None] / 5 + np.arange(size) / 7 + RNG.uniform(0, 6, (samples, 1, 3, 1, 1)))
    return (low + (high - low) * (waves + 1) / 2).astype(np.float32)


@pytest.mark.parametrize("ends", [(0, 1), (-1, 1), (0, 255)])
def test_a_picture_that_is_only_roughly_the_same_fails(ends):
    wanted = pictures(*ends)
    assert passes(wanted, noisy(wanted, 0.08))
    assert not passes(wanted, noisy(wanted, 0.4))
    assert passes(wanted, noisy(wanted, 1e-4), precision="fp32")


def pitches(samples=32, frames=62):
    """Frames of voices, in Hz: each voice keeps its pitch."""
    voices = np.exp(RNG.uniform(np.log(70), np.log(900), (samples, 1, 1)))
    return (voices * (1 + 0.03 * RNG.standard_normal((samples, 1, frames)))).astype(np.float32)


def test_one_frame_an_octave_off_does_not_decide_and_a_frame_that_is_off_for_every_voice_does():
    wanted = pitches()
    good = noisy(wanted, 0.005)
    for voice, frame in ((3, 10), (17, 35), (29, 61)):
        good[voice, 0, frame] *= 4
    assert passes(wanted, good, "pitch", "w8a16")
    deaf = noisy(wanted, 0.005)
    deaf[:, 0, 35] = wanted[:, 0, 35].mean()
    assert not passes(wanted, deaf, "pitch", "w8a16")


@pytest.mark.parametrize("events", [1, 2, 5])
def test_a_channel_whose_few_events_are_missed_fails(events):
    """The number that is left out of a slice is never the one that the slice is there for."""
    wanted = 0.05 * RNG.standard_normal((32, 1, 12)).astype(np.float32)
    wanted[..., :6] += RNG.standard_normal((32, 1, 6)).astype(np.float32)
    wanted[:events, 0, 9] += 3
    missed = noisy(wanted, 0.005)
    missed[:events, 0, 9] -= 3
    assert passes(wanted, noisy(wanted, 0.005), "levels", "w8a16")
    assert not passes(wanted, missed, "levels", "w8a16")
