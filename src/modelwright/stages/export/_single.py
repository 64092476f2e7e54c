"""Models that are one graph, and dual towers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from modelwright._lazy import lazy
from modelwright.errors import InputError
from modelwright.stages.export._family import family
from modelwright.stages.export._inputs import image_input, model_inputs, text_inputs
from modelwright.stages.export._load import Loaded
from modelwright.stages.export._owed import complete
from modelwright.stages.export._part import MODEL, Part, Tensors
from modelwright.stages.export._values import ExportParams

if TYPE_CHECKING:
    import torch
else:
    torch = lazy("torch")

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


def single_part(loaded: Loaded, params: ExportParams) -> Part:
    """The whole model; of an encoder-decoder whose features are wanted, the encoder."""
    model = loaded.model
    if getattr(loaded.config, "is_encoder_decoder", False) and params.task == "feature-extraction":
        model = model.get_encoder()
    wanted, answers = _WANTED.get(params.task, ("logits",)), family(loaded.config.model_type).answers

    def run(tensors: Tensors) -> Tensors:
        output = model(**tensors, **_plain(model))
        return _tensors(model, output, wanted) if answers is None else answers(output)

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


def _tensors(model: Any, output: Any, wanted: tuple[str, ...]) -> dict[str, torch.Tensor]:
    found: dict[str, torch.Tensor] = {}
    for name in wanted:
        value = output.get(name)
        if isinstance(value, torch.Tensor):
            found[name] = value
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
