"""Input specs of a PyTorch model, from its configuration and its processor's settings."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from modelwright._lazy import lazy
from modelwright.errors import InputError, UsageError
from modelwright.models import pair, processor_image
from modelwright.stages.export._load import Loaded
from modelwright.stages.export._values import ExportParams
from modelwright.vocabulary import GUESS, Fill, InputSpec, Origin, TensorSpec

if TYPE_CHECKING:
    import torch
else:
    torch = lazy("torch")

_SEQUENCE, _IMAGE, _SAMPLES = 128, 224, 16_000
# A model that reads characters says how many buckets it hashes them into.
_WORDS = ("vocab_size", "num_hash_buckets")
_SPECIAL = ("pad_token_id", "bos_token_id", "eos_token_id", "decoder_start_token_id", "mask_token_id")
# torch.export treats a traced size of 1 as fixed, so a free batch is traced with 2.
_TRACED_BATCH = 2


def text_inputs(loaded: Loaded, params: ExportParams, *, model: Any = None) -> InputSpec:
    """Token ids with what usually stands beside them."""
    model = model if model is not None else loaded.model
    config = model.config.get_text_config()
    length = sequence_length(loaded, params, model=model)
    specs = [_matrix("input_ids", length, params, token_fill(model.config, config, pools=_pools_at_eos(model)))]
    takes = forward_names(model)
    if "attention_mask" in takes:
        specs.append(_matrix("attention_mask", length, params, Fill("ones")))
    if "token_type_ids" in takes and getattr(config, "type_vocab_size", 0) > 1:
        specs.append(_matrix("token_type_ids", length, params, Fill("zeros")))
    return tuple(specs)


def image_input(loaded: Loaded, params: ExportParams, *, config: Any = None) -> TensorSpec:
    config = config if config is not None else loaded.config
    (height, width), origin = image_size(loaded, params, config)
    loaded.size("height", height, origin)
    loaded.size("width", width, origin)
    channels = _setting(config, "num_channels") or 3
    return batched("pixel_values", "float32", (channels, height, width), params, Fill("normal"))


def audio_input(loaded: Loaded, params: ExportParams) -> TensorSpec:
    """Raw samples (one second unless asked), or the features a spectrogram model takes."""
    config = loaded.config
    mels = int(getattr(config, "num_mel_bins", 0))
    if loaded.model.main_input_name == "input_features":
        frames = loaded.size("frames", 2 * config.max_source_positions, "the configuration")
        return batched("input_features", "float32", (mels, frames), params, Fill("normal"))
    if mels and getattr(config, "max_length", None):
        return batched("input_values", "float32", (config.max_length, mels), params, Fill("normal"))
    said = params.audio_samples
    samples = said or int(loaded.processor.get("sampling_rate", _SAMPLES))
    loaded.size("audio_samples", samples, GUESS if said is None else "as asked")
    return batched("input_values", "float32", (samples,), params, Fill("normal"))


def patch_inputs(loaded: Loaded, params: ExportParams) -> InputSpec:
    """Pix2Struct: image patches that carry their own row and column."""
    vision = loaded.config.vision_config
    count = int(loaded.processor.get("max_patches", vision.seq_len))
    width = 2 + vision.patch_embed_hidden_size
    patches = Fill("indexed_patches", high=vision.seq_len)
    return (
        batched("flattened_patches", "float32", (count, width), params, patches),
        batched("attention_mask", "int64", (count,), params, Fill("ones")),
    )


def model_inputs(loaded: Loaded, params: ExportParams) -> InputSpec:
    """What the whole model takes, by the input it names as its main one."""
    main = main_name(loaded.model)
    if main == "pixel_values":
        return (image_input(loaded, params),)
    if main in ("input_values", "input_features"):
        return (audio_input(loaded, params),)
    if main == "flattened_patches":
        return patch_inputs(loaded, params)
    if main == "input_ids":
        return text_inputs(loaded, params)
    raise InputError(
        f"{type(loaded.model).__name__} takes {main}, which cannot be made up here",
        cause="only text, images, audio and patches are known",
        fix="Export it yourself and build from the .onnx file.",
    )


def main_name(model: Any) -> str:
    """Of several main inputs, the first."""
    named: str | list[str] = getattr(model, "main_input_name", "input_ids")
    return named if isinstance(named, str) else named[0]


def token_fill(*configs: Any, vocabulary: int | None = None, pools: bool = False) -> Fill:
    """Ids inside the vocabulary without special tokens; a row ends in eos where the model looks for one (`pools`)."""
    size = vocabulary or next(size for config in configs for name in _WORDS if (size := getattr(config, name, None)))
    special = {_token(config, name) for config in configs for name in _SPECIAL}
    avoid = tuple(sorted(token for token in special if token is not None and 0 <= token < size))
    pools = pools or any(getattr(config, "is_encoder_decoder", False) for config in configs)
    eos = next((token for config in configs if (token := _token(config, "eos_token_id")) is not None), None)
    last = eos if pools and eos is not None and eos < size else None
    return Fill("tokens", 0, size, avoid=avoid, last=last)


def sequence_length(loaded: Loaded, params: ExportParams, *, model: Any = None) -> int:
    """The asked length, else what the tokenizer cuts texts to, else the usual one, inside what the positions allow.

    A language model bears more than its prompts usually have.
    """
    model = model if model is not None else loaded.model
    limit, said = position_limit(model), params.sequence_length
    if said is not None and limit is not None and said > limit:
        raise UsageError(
            f"a sequence length of {said} is too long",
            cause=f"{type(model).__name__} has positions for {limit} tokens",
            fix=f"Ask for at most {limit}.",
        )
    if said is not None:
        return loaded.size("sequence_length", said, "as asked")
    told = loaded.text_length if params.task != "text-generation" else None
    usual = told or _SEQUENCE
    if limit is not None and limit <= usual:
        return loaded.size("sequence_length", limit, "the configuration")
    return loaded.size("sequence_length", usual, GUESS if told is None else "the processor")


def position_limit(model: Any) -> int | None:
    """How many tokens fit. A table with a padding row starts counting behind it: RoBERTa's 514 is 512."""
    config = model.config.get_text_config()
    limit: int | None = getattr(config, "max_position_embeddings", None) or getattr(config, "n_positions", None)
    if limit is None or limit < 1:
        return None
    for name, module in model.named_modules():
        if name.rpartition(".")[2] == "position_embeddings" and isinstance(module, torch.nn.Embedding):
            offset = 0 if module.padding_idx is None else module.padding_idx + 1
            return min(limit, int(module.num_embeddings)) - offset
    return limit


def image_size(loaded: Loaded, params: ExportParams, config: Any) -> tuple[tuple[int, int], Origin]:
    """Height and width: as asked, the processor's crop, then its size, then the configuration's."""
    if params.image_size is not None:
        return params.image_size, "as asked"
    own = pair(_setting(config, "image_size") or _setting(config, "input_size"))
    size = loaded.processor.get("size")
    # The longest edge is a limit: the processor keeps the shape of the picture.
    limit = isinstance(size, dict) and "longest_edge" in size and own is not None
    cropped = {key: value for key, value in loaded.processor.items() if key != "size"} if limit else loaded.processor
    told = processor_image(cropped)
    if told is not None:
        return told, "the processor"
    return (own, "the configuration") if own is not None else ((_IMAGE, _IMAGE), GUESS)


def _pools_at_eos(model: Any) -> bool:
    """A text tower that keeps the id beside its layers takes its answer from where that token stands."""
    return any(isinstance(getattr(module, "eos_token_id", None), int) for module in model.modules())


def forward_names(model: Any) -> frozenset[str]:
    return frozenset(inspect.signature(model.forward).parameters)


def setting(config: Any, *names: str) -> Any:
    """The first of these settings that the configuration, or else any part of it, has a value for."""
    for part in _parts(config):
        for name in names:
            value = getattr(part, name, None)
            if value is not None:
                return value
    return None


def _parts(config: Any) -> Iterator[Any]:
    yield config
    for value in vars(config).values():
        if hasattr(value, "to_dict") and hasattr(value, "model_type"):
            yield from _parts(value)


def _setting(config: Any, name: str) -> Any:
    """A value of the configuration or of the vision part inside it."""
    for part in (config, *(getattr(config, key, None) for key in ("vision_config", "encoder", "backbone_config"))):
        value = getattr(part, name, None)
        if value is not None:
            return value
    return None


def _token(config: Any, name: str) -> int | None:
    value = getattr(config, name, None)
    if isinstance(value, list | tuple):
        value = value[0] if value else None
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _matrix(name: str, length: int, params: ExportParams, fill: Fill) -> TensorSpec:
    spec = batched(name, "int64", (length,), params, fill)
    if "sequence" not in params.dynamic_axes:
        return spec
    return TensorSpec(name, spec.dtype, (spec.shape[0], "sequence"), spec.sizes, fill)


def batched(name: str, dtype: str, rest: tuple[int, ...], params: ExportParams, fill: Fill) -> TensorSpec:
    if "batch" in params.dynamic_axes:
        return TensorSpec(name, dtype, ("batch", *rest), (_TRACED_BATCH, *rest), fill)
    return TensorSpec(name, dtype, (1, *rest), (1, *rest), fill)
