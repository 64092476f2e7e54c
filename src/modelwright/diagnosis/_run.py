"""The comparison itself, from two paths to a report. Runs in a child."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from modelwright._dataclass import dataclass
from modelwright.data import DataSource, Samples, samples
from modelwright.diagnosis._match import FOLDABLE, Matching, match
from modelwright.diagnosis._match_view import DEQUANTIZE, QUANTIZE, View, label, view
from modelwright.diagnosis._match_weights import WeightPair, match_weights
from modelwright.diagnosis._rows import activation_rows, output_rows, shares, spread, weight_rows
from modelwright.diagnosis._stream import Streamed, StreamJob, stream
from modelwright.diagnosis._types import (
    DataFacts,
    DebugReport,
    DebugStatus,
    DebugSummary,
    MatchKind,
    Mode,
    OutputScore,
    Runtimes,
    Unmatched,
    WeightScore,
)
from modelwright.errors import InputError
from modelwright.graph import ModelSummary, ValueSpec, dtype_name, summary
from modelwright.targets import Target, products_saturate, read_cpu
from modelwright.worker import SoFar, progress, task

_INSIDE = "inside a quantized group: making it an output would take the group apart"
Ends = tuple[tuple[str, str, MatchKind], ...]
Shape = tuple[int | str | None, ...]


@dataclass(frozen=True)
class DebugRequest:
    float_model: str
    quant_model: str
    target: Target
    source: DataSource
    samples: int
    budget: int
    origin: bool
    so_far: str | None = None


@dataclass(frozen=True, eq=False)
class _Sides:
    wanted: View
    got: View
    mode: Mode
    ends: Ends
    matching: Matching
    weights: tuple[WeightPair, ...]
    weight_scores: tuple[WeightScore, ...]
    bias_scores: tuple[WeightScore, ...]
    lost_weights: tuple[Unmatched, ...]


@task
def run_debug(request: DebugRequest) -> DebugReport:
    """Match, then compare weights, then run both models."""
    sides = _sides(request)
    feed = samples(request.source, sides.wanted.graph, request.samples, like=[sides.got.graph])
    strangers = _strangers(sides)
    if strangers is not None:
        return _report(request, sides, feed, None, ("no_match", strangers))
    job = StreamJob(
        wanted=sides.wanted,
        got=sides.got,
        target=request.target,
        feed=feed,
        outputs=tuple((name, other) for name, other, _ in sides.ends),
        budget=request.budget,
        origin=request.origin,
        half=sides.mode == "fp16",
    )
    so_far = SoFar(request.so_far)
    so_far.offer(lambda: _report(request, sides, feed, None, ("interrupted", "only weights were compared")))
    found = stream(job, sides.matching.pairs, lambda part: so_far.offer(lambda: _part(request, sides, feed, part)))
    return _report(request, sides, feed, found, _verdict(sides, found))


def _part(request: DebugRequest, sides: _Sides, feed: Samples, found: Streamed) -> DebugReport:
    """The report of a comparison that is not finished."""
    seen = replace(found, tracks=[track for track in found.tracks if track.cumulative.samples])
    compared = f"{len(seen.tracks)} of {len(found.tracks)} tensors were compared, the first ones on {found.samples} of"
    return _report(request, sides, feed, seen, ("interrupted", f"{compared} {feed.count} samples"))


def _sides(request: DebugRequest) -> _Sides:
    progress("matching the graphs")
    wanted = view(request.float_model)
    same = request.float_model == request.quant_model
    got = wanted if same else view(request.quant_model)
    facts = summary(got.graph)
    if facts.ep_context or summary(wanted.graph).ep_context:
        raise InputError(
            "a compiled model cannot be looked into",
            cause="it holds an EPContext node, whose insides are the EP's own",
            fix="Give the model it was compiled from, with `target` for the EP.",
        )
    weights, lost = ((), ()) if same else match_weights(wanted, got)
    ends, matching = _ends(wanted, got), match(wanted, got)
    progress("comparing weights")
    scores = weight_rows(wanted, [item for item in weights if not item.bias])
    biases = weight_rows(wanted, [item for item in weights if item.bias])
    return _Sides(wanted, got, _mode(facts, same), ends, matching, weights, scores, biases, lost)


def _mode(facts: ModelSummary, same: bool) -> Mode:
    ops = {item.op_type for item in facts.ops}
    if same:
        return "same-model"
    if "DynamicQuantizeLinear" in ops or "DynamicQuantizeMatMul" in ops:
        return "dynamic"
    if "QuantizeLinear" in ops or any(name.startswith("QLinear") for name in ops):
        return "static"
    if ops & {"DequantizeLinear", "MatMulNBits"}:
        return "weight-only"
    return "fp16" if any(item.dtype == "float16" for item in facts.precision.weights) else "float"


def _ends(wanted: View, got: View) -> Ends:
    """Outputs by name; by position when the names differ and there are as many."""
    if not set(wanted.outputs) & set(got.outputs) and len(wanted.outputs) == len(got.outputs):
        return tuple((one, other, "position") for one, other in zip(wanted.outputs, got.outputs, strict=True))
    return tuple((name, name, "name") for name in wanted.outputs if name in got.outputs)


def _strangers(sides: _Sides) -> str | None:
    """Why the two cannot be forms of one model; None when they can."""
    wanted, got = sides.wanted, sides.got
    if set(wanted.inputs) != set(got.inputs):
        return f"the inputs differ: {', '.join(wanted.inputs)} and {', '.join(got.inputs)}"
    unlike = _unlike_inputs(summary(wanted.graph).inputs, summary(got.graph).inputs)
    if unlike is not None:
        return unlike
    inner = [
        pair for pair in sides.matching.pairs if pair.tensor in wanted.makers and pair.tensor not in wanted.outputs
    ]
    named = any(kind == "name" for _, _, kind in sides.ends)
    whole = len(wanted.makers) <= len(wanted.outputs)
    if not inner and not sides.weights and not (named and whole):
        return "no tensor and no weight of the quantized model has a counterpart in the float model"
    return None


def _unlike_inputs(wanted: Sequence[ValueSpec], got: Sequence[ValueSpec]) -> str | None:
    """Why one array cannot feed both: bytes and floats, or other sizes."""
    others = {value.name: value for value in got}
    for value in wanted:
        other = others[value.name]
        floats = [str(item.dtype).startswith(("float", "bfloat")) for item in (value, other)]
        if floats[0] != floats[1] or not _shapes_agree(value.shape, other.shape):
            words = " and ".join(f"{item.dtype}{list(item.shape or ())}" for item in (value, other))
            return f"the input {value.name} differs: {words}; build the float model with the same [inputs]"
    return None


def _shapes_agree(one: Shape | None, other: Shape | None) -> bool:
    if one is None or other is None:
        return True
    sizes = zip(one, other, strict=False)
    return len(one) == len(other) and all(a == b for a, b in sizes if isinstance(a, int) and isinstance(b, int))


def _verdict(sides: _Sides, found: Streamed) -> tuple[DebugStatus, str | None]:
    broken = [(name, item.aggregate()) for name, item in (*found.outputs.items(), *found.executed.items())]
    bad = next(((name, item.problem) for name, item in broken if item.failed), None)
    if bad is not None:
        return "failed", f"output {bad[0]}: {bad[1]}"
    missing = _missing_outputs(sides)
    if missing:
        words = "outputs {} have" if len(missing) > 1 else "output {} has"
        return "partial", f"{words.format(', '.join(missing))} no counterpart"
    if sides.matching.quant_only:
        lost = sides.matching.quant_only
        return "partial", f"{len(lost)} quantized tensors have no counterpart, such as {lost[0].name}"
    if sides.lost_weights:
        lost = sides.lost_weights
        return "partial", f"{len(lost)} stored weights have no counterpart, such as {lost[0].name}: {lost[0].reason}"
    if not found.tracks:
        return "partial", "no inner tensor exists on both sides: only outputs and weights are compared"
    return "ok", None


def _missing_outputs(sides: _Sides) -> tuple[str, ...]:
    paired = {name for name, _, _ in sides.ends}
    return tuple(name for name in sides.wanted.outputs if name not in paired)


def _report(
    request: DebugRequest, sides: _Sides, feed: Samples, found: Streamed | None, verdict: tuple[DebugStatus, str | None]
) -> DebugReport:
    rows = activation_rows(sides.wanted, found.tracks) if found else ()
    outputs = output_rows(sides.ends, found) if found else ()
    return DebugReport(
        status=verdict[0],
        reason=verdict[1],
        mode=sides.mode,
        float_model=Path(request.float_model).name,
        quant_model=Path(request.quant_model).name,
        target=str(request.target),
        samples=found.samples if found else 0,
        data=DataFacts(feed.kind, feed.random, found.samples if found else 0, request.source.data.scale),
        runtimes=_runtimes(found),
        model_outputs=outputs,
        activations=rows,
        weights=sides.weight_scores,
        biases=sides.bias_scores,
        summary=DebugSummary(
            local=spread([row.local_sqnr_db for row in rows]),
            cumulative=spread([row.cumulative_sqnr_db for row in rows]),
            weight=spread([row.weight_sqnr_db for row in sides.weight_scores]),
        ),
        by_op_type=shares(rows, lambda row: row.op_type),
        by_module=shares(rows, lambda row: row.module or "(none)"),
        unmatched_float=_float_only(sides, {row.tensor_name for row in rows}),
        unmatched_quant=(*sides.matching.quant_only, *sides.lost_weights),
        notes=_notes(request, sides, found, outputs),
        chunks=found.chunks if found else 0,
        memory_budget_bytes=request.budget,
        planned_bytes=found.planned_bytes if found else None,
        missing_outputs=_missing_outputs(sides),
    )


def _float_only(sides: _Sides, seen: set[str]) -> tuple[Unmatched, ...]:
    """Without tensors that are declared as integers or booleans, which no quantization touches."""
    declared = {value.name: value.type.tensor_type.elem_type for value in sides.wanted.graph.model.graph.value_info}
    found = []
    for item in sides.matching.float_only:
        code = declared.get(item.name, 0)
        if item.name not in seen and (not code or dtype_name(code).startswith("float")):
            reason = _INSIDE if sides.mode == "same-model" else item.reason
            found.append(Unmatched(item.name, reason))
    return tuple(found)


def _runtimes(found: Streamed | None) -> Runtimes | None:
    if found is None or found.facts is None:
        return None
    facts = found.facts
    return Runtimes(
        reference="cpu, graph as written",
        candidate=f"{facts.target}, optimization {facts.graph_optimization}",
        candidate_nodes=tuple(facts.nodes_per_ep.items()),
        simulated=facts.simulated,
        onnxruntime=facts.onnxruntime,
        ep_version=facts.ep_version,
        cpu=read_cpu().model,
        saturates=products_saturate(),
    )


def _notes(
    request: DebugRequest, sides: _Sides, found: Streamed | None, outputs: tuple[OutputScore, ...]
) -> tuple[str, ...]:
    notes = []
    if found is not None and request.target.ep != "cpu":
        notes.append(
            "tensors inside were made outputs to look at them, which can change how the EP cuts and fuses the graph; "
            "`executed` is the untouched model"
        )
    if sides.mode in ("dynamic", "weight-only") and found is not None:
        notes.append(
            f"{sides.mode}: activations are not stored quantized, so they have a cumulative error but no local one"
        )
    taken = _taken_back(sides.got) if found is not None else ()
    if taken:
        notes.append(
            f"onnxruntime quantizes the float weights of {', '.join(taken[:3])} by itself when it loads this model, "
            "because they stand between quantized tensors; leave the nodes after them float too"
        )
    elif any(item.lost_in_kernels for item in outputs):
        cause = ": 8-bit products saturate on this CPU, and weights made for it (reduce_range) would not"
        notes.append(
            "the model as executed is much worse than its graph says: the loss is in onnxruntime's integer kernels"
            f"{cause if products_saturate() else ''}"
        )
    return tuple(notes)


def _taken_back(got: View) -> tuple[str, ...]:
    """Nodes left in float, with a DequantizeLinear before them and a QuantizeLinear behind."""
    found = []
    for node in got.nodes:
        if node.op_type not in ("Conv", "ConvTranspose", "Gemm") or node.input[1] not in got.stored:
            continue
        readers = got.readers(node.output[0])
        if len(readers) == 1 and readers[0].op_type in FOLDABLE:
            readers = got.readers(readers[0].output[0])
        before = got.maker(node.input[0])
        if before is not None and before.op_type == DEQUANTIZE and any(item.op_type == QUANTIZE for item in readers):
            found.append(label(node))
    return tuple(found)
