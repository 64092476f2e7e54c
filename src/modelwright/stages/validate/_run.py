"""The stage: ask every question, stop at none, write the answers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from modelwright._json import dumps
from modelwright._lazy import lazy
from modelwright.data import DataSource
from modelwright.errors import WrightError
from modelwright.graph import Graph, ValueSpec, external_data, load, summary
from modelwright.models import NoGuessError
from modelwright.stages.validate._fed import Feeds, compared, feeds_for
from modelwright.stages.validate._types import (
    NOT_RUN,
    UNKNOWN,
    Gate,
    GateCheck,
    OutputParity,
    ValidateOutcome,
    cosine_bound,
    is_quantized,
    top1_bound,
)
from modelwright.stages.validate._ways import NOT_TRIED, Ways, fidelity
from modelwright.vocabulary import weakest
from modelwright.worker import task

if TYPE_CHECKING:
    import onnx
else:
    onnx = lazy("onnx")

REPORT = "validation.json"


@task
def run_validate(candidate: str, reference: str, workdir: str, params: Gate, data: DataSource) -> ValidateOutcome:
    """Compare `candidate` with the export it came from; both run on the CPU, where every operator exists."""
    graph, export = load(candidate), load(reference)
    same = _signature(graph, export)
    checks = [_checker(graph, export), same]
    found, fed = NOT_TRIED, 0
    # Data that fits neither model is the user's affair; data that fits only the export is the artifact's.
    feeds = feeds_for(data, graph, params.samples) if same.passed else Feeds()
    try:
        if same.passed:
            found, fed = compared(candidate, reference, graph, params, feeds)
        checks.append(GateCheck("runs on the CPU", same.passed, f"{fed} samples" if same.passed else "not tried"))
    except NoGuessError as error:
        checks.append(GateCheck("runs on the CPU", None, f"{NOT_RUN} ({error.problem}: {error.cause})"))
    except WrightError as error:
        checks.append(GateCheck("runs on the CPU", False, str(error)))
    if found.outputs:
        checks += _verdicts(found, params, data.random)
    if data.random and is_quantized(params.precision):
        checks.append(GateCheck("real data", None, UNKNOWN))
    outcome = ValidateOutcome(
        passed=weakest(check.passed for check in checks),
        precision=params.precision,
        bound=_bound(params),
        worst_cosine=fidelity(found.outputs).cosine,
        samples=fed,
        random_inputs=data.random,
        checks=tuple(checks),
        outputs=found.outputs,
        decided_by=found.decided_by,
        as_executed=found.as_executed,
        as_written=found.as_written,
        kernels=found.kernels,
        note=found.note,
    )
    Path(workdir, REPORT).write_text(dumps(outcome), encoding="utf-8")
    return outcome


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
    ours, theirs = summary(candidate), summary(reference)
    for kind, mine, wanted in (("input", ours.inputs, theirs.inputs), ("output", ours.outputs, theirs.outputs)):
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
    return GateCheck("same inputs and outputs", True, f"{len(ours.inputs)} in, {len(ours.outputs)} out")


def _fits(value: ValueSpec, expected: ValueSpec) -> bool:
    """A dimension may become fixed, and one that was never declared may become known; a number may not change. What
    a model declares about its outputs may be wrong: what it gives is compared instead."""
    if value.shape is None or expected.shape is None:
        return True
    if len(value.shape) != len(expected.shape):
        return False
    pairs = zip(value.shape, expected.shape, strict=True)
    return all(not (isinstance(a, int) and isinstance(b, int)) or a == b for a, b in pairs)


def _verdicts(found: Ways, gate: Gate, random: bool) -> list[GateCheck]:
    outputs = found.outputs
    broken = next((item for item in outputs if item.reason is not None), None)
    if broken is not None:
        return [GateCheck("comparable outputs", False, f"{broken.output}: {broken.reason}")]
    whole = GateCheck("comparable outputs", True, f"{len(outputs)} outputs")
    return [whole, *_close(found, gate), *_equal(outputs, gate), *_top1(outputs, gate, random)]


def _close(found: Ways, gate: Gate) -> list[GateCheck]:
    numbers = [item for item in found.outputs if item.cosine is not None]
    if not numbers:
        return []
    worst, bound = min(numbers, key=lambda item: item.cosine or 0.0), _bound(gate)
    assert worst.cosine is not None
    words = f"cosine {worst.cosine:.5f} {found.decided_by}, {gate.precision} needs {bound}"
    return [GateCheck("close to the export", worst.cosine >= bound, f"worst output {worst.output}: {words}")]


def _equal(outputs: tuple[OutputParity, ...], gate: Gate) -> list[GateCheck]:
    """Classes, masks and words."""
    things = [item for item in outputs if item.equal is not None]
    if not things:
        return []
    worst, bound = min(things, key=lambda item: item.equal or 0.0), top1_bound(gate.precision)
    assert worst.equal is not None
    words = f"{worst.equal:.1%} equal, {gate.precision} needs {bound:.0%}"
    return [GateCheck("equal to the export", worst.equal >= bound, f"worst output {worst.output}: {words}")]


def _top1(outputs: tuple[OutputParity, ...], gate: Gate, random: bool) -> list[GateCheck]:
    """Made-up inputs give near-ties, so agreement on them proves nothing and is not asked for."""
    scored = [item for item in outputs if item.top1 is not None]
    if random or not scored:
        return []
    bound = gate.min_top1 if gate.min_top1 is not None else top1_bound(gate.precision)
    worst = min(scored, key=lambda item: item.top1 or 0.0)
    assert worst.top1 is not None
    detail = f"worst output {worst.output}: {worst.top1:.1%} of rows agree, {gate.precision} needs {bound:.0%}"
    return [GateCheck("same best class", worst.top1 >= bound, detail)]


def _bound(gate: Gate) -> float:
    return gate.min_cosine if gate.min_cosine is not None else cosine_bound(gate.precision)
