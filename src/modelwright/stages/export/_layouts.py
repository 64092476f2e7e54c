"""The ways in which a model may take its main input: the first that it runs on counts.

Which axes an input has is said nowhere but in the model's code: a picture is one image or a row of frames, sound is
bands over time or time over bands, tokens stand alone or in several codebooks. So the usual layout is tried first, then
the others. What only tells the model how large its picture is (a grid of patches) is fixed with the size.
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from modelwright._dataclass import dataclass
from modelwright._lazy import lazy
from modelwright.data import generate
from modelwright.errors import InputError
from modelwright.stages.export._inputs import (
    batched,
    forward_names,
    image_input,
    image_size,
    main_name,
    model_inputs,
    setting,
    text_inputs,
)
from modelwright.stages.export._load import Loaded
from modelwright.stages.export._owed import complete
from modelwright.stages.export._part import Run, tensors_from
from modelwright.stages.export._values import ExportParams, LeftOut
from modelwright.vocabulary import GUESS, Fill, InputSpec, TensorSpec

if TYPE_CHECKING:
    import torch
    from transformers.exporters import utils as exporter_utils
else:
    torch = lazy("torch")
    exporter_utils = lazy("transformers.exporters.utils")

_FRAMES, _STEPS, _SAMPLES, _CONTEXT = 4, 128, 16_000, 64
# Encoders that cut sound into pieces want whole ones.
_MORE_STEPS = (200, 3000)
_BANDS = (
    *("num_mel_bins", "feature_size", "n_mels", "input_feat_size", "mel_bins", "input_feat_per_channel"),
    *("feature_projection_input_dim", "input_dim", "in_channels", "num_mels"),
)
_GRIDS = ("grid_thw", "image_grid_thw")
_FIXED = "it follows from the size of the picture, which is fixed"


@dataclass(frozen=True, eq=False)
class InputLayout:
    """Inputs, and arguments that are the same in every run."""

    inputs: InputSpec
    fixed: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Fitting:
    """What a model runs on. `prepared` is `fixed` with what the model computes from it, for a trace that cannot."""

    inputs: InputSpec
    left_out: tuple[LeftOut, ...]
    fixed: dict[str, Any]
    prepared: dict[str, Any]


def fitting(
    model: Any,
    run_with: Callable[[dict[str, Any]], Run],
    tries: Iterable[InputLayout],
    loaded: Loaded,
    params: ExportParams,
) -> Fitting:
    """The first layout that the model runs on. Where none does, what the usual one ran into."""
    said: InputError | None = None
    sizes = dict(loaded.sizes)
    for layout in tries:
        fixed = dict(layout.fixed)
        try:
            owed = complete(partial(model.forward, **fixed), run_with(fixed), layout.inputs, loaded, params)
        except InputError as error:
            said = said or error
            loaded.sizes.clear()
            loaded.sizes.update(sizes)
            continue
        known = tuple(replace(one, reason=_FIXED) if one.argument in fixed else one for one in owed.left_out)
        return Fitting(owed.inputs, known, fixed, _prepared(model, owed.inputs, fixed))
    raise said or _unmade(model, ValueError("no size of it is known"))


def layouts(model: Any, loaded: Loaded, params: ExportParams) -> Iterator[InputLayout]:
    """The usual one, then others, lazily: what cannot be made up is passed over, unless it is all there is."""
    found, said = False, None
    for make in _makers(_main(model), forward_names(model)):
        try:
            for layout in make(model, loaded, params):
                found = True
                yield layout
        except InputError as error:
            said = said or error
        except (AttributeError, TypeError, RuntimeError, ValueError, ZeroDivisionError) as error:
            # Its configuration lacks what this layout is made of.
            said = said or _unmade(model, error)
    if not found and said is not None:
        raise said


def _unmade(model: Any, error: Exception) -> InputError:
    return InputError(
        f"{type(model).__name__} takes {_main(model)}, which cannot be made up here",
        cause=f"its configuration does not say how large it is ({error})",
        fix="Export it yourself and build from the .onnx file.",
    )


def _main(model: Any) -> str:
    """What the model names as its main input; a part of a model often leaves that unsaid."""
    taken = inspect.signature(model.forward).parameters
    main = main_name(model)
    if main in taken:
        return main
    needed = [name for name, parameter in taken.items() if parameter.default is inspect.Parameter.empty]
    known = [name for name in (*needed, *taken) if name in _OTHERS]
    return next((name for name in (*known, *needed) if name not in ("args", "kwargs")), main)


_Make = Callable[[Any, Loaded, ExportParams], Iterable[InputLayout]]


def _makers(main: str, taken: frozenset[str]) -> Iterator[_Make]:
    if main in ("pixel_values", "hidden_states", "pixel_values_videos") and taken & set(_GRIDS):
        yield partial(_gridded, name=main, grid=next(name for name in _GRIDS if name in taken))
    if main == "input_ids" and "pixel_values" in taken:
        yield _pictured
    if main == "pixel_values" and "spatial_shapes" in taken:
        yield _spaced
    if main not in ("hidden_states", "inputs_embeds"):
        yield _usual
    yield from _OTHERS.get(main, ())


def _usual(_: Any, loaded: Loaded, params: ExportParams) -> Iterator[InputLayout]:
    yield InputLayout(model_inputs(loaded, params))


def _pictured(model: Any, loaded: Loaded, params: ExportParams) -> Iterator[InputLayout]:
    """A text with a picture at its beginning: as many places for it as the picture has features."""
    token = setting(loaded.config, "image_token_id", "image_token_index")
    if not isinstance(token, int) or not hasattr(model, "get_image_features"):
        return
    ids, *others = text_inputs(loaded, params)
    for picture in _pictures(model, loaded, params):
        with contextlib.suppress(Exception):  # a picture that the model does not take has no features
            count = _features(model, picture)
            length = min(ids.sizes[1], _STEPS) + count
            fill = replace(ids.fill, avoid=tuple(sorted({*ids.fill.avoid, token})), values=(token,) * count)
            words = [
                replace(spec, shape=(ids.shape[0], length), sizes=(ids.sizes[0], length)) for spec in (ids, *others)
            ]
            words[0] = replace(words[0], fill=fill)
            kinds = torch.tensor([[1] * count + [0] * (length - count)] * ids.sizes[0])
            fixed = {**picture.fixed, "mm_token_type_ids": kinds, "token_type_ids": kinds}
            named = {key: value for key, value in fixed.items() if key in forward_names(model)}
            loaded.size("sequence_length", length, GUESS)
            yield InputLayout((*(spec for spec in words if spec.name not in named), *picture.inputs), named)


def _pictures(model: Any, loaded: Loaded, params: ExportParams) -> Iterator[InputLayout]:
    """A picture as a whole, or as one of several. Where it comes with a grid, only its own tower can be traced: it is
    left out of the text."""
    taken = forward_names(model)
    if "image_grid_thw" in taken:
        return
    whole = image_input(loaded, params)
    sizes = torch.tensor([whole.sizes[2:]])
    for spec in (whole, *(layout.inputs[0] for layout in _frames(model, loaded, params, name="pixel_values", most=1))):
        yield InputLayout((spec,))
        if "image_sizes" in taken:
            yield InputLayout((spec,), {"image_sizes": sizes})


def _features(model: Any, picture: InputLayout) -> int:
    taken = inspect.signature(model.get_image_features).parameters
    fixed = {name: value for name, value in picture.fixed.items() if name in taken}
    with torch.no_grad():
        found = model.get_image_features(**tensors_from(generate(picture.inputs)), **fixed)
    found = getattr(found, "pooler_output", found)
    parts = found if isinstance(found, list | tuple) else (found,)
    return sum(part.numel() // part.shape[-1] for part in parts)


def _frames(
    model: Any, loaded: Loaded, params: ExportParams, *, name: str | None = None, most: int | None = None
) -> Iterator[InputLayout]:
    """Pictures in a row: a film, or the pictures of one text."""
    (height, width), origin = image_size(loaded, params, loaded.config)
    channels = setting(loaded.config, "num_channels", "in_channels") or 3
    usual = most or setting(loaded.config, "num_frames", "frames_per_clip") or _FRAMES
    for frames in dict.fromkeys((usual, 1)):
        loaded.size("height", height, origin)
        loaded.size("width", width, origin)
        loaded.size("frames", frames, "the configuration")
        shape = (frames, channels, height, width)
        yield InputLayout((batched(name or _main(model), "float32", shape, params, Fill("normal")),))


def _gridded(model: Any, loaded: Loaded, params: ExportParams, *, name: str, grid: str) -> Iterator[InputLayout]:
    """The patches of one picture, each a row, with how many stand beside and below each other."""
    config = loaded.config
    patch, merge = setting(config, "patch_size"), setting(config, "spatial_merge_size", "merge_size") or 1
    (height, width), origin = image_size(loaded, params, config)
    rows, columns = (max(merge, size // patch // merge * merge) for size in (height, width))
    loaded.size("height", rows * patch, origin)
    loaded.size("width", columns * patch, origin)
    channels = setting(config, "in_channels", "num_channels", "in_chans") or 3
    for depth in dict.fromkeys((setting(config, "temporal_patch_size") or 1, 1, 2)):
        for shape in ((channels * depth * patch * patch,), (channels, patch, patch)):
            sizes = (rows * columns, *shape)
            spec = TensorSpec(name, "float32", sizes, sizes, Fill("normal"))
            fixed = {grid: torch.tensor([[1, rows, columns]]), "merge_sizes": torch.tensor([merge])}
            yield InputLayout((spec,), {key: value for key, value in fixed.items() if key in forward_names(model)})


def _spaced(model: Any, loaded: Loaded, params: ExportParams) -> Iterator[InputLayout]:
    """The patches of each picture in a row, with how many stand below and beside each other."""
    config = loaded.config
    patch, channels = setting(config, "patch_size"), setting(config, "num_channels") or 3
    side = int((setting(config, "num_patches") or _CONTEXT) ** 0.5)
    loaded.size("height", side * patch, "the configuration")
    loaded.size("width", side * patch, "the configuration")
    spec = batched("pixel_values", "float32", (side * side, channels * patch * patch), params, Fill("normal"))
    images = spec.sizes[0]
    fixed = {
        "spatial_shapes": torch.tensor([[side, side]] * images),
        "pixel_attention_mask": torch.ones(images, side * side, dtype=torch.int64),
    }
    yield InputLayout((spec,), {key: value for key, value in fixed.items() if key in forward_names(model)})


def _bands(model: Any, loaded: Loaded, params: ExportParams) -> Iterator[InputLayout]:
    """Sound as bands over time, or time over bands."""
    bands = setting(loaded.config, *_BANDS) or 80
    for steps in dict.fromkeys((setting(loaded.config, "max_length") or _STEPS, *_MORE_STEPS)):
        loaded.size("frames", steps, GUESS)
        for shape in ((bands, steps), (steps, bands)):
            yield InputLayout((batched(_main(model), "float32", shape, params, Fill("normal")),))


def _channels(model: Any, loaded: Loaded, params: ExportParams) -> Iterator[InputLayout]:
    """Samples with an axis for the channels."""
    channels = setting(loaded.config, "audio_channels") or 1
    samples = loaded.size("audio_samples", params.audio_samples or _SAMPLES, GUESS)
    yield InputLayout((batched(_main(model), "float32", (channels, samples), params, Fill("normal")),))


def _codebooks(model: Any, loaded: Loaded, params: ExportParams) -> Iterator[InputLayout]:
    """Tokens of several codebooks at once."""
    count = setting(loaded.config, "num_codebooks", "n_codebooks", "num_quantizers")
    if count is None:
        return
    ids = next(spec for spec in text_inputs(loaded, params) if spec.name == "input_ids")
    length = ids.sizes[1]
    for sizes in ((count, length), (ids.sizes[0], length, count), (ids.sizes[0], count, length)):
        yield InputLayout(
            (replace(ids, name=_main(model), shape=sizes, sizes=sizes, fill=replace(ids.fill, last=None)),)
        )


def _words(model: Any, loaded: Loaded, params: ExportParams) -> Iterator[InputLayout]:
    """Tokens by another name."""
    ids, *others = text_inputs(loaded, params)
    yield InputLayout(
        (replace(ids, name=_main(model)), *(spec for spec in others if spec.name in forward_names(model)))
    )


def _codes(model: Any, loaded: Loaded, params: ExportParams) -> Iterator[InputLayout]:
    """Numbers out of a codebook."""
    size = setting(loaded.config, "codebook_size", "num_embeddings", "vocab_size")
    count = setting(loaded.config, "num_codebooks", "num_quantizers", "n_codebooks") or 1
    for shape in ((count, _CONTEXT), (_CONTEXT,), (1, count, _CONTEXT)):
        yield InputLayout((batched(_main(model), "int64", shape, params, Fill("integers", 0, int(size))),))


def _embedded(model: Any, loaded: Loaded, params: ExportParams) -> Iterator[InputLayout]:
    """What another part of the model would hand on: a row of numbers for each place."""
    names = ("feature_size", "hidden_size", "d_model", "embed_dim", "dim", "input_dim", "encoder_hidden_size")
    for width in dict.fromkeys(setting(loaded.config, name) for name in names):
        if isinstance(width, int):
            shape = (loaded.size("sequence_length", params.sequence_length or _CONTEXT, GUESS), width)
            yield InputLayout((batched(_main(model), "float32", shape, params, Fill("normal")),))


def _series(model: Any, loaded: Loaded, params: ExportParams) -> Iterator[InputLayout]:
    """Values over time, of one or more channels, with what else stands beside each time."""
    config = loaded.config
    lags = max(setting(config, "lags_sequence") or (0,))
    past = loaded.size("context", (setting(config, "context_length") or _CONTEXT) + lags, "the configuration")
    width = setting(config, "num_input_channels", "input_size") or 1
    for shape in ((past, width), (past,)):
        values = batched(_main(model), "float32", shape, params, Fill("normal"))
        yield InputLayout((values,))


_OTHERS: Mapping[str, tuple[_Make, ...]] = {
    "pixel_values": (_frames,),
    "pixel_values_videos": (_frames,),
    "input_features": (_bands,),
    "input_values": (_channels, _bands),
    "audio_mel": (_bands,),
    "spectrogram": (_bands,),
    "inputs": (_words,),
    "input_ids": (_codebooks,),
    "audio_codes": (_codes,),
    "inputs_embeds": (_embedded,),
    "hidden_states": (_embedded,),
    "past_values": (_series,),
}


def _prepared(model: Any, inputs: InputSpec, fixed: dict[str, Any]) -> dict[str, Any]:
    """What follows from the fixed arguments alone, computed once: a trace has shapes, and no values."""
    if not fixed:
        return {}
    sample = dict(tensors_from(generate(inputs)))
    found = {**sample, **fixed}
    with torch.no_grad():
        exporter_utils.precompute_export_inputs(model, found)
    return {name: value for name, value in found.items() if name not in sample}
