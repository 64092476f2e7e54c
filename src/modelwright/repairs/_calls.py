"""What a search asks about candidates, as stages: each is answered once for the same content, also after a kill."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from modelwright._json import digest, dumps
from modelwright.data import CalibrationSource, calibration_identity
from modelwright.diagnosis import DebugReport, DebugRequest, run_debug
from modelwright.errors import ExecutionError
from modelwright.models import file_digest
from modelwright.plans import ModelInput, StageCall
from modelwright.repairs._score import ScoreParams, run_score
from modelwright.stages.quantize import name_all
from modelwright.targets import Target, library_digest, parse_target, placement, read_cpu
from modelwright.worker import task

_LIMIT_S = 1800.0
_RUNS = ("onnxruntime", "onnx", "numpy")
_DEBUG_BUDGET = 1 << 30


def name_call(model: ModelInput) -> StageCall:
    """The model with a name on every node."""
    return StageCall(
        stage="name",
        version="1",
        libraries=("onnx",),
        inputs={"model": model},
        params={},
        task=lambda models, workdir: name_all.call(models["model"], workdir),
        label="names for nodes",
        extra={},
        timeout_s=_LIMIT_S,
        size=model.size,
    )


def score_call(
    pair: Mapping[str, ModelInput], params: ScoreParams, data: CalibrationSource, answers: Path, size: int | None
) -> StageCall:
    """`pair` is candidate and reference. Where integer kernels decide, so does the CPU that has them."""
    return StageCall(
        stage="score",
        version="1",
        libraries=_RUNS,
        inputs=pair,
        params=params,
        task=lambda models, workdir: run_score.call(
            models["candidate"], models["reference"], workdir, params, data, str(answers)
        ),
        label=f"samples {'that check' if params.start else 'that choose'}",
        extra={**_fed(data, 2 * params.samples), **_code(params.metric)},
        timeout_s=_LIMIT_S,
        size=size,
    )


def diagnose_call(
    pair: Mapping[str, ModelInput], params: DiagnoseParams, data: CalibrationSource, size: int | None
) -> StageCall:
    return StageCall(
        stage="diagnose",
        version="1",
        libraries=_RUNS,
        inputs=pair,
        params=params,
        task=lambda models, workdir: run_diagnose.call(models["candidate"], models["reference"], workdir, params, data),
        label="where the noise is made",
        extra=_fed(data, params.samples),
        timeout_s=_LIMIT_S,
        size=None if size is None else size + _DEBUG_BUDGET,
    )


def place_call(model: ModelInput, target: Target, size: int | None) -> StageCall:
    library = library_digest(target.provider)
    return StageCall(
        stage="place",
        version="repair-1",
        libraries=("onnxruntime",),
        inputs={"model": model},
        params={"target": str(target)},
        task=lambda models, workdir: run_place.call(models["model"], workdir, target),
        label=str(target),
        extra={} if library is None else {"ep_library": library},
        timeout_s=_LIMIT_S,
        size=size,
    )


@dataclass(frozen=True)
class DiagnoseParams:
    samples: int
    scale: float | None


@task
def run_diagnose(
    candidate: str, reference: str, workdir: str, params: DiagnoseParams, data: CalibrationSource
) -> DebugReport:
    """Where the noise is made, with both models on the CPU."""
    cpu = parse_target("cpu")
    report = run_debug(
        DebugRequest(reference, candidate, cpu, data, params.samples, _DEBUG_BUDGET, origin=True, scale=params.scale)
    )
    Path(workdir, "report.json").write_text(dumps(report), encoding="utf-8")
    return report


@dataclass(frozen=True)
class Pieces:
    """What the target's own partitioner makes of a model."""

    partitions: int
    left_nodes: int


@task
def run_place(model: str, workdir: str, target: Target) -> Pieces:
    """Only an answer is kept: an EP that failed or was not there may answer the next time."""
    found = placement(model, target)
    if found.status != "placed":
        raise ExecutionError(
            f"{target} was not asked for its placement",
            cause=found.reason or found.status,
            fix="check the EP with `wright sys`",
        )
    own = sum(share.partitions for share in found.eps if share.ep == target.provider.name)
    Path(workdir, "placement.json").write_text(dumps(found), encoding="utf-8")
    return Pieces(own, len(found.unsupported))


def _fed(data: CalibrationSource, samples: int) -> dict[str, str]:
    return {"data": calibration_identity(data, samples), "cpu": digest(read_cpu().features)}


def _code(metric: str | None) -> dict[str, str]:
    """The user's own function is known by its file and the Python files beside it, which it may import."""
    if metric is None or ":" not in metric:
        return {}
    file = Path(metric.rpartition(":")[0])
    return {"metric": digest(sorted((path.name, file_digest(path)) for path in file.parent.glob("*.py")))}
