"""Which samples a command uses: the same options everywhere, handed on as one `Data`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar, get_args

import click

from modelwright.cli._completing import data_names, files
from modelwright.cli._options import parse_pairs
from modelwright.cli._types import SEED, ImageSize, Numbers, Ratio
from modelwright.errors import UsageError
from modelwright.vocabulary import Data, Layout, PixelInputs, PixelType

F = TypeVar("F", bound=Callable[..., Any])
_HELP = "Samples: .npz, .npy, folder, images, text, CSV, JSONL, file.py:function, `datasets` id, random."
# What only means something about data that is named.
_ABOUT = ("scale", "mean", "std", "size", "layout", "column", "labels", "split", "processor")


def pixel_options(function: F) -> F:
    """How the finished model takes its images; hands the command `inputs`, None where nothing was said."""

    @click.option("--input-type", type=click.Choice(get_args(PixelType)), help="Images are taken as bytes.")
    @click.option("--input-layout", type=click.Choice(get_args(Layout)), help="Where images have their channels.")
    @click.option("--input-scale", type=Ratio(), help="The model multiplies pixels with this itself, such as 1/255.")
    @click.option("--input-mean", type=Numbers(), help="And takes this off: a number, or one per channel (a,b,c).")
    @click.option("--input-std", type=Numbers(), help="And divides by this, likewise.")
    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        names = {"dtype": "input_type", **{word: f"input_{word}" for word in ("layout", "scale", "mean", "std")}}
        said = {field: kwargs.pop(option) for field, option in names.items()}
        given = any(value is not None for value in said.values())
        return function(*args, inputs=PixelInputs(**said) if given else None, **kwargs)

    return wrapper  # type: ignore[return-value]


def data_options(*, required: bool = False, partly: bool = False) -> Callable[[F], F]:
    """Adds --data and what belongs to it; hands the command `data`.

    `partly` is for commands that also read a recipe: `data` is None unless it is named, and `samples` and `seed` come
    beside it, since they can be said about the recipe's data.
    """

    def decorate(function: F) -> F:
        @click.option("--data", required=required, shell_complete=data_names, help=_HELP)
        @click.option("--samples", type=click.IntRange(min=1), help="How many, drawn by --seed.")
        @click.option("--seed", type=SEED, help="For drawing samples and for made-up ones.  [default: 0]")
        @click.option("--scale", type=Ratio(), help="Factor for pixels, for example 1/255.")
        @click.option("--mean", type=Numbers(), help="Taken off scaled pixels: a number, or one per channel (a,b,c).")
        @click.option("--std", type=Numbers(), help="What the rest is divided by, likewise.")
        @click.option("--size", type=ImageSize(), help="Resize images to HEIGHTxWIDTH.")
        @click.option("--layout", type=click.Choice(get_args(Layout)), help="Where the model has an image's channels.")
        @click.option("--column", multiple=True, metavar="FIELD=COLUMN", help="Where the data keeps a field.")
        @click.option(
            "--labels", shell_complete=files, help="A file with a label per sample: .npy, or text with one per line."
        )
        @click.option("--split", help="Of a `datasets` id.  [default: validation]")
        @click.option(
            "--processor", shell_complete=files, help="Folder with the model's tokenizer, image or audio processor."
        )
        @functools.wraps(function)
        def wrapper(*args: Any, data: str | None, samples: int | None, seed: int | None, **kwargs: Any) -> Any:
            about = {name: kwargs.pop(name) for name in _ABOUT}
            if partly:
                return function(
                    *args,
                    data=_made(data, None, None, about),
                    samples=samples,
                    seed=seed,
                    **kwargs,
                )
            made = _made(data, samples, seed, about) or Data(samples=samples, seed=seed or 0)
            return function(*args, data=made, **kwargs)

        return wrapper  # type: ignore[return-value]

    return decorate


def _made(source: str | None, samples: int | None, seed: int | None, about: dict[str, Any]) -> Data | None:
    if source is None:
        said = next((name for name in _ABOUT if about[name]), None)
        if said is not None:
            raise UsageError(f"--{said} needs --data", cause="it is about the data that is named there", fix="add it")
        return None
    columns = parse_pairs("--column", about.pop("column"))
    return Data(source, samples=samples, seed=seed or 0, columns=columns, **about)
