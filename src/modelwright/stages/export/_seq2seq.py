"""Encoder-decoder models as two graphs.

The encoder also computes the keys and values that the decoder's cross-attention reads, so that a decode step
does not compute them again for every token.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from modelwright._lazy import lazy
from modelwright.data import generate
from modelwright.errors import UsageError
from modelwright.stages.export._cached import (
    POSITION,
    cross_cache,
    measure,
    static_cache,
    tensors_of,
)
from modelwright.stages.export._inputs import position_limit, token_fill
from modelwright.stages.export._layouts import InputLayout, fitting, layouts
from modelwright.stages.export._load import Loaded
from modelwright.stages.export._owed import left_out
from modelwright.stages.export._part import Part, Run, Tensors, tensors_from
from modelwright.stages.export._single import uncached_part
from modelwright.stages.export._values import ExportParams, Link
from modelwright.vocabulary import GUESS, Fill, InputSpec, TensorSpec, static

if TYPE_CHECKING:
    import torch
    from transformers import cache_utils, modeling_outputs
else:
    torch = lazy("torch")
    cache_utils = lazy("transformers.cache_utils")
    modeling_outputs = lazy("transformers.modeling_outputs")

ENCODER, DECODER = "encoder", "decoder"
IDS, MASK, HIDDEN = "decoder_input_ids", "encoder_attention_mask", "last_hidden_state"
CACHE_LENGTH = 128
# What every step of the decoder is given, as an input or as a constant.
_FED = ("decoder_input_ids", "decoder_attention_mask")


def seq2seq_parts(loaded: Loaded, params: ExportParams) -> tuple[tuple[Part, ...], tuple[Link, ...]]:
    refuse_dynamic(params, "an encoder-decoder with a cache")
    try:
        halves = _Halves(loaded, params)
    except UsageError:
        raise
    except Exception as error:  # noqa: BLE001 - models raise anything; it becomes the reason why there is no cache
        return (uncached_part(loaded, params, error),), ()
    encoder = Part(ENCODER, loaded.model, halves.encode, halves.inputs, left_out=halves.left_out)
    past, present = halves.shape.names("past"), halves.shape.names("present")
    unfed = [item for item in left_out(loaded.model.forward, _FED) if item.argument.startswith("decoder_")]
    decoder = Part(DECODER, loaded.model, halves.decode, halves.decoder_inputs, left_out=tuple(unfed))
    links = [Link(ENCODER, name, DECODER, name) for name in halves.crossing]
    links += [Link(DECODER, new, DECODER, old) for new, old in zip(present, past, strict=True)]
    return (encoder, decoder), tuple(links)


def refuse_dynamic(params: ExportParams, what: str) -> None:
    if params.dynamic_axes:
        raise UsageError(
            f"dynamic axes are not available for {what}",
            cause="its cache has a fixed size, so every shape follows from it",
            fix="Leave them out, and choose sequence_length and cache_length instead.",
        )


class _Halves:
    """The two computations, and the shapes that one trial run of the model shows."""

    def __init__(self, loaded: Loaded, params: ExportParams) -> None:
        self.model = loaded.model
        found = fitting(loaded.model.get_encoder(), self._encoded_with, self._layouts(loaded, params), loaded, params)
        self.inputs, self.left_out = found.inputs, found.left_out
        self.masked = any(spec.name == "attention_mask" for spec in self.inputs)
        hidden, cache = self._trial()
        self.length = cache_length(loaded, params)
        name = type(self.model).__name__
        self.shape = measure(cache.self_attention_cache, self.length, name)
        self.cross = measure(cache.cross_attention_cache, hidden.shape[1], name)
        self.crossing = self.cross.names("cross")
        self.hidden_shape = tuple(hidden.shape)
        self.decoder_inputs = self._decoder_inputs(loaded)

    def encode(self, inputs: Tensors) -> Tensors:
        hidden, cache = self._first_step(inputs)
        return {HIDDEN: hidden, **tensors_of(cache.cross_attention_cache, "cross")}

    def decode(self, inputs: Tensors) -> Tensors:
        past = static_cache(self.shape, _pick(inputs, self.shape.names("past")), inputs[POSITION])
        cross = cross_cache(_pick(inputs, self.crossing))
        outputs = self._step(
            # Only its shape is looked at: the keys and values made from it are in the cache.
            torch.zeros(self.hidden_shape),
            inputs.get(MASK),
            inputs[IDS],
            cache_utils.EncoderDecoderCache(past, cross),
            decoder_attention_mask=torch.ones(1, self.length, dtype=torch.int64),
        )
        return {"logits": outputs.logits, **tensors_of(past, "present")}

    def _layouts(self, loaded: Loaded, params: ExportParams) -> Iterator[InputLayout]:
        """Of what the whole model takes: its encoder may call that otherwise, and cannot be given what is fixed."""
        return (layout for layout in layouts(self.model, loaded, params) if not layout.fixed)

    def _encoded_with(self, _: Mapping[str, Any]) -> Run:
        return self._encoded

    def _encoded(self, inputs: Tensors) -> Tensors:
        return {HIDDEN: self.model.get_encoder()(**inputs).last_hidden_state}

    def _first_step(self, inputs: Tensors) -> tuple[torch.Tensor, Any]:
        hidden = self._encoded(inputs)[HIDDEN]
        cache = cache_utils.EncoderDecoderCache(cache_utils.DynamicCache(), cache_utils.DynamicCache())
        start = torch.zeros(hidden.shape[0], 1, dtype=torch.int64)
        self._step(hidden, inputs.get("attention_mask"), start, cache)
        return hidden, cache

    def _step(
        self, hidden: torch.Tensor, mask: torch.Tensor | None, ids: torch.Tensor, cache: Any, **options: Any
    ) -> Any:
        if mask is not None:
            options["attention_mask"] = mask
        encoded = modeling_outputs.BaseModelOutput(last_hidden_state=hidden)
        return self.model(
            encoder_outputs=encoded, decoder_input_ids=ids, past_key_values=cache, use_cache=True, **options
        )

    def _trial(self) -> tuple[torch.Tensor, Any]:
        with torch.no_grad():
            return self._first_step(tensors_from(generate(self.inputs)))

    def _decoder_inputs(self, loaded: Loaded) -> InputSpec:
        config = loaded.config
        decoder = config.get_text_config(decoder=True)
        fill = token_fill(decoder, config, vocabulary=getattr(decoder, "decoder_vocab_size", None))
        ids = static(IDS, "int64", (1, 1), Fill("tokens", fill.low, fill.high, avoid=fill.avoid))
        mask = (static(MASK, "int64", self.hidden_shape[:2], Fill("ones")),) if self.masked else ()
        position = position_spec(self.length)
        return (ids, *mask, position, *self.cross.specs("cross"), *self.shape.specs("past"))


def position_spec(length: int) -> TensorSpec:
    return static(POSITION, "int64", (1,), Fill("integers", 1, length))


def cache_length(loaded: Loaded, params: ExportParams) -> int:
    """How many tokens can be written: as asked, else all that a decoder has positions for, else the usual number."""
    model, said = loaded.model, params.cache_length
    own = getattr(model.config.get_text_config(decoder=True), "max_target_positions", None)
    limit = own or position_limit(model)
    if said is not None and limit is not None and said > limit:
        raise UsageError(
            f"a cache of {said} tokens is too long",
            cause=f"{type(model).__name__} has positions for {limit} tokens",
            fix=f"Ask for at most {limit}.",
        )
    if said is not None:
        return loaded.size("cache_length", said, "as asked")
    if limit is not None and (own is not None or limit <= CACHE_LENGTH):
        return loaded.size("cache_length", limit, "the configuration")
    return loaded.size("cache_length", CACHE_LENGTH, GUESS)


def _pick(inputs: Tensors, names: tuple[str, ...]) -> list[torch.Tensor]:
    return [inputs[name] for name in names]
