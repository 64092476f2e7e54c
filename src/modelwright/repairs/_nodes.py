"""What a search asks about candidates, as nodes: each is answered once for the same content, also after a kill."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from modelwright._dataclass import dataclass
from modelwright._extensions import METRICS, extension_packages, extensions
from modelwright._installed import installed
from modelwright._json import digest, dumps
from modelwright.data import DataSource
from modelwright.diagnosis import DebugReport, DebugRequest, run_debug
from modelwright.models import file_digest
from modelwright.plans import ModelInput, Node
from modelwright.repairs._score import TOP1, HalfScore, ScoreParams, run_score
from modelwright.stages import Stage
from modelwright.stages.place import PLACE, PlaceParams
from modelwright.stages.quantize import name_all
from modelwright.targets import Placement, Target, parse_target, read_cpu
from modelwright.worker import task

_LIMIT_S = 1800.0
_RUNS = ("onnxruntime", "onnx", "numpy")
_DEBUG_BUDGET = 1 << 30


@dataclass(frozen=True)
class NameParams:
    """Nothing can be chosen."""


@dataclass(frozen=True)
class NameOutcome:
    file: str


@task
def run_name(model: str, workdir: str, params: NameParams) -> NameOutcome:
    return NameOutcome(Path(name_all(model, workdir)).name)


@dataclass(frozen=True)
class DiagnoseParams:
    samples: int


@task
def run_diagnose(candidate: str, reference: str, workdir: str, params: DiagnoseParams, data: DataSource) -> DebugReport:
    """Where the noise is made, with both models on the CPU."""
    cpu = parse_target("cpu")
    report = run_debug(DebugRequest(reference, candidate, cpu, data, params.samples, _DEBUG_BUDGET, origin=True))
    Path(workdir, "report.json").write_text(dumps(report), encoding="utf-8")
    return report


NAME = Stage("name", "2", NameParams, NameOutcome, run_name, ("onnx",), _LIMIT_S)
SCORE = Stage("score", "2", ScoreParams, HalfScore, run_score, _RUNS, _LIMIT_S)
DIAGNOSE = Stage("diagnose", "1", DiagnoseParams, DebugReport, run_diagnose, _RUNS, _LIMIT_S)


def name_node(model: ModelInput) -> Node[NameParams, NameOutcome]:
    """The model with a name on every node."""
    return Node(NAME, NameParams(), {"model": model}, "names for nodes")


def score_node(
    pair: Mapping[str, ModelInput], params: ScoreParams, data: DataSource, answers: Path, size: int | None
) -> Node[ScoreParams, HalfScore]:
    """`pair` is candidate and reference. Where integer kernels decide, so does the CPU that has them."""
    return Node(
        SCORE,
        params,
        pair,
        f"samples {'that check' if params.start else 'that choose'}",
        given={"data": data, "answers": str(answers)},
        marks={**_fed(data, 2 * params.samples), **_code(params.metric)},
        data_bytes=size,
    )


def diagnose_node(
    pair: Mapping[str, ModelInput], params: DiagnoseParams, data: DataSource, size: int | None
) -> Node[DiagnoseParams, DebugReport]:
    return Node(
        DIAGNOSE,
        params,
        pair,
        "where the noise is made",
        given={"data": data},
        marks=_fed(data, params.samples),
        data_bytes=None if size is None else size + _DEBUG_BUDGET,
    )


def place_node(model: ModelInput, target: Target) -> Node[PlaceParams, Placement]:
    return Node(PLACE, PlaceParams(str(target)), {"model": model}, str(target))


def _fed(data: DataSource, samples: int) -> dict[str, str]:
    return {"data": data.identity(samples), "cpu": digest(read_cpu().features)}


def _code(metric: str | None) -> dict[str, str]:
    """The user's own function is known by its file and the Python files beside it, which it may import; one of another
    package by that package's version."""
    if metric is None or metric == TOP1:
        return {}
    if metric in extensions(METRICS):
        return {"metric": digest({name: installed(name) for name in extension_packages(METRICS)})}
    file = Path(metric.rpartition(":")[0])
    return {"metric": digest(sorted((path.name, file_digest(path)) for path in file.parent.glob("*.py")))}
