"""ViLT picks patches by value and in random order. With a whole image all are picked and order means nothing, so the
embeddings are computed here in order and handed to the model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from modelwright._lazy import lazy
from modelwright.errors import InputError
from modelwright.stages.export._family import ModelFamily
from modelwright.stages.export._inputs import image_input, text_inputs
from modelwright.stages.export._load import Loaded, quiet_random
from modelwright.stages.export._owed import left_out, names
from modelwright.stages.export._part import MODEL, Part, Tensors
from modelwright.stages.export._values import ExportParams

if TYPE_CHECKING:
    import torch

    from modelwright.stages.export._family import Parts
else:
    torch = lazy("torch")


def _parts(loaded: Loaded, params: ExportParams) -> Parts:
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

    return (Part(MODEL, model, run, inputs, reference, left_out(model.forward, names(inputs))),), ()


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


FAMILY = ModelFamily(parts=_parts)
