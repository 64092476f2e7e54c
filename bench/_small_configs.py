"""Configurations of any model type, as small as a rule makes them: no type is named here.

Three rules, tried in this order until PyTorch runs what comes out:

- `small`: every size by its name, down to a few; lists keep their length
- `scaled`: every width and every number of heads divided by the same number, so that what hangs together still does
- `shallow`: fewer layers, words and experts; the widths as they are
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

Settings = dict[str, Any]
Rule = Callable[[Any], Any]

_LAYERS = (
    (r"feat_extract|num_feature_levels|conv_layers", 1 << 30),
    (r"(layers|n_layer|num_layers|depth|blocks|n_blocks|repeats|num_stacks)$", 2),
    (r"depths$", 1),
)
_FEW = (
    (r"(experts_per_tok|experts_per_token|top_?k|top_k_experts)$", 2),
    (r"(topk_group|n_group)$", 1),
    (r"(num|n|routed|local|moe|shared)_?\w*experts$", 4),
    (r"vocab_size|vocabulary_size$|num_embeddings$", 160),
    (r"codebook_size$", 128),
    (r"num_queries$|num_query_tokens$|num_denoising$", 8),
)
# The end of a setting's name → how large it may be. The first that fits counts.
_SMALL: tuple[tuple[str, int], ...] = (
    *_LAYERS,
    *_FEW,
    (r"rotary_dim$", 8),
    (r"num_key_value_heads|num_kv_heads|n_kv_heads|kv_heads", 2),
    (r"(head|n_head|num_heads|heads)$", 4),
    (r"(hidden_size|d_model|n_embd|embed_dim|hidden_dim|projection_dim|embedding_size|emb_dim|dim)$", 32),
    (r"(intermediate_size|ffn_dim|n_inner|d_ff|d_inner|mlp_dim)$", 64),
    (r"(image_size|input_size|img_size)$", 64),
)
_SHALLOW = (*_LAYERS, *_FEW)
_WIDTH = re.compile(
    r"(hidden_sizes?|d_model|n_embd|embed_dims?|hidden_dim|projection_dim|embedding_size|emb_dim|dim|intermediate_size"
    r"|ffn_dim|n_inner|d_ff|d_inner|mlp_dim|channels|hidden_channels|width|lru_width|hidden_size_per_layer_input)$"
)
_KEPT_WIDTH = re.compile(r"head_dim|rope|rotary|rank|num_channels|in_channels|in_chans|head_hidden|_axis|temporal")
_HEADS = re.compile(r"(^|_)(n_head|heads|num_heads|n_heads)$|heads$")
_WIDEST = 256
# What is said beside the sizes, and what follows from the number of layers: the configuration makes it anew.
_NAMES = ("model_type", "transformers_version", "architectures", "dtype", "torch_dtype", "id2label", "label2id")
_FOLLOWS = ("stage_names", "per_layer_config", "_out_features", "_out_indices")
# What is said layer by layer, and what some types leave open although nothing can be made without it.
_BY_LAYER = ("layer_types", "mlp_layer_types", "layers_block_type", "block_types", "no_rope_layers")
_UNSAID = {"rope_theta": 10_000.0, "vocab_size": 160, "prediction_length": 8}


def small(config: Any) -> Any:
    return type(config)(**_resized(_settings(config), _SMALL, 0.3))


def scaled(config: Any) -> Any:
    settings = _settings(config)
    by = _divisor(settings)
    return type(config)(**_divided(_resized(settings, _SHALLOW, 0.1), by))


def shallow(config: Any) -> Any:
    return type(config)(**_resized(_settings(config), _SHALLOW, 0.05))


RULES: tuple[Rule, ...] = (small, scaled, shallow)


def _settings(config: Any) -> Settings:
    return {name: value for name, value in config.to_dict().items() if name not in (*_NAMES, *_FOLLOWS)}


def _resized(settings: Mapping[Any, Any], rules: tuple[tuple[str, int], ...], spread: float) -> Settings:
    rules = _fitting(settings, rules)
    layers = _kinds(settings)
    rules = tuple((pattern, layers if "n_layer" in pattern else most) for pattern, most in rules)
    found: Settings = {}
    for name, value in settings.items():
        if not isinstance(name, str) or name in _FOLLOWS:
            continue
        if isinstance(value, dict):
            found[name] = _resized(value, rules, spread)
        elif name in _BY_LAYER and isinstance(value, list | tuple):
            found[name] = _each_kind(value, layers)
        elif isinstance(value, list | tuple) and len(value) == settings.get("num_hidden_layers", 0) > layers:
            found[name] = list(value)[:layers]
        elif name in _UNSAID and value is None:
            found[name] = _UNSAID[name]
        elif name in ("initializer_range", "init_std", "initializer_factor", "init_range") and "factor" not in name:
            # With the usual 0.02 a tiny model says nearly nothing, and agreeing proves nothing.
            found[name] = spread
        else:
            found[name] = _at_most(value, next((most for pattern, most in rules if re.search(pattern, name)), None))
    if found.get("head_dim", 0) is None and found.get("num_attention_heads") and found.get("hidden_size"):
        found["head_dim"] = found["hidden_size"] // found["num_attention_heads"]
    if "rope_parameters" in found and not _whole(settings.get("head_dim")):
        found = _turned(found)
    return _inside_vocabulary(_outlets(found))


def _turned(settings: Settings) -> Settings:
    """Positions in several directions share the width of a head: their shares follow it."""
    rope, width, heads = (settings.get(name) for name in ("rope_parameters", "hidden_size", "num_attention_heads"))
    shares = rope.get("mrope_section") if isinstance(rope, dict) else None
    if not shares or not _whole(width) or not _whole(heads):
        return settings
    part = rope.get("partial_rotary_factor") or 1.0
    if int(width // heads * part) // 2 == sum(shares):
        return settings
    half = int(width // 2 * part) // 2
    each = half // (len(shares) + 1)
    shares = [half - each * (len(shares) - 1), *[each] * (len(shares) - 1)]
    few = {
        name: min(2, settings[name]) for name in ("num_attention_heads", "num_key_value_heads") if settings.get(name)
    }
    return {**settings, **few, "head_dim": width // 2, "rope_parameters": {**rope, "mrope_section": shares}}


def _outlets(settings: Settings) -> Settings:
    """Which layers a backbone gives its features from: each stage is still there, single layers may be gone."""
    deep = settings.get("backbone_out_indices")
    if isinstance(deep, list | tuple) and _whole(settings.get("num_hidden_layers")):
        few = list(range(len(deep)))
        settings = {**settings, "num_hidden_layers": len(deep), "backbone_out_indices": few}
    wanted = settings.get("out_indices")
    staged = any(re.search(r"depths$|hidden_sizes$|layer_repeats$", name) for name in settings)
    if "out_indices" not in settings or staged:
        return settings
    settings = {name: value for name, value in settings.items() if name != "out_features"}
    if not isinstance(wanted, list | tuple) or not _whole(settings.get("num_hidden_layers")):
        return {name: value for name, value in settings.items() if name != "out_indices"}
    layers = max(2, len(wanted))
    return {**settings, "num_hidden_layers": layers, "out_indices": list(range(layers - len(wanted) + 1, layers + 1))}


def _kinds(settings: Mapping[Any, Any]) -> int:
    """How many layers it takes for one of every kind, and two where all are alike."""
    lists = [value for name, value in settings.items() if name in _BY_LAYER and isinstance(value, list | tuple)]
    return max([2, *(len(dict.fromkeys(value)) for value in lists)])


def _each_kind(values: Any, layers: int) -> list[Any]:
    """One layer of every kind, in their order; the last kind for what is left."""
    found = list(dict.fromkeys(values))
    return found + found[-1:] * (layers - len(found))


def _fitting(settings: Mapping[Any, Any], rules: tuple[tuple[str, int], ...]) -> tuple[tuple[str, int], ...]:
    names = [name for name, value in settings.items() if isinstance(name, str) and isinstance(value, list | tuple)]
    if any(_HEADS.search(name) for name in names):
        # Widths grow with the heads from stage to stage, and windows fit the size of the image.
        rules = tuple(rule for rule in rules if "embed_dim" not in rule[0] and "image_size" not in rule[0])
    if "kv_lora_rank" in settings:
        # Keys and values come out of one projection for all heads.
        rules = tuple((pattern, 4 if "key_value" in pattern else most) for pattern, most in rules)
    return rules


def _at_most(value: Any, most: int | None) -> Any:
    if most is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return min(value, most)
    if isinstance(value, list | tuple) and most == 1 and all(isinstance(item, int) for item in value):
        return [min(item, most) for item in value]
    return value


def _inside_vocabulary(settings: Settings) -> Settings:
    """Special tokens, from the end of what is left of the vocabulary, each its own."""
    size = settings.get("vocab_size") or max((size for _, size in _vocabularies(settings)), default=0)
    tokens = [name for name, value in settings.items() if re.search(r"token_(id|index)$", name) and _whole(value)]
    for place, name in enumerate(tokens):
        if size and settings[name] >= size:
            settings[name] = size - 1 - place
    return settings


def _vocabularies(settings: Settings) -> Iterator[tuple[str, int]]:
    for name, value in settings.items():
        if isinstance(value, dict) and _whole(value.get("vocab_size")):
            yield name, value["vocab_size"]


def _divisor(settings: Mapping[Any, Any]) -> int:
    """As many heads as all parts have in common, and more where that leaves it wide."""
    heads = [value for name, value in _numbers(settings) if _HEADS.search(name) and "key_value" not in name]
    widest = max((value for name, value in _numbers(settings) if _is_width(name) and "inter" not in name), default=1)
    by = math.gcd(*heads) if heads else 1
    while widest / by > 4 * _WIDEST:
        by *= 2
    return max(1, min(by, widest // 32))


def _divided(settings: Settings, by: int) -> Settings:
    found: Settings = {}
    for name, value in settings.items():
        if isinstance(value, dict):
            found[name] = _divided(value, by)
        elif _is_width(name) or _HEADS.search(name):
            found[name] = [_part(item, by) for item in value] if isinstance(value, list) else _part(value, by)
        else:
            found[name] = value
    return found


def _part(value: Any, by: int) -> Any:
    return max(1, value // by) if _whole(value) and value > 0 else value


def _numbers(settings: Mapping[Any, Any]) -> Iterator[tuple[str, int]]:
    for name, value in settings.items():
        if isinstance(value, dict):
            yield from _numbers(value)
        for item in value if isinstance(value, list) else (value,):
            if isinstance(name, str) and _whole(item) and item > 0:
                yield name, item


def _is_width(name: str) -> bool:
    return bool(_WIDTH.search(name)) and not _KEPT_WIDTH.search(name)


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
