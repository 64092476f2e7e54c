"""The effort `best`: one technique after the other is tried on the whole model, and kept where its outputs lose less.

Rows beyond the samples, and beyond those that a build's gate is asked with, judge where the data has enough of them;
else every fourth sample, from which nothing is learnt but the ranges.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from modelwright._dataclass import dataclass
from modelwright._lazy import lazy
from modelwright.data import Samples
from modelwright.graph import StreamedWeight
from modelwright.stages.quantize._int4 import quantize_int4, settle
from modelwright.stages.quantize._int4_rounded import round_int4
from modelwright.stages.quantize._model import Prepared, again, copied, open_model, prepare
from modelwright.stages.quantize._moments import FEWEST, learn, readings
from modelwright.stages.quantize._noise import NoiseMeter
from modelwright.stages.quantize._params import Gain, QuantizeParams
from modelwright.stages.quantize._precision import Step
from modelwright.stages.quantize._seams import SeamKind
from modelwright.stages.quantize._smooth import smooth, with_scaled
from modelwright.stages.quantize._static import CalibrationSamples, StaticResult, quantize_static
from modelwright.worker import progress

if TYPE_CHECKING:
    import numpy as np
    import onnx
    from numpy.typing import NDArray
else:
    np = lazy("numpy")

RANGES, ROUNDING = "ranges", "rounding"
SEAMS: tuple[SeamKind, ...] = ("smoothing", "equalization", "scaling")
TECHNIQUES = (*SEAMS, RANGES, ROUNDING)
FLOAT_BITS = 24
# Rows that judge, behind those that calibrate and those that the gate of a build is asked with.
_JUDGES, _GATED = 32, 32
_NOTHING = 1e-30
# Less is not worth another model.
_LEAST_DB = 0.1


@dataclass(frozen=True)
class EffortTrial:
    """What some techniques made together, and at how many places the last of them had something to do."""

    model: onnx.ModelProto
    places: int
    result: StaticResult | None = None


def quantize_best(
    model: Path, prepared: Prepared, step: Step, params: QuantizeParams, source: CalibrationSamples, workdir: Path
) -> tuple[StaticResult, tuple[Gain, ...]]:
    """The static quantization of `model` (made ready as `prepared`) with all that lessens its noise."""
    meter = _meter(prepared.model, source.samples, workdir)

    def attempt(techniques: tuple[str, ...]) -> EffortTrial:
        return quantize_with(techniques, model, step, params, source, workdir)

    offered = [name for name in TECHNIQUES if name != RANGES or params.method == "minmax"]
    found, gains = best_of(offered, attempt, lambda item: meter.noise(item.model))
    assert found.result is not None, "every static attempt has one"
    return found.result, gains


def int4_best(
    model: Path, prepared: Prepared, params: QuantizeParams, source: CalibrationSamples, workdir: Path
) -> tuple[onnx.ModelProto, tuple[Gain, ...]]:
    """4-bit weights with all that lessens their noise; activations stay float, so factors only serve the weights."""
    meter = _meter(prepared.model, source.samples, workdir)

    def attempt(techniques: tuple[str, ...]) -> EffortTrial:
        ready = prepare(open_model(str(model)), workdir, integers=True, raise_opset=False)
        places = smooth(ready, "smoothing", FLOAT_BITS, source.samples, workdir) if "smoothing" in techniques else 0
        bare = copied(ready.model)
        products = {node.name for node in bare.graph.node if node.op_type == "MatMul"} - {*params.nodes_to_exclude}
        ready.weights.attach(ready.model)
        made, packed = ready.model, dict[str, StreamedWeight]()
        quantize_int4(made, params, packed)
        settle(made, packed)
        if ROUNDING in techniques:
            learnt = learn(bare, readings(bare, products), source.samples, workdir)
            places = round_int4(made, learnt, lambda name: ready.weights.read(bare, name))
        return EffortTrial(made, places)

    found, gains = best_of(("smoothing", ROUNDING), attempt, lambda item: meter.noise(item.model))
    return found.model, gains


def _meter(model: onnx.ModelProto, samples: Samples, workdir: Path) -> NoiseMeter:
    others = replace(samples, count=_JUDGES, after=samples.after + samples.count + _GATED)
    fresh = others.held_out
    if fresh < FEWEST:
        return NoiseMeter.of(model, samples, workdir)
    return NoiseMeter.over(model, replace(others, count=fresh), workdir)


def quantize_with(
    techniques: tuple[str, ...],
    model: Path,
    step: Step,
    params: QuantizeParams,
    source: CalibrationSamples,
    workdir: Path,
) -> EffortTrial:
    """All of these, whether they help or not."""
    ready = again(model, workdir)
    places = 0
    for kind in SEAMS:
        if kind in techniques:
            places = smooth(ready, kind, step.activation_bits, source.samples, workdir)
    chosen = replace(params, method="mse") if RANGES in techniques else params
    chosen = replace(chosen, overrides=with_scaled(ready.model, chosen.overrides))
    result = quantize_static(ready, step, chosen, source, workdir, compensate=ROUNDING in techniques)
    counts = {RANGES: result.calibration.tensors, ROUNDING: result.rounded}
    return EffortTrial(result.model, counts.get(techniques[-1], places) if techniques else 0, result)


def best_of(
    techniques: Sequence[str],
    attempt: Callable[[tuple[str, ...]], EffortTrial],
    noise: Callable[[EffortTrial], NDArray[Any] | None],
) -> tuple[EffortTrial, tuple[Gain, ...]]:
    """The attempt with the techniques that are worth it, and what each of those tried brought."""
    found = attempt(())
    least, kept, gains = noise(found), list[str](), list[Gain]()
    for name in techniques if least is not None else ():
        progress(f"trying {name}")
        other = attempt((*kept, name))
        left = noise(other) if other.places else None
        if least is None or left is None:
            continue
        gains.append(gain_of(name, other.places, least, left))
        if gains[-1].kept:
            found, least = other, left
            kept.append(name)
    return found, tuple(gains)


def gain_of(technique: str, places: int, before: NDArray[Any], after: NDArray[Any]) -> Gain:
    """Decibels by which the noise fell, sample by sample. It is kept for what is left of them less two standard errors:
    eight samples with two scores each fall by decibels by chance."""
    each = 10 * (np.log10(np.maximum(before, _NOTHING)) - np.log10(np.clip(after, _NOTHING, 1 / _NOTHING)))
    mean, off = float(each.mean()), 2 * float(each.std(ddof=1)) / math.sqrt(len(each))
    low, high = round(mean - off, 2), round(mean + off, 2)
    return Gain(technique, places, round(mean, 2), mean - off >= _LEAST_DB, low, high, len(each))
