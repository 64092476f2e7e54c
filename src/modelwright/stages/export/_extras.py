"""Values for arguments beside a model's main input, by their names and the sizes its configuration gives."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from modelwright._dataclass import dataclass
from modelwright.stages.export._inputs import image_input, text_inputs, token_fill
from modelwright.stages.export._load import Loaded
from modelwright.stages.export._values import ExportParams
from modelwright.vocabulary import Fill, InputSpec, TensorSpec

_IDS = "input_ids"
# Boxes are given in thousandths of a page.
_PAGE = 1001
_WRITTEN = 16
_SOUND = ("input_features", "input_values")
_TYPES = {"token_type": "type_vocab_size"}


@dataclass(frozen=True)
class Extra:
    """An argument that can be given. `other` is a fill that shows whether its value matters.

    `only_if_needed`: the model makes it itself where it can.
    """

    spec: TensorSpec
    other: Fill
    only_if_needed: bool = False


_Make = Callable[[InputSpec, Loaded, ExportParams], Extra | None]


def extra(name: str, inputs: InputSpec, loaded: Loaded, params: ExportParams) -> Extra | None:
    """A value for the argument `name` that goes with `inputs`; None when none can be made up."""
    make = _MAKERS.get(name)
    if make is not None:
        return make(inputs, loaded, params)
    if name.endswith("_input_ids"):
        return _more_tokens(name, inputs, loaded)
    return _typed_tokens(name, inputs, loaded) if name.endswith("_ids") else None


def _tokens(inputs: InputSpec, loaded: Loaded, params: ExportParams) -> Extra | None:
    if not getattr(loaded.config.get_text_config(), "vocab_size", None):
        return None
    spec = text_inputs(loaded, params)[0]
    return Extra(spec, spec.fill)


def _picture(_: InputSpec, loaded: Loaded, params: ExportParams) -> Extra:
    spec = image_input(loaded, params)
    return Extra(spec, spec.fill)


def _mask(inputs: InputSpec, _: Loaded, __: ExportParams) -> Extra | None:
    found = _beside_tokens("attention_mask", inputs, Fill("ones"), Fill("integers", 0, 2))
    return found or _whole("attention_mask", inputs)


def _whole(name: str, inputs: InputSpec) -> Extra | None:
    """That all of a sound counts, for a model that does not take this for granted."""
    sound = next((spec for spec in inputs if spec.name in _SOUND), None)
    if sound is None:
        return None
    sizes = (sound.sizes[0], max(sound.sizes[1:]))
    spec = TensorSpec(name, "int64", (sound.shape[0], sizes[1]), sizes, Fill("ones"))
    return Extra(spec, Fill("ones"), only_if_needed=True)


def _observed(inputs: InputSpec, _: Loaded, __: ExportParams) -> Extra | None:
    """A value for every time, none of them missing."""
    values = next((spec for spec in inputs if spec.name == "past_values"), None)
    if values is None:
        return None
    return Extra(replace(values, name="past_observed_mask", fill=Fill("ones")), Fill("ones"), only_if_needed=True)


def _boxes(inputs: InputSpec, loaded: Loaded, _: ExportParams) -> Extra | None:
    rows = getattr(loaded.config, "max_2d_position_embeddings", None) or _PAGE
    boxes = Fill("boxes", 0, min(_PAGE, rows))
    found = _beside_tokens("bbox", inputs, boxes, boxes)
    if found is None:
        return None
    spec = found.spec
    return replace(found, spec=replace(spec, shape=(*spec.shape, 4), sizes=(*spec.sizes, 4)))


def _decoder_tokens(inputs: InputSpec, loaded: Loaded, params: ExportParams) -> Extra | None:
    ids = _ids(inputs) or _written(inputs, loaded)
    if ids is None:
        return None
    fill = replace(ids.fill, last=None)
    return Extra(replace(ids, name="decoder_input_ids", fill=fill), fill, only_if_needed=True)


def _more_tokens(name: str, inputs: InputSpec, loaded: Loaded) -> Extra | None:
    """A second text, for a part of the model with a vocabulary of its own: `qformer_input_ids`."""
    part = getattr(loaded.config, f"{name.removesuffix('_input_ids')}_config", None)
    ids = _ids(inputs) or _written(inputs, loaded)
    if not getattr(part, "vocab_size", None) or ids is None:
        return None
    fill = token_fill(part)
    return Extra(replace(ids, name=name, fill=fill), fill, only_if_needed=True)


def _written(inputs: InputSpec, loaded: Loaded) -> TensorSpec | None:
    """What a decoder has written so far about a picture or a sound."""
    text = loaded.config.get_text_config(decoder=True)
    size = getattr(text, "decoder_vocab_size", None) or getattr(text, "vocab_size", None)
    if size is None or not inputs:
        return None
    sizes = (inputs[0].sizes[0], _WRITTEN)
    return TensorSpec(_IDS, "int64", (inputs[0].shape[0], _WRITTEN), sizes, token_fill(text, vocabulary=size))


def _typed_tokens(name: str, inputs: InputSpec, loaded: Loaded) -> Extra | None:
    """A number for each token out of a table: `task_type_ids` are below `task_type_vocab_size`."""
    stem = name.removesuffix("_ids")
    sizes = (_TYPES.get(stem), f"{stem}_vocab_size", f"{stem.removeprefix('input_')}_vocab_size")
    rows = next((size for key in sizes if key and (size := _size(loaded.config, key)) is not None), None)
    if rows is None:
        return None
    usual = Fill("zeros") if "type" in stem else Fill("integers", 0, rows)
    return _beside_tokens(name, inputs, usual, Fill("integers", 0, rows))


def _beside_tokens(name: str, inputs: InputSpec, usual: Fill, other: Fill) -> Extra | None:
    ids = _ids(inputs)
    return Extra(replace(ids, name=name, fill=usual), other) if ids is not None else None


def _ids(inputs: InputSpec) -> TensorSpec | None:
    return next((spec for spec in inputs if spec.name == _IDS), None)


def _size(config: Any, key: str) -> int | None:
    value = getattr(config, key, None) or getattr(config.get_text_config(), key, None)
    return value if isinstance(value, int) else None


_MAKERS: Mapping[str, _Make] = {
    _IDS: _tokens,
    "pixel_values": _picture,
    "attention_mask": _mask,
    "bbox": _boxes,
    "decoder_input_ids": _decoder_tokens,
    "input_features_mask": lambda inputs, _, __: _whole("input_features_mask", inputs),
    "past_observed_mask": _observed,
}
