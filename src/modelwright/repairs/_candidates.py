"""Candidates: made by the pipeline's own stages, scored on the two halves of the data, all of it through the store."""

from __future__ import annotations

import contextlib
import functools
import math
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TypeVar

from modelwright._dataclass import dataclass
from modelwright._scratch import scratch
from modelwright.data import DataSource, draw, source_for
from modelwright.diagnosis import DebugReport, View, view
from modelwright.errors import ExecutionError, InputError
from modelwright.graph import load, model_bytes
from modelwright.judge import VerdictKind, reaches
from modelwright.models import recorded_inputs
from modelwright.pipeline import BuildSubject, Recipe, import_model, optimize_node, quantize_node
from modelwright.plans import ModelInput, Node, StageResult, model_paths, run_node
from modelwright.repairs._nodes import DiagnoseParams, diagnose_node, name_node, place_node, score_node
from modelwright.repairs._score import TOP1, HalfScore, ScoreParams, time_models
from modelwright.repairs._types import FixOptions, FixScore
from modelwright.stages.quantize import (
    QuantizeOutcome,
    QuantizeParams,
    TensorOverride,
    all_named,
    static_operators,
    steps_of,
)
from modelwright.store import Store
from modelwright.vocabulary import Data, OnProgress, Progress
from modelwright.worker import Worker

_TIMING_S = 1800.0
_DIAGNOSE_SAMPLES = 8
CHOOSE, CHECK = 0, 1
P = TypeVar("P")
O = TypeVar("O")  # noqa: E741 - the outcome


@dataclass(frozen=True)
class Pieces:
    """What the target's own partitioner makes of a model."""

    partitions: int
    left_nodes: int


@dataclass(frozen=True)
class Candidate:
    """A quantized model; `problem` says why there is none. `params` have the widths that were found by measuring: what
    differs from it differs by what was asked for."""

    params: QuantizeParams
    number: int
    model: ModelInput | None
    problem: str | None = None

    @property
    def file_bytes(self) -> int:
        return 0 if self.model is None else self.model.size


class Candidates:
    """Makes and scores them, each once. `refused` is why the last one is none; `from_store` counts those that an
    earlier search, or a build, had made already."""

    def __init__(self, model: Path, recipe: Recipe, options: FixOptions, store: Store, say: OnProgress) -> None:
        self.options, self.say = options, say
        self.half = options.samples // 2
        self.metric = (options.metric or TOP1) if options.target_drop is not None else None
        self.refused: str | None = None
        self.from_store = 0
        self._recipe, self._store, self._model = recipe, store, model
        self._made: dict[QuantizeParams, Candidate] = {}
        self._scores: dict[tuple[int, int], HalfScore] = {}
        self._seconds: list[float] = []
        self._drawn: dict[Data, DataSource] = {}
        self._stack = contextlib.ExitStack()
        self._deadline = time.monotonic() + (math.inf if options.budget_s is None else options.budget_s)

    def __enter__(self) -> Candidates:
        with contextlib.ExitStack() as stack:
            self._folder = Path(stack.enter_context(scratch("fix")))
            self._worker = stack.enter_context(Worker())
            self._prepare()
            self.base = Path(stack.enter_context(model_paths(self._store, {"base": self._reference}))["base"])
            self._size = self._needed()
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    @property
    def made(self) -> tuple[Candidate, ...]:
        return tuple(self._made.values())

    @property
    def builds(self) -> int:
        return len(self._made)

    @property
    def spent(self) -> bool:
        return self.builds >= self.options.max_builds or time.monotonic() >= self._deadline

    @property
    def ended_by(self) -> str:
        """Which limit ends the search."""
        return "limit on builds" if self.builds >= self.options.max_builds else "time budget"

    def knows(self, params: QuantizeParams) -> bool:
        return params in self._made or self._known(params) is not None

    def _known(self, params: QuantizeParams) -> Candidate | None:
        """By what it is, whatever was asked for."""
        return next((item for item in self._made.values() if item.params == params), None)

    @property
    def base_bytes(self) -> int:
        return self._reference.size

    @property
    def exact(self) -> bool:
        """Do the machines this is for add 8-bit products up exactly, whatever this one does?"""
        return self.options.target is not None and self.options.target.exact_products is not False

    @property
    def wanted(self) -> str:
        if self.options.target_sqnr is not None:
            return f"SQNR of every output at least {self.options.target_sqnr:g} dB"
        return f"{self._metric_name} at most {self.options.target_drop} below the float model"

    @property
    def _metric_name(self) -> str:
        return "accuracy" if self.metric == TOP1 else str(self.metric).rpartition(":")[2]

    def make(self, params: QuantizeParams) -> Candidate:
        """Quantize with these parameters; what the stage refuses becomes a candidate with a problem."""
        if (known := self._known(params)) is not None:
            return known
        if params not in self._made:
            found = self._quantized(params, self.builds + 1)
            if found.problem is not None and not self._made:
                raise ExecutionError(
                    "the model cannot be quantized as asked",
                    cause=found.problem,
                    fix="Check `precision` and the data it was calibrated on, or try `wright quantize` first.",
                )
            self._made[params] = found
            self.refused = found.problem
        return self._made[params]

    def met_on(self, candidate: Candidate, half: int, *, surely: bool) -> bool:
        """Does the target hold on this half? `surely`: do these samples prove that it does on others, too?"""
        if candidate.model is None or (score := self.score(candidate, half).candidate).problem is not None:
            return False
        if self.options.target_sqnr is not None:
            return reaches(score.sqnr_low_db if surely else score.sqnr_db, self.options.target_sqnr)
        allowed, reference = self.options.target_drop, self.score(candidate, half).reference.metric
        assert allowed is not None
        assert reference is not None
        assert score.metric is not None
        proven = score.verdict is VerdictKind.PASS or not surely
        return proven and allowed.holds(reference, score.metric)

    @property
    def provable(self) -> bool:
        """Could so many samples prove what is asked? Of an SQNR they always can."""
        return self.score(self.made[0], CHOOSE).candidate.carried

    def score(self, candidate: Candidate, half: int) -> HalfScore:
        key = (candidate.number, half)
        if key not in self._scores:
            params = ScoreParams(self.half, half, self.metric, self.exact, self.options.target_drop)
            node = score_node(self._pair(candidate), params, self._samples(self.options.data), self._folder, self._size)
            self._scores[key] = self._timed(node).outcome
        return self._scores[key]

    def noise(self, candidate: Candidate) -> float | None:
        """Noise to signal of the worst output on the samples that choose; None where it does not run."""
        if candidate.model is None or (score := self.score(candidate, CHOOSE).candidate).problem is not None:
            return None
        return 0.0 if score.sqnr_db is None else 10.0 ** (-score.sqnr_db / 10.0)

    @property
    def forecast(self) -> str | None:
        """What the search may still take, by what making and scoring candidates took, now or when they were made."""
        if not self._seconds or self.spent:
            return None
        each = sum(self._seconds) / self.builds
        left = min(each * (self.options.max_builds - self.builds), self._deadline - time.monotonic())
        return f"at most {self.options.max_builds} candidates of about {each:.2g} s: {left / 60:.2g} min at most"

    def scored(self, candidate: Candidate, half: int) -> FixScore | None:
        """The score if it was asked for already."""
        found = self._scores.get((candidate.number, half))
        return None if found is None else found.candidate

    def reference_score(self, half: int) -> FixScore:
        """The float model's own, known once any candidate was scored."""
        return next(found.reference for (_, of), found in self._scores.items() if of == half)

    def diagnosed(self, candidate: Candidate) -> DebugReport:
        data = self.options.data
        params = DiagnoseParams(min(_DIAGNOSE_SAMPLES, self.half))
        return self._run(diagnose_node(self._pair(candidate), params, self._samples(data), self._size)).outcome

    def placed(self, candidate: Candidate) -> Pieces | None:
        """What the target's own partitioner makes of it; None for the CPU, which takes everything, and where nobody
        answers."""
        target = self.options.target
        if target is None or target.device == "cpu" or candidate.model is None:
            return None
        try:
            found = self._run(place_node(candidate.model, target)).outcome
        except ExecutionError:
            return None
        own = sum(share.partitions for share in found.eps if share.ep == target.provider.name)
        return Pieces(own, len(found.unsupported)) if found.status == "placed" else None

    @functools.cached_property
    def view(self) -> View:
        return view(str(self.base))

    def raised(self, candidate: Candidate) -> int:
        """How many nodes, tensors and whole operators it treats otherwise than the first one does."""
        params, start = candidate.params, self.made[0].params
        nodes = set(params.nodes_to_exclude) - set(start.nodes_to_exclude)
        operators = set[str]()
        if params.op_types != start.op_types:
            bits = steps_of(start.precision)[0].activation_bits
            operators = {*static_operators(self.view.graph.model, start, bits)} - {*params.op_types}
        return len(nodes) + len(set(params.overrides) - set(start.overrides)) + len(operators)

    def times(self, candidates: Sequence[Candidate]) -> list[float | None]:
        """Milliseconds of the float model and these. None if one does not run: no repair is worth less for that."""
        self.say(Progress("timing on the CPU"))
        data, models = self.options.data, [item.model for item in candidates if item.model is not None]
        with model_paths(self._store, {str(place): model for place, model in enumerate(models)}) as paths:
            call = time_models.call([str(self.base), *paths.values()], self._samples(data))
            result = self._worker.run(call, timeout=_TIMING_S, size=self._size)
        good = result.ok and result.value is not None and len(models) == len(candidates)
        return list(result.value or ()) if good else [None for _ in range(len(candidates) + 1)]

    def _prepare(self) -> None:
        """Up to what is quantized, as a build does it; and the same with a name on every node, to speak of them."""
        exported = ModelInput(import_model(self._store, self._model, self._model.stem).artifact)
        self._inputs = recorded_inputs(self._model)
        self._subject = BuildSubject(self._model.stem, self._model.stem, self._inputs, exported)
        optimize = optimize_node(self._subject, self._subject.exported, self._recipe)
        self._optimized = exported if optimize is None else self._run(optimize).model
        with model_paths(self._store, {"model": self._optimized}) as paths:
            named = all_named(load(paths["model"]).model)
        self._reference = self._optimized if named else self._run(name_node(self._optimized)).model

    def _quantized(self, params: QuantizeParams, number: int) -> Candidate:
        subject = replace(self._subject, label=f"candidate {number}", data=self._given(self._recipe.data))
        node = quantize_node(subject, self._optimized, replace(self._recipe, quantize=params))
        assert node is not None, "a recipe that is repaired has a quantize section"
        try:
            done = self._timed(node)
        except (InputError, ExecutionError) as error:
            return Candidate(params, number, None, f"{error.problem} ({error.cause})")
        self.from_store += not done.produced
        return Candidate(_settled_widths(params, done.outcome), number, done.model)

    def _pair(self, candidate: Candidate) -> dict[str, ModelInput]:
        assert candidate.model is not None
        return {"candidate": candidate.model, "reference": self._reference}

    def _samples(self, data: Data) -> DataSource:
        """What candidates are compared on; made-up samples follow what the export recorded."""
        return self._given(data) or source_for(data, self.base, self._inputs)

    def _given(self, data: Data) -> DataSource | None:
        """None for made-up samples. Those of the user's own function are drawn once for all candidates."""
        if data.random:
            return None
        if data not in self._drawn:
            assert self._recipe.quantize is not None
            count = max(self.options.samples, self._recipe.quantize.samples)
            folder = self._folder / f"samples-{len(self._drawn)}"
            folder.mkdir()
            self._drawn[data] = draw(DataSource(data), count, folder, self.say)
        return self._drawn[data]

    def _needed(self) -> int | None:
        """The bytes the work is about; unknown when the user's own code gives the samples."""
        data = [DataSource(each).size_bytes() for each in (self._recipe.data, self.options.data)]
        return None if None in data else model_bytes(self._model) + sum(size or 0 for size in data)

    def _timed(self, node: Node[P, O]) -> StageResult[O]:
        done = self._run(node)
        self._seconds.append(done.seconds or 0.0)
        return done

    def _run(self, node: Node[P, O]) -> StageResult[O]:
        return run_node(
            self._store,
            node,
            on_progress=self.say,
            worker=None if node.stage.alone or node.stage.last else self._worker,
        )


def _settled_widths(params: QuantizeParams, outcome: QuantizeOutcome) -> QuantizeParams:
    """What was chosen is said, and is not chosen again."""
    if not params.wide_where_noisy:
        return params
    tensors = () if outcome.widened is None else outcome.widened.tensors
    wide = tuple(TensorOverride(name, "uint16") for name in tensors)
    return replace(params, overrides=(*params.overrides, *wide), wide_where_noisy=False)
