"""Decoder-only language models as two graphs: the prompt at once, then one token at a time.

A prompt shorter than the prefill length is padded on the right: causal attention never looks there, and decoding
from the real length on overwrites what the padding left in the cache.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from modelwright._lazy import lazy
from modelwright.data import generate
from modelwright.errors import UsageError
from modelwright.stages.export._cached import POSITION, empty_cache, measure, static_cache, tensors_of
from modelwright.stages.export._inputs import sequence_length, token_fill
from modelwright.stages.export._load import Loaded
from modelwright.stages.export._owed import left_out
from modelwright.stages.export._part import Part, Tensors, tensors_from
from modelwright.stages.export._seq2seq import cache_length, position_spec, refuse_dynamic
from modelwright.stages.export._values import ExportParams, Link
from modelwright.vocabulary import Fill, static

if TYPE_CHECKING:
    import torch
else:
    torch = lazy("torch")

_NO_MASK = "padding stands on the right, where causal attention never looks"
PREFILL, DECODE = "prefill", "decode"


def causal_parts(loaded: Loaded, params: ExportParams) -> tuple[tuple[Part, ...], tuple[Link, ...]]:
    refuse_dynamic(params, "a language model with a cache")
    model = loaded.model
    prompt, length = sequence_length(loaded, params), cache_length(loaded, params)
    if prompt > length:
        raise UsageError(
            f"a prompt of {prompt} tokens does not fit a cache of {length}",
            cause="the cache holds the prompt and what is generated",
            fix=f"Ask for a cache_length above {prompt}.",
        )
    text = loaded.config.get_text_config()
    ids = Fill("tokens", 0, text.vocab_size, avoid=token_fill(text).avoid)
    prompt_spec = static("input_ids", "int64", (1, prompt), ids)
    with torch.no_grad():
        sample = tensors_from(generate([prompt_spec]))["input_ids"]
        shape = measure(model(sample, use_cache=True).past_key_values, length, type(model).__name__)

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
    links = tuple(
        Link(component, new, DECODE, old)
        for component in (PREFILL, DECODE)
        for new, old in zip(shape.names("present"), shape.names("past"), strict=True)
    )
    return parts, links
