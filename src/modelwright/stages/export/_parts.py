"""Which graphs a model becomes."""

from __future__ import annotations

from typing import Any

from modelwright.stages.export._causal import causal_parts
from modelwright.stages.export._family import family
from modelwright.stages.export._load import Loaded
from modelwright.stages.export._part import Part
from modelwright.stages.export._seq2seq import seq2seq_parts
from modelwright.stages.export._single import single_part, tower_parts
from modelwright.stages.export._values import ExportParams, Link

_GENERATES = frozenset({"text2text-generation", "image-to-text", "automatic-speech-recognition"})


def split(loaded: Loaded, params: ExportParams) -> tuple[tuple[Part, ...], tuple[Link, ...]]:
    """The parts in the order they run, and how they feed each other."""
    model, own = loaded.model, family(loaded.config.model_type)
    if own.parts is not None:
        return own.parts(loaded, params)
    if params.task == "text-generation":
        return causal_parts(loaded, params)
    if params.task in _GENERATES and _has_decoder(model):
        return seq2seq_parts(loaded, params)
    if hasattr(model, "get_text_features") and hasattr(model, "get_image_features"):
        return tower_parts(loaded, params), ()
    return (single_part(loaded, params),), ()


def _has_decoder(model: Any) -> bool:
    """A text configuration inside (Pix2Struct) carries the flag where the outer one may not."""
    config = model.config
    flags = (config, config.get_text_config(decoder=True))
    return any(getattr(part, "is_encoder_decoder", False) for part in flags) and model.can_generate()
