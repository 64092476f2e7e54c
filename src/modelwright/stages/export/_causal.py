"""Decoder-only language models as two graphs: the prompt at once, then one token at a time.

A prompt shorter than the prefill length is padded on the right: causal attention never looks there, and decoding
from the real length on overwrites what the padding left in the cache.

A model whose cache has no fixed size here (recurrent states, an index beside the keys) becomes one graph without a
cache, which says so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from modelwright._lazy import lazy
from modelwright.data import generate
from modelwright.errors import InputError, UsageError
from modelwright.stages.export._cached import POSITION, CacheShape, empty_cache, measure, static_cache, tensors_of
from modelwright.stages.export._inputs import sequence_length, token_fill
from modelwright.stages.export._load import Loaded
from modelwright.stages.export._owed import left_out
from modelwright.stages.export._part import Part, Tensors, tensors_from
from modelwright.stages.export._seq2seq import cache_length, position_spec, refuse_dynamic
from modelwright.stages.export._single import uncached_part
from modelwright.stages.export._values import ExportParams, Link
from modelwright.vocabulary import Fill, static

if TYPE_CHECKING:
    import torch
else:
    torch = lazy("torch")

_NO_MASK = "padding stands on the right, where causal attention never looks"
PREFILL, DECODE = "prefill", "decode"
# How far answers with a cache may lie from those without: they add the same numbers in another order.
_CLOSE = 1e-3


def causal_parts(loaded: Loaded, params: ExportParams) -> tuple[tuple[Part, ...], tuple[Link, ...]]:
    refuse_dynamic(params, "a language model with a cache")
    prompt, length = sequence_length(loaded, params), cache_length(loaded, params)
    if prompt > length:
        raise UsageError(
            f"a prompt of {prompt} tokens does not fit a cache of {length}",
            cause="the cache holds the prompt and what is generated",
            fix=f"Ask for a cache_length above {prompt}.",
        )
    try:
        return _cached_parts(loaded, prompt, length)
    except Exception as error:  # noqa: BLE001 - models raise anything; it becomes the reason why there is no cache
        return (uncached_part(loaded, params, error),), ()


def _cached_parts(loaded: Loaded, prompt: int, length: int) -> tuple[tuple[Part, ...], tuple[Link, ...]]:
    model = loaded.model
    text = loaded.config.get_text_config()
    ids = Fill("tokens", 0, text.vocab_size, avoid=token_fill(text).avoid)
    prompt_spec = static("input_ids", "int64", (1, prompt), ids)
    with torch.no_grad():
        sample = tensors_from(generate([prompt_spec]))["input_ids"]
        own = model(sample, use_cache=True)
        shape = measure(getattr(own, "past_key_values", None), length, type(model).__name__)

    def prefill(inputs: Tensors) -> Tensors:
        cache = empty_cache(shape, 1)
        outputs = model(inputs["input_ids"], past_key_values=cache, use_cache=True)
        return {"logits": outputs.logits, **tensors_of(cache, "present")}

    def decode(inputs: Tensors) -> Tensors:
        past = [inputs[name] for name in shape.names("past")]
        cache = static_cache(shape, past, inputs[POSITION])
        outputs = model(inputs["input_ids"], past_key_values=cache, use_cache=True)
        return {"logits": outputs.logits, **tensors_of(cache, "present")}

    step = (static("input_ids", "int64", (1, 1), ids), position_spec(length), *shape.specs("past"))
    unfed = left_out(model.forward, {"input_ids"}, {"attention_mask": _NO_MASK})
    parts = (
        Part(PREFILL, model, prefill, (prompt_spec,), left_out=unfed),
        Part(DECODE, model, decode, step, left_out=unfed),
    )
    _check(parts, shape, sample, own.logits)
    links = tuple(
        Link(component, new, DECODE, old)
        for component in (PREFILL, DECODE)
        for new, old in zip(shape.names("present"), shape.names("past"), strict=True)
    )
    return parts, links


def _check(parts: tuple[Part, Part], shape: CacheShape, prompt: torch.Tensor, own: torch.Tensor) -> None:
    """The prompt, and its last token once more as a step, have to give what the model says without our cache."""
    if own.is_meta:
        return
    prefill, decode = parts
    filled = prefill.answer({"input_ids": prompt})
    past = {old: filled[new] for new, old in zip(shape.names("present"), shape.names("past"), strict=True)}
    position = torch.tensor([prompt.shape[1] - 1])
    step = decode.answer({"input_ids": prompt[:, -1:], POSITION: position, **past})
    allowed = _CLOSE * max(1.0, float(own.abs().max()))
    for answer, wanted in ((filled["logits"], own), (step["logits"], own[:, -1:])):
        if answer.shape != wanted.shape or float((answer - wanted).abs().max()) > allowed:
            raise InputError(
                "a cache of a fixed size changes the answers",
                cause="the logits are not those of the model with its own cache",
                fix="Export the model without its cache elsewhere and build from the .onnx file.",
            )
