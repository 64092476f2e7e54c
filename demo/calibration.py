"""Real inputs for the demo: the first images of the bundled test set, as the model wants them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

CALIBRATION = 128
DATA = Path(__file__).with_name("fashion_test.npz")


def images() -> Iterator[dict[str, NDArray[np.float32]]]:
    """One image at a time, scaled to [0, 1]; the images after these are kept for measuring accuracy."""
    with np.load(DATA) as data:
        pictures = data["image"][:CALIBRATION]
    for picture in pictures:
        yield {"image": picture[None].astype(np.float32) / 255.0}


def dim_images() -> Iterator[dict[str, NDArray[np.float32]]]:
    """The same images, too dark: a common mistake, after which the ranges found are too small for real ones."""
    for sample in images():
        yield {"image": sample["image"] * np.float32(0.4)}
