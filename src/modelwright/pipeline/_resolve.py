"""From a source, a target and what the user said to a resolved recipe. The host is asked only for `isa=host`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from modelwright._dataclass import dataclass
from modelwright._json import plain
from modelwright.data import DataSource, data_shapes, data_sizes, require_there
from modelwright.errors import UsageError
from modelwright.graph import shared
from modelwright.models import HfSource, OnnxSource, model_facts, processor_hints, sized_dims
from modelwright.pipeline._conflicts import refuse_conflicts
from modelwright.pipeline._known import DEFAULT_PASSES, chosen_passes
from modelwright.pipeline._recipe import Layer, Recipe, make_data, make_pixels, make_recipe, merged, require_layer
from modelwright.pipeline._weights import settled_weights
from modelwright.stages.quantize import Effort, QuantizeParams, canonical, steps_of
from modelwright.stages.validate import ValidateParams
from modelwright.targets import Target, catalogue, on_this_host, parse_target
from modelwright.vocabulary import Data, PixelInputs, Sized

# Made-up inputs show that a graph was put together rightly, and no more of them would show more.
MADE_UP_SAMPLES = 2
_FIXED_SHAPE_DEVICES = ("npu",)
# Inputs of a Hugging Face model: the size of the export that they show, and in how many of their last axes.
_EXPORT_SIZES = {
    "input_ids": ("sequence_length", 1),
    "pixel_values": ("image_size", 2),
    "input_values": ("audio_samples", 1),
}
_DECIDED = ("policy_version", "reasons")


@dataclass(frozen=True)
class RecipeChoices:
    """What was said beside a recipe; None and empty are "not said"."""

    precision: str | None = None
    passes: tuple[str, ...] | None = None
    data: Data | None = None
    samples: int | None = None
    seed: int | None = None
    compile: bool | None = None
    opset: int | None = None
    dims: tuple[tuple[str, int], ...] = ()
    provider_options: tuple[tuple[str, str], ...] = ()
    inputs: PixelInputs | None = None
    effort: Effort | None = None


def resolve_recipe(
    source: OnnxSource | HfSource,
    target: Target,
    choices: RecipeChoices | None = None,
    file: Layer | None = None,
    *,
    planning: bool = False,
) -> Recipe:
    """Defaults of the policy, then the recipe file, then the command line; `auto` becomes a value.

    `planning` runs no code of the user's: dimensions that only a reader knows stay open.
    """
    choices, file, asked = choices or RecipeChoices(), _without_false(file or {}), target
    target = on_this_host(asked)
    if file:
        require_layer(file, "the recipe")
    file = {key: value for key, value in file.items() if key not in _DECIDED}
    refuse_conflicts(file, source, target)
    precision, quantize = _precision(source, target, choices, file)
    layer = merged(_defaults(source, target), file)
    layer = merged(layer, _said(choices, layer, target))
    layer["target"], layer["precision"] = str(target), precision
    layer["quantize"] = {**(layer["quantize"] or {}), "precision": precision} if quantize else None
    layer["data"] = data = _data(choices, layer, source)
    if data.samples is not None and quantize:
        layer["quantize"]["samples"] = data.samples
    if choices.effort is not None:
        layer["quantize"] = _with_effort(layer["quantize"], choices.effort, precision)
    _spell_out(layer, source, target, choices, planning=planning)
    left_out = layer.pop("left_out", ())
    recipe = make_recipe(layer, "the recipe")
    params, why = (None, None) if recipe.quantize is None else settled_weights(recipe.quantize, target, asked)
    reasons = replace(recipe.reasons, reduce_range=why, chip=target.assumption, passes=left_out)
    return replace(recipe, quantize=params, reasons=reasons)


def _without_false(file: Layer) -> Layer:
    """`stage = false` is TOML's way to say null."""
    return {key: None if value is False else value for key, value in file.items()}


def _precision(source: OnnxSource | HfSource, target: Target, choices: RecipeChoices, file: Layer) -> tuple[str, bool]:
    """The precision of the result, and whether a quantize stage has to make it."""
    section = file.get("quantize")
    asked = choices.precision or file.get("precision")
    if asked is None and isinstance(section, dict):
        asked = section.get("precision")
    switched_off = "quantize" in file and section is None
    if asked in (None, "auto"):
        own = model_facts(source.path).precision if isinstance(source, OnnxSource) else "fp32"
        if own != "fp32" or switched_off:
            return own or "unknown", False
        asked = target.auto_precision
    word = canonical(str(asked))
    if not target.accepts_qdq and any(step.kind == "static" for step in steps_of(word)):
        raise UsageError(
            f"{word} cannot be built for {target}",
            cause=f"{target.provider.name} quantizes by itself, and a quantized graph aborts its compiler",
            fix="leave `precision` out, or use fp32 or fp16",
        )
    if switched_off and choices.precision is None:
        return word, False
    return word, word != "fp32"


def _with_effort(section: Layer | None, effort: Effort, precision: str) -> Layer:
    """Where nothing is rounded to a grid that samples choose, more or less effort would change nothing."""
    if section is None or not any(step.kind in ("static", "int4") for step in steps_of(precision)):
        raise UsageError(
            f"{precision} takes no effort {effort}",
            cause="effort is what a quantized model may take to keep its accuracy, and here there is nothing to choose",
            fix="leave `effort` out, or give a `precision` such as w8a8, w8a16 or int4",
        )
    return {**section, "effort": effort}


def _defaults(source: OnnxSource | HfSource, target: Target) -> Layer:
    export: Layer | None = None
    if isinstance(source, HfSource):
        export = {
            "task": source.task,
            "random_weights": source.random_weights,
            "trust_remote_code": source.trust_remote_code,
        }
    # An EPContext is made for one chip; without a chip the target compiles when the model is loaded.
    compiled = {"target": str(target)} if target.names_chip and target.provider.ep_context else None
    return {
        "policy_version": catalogue().policy_version,
        "export": export,
        "inputs": None,
        "optimize": {"passes": list(DEFAULT_PASSES)},
        "quantize": None,
        "compile": compiled,
        # The gate runs on the CPU already.
        "check": None if target.ep == "cpu" else {"target": str(target)},
        "validation": {},
    }


def _said(choices: RecipeChoices, layer: Layer, target: Target) -> Layer:
    said: Layer = {}
    if choices.passes is not None:
        said["optimize"] = {"passes": list(choices.passes)}
    if choices.opset is not None:
        section = "export" if layer["export"] is not None else "optimize"
        said[section] = {**said.get(section, {}), "opset": choices.opset}
    if choices.compile is False:
        said["compile"] = None
    elif choices.compile:
        _require_compiler(target)
        said["compile"] = {"target": str(target)}
    if choices.inputs is not None and choices.inputs.changes:
        said["inputs"] = {key: value for key, value in plain(choices.inputs).items() if value}
    if choices.provider_options:
        _give_options(said, layer, choices.provider_options, target)
    return said


def _give_options(said: Layer, layer: Layer, options: tuple[tuple[str, str], ...], target: Target) -> None:
    """To every stage that talks to the EP; options that nobody would see are refused."""
    talking = [name for name in ("compile", "check") if said.get(name, layer[name]) is not None]
    if not talking:
        raise UsageError(
            f"a build for {target} hands no options to its EP",
            cause="nothing is compiled and no EP is asked: the gate runs on the CPU as it is",
            fix="leave `provider_options` out, or name another target",
        )
    for name in talking:
        said[name] = {**(said.get(name) or {}), "provider_options": [list(pair) for pair in options]}


def _data(choices: RecipeChoices, layer: Layer, source: OnnxSource | HfSource) -> Data:
    """What was said replaces the recipe's data as a whole; how many and by which seed can be said alone.

    A Hugging Face model brings its own processor, unless it is to take pixels as they are.
    """
    data = choices.data or make_data(layer.get("data", {}))
    require_there(data)
    seed = data.seed if choices.seed is None else choices.seed
    own = source.folder if isinstance(source, HfSource) and not data.random and not layer["inputs"] else None
    return replace(data, samples=choices.samples or data.samples, seed=seed, processor=data.processor or own)


def _require_compiler(target: Target) -> None:
    if not target.provider.ep_context:
        raise UsageError(
            f"{target} cannot be compiled",
            cause=f"{target.provider.name} has no EPContext format",
            fix="leave `compile` out; the model is compiled when it is loaded",
        )


def _spell_out(
    layer: Layer, source: OnnxSource | HfSource, target: Target, choices: RecipeChoices, *, planning: bool
) -> None:
    """Presets become passes, and an NPU gets fixed shapes, so that the recipe says what will really run."""
    for section in ("compile", "check"):
        if layer[section] is not None:
            layer[section] = {**layer[section], "target": str(target)}
    if layer["data"].random and isinstance(layer["validation"], dict):
        layer["validation"] = {"samples": MADE_UP_SAMPLES, **layer["validation"]}
    if isinstance(source, HfSource):
        _size_export(source, layer, planning=planning)
    optimize: dict[str, Any] | None = layer["optimize"]
    if optimize is None and not choices.dims:
        return
    optimize = dict(optimize or {})
    names, layer["left_out"] = chosen_passes(optimize.get("passes", []), source, target)
    optimize["passes"] = list(names)
    sizes = dict(optimize.get("fix_dims") or ())
    if "fix_dims" not in optimize and isinstance(source, OnnxSource) and target.device in _FIXED_SHAPE_DEVICES:
        found = _sizes(Path(source.path), layer, dict(choices.dims), planning=planning)
        layer["reasons"] = {"sizes": found}
        sizes = {item.name: item.size for item in found}
    optimize["fix_dims"] = sorted({**sizes, **dict(choices.dims)}.items())
    layer["optimize"] = optimize


def _size_export(source: HfSource, layer: Layer, *, planning: bool) -> None:
    """Arrays of the data that are inputs of the model say how large those are, unless the recipe does."""
    data: Data = layer["data"]
    if data.random or (planning and DataSource(data).unread) or source.task == "text-generation":
        return
    export, sizes = dict(layer["export"]), []
    pixels = make_pixels(layer.get("inputs"))
    last = pixels is not None and pixels.layout == "nhwc"
    if pixels is not None and data.size is not None and export.get("image_size") is None:
        export["image_size"] = data.size
        sizes += [Sized(word, size, "as asked") for word, size in zip(("height", "width"), data.size, strict=True)]
    for name, shape in data_shapes(data, _samples(layer)).items():
        key, axes = _EXPORT_SIZES.get(name, ("", 0))
        # The export has its channels first, whatever the finished model takes.
        shown = shape[:-1] if last and axes > 1 else shape
        if key and len(shown) >= axes and export.get(key) is None:
            export[key] = shown[-axes:] if axes > 1 else shown[-1]
            words = ("height", "width") if axes > 1 else (key,)
            sizes += [Sized(word, size, "the data") for word, size in zip(words, shown[-axes:], strict=True)]
    layer["export"], layer["reasons"] = export, {"sizes": sizes}


def _sizes(model: Path, layer: Layer, said: dict[str, int], *, planning: bool) -> tuple[Sized, ...]:
    """What is said, then what the user's data has, then the processor, then the file, then a guess."""
    data: Data = layer["data"]
    if planning and DataSource(data).unread:
        return ()
    symbolic = set(model_facts(model).symbolic)
    if not symbolic and not said:
        return ()
    pixels = make_pixels(layer.get("inputs"))
    seen = data_sizes(data, model, _samples(layer), pixels) if not data.random and symbolic - said.keys() else {}
    hints = processor_hints(Path(data.processor or model.parent).expanduser())
    return sized_dims(shared(model), said, seen, hints)


def _samples(layer: Layer) -> int:
    """How many the stages will ask for: some to calibrate, others to judge."""
    sections = ((layer["quantize"], QuantizeParams.samples), (layer["validation"], ValidateParams.samples))
    return sum(int((section or {}).get("samples", usual)) for section, usual in sections)


def waits_for_reader(source: OnnxSource | HfSource, recipe: Recipe) -> bool:
    """Does the user's function, which a plan does not run, decide dimensions of the model?"""
    fixed = dict(recipe.optimize.fix_dims) if recipe.optimize is not None else {}
    return (
        isinstance(source, OnnxSource)
        and recipe.optimize is not None
        and DataSource(recipe.data).unread
        and parse_target(recipe.target).device in _FIXED_SHAPE_DEVICES
        and bool(set(model_facts(source.path).symbolic) - fixed.keys())
    )
