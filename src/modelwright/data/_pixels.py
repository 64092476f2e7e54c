"""Image inputs as a camera gives them: which ones they are, and how their declaration changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

from modelwright._dataclass import dataclass
from modelwright.errors import InputError
from modelwright.graph import ValueSpec
from modelwright.vocabulary import Fill, InputSpec, PixelInputs

T = TypeVar("T")
COLOURS = (1, 3, 4)
TO_LAST, TO_FIRST = (0, 2, 3, 1), (0, 3, 1, 2)
_BYTES = Fill("integers", 0, 256)


@dataclass(frozen=True)
class ImageInput:
    """An input of the model as it is: `last` where its channels are. `moved` is how the axes of the new declaration
    follow from the old; None where they stay."""

    name: str
    last: bool
    moved: tuple[int, ...] | None


def image_inputs(signature: Sequence[ValueSpec], wanted: PixelInputs) -> tuple[ImageInput, ...]:
    """Those that are named, else those that look like images. None at all is an error."""
    known = [value.name for value in signature]
    unknown = [name for name in wanted.images if name not in known]
    looks = [value for value in signature if (value.name in wanted.images if wanted.images else _is_image(value))]
    wrong = [value.name for value in looks if not _is_image(value)]
    if unknown or wrong or not looks:
        what = f"no input {unknown[0]}" if unknown else f"{wrong[0]} is none" if wrong else "none looks like one"
        raise InputError(
            "the image inputs of the model are not clear",
            cause=f"{what}: an image is four dimensions of floats, 1, 3 or 4 channels; it takes {', '.join(known)}",
            fix="Name them in the recipe: [inputs] images.",
        )
    for value in looks:
        _check_channels(value, wanted)
    return tuple(_image(value, wanted) for value in looks)


def _check_channels(value: ValueSpec, wanted: PixelInputs) -> None:
    """One number serves every channel; more must be as many as there are."""
    channels = (value.shape or ())[3 if _channels_last(value) else 1]
    for name, numbers in (("input_mean", wanted.mean), ("input_std", wanted.std)):
        if numbers is not None and len(numbers) not in (1, channels):
            raise InputError(
                f"`{name}` has {len(numbers)} numbers, and {value.name} has {channels} channels",
                cause="there is one number for each channel, or one for all",
                fix=f"Give `{name}` 1 or {channels} numbers, in the order of the model's channels.",
            )


def as_taken(signature: Sequence[ValueSpec], wanted: PixelInputs) -> tuple[ValueSpec, ...]:
    """The inputs as the finished model declares them; an axis without a name keeps the one that its place gave it."""
    images = {image.name: image for image in image_inputs(signature, wanted)}
    return tuple(
        value
        if value.name not in images
        else replace(value, dtype=wanted.dtype or value.dtype, shape=moved(_named(value), images[value.name].moved))
        for value in signature
    )


def specs_as_taken(specs: InputSpec, wanted: PixelInputs) -> InputSpec:
    """What is made up for them: bytes where they are bytes, and as much where pixels are scaled."""
    plain = [ValueSpec(spec.name, spec.dtype, spec.shape) for spec in specs]
    images = {image.name: image for image in image_inputs(plain, wanted)} if specs else {}
    found = []
    for spec in specs:
        image = images.get(spec.name)
        if image is not None:
            fill = _BYTES if wanted.dtype else Fill("uniform", 0, 256) if wanted.normalizes else spec.fill
            shape, sizes = moved(spec.shape, image.moved), moved(spec.sizes, image.moved)
            spec = replace(spec, dtype=wanted.dtype or spec.dtype, shape=shape, sizes=sizes, fill=fill)
        found.append(spec)
    return tuple(found)


def moved(items: Sequence[T], places: tuple[int, ...] | None) -> tuple[T, ...]:
    return tuple(items) if places is None else tuple(items[place] for place in places)


def _image(value: ValueSpec, wanted: PixelInputs) -> ImageInput:
    last = _channels_last(value)
    asked = last if wanted.layout is None else wanted.layout == "nhwc"
    return ImageInput(value.name, last, None if asked == last else TO_LAST if asked else TO_FIRST)


def _channels_last(value: ValueSpec) -> bool:
    shape = value.shape or ()
    return shape[3] in COLOURS and shape[1] not in COLOURS


def _is_image(value: ValueSpec) -> bool:
    shape = value.shape or ()
    floats = value.dtype in ("float32", "float16")
    return floats and len(shape) == 4 and (shape[1] in COLOURS or shape[3] in COLOURS)


def _named(value: ValueSpec) -> tuple[int | str | None, ...]:
    return tuple(f"{value.name}:{axis}" if dim is None else dim for axis, dim in enumerate(value.shape or ()))
