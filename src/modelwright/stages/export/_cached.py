"""Key/value caches of a fixed size as plain tensors in and out.

A cache is `[batch, heads, length, width]` and is written at `cache_position`, so every shape is static and
the present of one step is the past of the next. What lies behind the position is masked.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from modelwright._dataclass import dataclass
from modelwright._lazy import lazy
from modelwright.errors import InputError
from modelwright.stages.export._part import Tensors
from modelwright.vocabulary import Fill, InputSpec, static

if TYPE_CHECKING:
    import torch
    from transformers import cache_utils
else:
    torch = lazy("torch")
    cache_utils = lazy("transformers.cache_utils")

POSITION = "cache_position"
_KINDS = ("key", "value")


@dataclass(frozen=True)
class CacheShape:
    """Per layer: heads, and the width of a key and of a value."""

    layers: tuple[tuple[int, int, int], ...]
    length: int

    def names(self, prefix: str) -> tuple[str, ...]:
        return tuple(f"{prefix}_{index}_{kind}" for index in range(len(self.layers)) for kind in _KINDS)

    def specs(self, prefix: str) -> InputSpec:
        sizes = [(1, heads, self.length, width) for heads, *widths in self.layers for width in widths]
        return tuple(
            static(name, "float32", size, Fill("normal")) for name, size in zip(self.names(prefix), sizes, strict=True)
        )


def measure(cache: Any, length: int, owner: str) -> CacheShape:
    """The shape of a cache that a model has just filled. A layer that looks back over a window only keeps everything
    here: the mask hides what lies before the window."""
    reason = unfixed(cache)
    if reason is not None:
        raise InputError(
            f"the cache of {owner} cannot be exported with a fixed size",
            cause=reason,
            fix="Export the model without its cache elsewhere and build from the .onnx file.",
        )
    layers = [(layer.keys.shape[1], layer.keys.shape[3], layer.values.shape[3]) for layer in cache.layers]
    return CacheShape(tuple(layers), length)


def unfixed(cache: Any) -> str | None:
    """Why a cache cannot have a fixed size here; None when it can."""
    if not getattr(cache, "layers", None):
        return "the model fills none that its answer names"
    plain = (cache_utils.DynamicLayer, cache_utils.DynamicSlidingWindowLayer)
    other = next((layer for layer in cache.layers if type(layer) not in plain), None)
    if other is not None:
        return f"it uses {type(other).__name__}, not plain attention layers"
    return None if all(layer.is_initialized for layer in cache.layers) else "some of its layers hold nothing"


def static_cache(shape: CacheShape, tensors: Sequence[torch.Tensor], position: torch.Tensor) -> Any:
    """A cache over copies of these tensors, filled up to `position`."""
    layers = [cache_utils.StaticLayer(shape.length) for _ in shape.layers]
    for index, layer in enumerate(layers):
        _fill(layer, tensors[2 * index].clone(), tensors[2 * index + 1].clone())
        layer.cumulative_length = position.reshape(()).clone()
    return cache_utils.Cache(layers=layers)


def empty_cache(shape: CacheShape, batch: int) -> Any:
    tensors = [torch.zeros(batch, heads, shape.length, width) for heads, *widths in shape.layers for width in widths]
    return static_cache(shape, tensors, torch.zeros((), dtype=torch.int64))


def cross_cache(tensors: Sequence[torch.Tensor]) -> Any:
    """The keys and values of the encoder's output, complete from the start."""
    cache = cache_utils.DynamicCache()
    for index in range(len(tensors) // 2):
        cache.update(tensors[2 * index], tensors[2 * index + 1], index)
    return cache


def tensors_of(cache: Any, prefix: str) -> Tensors:
    return {
        f"{prefix}_{index}_{kind}": tensor
        for index, layer in enumerate(cache.layers)
        for kind, tensor in zip(_KINDS, (layer.keys, layer.values), strict=True)
    }


def _fill(layer: Any, keys: torch.Tensor, values: torch.Tensor) -> None:
    """What the layer's own lazy initialisation does, around given tensors."""
    layer.dtype, layer.device = keys.dtype, keys.device
    layer.batch_size, layer.num_heads = keys.shape[:2]
    layer.k_head_dim, layer.v_head_dim = keys.shape[-1], values.shape[-1]
    layer.keys, layer.values = keys, values
    layer.is_initialized = True
