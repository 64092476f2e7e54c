"""Which graphs a model becomes."""

from __future__ import annotations

from typing import Any, Literal

from modelwright.stages.export._causal import causal_parts
from modelwright.stages.export._family import family
from modelwright.stages.export._load import Loaded
from modelwright.stages.export._part import Part
from modelwright.stages.export._seq2seq import seq2seq_parts
from modelwright.stages.export._single import single_part, tower_parts
from modelwright.stages.export._values import ExportParams, Link

_GENERATES = frozenset({"text2text-generation", "image-to-text", "automatic-speech-recognition"})
ExportPattern = Literal["its own", "prompt and step", "encoder and decoder", "two towers", "one graph"]


def pattern(loaded: Loaded, task: str) -> ExportPattern:
    """The kind of split: models of one kind are exported by the same code, whatever they are trained on."""
    model = loaded.model
    if family(loaded.config.model_type).parts is not None:
        return "its own"
    if task == "text-generation":
        return "prompt and step"
    if task in _GENERATES and _has_decoder(model):
        return "encoder and decoder"
    if hasattr(model, "get_text_features") and hasattr(model, "get_image_features"):
        return "two towers"
    return "one graph"


def split(loaded: Loaded, params: ExportParams) -> tuple[tuple[Part, ...], tuple[Link, ...]]:
    """The parts in the order they run, and how they feed each other."""
    own = family(loaded.config.model_type).parts
    match pattern(loaded, params.task):
        case "its own" if own is not None:
            return own(loaded, params)
        case "prompt and step":
            return causal_parts(loaded, params)
        case "encoder and decoder":
            return seq2seq_parts(loaded, params)
        case "two towers":
            return tower_parts(loaded, params), ()
        case _:
            return (single_part(loaded, params),), ()


def _has_decoder(model: Any) -> bool:
    """A text configuration inside (Pix2Struct) carries the flag where the outer one may not."""
    config = model.config
    flags = (config, config.get_text_config(decoder=True))
    return any(getattr(part, "is_encoder_decoder", False) for part in flags) and model.can_generate()
