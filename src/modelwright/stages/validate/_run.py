"""The stage: ask every question, stop at none, write the answers."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from modelwright._json import dumps
from modelwright._lazy import lazy
from modelwright.errors import WrightError
from modelwright.graph import Graph, ValueSpec, external_data, load, summary
from modelwright.metrics import Accumulator, Aggregate
from modelwright.sources import CalibrationSource, RandomCalibration, samples
from modelwright.stages.validate._types import (
    Check,
    OutputParity,
    ValidateOutcome,
    ValidateParams,
    cosine_bound,
    top1_bound,
)
from modelwright.targets import BoundSession, SessionSpec, open_as_written, open_session, parse_target
from modelwright.worker import progress, task

if TYPE_CHECKING:
    import numpy as np
    import onnx
    from numpy.typing import NDArray
else:
    np = lazy("numpy")
    onnx = lazy("onnx")

STAGE = "validate"
VERSION = "4"
LIBRARIES = ("onnxruntime", "onnx", "numpy")
REPORT = "validation.json"
_SCORES = re.compile("logit|score|prob|class|label", re.IGNORECASE)
Outputs = Mapping[str, "NDArray[Any]"]


@task
def run_validate(
    candidate: str, reference: str, workdir: str, precision: str, params: ValidateParams, data: CalibrationSource
) -> ValidateOutcome:
    """Compare `candidate` with the export it came from; both run on the CPU, where every operator exists."""
    graph = load(candidate)
    same = _signature(graph, load(reference))
    checks = [_checker(graph), same]
    outputs: tuple[OutputParity, ...] = ()
    # Data that fits neither model is the user's affair; data that fits only the export is the artifact's.
    feeds = list(samples(data, graph, params.samples)) if same.passed else []
    try:
        if same.passed:
            outputs = _parity(candidate, reference, feeds)
        checks.append(Check("runs on the CPU", same.passed, f"{len(feeds)} samples" if same.passed else "not tried"))
    except WrightError as error:
        checks.append(Check("runs on the CPU", False, str(error)))
    if outputs:
        checks += _verdicts(outputs, precision, params, isinstance(data, RandomCalibration))
    cosines = [item.cosine for item in outputs if item.cosine is not None]
    outcome = ValidateOutcome(
        passed=all(check.passed for check in checks),
        precision=precision,
        bound=_bound(precision, params),
        worst_cosine=min(cosines) if len(cosines) == len(outputs) and cosines else None,
        samples=len(feeds),
        random_inputs=isinstance(data, RandomCalibration),
        checks=tuple(checks),
        outputs=outputs,
    )
    Path(workdir, REPORT).write_text(dumps(outcome), encoding="utf-8")
    return outcome


def _checker(graph: Graph) -> Check:
    try:
        # By path it also looks at the files beside the model; where there are none, the graph alone is enough.
        onnx.checker.check_model(str(graph.path) if external_data(graph) else _without_weights(graph))
    except (onnx.checker.ValidationError, ValueError, RuntimeError, WrightError) as error:
        return Check("valid ONNX", False, " ".join(str(error).split())[:300])
    return Check("valid ONNX", True, "the ONNX checker has no complaint")


def _without_weights(graph: Graph) -> onnx.ModelProto:
    """The weights that were left on disk as empty tensors; onnxruntime compares their sizes when it loads them."""
    model = onnx.ModelProto()
    model.CopyFrom(graph.model)
    for index in graph.on_disk:
        model.graph.initializer[index].dims[:] = [0]
    return model


def _signature(candidate: Graph, reference: Graph) -> Check:
    ours, theirs = summary(candidate), summary(reference)
    for kind, mine, wanted in (("input", ours.inputs, theirs.inputs), ("output", ours.outputs, theirs.outputs)):
        if [value.name for value in mine] != [value.name for value in wanted]:
            names = f"{[value.name for value in mine]} instead of {[value.name for value in wanted]}"
            return Check("same inputs and outputs", False, f"{kind}s are {names}")
        for value, expected in zip(mine, wanted, strict=True):
            if value.dtype != expected.dtype or not _fits(value, expected):
                return Check(
                    "same inputs and outputs",
                    False,
                    f"{kind} {value.name} is {value.dtype}{value.shape} instead of {expected.dtype}{expected.shape}",
                )
    return Check("same inputs and outputs", True, f"{len(ours.inputs)} in, {len(ours.outputs)} out")


def _fits(value: ValueSpec, expected: ValueSpec) -> bool:
    """A dimension may become fixed, and one that was never declared may become known; a number may not change."""
    if value.shape is None or expected.shape is None:
        return True
    if len(value.shape) != len(expected.shape):
        return False
    pairs = zip(value.shape, expected.shape, strict=True)
    return all(not (isinstance(a, int) and isinstance(b, int)) or a == b for a, b in pairs)


def _parity(candidate: str, reference: str, feeds: Sequence[Mapping[str, Any]]) -> tuple[OutputParity, ...]:
    progress("running the export", 0.1)
    wanted = _answers(open_as_written(reference), feeds)
    progress("running the artifact", 0.5)
    # As a user will run it, but without threads that spin between two operators.
    spec = SessionSpec(config={"session.intra_op.allow_spinning": "0"})
    got = _answers(open_session(candidate, parse_target("cpu"), spec), feeds)
    gathered: dict[str, Accumulator] = {name: Accumulator() for name in wanted[0]}
    for one, other in zip(wanted, got, strict=True):
        for name, accumulator in gathered.items():
            if name in other:
                accumulator.add(one[name], other[name])
    scores = {name for name in gathered if _are_scores(name, [answer[name] for answer in wanted])}
    return tuple(_output(name, found.aggregate(), name in scores) for name, found in gathered.items())


def _are_scores(name: str, answers: Sequence[NDArray[Any]]) -> bool:
    """By name, or because every row is a distribution. The largest number of an embedding or a state means nothing."""
    if _SCORES.search(name):
        return True
    if any(answer.dtype.kind != "f" or answer.ndim == 0 or answer.shape[-1] < 2 for answer in answers):
        return False
    sums = np.concatenate([answer.reshape(-1, answer.shape[-1]).sum(axis=1) for answer in answers])
    return bool(np.allclose(sums, 1.0, atol=1e-3)) and min(float(answer.min()) for answer in answers) >= 0.0


def _answers(session: BoundSession, feeds: Sequence[Mapping[str, Any]]) -> list[Outputs]:
    """Closes the session, so that two large models are never in memory together."""
    with session:
        return [session.run(feed) for feed in feeds]


def _output(name: str, found: Aggregate, scores: bool) -> OutputParity:
    return OutputParity(
        output=name,
        cosine=found.cosine.worst if not found.failed else None,
        max_abs=found.max_abs.worst if not found.failed else None,
        sqnr_db=found.sqnr_db.worst,
        top1=found.top1.mean if scores else None,
        identical=found.identical == found.samples > 0,
        reason=found.problem or (found.cosine.reason if found.cosine.worst is None else None),
    )


def _verdicts(outputs: tuple[OutputParity, ...], precision: str, params: ValidateParams, random: bool) -> list[Check]:
    broken = [item for item in outputs if item.cosine is None]
    finite = Check("finite outputs", not broken, broken[0].reason or "" if broken else f"{len(outputs)} outputs")
    if broken:
        return [finite]
    worst = min(outputs, key=lambda item: item.cosine or 0.0)
    bound = _bound(precision, params)
    assert worst.cosine is not None
    close = Check(
        "close to the export",
        worst.cosine >= bound,
        f"worst output {worst.output}: cosine {worst.cosine:.5f}, {precision} needs {bound}",
    )
    return [finite, close, *_top1(outputs, precision, params, random)]


def _top1(outputs: tuple[OutputParity, ...], precision: str, params: ValidateParams, random: bool) -> list[Check]:
    """Made-up inputs give near-ties, so agreement on them proves nothing and is not asked for."""
    scored = [item for item in outputs if item.top1 is not None]
    if random or not scored:
        return []
    bound = params.min_top1 if params.min_top1 is not None else top1_bound(precision)
    worst = min(scored, key=lambda item: item.top1 or 0.0)
    assert worst.top1 is not None
    detail = f"worst output {worst.output}: {worst.top1:.1%} of rows agree, {precision} needs {bound:.0%}"
    return [Check("same best class", worst.top1 >= bound, detail)]


def _bound(precision: str, params: ValidateParams) -> float:
    return params.min_cosine if params.min_cosine is not None else cosine_bound(precision)
