"""Made-up inputs: seeded, independent, inside their ranges."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelwright.data import generate
from modelwright.errors import InputError
from modelwright.vocabulary import Fill, TensorSpec, static
from modelwright.worker import limited


def tokens(low=0, high=50, size=(2, 16), **options):
    return static("input_ids", "int64", size, Fill("tokens", low, high, **options))


def test_the_same_seed_and_index_give_the_same_sample():
    spec = tokens()
    assert np.array_equal(generate([spec], 3, 5)["input_ids"], generate([spec], 3, 5)["input_ids"])


def test_a_sample_does_not_depend_on_the_samples_or_inputs_around_it():
    alone = generate([tokens()], 1, 7)["input_ids"]
    mask = static("attention_mask", "int64", (2, 16), Fill("normal"))
    for index in range(7):
        generate([mask, tokens()], 1, index)
    assert np.array_equal(generate([mask, tokens()], 1, 7)["input_ids"], alone)


def test_samples_and_seeds_differ():
    samples = [generate([tokens()], seed, index)["input_ids"] for seed in (0, 1) for index in (0, 1)]
    assert len({sample.tobytes() for sample in samples}) == 4


def test_the_global_random_state_is_left_alone():
    np.random.seed(0)
    before = np.random.get_state()[1].copy()
    generate([tokens(), static("x", "float32", (4,), Fill("normal"))])
    assert np.array_equal(np.random.get_state()[1], before)


def test_a_range_is_half_open():
    drawn = generate([static("x", "int64", (1_000_000,), Fill("integers", 0, 11))])["x"]
    assert (drawn.min(), drawn.max()) == (0, 10)


@given(
    high=st.integers(5, 40),
    avoid=st.sets(st.integers(-3, 45), max_size=3),
    last=st.none() | st.integers(0, 4),
    index=st.integers(0, 50),
)
def test_tokens_stay_inside_the_vocabulary_and_away_from_special_ones(high, avoid, last, index):
    ids = generate([tokens(high=high, avoid=tuple(avoid), last=last)], 0, index)["input_ids"]
    body = ids[:, :-1] if last is not None else ids
    assert ids.min() >= 0
    assert ids.max() < high
    assert not set(body.ravel().tolist()) & (avoid | {last})
    assert last is None or (ids[:, -1] == last).all()


def test_every_ordinary_token_can_appear():
    ids = generate([tokens(high=8, size=(1000,), avoid=(0, 3, 7))])["input_ids"]
    assert set(ids.tolist()) == {1, 2, 4, 5, 6}


def test_a_vocabulary_of_special_tokens_only_is_an_error():
    with pytest.raises(InputError, match="no token ids"):
        generate([tokens(high=2, avoid=(0, 1))])


def test_masks_are_ones_and_positions_count_up():
    made = generate(
        [
            static("attention_mask", "int64", (1, 4), Fill("ones")),
            static("position_ids", "int64", (2, 4), Fill("arange")),
        ]
    )
    assert made["attention_mask"].tolist() == [[1, 1, 1, 1]]
    assert made["position_ids"].tolist() == [[0, 1, 2, 3]] * 2


def test_boxes_have_ordered_corners():
    boxes = generate([static("bbox", "int64", (1, 100, 4), Fill("boxes", 0, 1000))])["bbox"]
    assert (boxes[..., 0] <= boxes[..., 2]).all()
    assert (boxes[..., 1] <= boxes[..., 3]).all()
    assert boxes.max() < 1000


def test_patches_carry_a_row_and_a_column_that_the_tables_have():
    patches = generate([static("p", "float32", (1, 100, 7), Fill("indexed_patches", high=6))])["p"]
    places = patches[..., :2]
    assert np.array_equal(places, places.round())
    assert (places.min(), places.max() < 6) == (1, True)


def test_types_and_sizes_are_as_declared():
    spec = TensorSpec("x", "float16", ("batch", 3), (2, 3), Fill("uniform", -1, 1))
    assert (generate([spec])["x"].dtype, generate([spec])["x"].shape) == (np.float16, (2, 3))


def test_a_type_numpy_does_not_have_is_an_error():
    with pytest.raises(InputError, match="no values"):
        generate([static("x", "bfloat16", (1,), Fill("normal"))])


def test_a_shape_that_asks_for_more_memory_than_there_may_be_is_refused():
    spec = static("x", "float32", (1000, 1000), Fill("normal"))
    with limited(memory=1_000_000), pytest.raises(InputError, match="x is too large to be made up") as caught:
        generate([spec])
    assert "8 MB" in caught.value.cause
    assert "`memory`" in caught.value.fix
