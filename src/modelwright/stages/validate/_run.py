"""The stage: ask every question, stop at none, write the answers."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from modelwright._json import dumps
from modelwright._lazy import lazy
from modelwright.data import DataSource
from modelwright.errors import WrightError
from modelwright.graph import Graph, ValueSpec, external_data, holds_quantized, inputs_of, outputs_of, shared
from modelwright.models import NoGuessError
from modelwright.stages.validate._clipped import beyond_calibration
from modelwright.stages.validate._fed import Feeds, compared, feeds_for
from modelwright.stages.validate._types import (
    NOT_RUN,
    NOTHING_ROUNDED,
    UNCHANGED,
    UNKNOWN,
    Gate,
    GateCheck,
    Measure,
    OutputParity,
    ValidateOutcome,
    cosine_bound,
    is_quantized,
)
from modelwright.stages.validate._ways import NOT_TRIED, Ways, affordable, fidelity, unchanged
from modelwright.vocabulary import weakest
from modelwright.worker import task

if TYPE_CHECKING:
    import onnx
else:
    onnx = lazy("onnx")

REPORT = "validation.json"
REPEATABLE = "repeatable answers"
_DRAWS = "the export answers the same input differently each time: it draws random numbers, so nothing can be compared"
_NOTHING = "runs; answers of next to nothing ({}) tell nothing: give real data in which there is something"
_SAME_FILE = "it is the file that it came from, byte for byte"


@task
def run_validate(candidate: str, reference: str, workdir: str, params: Gate, data: DataSource) -> ValidateOutcome:
    """Compare `candidate` with the export it came from; both run on the CPU, where every operator exists."""
    began = time.perf_counter()
    graph, export = shared(candidate), shared(reference)
    params = _as_it_came(params, candidate, reference)
    if params.compiled and Path(candidate).samefile(reference):
        return _written(_judged_there(_checker(graph, export), params, data, began), workdir)
    same = _signature(graph, export)
    checks = [_checker(graph, export), same]
    found = NOT_TRIED
    # Data that fits neither model is the user's affair; data that fits only the export is the artifact's.
    count = affordable(params.samples, candidate, reference)
    feeds = feeds_for(data, graph, count, params.calibrated) if same.passed else Feeds()
    try:
        if same.passed:
            found = compared(candidate, reference, graph, params, feeds)
        words = _samples(found, feeds, params) if same.passed else "not tried"
        checks.append(GateCheck("runs on the CPU", same.passed, words))
    except NoGuessError as error:
        checks.append(GateCheck("runs on the CPU", None, f"{NOT_RUN} ({error.problem}: {error.cause})"))
    except WrightError as error:
        checks.append(GateCheck("runs on the CPU", False, str(error)))
    if not found.repeatable:
        checks.append(GateCheck(REPEATABLE, None, _DRAWS))
        found = replace(found, outputs=())
    if found.outputs:
        checks += _verdicts(found)
    if unchanged(candidate, reference):
        checks.append(GateCheck(UNCHANGED, True, _SAME_FILE))
    if data.random and is_quantized(params.precision) and not params.inherited:
        checks.append(GateCheck("real data", None, UNKNOWN))
    outcome = ValidateOutcome(
        passed=weakest(check.passed for check in checks),
        precision=params.precision,
        bound=_bound(params),
        worst_cosine=fidelity(found.outputs).cosine,
        samples=found.samples,
        random_inputs=data.random,
        checks=tuple(checks),
        outputs=found.outputs,
        decided_by=found.decided_by,
        as_executed=found.as_executed,
        as_written=found.as_written,
        kernels=found.kernels,
        note="; ".join(filter(None, (found.note, _unlike(graph, feeds, params)))) or None,
        engine=found.engine,
        seconds=time.perf_counter() - began,
        held_out=min(feeds.held_out, found.samples) if params.calibrated and found.samples else None,
    )
    return _written(outcome, workdir)


def _judged_there(valid: GateCheck, params: Gate, data: DataSource, began: float) -> ValidateOutcome:
    """Nothing was made that could differ from its export; what is compiled from it is compared on the target."""
    checks = (valid, GateCheck(UNCHANGED, True, f"{_SAME_FILE}; what is compiled from it is compared on the target"))
    return ValidateOutcome(
        passed=weakest(check.passed for check in checks),
        precision=params.precision,
        bound=_bound(params),
        worst_cosine=None,
        samples=0,
        random_inputs=data.random,
        checks=checks,
        outputs=(),
        decided_by=NOT_TRIED.decided_by,
        as_executed=NOT_TRIED.as_executed,
        as_written=NOT_TRIED.as_written,
        kernels=None,
        note=None,
        seconds=time.perf_counter() - began,
    )


def _written(outcome: ValidateOutcome, workdir: str) -> ValidateOutcome:
    Path(workdir, REPORT).write_text(dumps(outcome), encoding="utf-8")
    return outcome


def _as_it_came(gate: Gate, candidate: str, reference: str) -> Gate:
    """Where no precision could be measured (a model without weights) and nothing is quantized, nothing may be lost."""
    if (
        not (gate.inherited and is_quantized(gate.precision))
        or holds_quantized(shared(candidate))
        or holds_quantized(shared(reference))
    ):
        return gate
    return replace(gate, precision=NOTHING_ROUNDED)


def _unlike(graph: Graph, feeds: Feeds, gate: Gate) -> str | None:
    return beyond_calibration(graph, feeds.first) if feeds.first and gate.calibrated else None


def _samples(found: Ways, feeds: Feeds, gate: Gate) -> str:
    """What was compared on, and whether calibration had seen it."""
    words = "1 sample" if found.samples == 1 else f"{found.samples} samples"
    if not gate.calibrated:
        return words
    fresh = min(feeds.held_out, found.samples)
    if fresh == found.samples:
        return f"{words}, none of them used to calibrate"
    return f"{words}, {fresh or 'none'} of them held out from calibration: more rows would judge it better"


def _checker(graph: Graph, export: Graph) -> GateCheck:
    """What the export has been wrong in all along is not the artifact's fault."""
    complaint = _complaint(graph)
    if complaint is None:
        return GateCheck("valid ONNX", True, "the ONNX checker has no complaint")
    inherited = complaint == _complaint(export)
    return GateCheck("valid ONNX", inherited, f"as in the export: {complaint}" if inherited else complaint)


def _complaint(graph: Graph) -> str | None:
    try:
        # By path it also looks at the files beside the model; where there are none, the graph alone is enough.
        onnx.checker.check_model(str(graph.path) if external_data(graph) else _without_weights(graph))
    except (onnx.checker.ValidationError, ValueError, RuntimeError, WrightError) as error:
        return " ".join(str(error).split())[:300]
    return None


def _without_weights(graph: Graph) -> onnx.ModelProto:
    """The weights that were left on disk as empty tensors; onnxruntime compares their sizes when it loads them."""
    model = onnx.ModelProto()
    model.CopyFrom(graph.model)
    for index in graph.on_disk:
        model.graph.initializer[index].dims[:] = [0]
    return model


def _signature(candidate: Graph, reference: Graph) -> GateCheck:
    inputs, outputs = inputs_of(candidate), outputs_of(candidate)
    for kind, mine, wanted in (("input", inputs, inputs_of(reference)), ("output", outputs, outputs_of(reference))):
        if [value.name for value in mine] != [value.name for value in wanted]:
            names = f"{[value.name for value in mine]} instead of {[value.name for value in wanted]}"
            return GateCheck("same inputs and outputs", False, f"{kind}s are {names}")
        for value, expected in zip(mine, wanted, strict=True):
            if value.dtype != expected.dtype or (kind == "input" and not _fits(value, expected)):
                return GateCheck(
                    "same inputs and outputs",
                    False,
                    f"{kind} {value.name} is {value.dtype}{value.shape} instead of {expected.dtype}{expected.shape}",
                )
    return GateCheck("same inputs and outputs", True, f"{len(inputs)} in, {len(outputs)} out")


def _fits(value: ValueSpec, expected: ValueSpec) -> bool:
    """A dimension may become fixed, and one that was never declared may become known; a number may not change. What
    a model declares about its outputs may be wrong: what it gives is compared instead."""
    if value.shape is None or expected.shape is None:
        return True
    if len(value.shape) != len(expected.shape):
        return False
    pairs = zip(value.shape, expected.shape, strict=True)
    return all(not (isinstance(a, int) and isinstance(b, int)) or a == b for a, b in pairs)


def _verdicts(found: Ways) -> list[GateCheck]:
    outputs = found.outputs
    broken = next((item for item in outputs if item.reason is not None), None)
    if broken is not None:
        return [GateCheck("comparable outputs", False, f"{broken.output}: {broken.reason}")]
    if not any(item.measures for item in outputs):
        names = ", ".join(item.output for item in outputs)
        return [
            GateCheck("comparable outputs", None, f"nothing was compared: {names} held nothing to judge in any sample")
        ]
    empty = [item.output for item in outputs if not item.finite]
    if empty and len(empty) == sum(item.equal is None for item in outputs):
        words = f"nothing finite was compared: {', '.join(empty)} of the export hold NaN or infinity only"
        others = replace(found, outputs=tuple(item for item in outputs if item.equal is not None))
        return [GateCheck("comparable outputs", None, words), *_measured(others)]
    return [GateCheck("comparable outputs", True, f"{len(outputs)} outputs"), *_measured(found)]


def _measured(found: Ways) -> Iterator[GateCheck]:
    """Each measure once, by the output that fails it, else by one of which nobody can say, else by the first."""
    by_name: dict[str, list[GateCheck]] = {}
    for item in found.outputs:
        for measure in item.measures:
            by_name.setdefault(measure.name, []).append(_check(item, measure, found))
    for checks in by_name.values():
        worst = weakest(check.passed for check in checks)
        yield next(check for check in checks if check.passed is worst)


def _check(item: OutputParity, measure: Measure, found: Ways) -> GateCheck:
    if item.nothing and not measure.passed:
        apart = f"{item.output}, from 0 to 1, differs by {item.max_abs:.1g} at most"
        return GateCheck(measure.name, None, _NOTHING.format(apart))
    kind = f"judged as {item.kind}, " if item.kind is not None else ""
    return GateCheck(measure.name, measure.passed, f"{item.output}, {kind}{found.decided_by}: {measure.detail}")


def _bound(gate: Gate) -> float:
    return gate.min_cosine if gate.min_cosine is not None else cosine_bound(gate.precision)
