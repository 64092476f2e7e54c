"""Models that are one graph, and dual towers."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from modelwright._lazy import lazy
from modelwright.errors import InputError, WrightError
from modelwright.stages.export._family import family
from modelwright.stages.export._inputs import forward_names, image_input, text_inputs
from modelwright.stages.export._layouts import fitting, layouts
from modelwright.stages.export._load import Loaded, first_line
from modelwright.stages.export._owed import complete
from modelwright.stages.export._part import MODEL, Part, Run, Tensors
from modelwright.stages.export._values import ExportParams, LeftOut

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
# What a model says about its own workings, beside its answer.
_INNER = re.compile(r"loss|hidden_states?$|attentions?$|past_key_values|cache|router|^mems$|_params$")


def single_part(loaded: Loaded, params: ExportParams, **options: Any) -> Part:
    """The whole model; of an encoder-decoder whose features are wanted, the encoder."""
    model = loaded.model
    if getattr(loaded.config, "is_encoder_decoder", False) and params.task == "feature-extraction":
        model = model.get_encoder()
    wanted, answers = _WANTED.get(params.task, ("logits",)), family(loaded.config.model_type).answers
    options = _taken(model, {**_plain(model), **options})

    def run_with(fixed: dict[str, Any]) -> Run:
        def run(tensors: Tensors) -> Tensors:
            output = model(**tensors, **fixed, **options)
            return _tensors(model, output, wanted) if answers is None else answers(output)

        return run

    found = fitting(model, run_with, layouts(model, loaded, params), loaded, params)
    traced = run_with(found.prepared)
    reference = run_with(found.fixed) if found.fixed else None
    return Part(MODEL, model, traced, found.inputs, reference, found.left_out)


def uncached_part(loaded: Loaded, params: ExportParams, error: Exception) -> Part:
    """The whole model at each run, with what kept its cache from having a fixed size. Where that does not do either,
    it is this error that is said."""
    part = None
    with contextlib.suppress(Exception):  # models raise anything, and what went wrong first says more
        part = single_part(loaded, params, use_cache=False)
    if part is None:
        raise error
    said = error.cause if isinstance(error, WrightError) else first_line(error)
    reason = f"without a cache each run computes the whole text: {said}"
    return replace(part, left_out=(*part.left_out, LeftOut("past_key_values", reason)))


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
    """What the task is asked for; where the model calls its answer otherwise, all of its answer."""
    named = dict(_named(output))
    found = {name: named[name] for name in wanted if name in named}
    found = found or {name: value for name, value in named.items() if not _INNER.search(name)}
    if not found:
        raise InputError(
            f"{type(model).__name__} does not return {' or '.join(wanted)}",
            cause="its outputs do not belong to the task",
            fix="Choose the task the model was made for.",
        )
    return found


def _named(output: Any) -> Iterator[tuple[str, torch.Tensor]]:
    if isinstance(output, torch.Tensor):
        output = {"output": output}
    elif isinstance(output, tuple | list):
        output = {f"output_{index}": value for index, value in enumerate(output)}
    for name, value in output.items():
        if isinstance(value, torch.Tensor) and not value.is_complex():
            yield name, value


def _pooled(output: Any) -> torch.Tensor:
    """Feature getters return the embedding itself or an output that holds it, depending on the version."""
    return output if isinstance(output, torch.Tensor) else output.pooler_output


def _plain(model: Any) -> dict[str, Any]:
    return {"use_cache": False} if getattr(model.config, "is_encoder_decoder", False) else {}


def _taken(model: Any, options: dict[str, Any]) -> dict[str, Any]:
    """Some heads set an option themselves and take it from nobody."""
    named = forward_names(model)
    return {name: value for name, value in options.items() if name in named}
