"""Candidates: built by the pipeline's own stages, scored on the two halves of the data, each only once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from modelwright.data import CalibrationSource, calibration_source, data_bytes, draw
from modelwright.diagnosis import data_source
from modelwright.errors import ExecutionError, InputError
from modelwright.graph import model_bytes
from modelwright.models import recorded_inputs
from modelwright.repairs._score import ScoreJob, score_model, time_models
from modelwright.repairs._types import FixOptions, FixPlan, FixScore
from modelwright.stages.optimize import run_optimize
from modelwright.stages.quantize import QuantizeParams, name_all, run_quantize
from modelwright.targets import placement
from modelwright.vocabulary import Data, OnProgress, Progress
from modelwright.worker import CallResult, Task, Worker

T = TypeVar("T")
_LIMIT_S = 1800.0
CHOOSE, CHECK = 0, 1


@dataclass(frozen=True)
class Candidate:
    """A quantized model. `problem` says why there is none."""

    params: QuantizeParams
    path: Path
    file_bytes: int
    problem: str | None = None


@dataclass(frozen=True)
class Placed:
    partitions: int | None
    left_nodes: int | None


class Bench:
    """Builds and scores, each once. `refused` is why the last build gave nothing."""

    def __init__(
        self, model: Path, plan: FixPlan, options: FixOptions, folder: Path, worker: Worker, say: OnProgress
    ) -> None:
        self.options, self.say = options, say
        self.half = options.samples // 2
        self.metric = (options.metric or "label") if options.target_drop is not None else None
        self.builds = 0
        self.refused: str | None = None
        self._plan, self._folder, self._worker = plan, folder, worker
        self._built: dict[QuantizeParams, Candidate] = {}
        self._scores: dict[tuple[Path, int], FixScore] = {}
        self._reference: dict[int, FixScore] = {}
        self._places: dict[Path, Placed] = {}
        self._drawn: dict[Data, CalibrationSource] = {}
        self.recorded = recorded_inputs(model)
        self._size = _needed(model, plan.calibration, options)
        self.base = self._prepared(model)
        self.base_bytes = model_bytes(self.base)

    @property
    def spent(self) -> bool:
        return self.builds >= self.options.max_builds

    @property
    def exact(self) -> bool:
        """Do the machines this is for add 8-bit products up exactly, whatever this one does?"""
        return self.options.target is not None and self.options.target.exact_products is not False

    @property
    def wanted(self) -> str:
        if self.options.target_sqnr is not None:
            return f"SQNR of every output at least {self.options.target_sqnr:g} dB"
        return f"{self.metric_name} at most {self.options.target_drop} below the float model"

    @property
    def metric_name(self) -> str:
        return "accuracy" if self.metric == "label" else str(self.metric).rpartition(":")[2]

    @property
    def reference_scores(self) -> tuple[FixScore, FixScore]:
        return self._reference[CHOOSE], self._reference[CHECK]

    def build(self, params: QuantizeParams) -> Candidate:
        """Quantize the base with these parameters; what the stage refuses becomes a candidate with a problem."""
        if params in self._built:
            return self._built[params]
        self.builds += 1
        self.say(Progress(f"building candidate {self.builds}"))
        folder = self._new_folder("candidate")
        found = self._quantized(params, folder)
        if found.problem is not None and not self._built:
            raise ExecutionError(
                "the model cannot be quantized as asked",
                cause=found.problem,
                fix="Check --precision and --calibration, or build it with `wright quantize` first.",
            )
        self._built[params] = found
        self.refused = found.problem
        return found

    def met_on(self, candidate: Candidate, half: int, *, margin: bool) -> bool:
        """Does the target hold on this half? With a margin, it will on other samples too, most likely."""
        if candidate.problem is not None or (score := self.score(candidate, half)).problem is not None:
            return False
        if self.options.target_sqnr is not None:
            sure = score.sqnr_low_db if margin else score.sqnr_db
            return sure is None or sure >= self.options.target_sqnr
        allowed, reference = self.options.target_drop, self._reference[half].metric
        kept = score.metric_low if margin else score.metric
        assert allowed is not None
        assert reference is not None
        assert kept is not None
        return allowed.holds(reference, kept, clearly=margin)

    def score(self, candidate: Candidate, half: int) -> FixScore:
        key = (candidate.path, half)
        if key not in self._scores:
            self.say(Progress(f"scoring candidate {self.builds}"))
            call = score_model.call(str(candidate.path), self._job(half))
            self._scores[key], self._reference[half] = self._run(call).unwrap()
        return self._scores[key]

    def placed(self, candidate: Candidate) -> Placed | None:
        """What the target's own partitioner makes of it; None for the CPU, which takes everything."""
        target = self.options.target
        if target is None or target.device == "cpu" or candidate.problem is not None:
            return None
        if candidate.path not in self._places:
            self.say(Progress(f"asking {target} for its placement"))
            found = self._run(placement.call(str(candidate.path), target)).unwrap()
            own = [share.partitions for share in found.eps if share.ep == target.provider.name]
            known = found.status == "placed"
            self._places[candidate.path] = Placed(
                sum(own) if known else None, len(found.unsupported) if known else None
            )
        return self._places[candidate.path]

    def times(self, models: Sequence[Path]) -> list[float | None]:
        """Nothing when one of them does not run; a repair is not worth less for want of a time."""
        self.say(Progress("timing on the CPU"))
        result = self._run(time_models.call([str(model) for model in models], self._job(CHOOSE)))
        return list(result.value) if result.ok and result.value is not None else [None for _ in models]

    def _prepared(self, model: Path) -> Path:
        optimize = self._plan.optimize
        if optimize is not None and (optimize.passes or optimize.fix_dims or optimize.opset):
            folder = self._new_folder("base")
            self.say(Progress("optimizing"))
            self._run(run_optimize.call(str(model), str(folder), optimize)).unwrap()
            model = folder / "model.onnx"
        folder = self._new_folder("named")
        return Path(self._run(name_all.call(str(model), str(folder))).unwrap())

    def _quantized(self, params: QuantizeParams, folder: Path) -> Candidate:
        data = self._source(self._plan.calibration)
        path = folder / "model.onnx"
        try:
            call = run_quantize.call(str(self.base), str(folder), params, data)
            self._run(call).unwrap()
        except (InputError, ExecutionError) as error:
            return Candidate(params, path, 0, f"{error.problem} ({error.cause})")
        return Candidate(params, path, model_bytes(path))

    def _job(self, half: int) -> ScoreJob:
        source = self._source(self.options.data)
        answers = self._folder / "answers"
        answers.mkdir(exist_ok=True)
        options = self.options
        return ScoreJob(
            str(self.base), str(answers), source, self.half, half, options.data.scale, self.metric, self.exact
        )

    def _source(self, data: Data) -> CalibrationSource:
        """The samples of the user's own function are drawn once for all candidates."""
        if data not in self._drawn:
            source = data_source(data, self.base, self.recorded)
            count = max(self.options.samples, self._plan.quantize.samples)
            self._drawn[data] = draw(source, count, self._new_folder("samples"))
        return self._drawn[data]

    def _run(self, task: Task[T]) -> CallResult[T]:
        return self._worker.run(task, timeout=_LIMIT_S, size=self._size)

    def _new_folder(self, name: str) -> Path:
        folder = self._folder / f"{name}-{len(list(self._folder.iterdir()))}"
        folder.mkdir()
        return folder


def _needed(model: Path, calibration: Data, options: FixOptions) -> int | None:
    """The bytes the work is about; unknown when the user's own code gives the samples."""
    data = [data_bytes(calibration_source(each)) for each in (calibration, options.data)]
    return None if None in data else model_bytes(model) + sum(size or 0 for size in data)
