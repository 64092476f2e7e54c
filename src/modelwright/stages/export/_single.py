"""Models that are one graph, dual towers, and ViLT."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from modelwright._lazy import lazy
from modelwright.errors import InputError
from modelwright.stages.export._inputs import image_input, model_inputs, text_inputs
from modelwright.stages.export._load import Loaded, quiet_random
from modelwright.stages.export._owed import complete, left_out, names
from modelwright.stages.export._part import Part, Tensors
from modelwright.stages.export._values import ExportParams

if TYPE_CHECKING:
    import torch
else:
    torch = lazy("torch")

MODEL = "model"
# What a task is asked for. Everything else a model returns (hidden states, losses) stays out of the graph.
_WANTED: dict[str, tuple[str, ...]] = {
    "question-answering": ("start_logits", "end_logits"),
    "object-detection": ("logits", "pred_boxes"),
    "zero-shot-object-detection": ("logits", "pred_boxes"),
    "depth-estimation": ("predicted_depth",),
    "masked-im": ("reconstruction", "logits"),
    "feature-extraction": ("last_hidden_state", "pooler_output"),
    "image-feature-extraction": ("last_hidden_state", "pooler_output"),
    "audio-xvector": ("logits", "embeddings"),
}
_HEADS = ("char_logits", "bpe_logits", "wp_logits")


def single_part(loaded: Loaded, params: ExportParams) -> Part:
    """The whole model; of an encoder-decoder whose features are wanted, the encoder."""
    model = loaded.model
    if getattr(loaded.config, "is_encoder_decoder", False) and params.task == "feature-extraction":
        model = model.get_encoder()
    wanted = _WANTED.get(params.task, ("logits",))

    def run(tensors: Tensors) -> Tensors:
        return _tensors(model, model(**tensors, **_plain(model)), wanted)

    owed = complete(model.forward, run, model_inputs(loaded, params), loaded, params)
    return Part(MODEL, model, run, owed.inputs, left_out=owed.left_out)


def tower_parts(loaded: Loaded, params: ExportParams) -> tuple[Part, Part]:
    """Two encoders that meet in one space: text and vision apart, as they are used."""
    model = loaded.model

    def text(tensors: Tensors) -> Tensors:
        return {"text_embeds": _pooled(model.get_text_features(**tensors))}

    def vision(tensors: Tensors) -> Tensors:
        return {"image_embeds": _pooled(model.get_image_features(**tensors))}

    tower = model.text_model if hasattr(model, "text_model") else model
    words = complete(model.get_text_features, text, text_inputs(loaded, params, model=tower), loaded, params)
    picture = complete(model.get_image_features, vision, (image_input(loaded, params),), loaded, params)
    return (
        Part("text", model, text, words.inputs, left_out=words.left_out),
        Part("vision", model, vision, picture.inputs, left_out=picture.left_out),
    )


def vilt_part(loaded: Loaded, params: ExportParams) -> Part:
    """ViLT picks patches by value and in random order. With a whole image all are picked and order means nothing,
    so the embeddings are computed here in order and handed to the model."""
    model, embeddings = loaded.model, loaded.model.vilt.embeddings
    inputs = (*text_inputs(loaded, params), image_input(loaded, params))
    _, _, height, width = inputs[-1].sizes
    patches = (height // loaded.config.patch_size) * (width // loaded.config.patch_size)
    _refuse_partial_images(loaded.config, (height, width), patches)

    def run(tensors: Tensors) -> Tensors:
        words = {name: tensor for name, tensor in tensors.items() if name != "pixel_values"}
        pixels = tensors["pixel_values"]
        seen = embeddings.patch_embeddings(pixels).flatten(2).transpose(1, 2)
        seen = torch.cat([embeddings.cls_token.expand(pixels.shape[0], -1, -1), seen], dim=1)
        mask = torch.ones(pixels.shape[0], patches + 1, dtype=torch.int64)
        seen = seen + embeddings.position_embeddings
        return {"logits": model(**words, image_embeds=seen, pixel_mask=mask).logits}

    def reference(tensors: Tensors) -> Tensors:
        with quiet_random(0):
            return {"logits": model(**tensors).logits}

    return Part(MODEL, model, run, inputs, reference, left_out(model.forward, names(inputs)))


def _refuse_partial_images(config: Any, size: tuple[int, int], patches: int) -> None:
    if size != (config.image_size, config.image_size):
        raise InputError(
            f"ViLT cannot be exported for images of {size[0]} x {size[1]}",
            cause=f"its patch positions are only fixed for {config.image_size} x {config.image_size}",
            fix=f"Use image_size {config.image_size} x {config.image_size}; the processor pads to it.",
        )
    if 0 <= config.max_image_length < patches:
        raise InputError(
            "this ViLT drops patches at random",
            cause=f"max_image_length is {config.max_image_length}, the image has {patches} patches",
            fix="Set max_image_length to -1 in config.json.",
        )


def _tensors(model: Any, output: Any, wanted: tuple[str, ...]) -> dict[str, torch.Tensor]:
    found: dict[str, torch.Tensor] = {}
    for name in wanted:
        value = output.get(name)
        if isinstance(value, torch.Tensor):
            found[name] = value
        elif isinstance(value, tuple) and len(value) == len(_HEADS):
            # MGP-STR reads a word three ways: by character, by byte pair and by word piece.
            found.update(zip(_HEADS, value, strict=True))
    if not found:
        raise InputError(
            f"{type(model).__name__} does not return {' or '.join(wanted)}",
            cause="its outputs do not belong to the task",
            fix="Choose the task the model was made for.",
        )
    return found


def _pooled(output: Any) -> torch.Tensor:
    """Feature getters return the embedding itself or an output that holds it, depending on the version."""
    return output if isinstance(output, torch.Tensor) else output.pooler_output


def _plain(model: Any) -> dict[str, Any]:
    return {"use_cache": False} if getattr(model.config, "is_encoder_decoder", False) else {}
