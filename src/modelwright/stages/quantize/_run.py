"""The stage: one model and its calibration data in, one quantized model and its facts out."""

from __future__ import annotations

import itertools
import time
from collections.abc import Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from modelwright._dataclass import dataclass
from modelwright._lazy import lazy
from modelwright.data import DataSource, samples
from modelwright.errors import InputError
from modelwright.graph import Graph, StreamedWeight, load, shared, summary
from modelwright.stages.quantize._best import int4_best, quantize_best
from modelwright.stages.quantize._check import (
    NarrowProducts,
    narrow_products,
    require_exact,
    require_true_label,
    saturating,
    tally,
    weight_range_bits,
)
from modelwright.stages.quantize._dynamic import quantize_dynamic
from modelwright.stages.quantize._half import HalfResult, convert_to_half
from modelwright.stages.quantize._int4 import quantize_int4
from modelwright.stages.quantize._model import Prepared, again, hand_on, open_model, opset_of, prepare, prepare_streamed
from modelwright.stages.quantize._moments import FEWEST, judges
from modelwright.stages.quantize._params import (
    Calibration,
    Clipped,
    Gain,
    QuantizeOutcome,
    QuantizeParams,
    TensorOverride,
    Widened,
)
from modelwright.stages.quantize._precision import Step, canonical, reduces_range, steps_of
from modelwright.stages.quantize._save import save
from modelwright.stages.quantize._scope import WIDE, check_scope
from modelwright.stages.quantize._static import CalibrationSamples, StaticResult, quantize_static
from modelwright.stages.quantize._weights import values_of
from modelwright.stages.quantize._widen import quantize_widened
from modelwright.worker import progress, task

if TYPE_CHECKING:
    import onnx
else:
    onnx = lazy("onnx")

FAST_SAMPLES = 8
RANDOM_WARNING = (
    "the ranges come from made-up samples: accuracy on real data is unknown until it is measured; "
    "give real calibration data before you ship this model"
)


@dataclass
class _QuantizeFacts:
    """What the steps found out, gathered for the outcome."""

    input_bytes: int
    weight_range_bits: int | None = None
    calibration: Calibration | None = None
    pairs_left_out: int = 0
    biases_corrected: int = 0
    kept_float: int = 0
    between: int = 0
    overrides: tuple[TensorOverride, ...] = ()
    widened: Widened | None = None
    gains: tuple[Gain, ...] = ()
    half: HalfResult | None = None
    warnings: list[str] = field(default_factory=list)

    @property
    def clipped(self) -> Clipped:
        """Known when the weights are written."""
        return self.half.clipped if self.half is not None else Clipped()


@task
def run_quantize(
    model: str, workdir: str, params: QuantizeParams, calibration: DataSource | None = None
) -> QuantizeOutcome:
    """Quantize `model` into the empty folder `workdir` (`model.onnx`, large weights in `model.onnx.data`)."""
    began = time.perf_counter()
    steps = steps_of(params.precision)
    graph = open_model(model)
    own = {tensor.name for tensor in graph.model.graph.initializer}
    # What is only looked at is parsed once for all who look.
    source = _source(shared(model), steps, params, calibration)
    facts = _QuantizeFacts(summary(shared(model)).total_bytes, overrides=params.overrides)
    folder = Path(workdir)
    try:
        result, weights = _transform(graph, steps, params, source, (folder, facts))
        facts.weight_range_bits = _range_bits(result, weights, own, reduces_range(params))
        hand_on(result, shared(model).model)
        progress("writing", 0.9)
        written = save(result, folder, weights, in_order=steps[0].kind == "static")
    finally:
        for scratch in folder.glob("*.scratch*"):
            scratch.unlink()
    facts.warnings += _clip_warnings(facts.clipped)
    params = replace(params, overrides=facts.overrides)
    return _outcome(written, steps, params, facts, time.perf_counter() - began)


def _range_bits(
    result: onnx.ModelProto, weights: Mapping[str, StreamedWeight], own: set[str], exact: bool
) -> int | None:
    """Bits that the signed weights use that were made; those whose products are to be `exact` must be."""
    stored = {tensor.name: tensor for tensor in result.graph.initializer}
    made = {name: tensor for name, tensor in stored.items() if name not in own}
    signed = {name: tensor for name, tensor in made.items() if tensor.data_type == onnx.TensorProto.INT8}
    if signed and exact:
        beyond = saturating(result.graph, lambda name: values_of(stored[name], weights))
        require_exact(tuple(name for name in beyond if name in signed))
    return weight_range_bits(values_of(tensor, weights) for tensor in signed.values())


def _transform(
    graph: Graph,
    steps: tuple[Step, ...],
    params: QuantizeParams,
    source: CalibrationSamples | None,
    into: tuple[Path, _QuantizeFacts],
) -> tuple[onnx.ModelProto, dict[str, StreamedWeight]]:
    """The model, and those of its weights that are made while they are written."""
    folder, facts = into
    kind = steps[0].kind
    thorough = source is not None and _thorough(params, source, facts)
    if kind in ("fp16", "int4") and not thorough:
        ready = prepare_streamed(graph, folder, integers=kind == "int4")
        facts.warnings += check_scope(ready.model, params)
        return _applied(ready.model, steps, params, ready.weights, facts), ready.weights
    prepared = prepare(graph, folder, integers=kind != "none", raise_opset=kind == "static")
    facts.warnings += check_scope(prepared.model, params)
    done, weights = 1 if source is not None else 0, dict[str, StreamedWeight]()
    if source is not None and kind == "int4":
        model, facts.gains = int4_best(graph.path, prepared, params, source, folder)
    elif source is not None:
        found = _static(graph.path, prepared, (steps[0], params, thorough), source, into)
        model, weights = found.model, dict(found.weights)
    else:
        prepared.weights.attach(prepared.model)
        model = prepared.model
    return _applied(model, steps[done:], params, weights, facts), weights


def _static(
    path: Path,
    prepared: Prepared,
    how: tuple[Step, QuantizeParams, bool],
    source: CalibrationSamples,
    into: tuple[Path, _QuantizeFacts],
) -> StaticResult:
    (step, params, thorough), (folder, facts) = how, into
    wide = _widens(params, step, source)
    if wide:
        result, params, facts.widened = quantize_widened(path, prepared, step, params, source, folder)
        facts.overrides = params.overrides
        facts.warnings += [facts.widened.words] if facts.widened is not None else []
    if thorough:
        ready = again(path, folder) if wide else prepared
        result, facts.gains = quantize_best(path, ready, step, params, source, folder)
    elif not wide:
        result = quantize_static(prepared, step, params, source, folder, to_write=True)
    facts.calibration, facts.pairs_left_out = result.calibration, result.pairs_left_out
    facts.biases_corrected, facts.kept_float, facts.between = result.biases_corrected, result.kept_float, result.between
    facts.warnings += [*_sample_warnings(result.calibration), *result.warnings]
    return result


def _applied(
    model: onnx.ModelProto,
    steps: tuple[Step, ...],
    params: QuantizeParams,
    weights: dict[str, StreamedWeight],
    facts: _QuantizeFacts,
) -> onnx.ModelProto:
    for step in steps:
        progress(f"converting to {step.label}")
        if step.kind == "dynamic":
            model = quantize_dynamic(model, params)
        elif step.kind == "int4":
            quantize_int4(model, params, weights)
        elif step.kind == "fp16":
            facts.half = convert_to_half(model, params, weights)
            model = facts.half.model
    return model


def _source(
    graph: Graph, steps: tuple[Step, ...], params: QuantizeParams, calibration: DataSource | None
) -> CalibrationSamples | None:
    wanted = steps[0].kind == "int4" and params.effort == "best" and calibration is not None
    if steps[0].kind != "static" and not wanted:
        return None
    if calibration is None:
        raise InputError(
            f"{steps[0].label} needs calibration samples",
            cause="the ranges of activations are found by running the model",
            fix="Give `data`: real samples, or random (only to try things out).",
        )
    if params.samples < 1:
        raise InputError(
            f"{params.samples} samples are not enough", cause="ranges need at least one", fix="Ask for 8 to 128."
        )
    drawn = samples(
        calibration, graph, min(params.samples, FAST_SAMPLES) if params.effort == "fast" else params.samples
    )
    # Inputs that do not fit are found before any work is done.
    next(iter(drawn))
    return CalibrationSamples(drawn, calibration.random)


def _thorough(params: QuantizeParams, source: CalibrationSamples, facts: _QuantizeFacts) -> bool:
    """Is there anything to learn from, and to judge by?"""
    if params.effort != "best":
        return False
    if not source.random and sum(1 for _ in source.samples) >= FEWEST:
        return True
    why = "made-up samples teach nothing" if source.random else f"it takes {FEWEST} samples to learn and to judge"
    facts.warnings.append(f"effort best did no more than normal: {why}")
    return False


def _widens(params: QuantizeParams, step: Step, source: CalibrationSamples) -> bool:
    """Is there another width to give, and anything to judge the noise by?"""
    asked = params.wide_where_noisy and params.scope is not None and params.effort != "fast"
    enough = not source.random and any(judges(index) for index, _ in enumerate(source.samples))
    return bool(asked and step.activation_bits < WIDE and enough)


def _sample_warnings(found: Calibration) -> list[str]:
    if found.random:
        return [RANDOM_WARNING]
    if not found.few:
        return []
    count = "1 sample" if found.samples == 1 else f"{found.samples} samples"
    return [f"{count} found the ranges: what others reach beyond them is cut off; 32 to 128 from real use would do"]


def _clip_warnings(clipped: Clipped) -> list[str]:
    if not clipped.to_largest:
        return []
    return [f"{clipped.to_largest} weights lie beyond float16 and were moved to its largest value, 65504"]


def _narrow(produced: Graph, step: Step, params: QuantizeParams) -> NarrowProducts:
    return narrow_products(produced.model, step.activation_bits, {item.tensor for item in params.overrides})


def _outcome(
    written: Path,
    steps: tuple[Step, ...],
    params: QuantizeParams,
    facts: _QuantizeFacts,
    seconds: float,
) -> QuantizeOutcome:
    produced = load(written)
    after = summary(produced)
    precision = after.precision
    narrow = _narrow(produced, steps[0], params) if facts.between else None
    notes = require_true_label(precision, steps, params, facts.kept_float, narrow)
    return QuantizeOutcome(
        precision=canonical(params.precision),
        steps=tuple(step.label for step in steps),
        measured=precision.label,
        measured_reason=precision.reason,
        weight_bits=precision.weight_bits,
        weight_range_bits=facts.weight_range_bits,
        activation_bits=precision.activation_bits,
        quantized_share=precision.quantized_share,
        granularity=precision.granularity,
        ops=tally(produced.model),
        excluded=params.nodes_to_exclude,
        calibration=facts.calibration,
        pairs_left_out=facts.pairs_left_out,
        biases_corrected=facts.biases_corrected,
        kept_float=facts.kept_float,
        between=facts.between,
        widened=facts.widened,
        gains=facts.gains,
        clipped=facts.clipped,
        opset=opset_of(produced.model),
        warnings=tuple(itertools.chain(facts.warnings, notes)),
        input_bytes=facts.input_bytes,
        output_bytes=after.total_bytes,
        seconds=seconds,
    )
