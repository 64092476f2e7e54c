"""Which inputs are images, and how their declaration changes."""

import math

import pytest

from modelwright.data import as_taken, image_inputs, specs_as_taken
from modelwright.errors import InputError, UsageError
from modelwright.graph import ValueSpec
from modelwright.pipeline import Recipe
from modelwright.pipeline._recipe import make_recipe, toml_text
from modelwright.vocabulary import Fill, PixelInputs, TensorSpec

FIRST = ValueSpec("x", "float32", (1, 3, None, "w"))
LAST = ValueSpec("x", "float32", (1, 32, 32, 3))
WORDS = ValueSpec("ids", "int64", (1, 8))
BYTES = PixelInputs(dtype="uint8", layout="nhwc", scale=1 / 255)


def test_channels_move_and_axes_keep_the_names_of_their_old_places():
    image, words = as_taken((FIRST, WORDS), BYTES)
    assert (image.dtype, image.shape) == ("uint8", (1, "x:2", "w", 3))
    assert words == WORDS
    assert image_inputs((FIRST,), BYTES)[0].moved == (0, 2, 3, 1)


def test_what_has_its_channels_there_already_stays():
    assert image_inputs((LAST,), BYTES)[0].moved is None
    assert as_taken((LAST,), PixelInputs(layout="nchw"))[0].shape == (1, 3, 32, 32)


def test_made_up_images_are_bytes_in_the_new_order():
    spec = TensorSpec("x", "float32", (1, 3, "h", "w"), (1, 3, 24, 32), Fill("normal"))
    (found,) = specs_as_taken((spec,), BYTES)
    assert (found.dtype, found.shape, found.sizes) == ("uint8", (1, "h", "w", 3), (1, 24, 32, 3))
    assert (found.fill.kind, found.fill.low, found.fill.high) == ("integers", 0, 256)
    assert specs_as_taken((), BYTES) == ()


@pytest.mark.parametrize(
    ("signature", "images"), [((WORDS,), ()), ((FIRST, WORDS), ("ids",)), ((FIRST,), ("y",))], ids=str
)
def test_inputs_that_are_no_images_are_refused(signature, images):
    with pytest.raises(InputError, match="not clear"):
        image_inputs(signature, PixelInputs(layout="nhwc", images=images))


@pytest.mark.parametrize("signature", [FIRST, LAST], ids=["channels first", "channels last"])
@pytest.mark.parametrize("wrong", [{"mean": (1.0, 2.0)}, {"std": (1.0,) * 5}], ids=str)
def test_numbers_are_as_many_as_channels_or_one(signature, wrong):
    with pytest.raises(InputError, match=r"and x has 3 channels"):
        image_inputs((signature,), PixelInputs(**wrong))
    assert image_inputs((signature,), PixelInputs(mean=(0.5,), std=(0.2, 0.2, 0.2)))


@pytest.mark.parametrize(
    "wrong",
    [{"dtype": "uint8"}, {"scale": 0.0}, {"std": (0.2, 0.0)}, {"std": (math.nan,)}, {"mean": (math.inf,)}],
    ids=str,
)
def test_what_cannot_be_meant_is_refused(wrong):
    with pytest.raises(UsageError):
        PixelInputs(**wrong)


def test_a_recipe_keeps_them():
    sections = {"export": None, "optimize": None, "quantize": None, "compile": None}
    recipe = Recipe(policy_version=1, target="cpu", precision="fp32", inputs=BYTES, **sections)
    assert "[inputs]" in toml_text(recipe)
    table = {"dtype": "uint8", "layout": "nhwc", "scale": 1 / 255}
    layer = {"policy_version": 1, "target": "cpu", "precision": "fp32", **sections, "inputs": table}
    assert make_recipe(layer, "it").inputs == BYTES
    with pytest.raises(InputError, match="unknown key"):
        make_recipe({**layer, "inputs": {"type": "uint8"}}, "it")
