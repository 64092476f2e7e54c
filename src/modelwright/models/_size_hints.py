"""What says how large images and texts are: a processor's settings, and what exporters write into a file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from modelwright._dataclass import dataclass
from modelwright.graph import Graph
from modelwright.models._hf import read_config
from modelwright.vocabulary import Origin, Sized

PROCESSORS = ("preprocessor_config.json", "processor_config.json")
TOKENIZER = "tokenizer_config.json"
# Longer ones say what a model bears, not what it is fed.
_LONGEST_TEXT = 1024
_IMAGE_SIZE = "imgsz"


@dataclass(frozen=True)
class SizeHints:
    """Height and width of an image, tokens of a text; None where nothing says it."""

    image: tuple[int, int] | None = None
    text: int | None = None
    origin: Origin = "the processor"


def metadata_hints(graph: Graph) -> SizeHints:
    """`imgsz`, as ultralytics writes it."""
    found = {item.key: item.value for item in graph.model.metadata_props}
    try:
        size = pair(json.loads(found.get(_IMAGE_SIZE, "null")))
    except (ValueError, TypeError):
        size = None
    return SizeHints(size, None, "the file's metadata")


def processor_hints(folder: Path) -> SizeHints:
    """Of a folder in the Hugging Face layout; nothing where there is none."""
    return SizeHints(processor_image(read_processor(folder)), text_length(folder))


def read_processor(folder: Path) -> dict[str, Any]:
    """The image or audio processor's settings; newer folders nest them in the processor's file."""
    for name in PROCESSORS:
        path = folder / name
        if path.is_file():
            settings = read_config(path)
            nested = settings.get("image_processor") or settings.get("feature_extractor")
            return nested if isinstance(nested, dict) else settings
    return {}


def text_length(folder: Path) -> int | None:
    """How many tokens the tokenizer cuts a text to."""
    path = folder / TOKENIZER
    settings = read_config(path) if path.is_file() else {}
    found = settings.get("max_length") or settings.get("model_max_length")
    return int(found) if isinstance(found, int | float) and 1 <= found <= _LONGEST_TEXT else None


def processor_image(processor: Mapping[str, Any]) -> tuple[int, int] | None:
    """Height and width: the crop, then the size."""
    crop = pair(processor.get("crop_size")) if processor.get("do_center_crop") else None
    return crop or pair(processor.get("size"))


def pair(size: Any) -> tuple[int, int] | None:
    """Height and width, however they are written."""
    if isinstance(size, dict):
        if "height" in size and "width" in size:
            return int(size["height"]), int(size["width"])
        edge = size.get("shortest_edge")
        return (int(edge), int(edge)) if edge else None
    if isinstance(size, list | tuple) and len(size) == 2:
        return int(size[0]), int(size[1])
    return (int(size), int(size)) if size else None


def sized(sizes: Mapping[str, int], origin: Origin) -> dict[str, Sized]:
    return {name: Sized(name, size, origin) for name, size in sizes.items()}
