"""How good and how fast a candidate is. Runs in a child."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from modelwright._dataclass import dataclass
from modelwright._json import dumps
from modelwright._lazy import lazy
from modelwright.data import DataSource, Sample, samples
from modelwright.errors import InputError
from modelwright.evaluation import CustomTask
from modelwright.graph import load
from modelwright.judge import Allowance, KeptMetric, KeptSignal, kept_metric, kept_signal
from modelwright.measure import typical_ms
from modelwright.metrics import compare
from modelwright.repairs._types import FixScore
from modelwright.targets import BoundSession, open_exact, open_session, parse_target, products_saturate
from modelwright.worker import progress, task

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Outputs = Mapping[str, NDArray[Any]]
else:
    np = lazy("numpy")

_WARMUP, _RUNS = 3, 15
TOP1 = "label"
"""The metric where none is named: the best class is the sample's label."""


class Powers:
    """Signal and noise of one output, sample by sample: two numbers each."""

    def __init__(self) -> None:
        self.problem: str | None = None
        self._signal: list[float] = []
        self._noise: list[float] = []

    def add(self, wanted: NDArray[Any], got: NDArray[Any]) -> None:
        found = compare(wanted, got)
        if found.moments is None:
            self.problem = self.problem or found.problem
            return
        self._signal.append(found.moments.signal)
        self._noise.append(found.moments.noise)

    @property
    def kept(self) -> KeptSignal:
        return kept_signal(self._signal, self._noise)


@dataclass(frozen=True)
class ScoreParams:
    """Every second of the samples from `start` on; `metric` is file.py:function, `label`, or nothing; of it `allowed`
    may be lost.

    `exact`: the machines it is for never saturate, so that a CPU which does is told not to.
    """

    samples: int
    start: int
    metric: str | None
    exact: bool
    allowed: Allowance | None = None


@dataclass(frozen=True)
class HalfScore:
    """The candidate against the reference, and the reference itself, on one half of the samples."""

    candidate: FixScore
    reference: FixScore


@task
def run_score(
    candidate: str, reference: str, workdir: str, params: ScoreParams, data: DataSource, answers: str
) -> HalfScore:
    """What the reference answers is the same for every candidate: it is kept in the folder `answers`."""
    found = samples(data, load(reference), 2 * params.samples, like=[load(candidate)])
    feed = replace(found, start=params.start, step=2)
    grade, span = _grader(params.metric)
    gathered: dict[str, Powers] = {}
    grades: list[tuple[float, float]] = []
    count = 0
    kept = Path(answers, str(params.start))
    kept.mkdir(exist_ok=True)
    with _Reference(reference, kept) as wanted, _opened(candidate, params) as got:
        for count, sample in enumerate(feed.labelled(), start=1):
            ours, theirs = wanted.run(count, sample), got.run(sample.inputs)
            for (name, one), other in zip(ours.items(), theirs.values(), strict=True):
                gathered.setdefault(name, Powers()).add(one, other)
            if grade is not None:
                grades.append((grade(theirs, sample), grade(ours, sample)))
            progress(f"sample {count}")
    score = _half_score(count, gathered, kept_metric(grades, params.allowed, span))
    Path(workdir, "score.json").write_text(dumps(score), encoding="utf-8")
    return score


def _half_score(count: int, gathered: Mapping[str, Powers], metric: KeptMetric | None) -> HalfScore:
    found = max((item.kept for item in gathered.values()), key=lambda item: item.ratio)
    score = FixScore(
        samples=count,
        sqnr_db=found.decibels,
        metric=metric.candidate if metric else None,
        problem=next((item.problem for item in gathered.values() if item.problem is not None), None),
        sqnr_low_db=found.low_decibels,
    )
    if metric is not None:
        score = replace(
            score,
            verdict=metric.verdict,
            carried=metric.carried,
            needed=metric.needed,
            unbounded=metric.reason,
        )
    return HalfScore(score, FixScore(count, None, metric.reference if metric else None))


def _opened(candidate: str, params: ScoreParams) -> BoundSession:
    if params.exact and products_saturate():
        return open_exact(candidate)
    return open_session(candidate, parse_target("cpu"))


@task
def time_models(models: Sequence[str], data: DataSource) -> tuple[float, ...]:
    """Median milliseconds of each on one sample, taking turns. An indication for a table, not a verdict."""
    first, *others = map(load, models)
    inputs = next(iter(samples(data, first, 1, like=others)))
    with contextlib.ExitStack() as stack:
        sessions = [stack.enter_context(open_session(model, parse_target("cpu"))) for model in models]
        return typical_ms(sessions, inputs, warmup=_WARMUP, runs=_RUNS)


class _Reference:
    """The float model's answers: from the folder where they are, else asked for once."""

    def __init__(self, model: str, folder: Path) -> None:
        self._model, self._folder = model, folder
        self._session: BoundSession | None = None

    def __enter__(self) -> _Reference:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._session is not None:
            self._session.close()

    def run(self, number: int, sample: Sample) -> Outputs:
        path = self._folder / f"{number}.npz"
        if path.is_file():
            with np.load(path, allow_pickle=False) as file:
                return {str(name): file[f"arr_{index}"] for index, name in enumerate(file["names"])}
        if self._session is None:
            self._session = open_session(self._model, parse_target("cpu"))
        found = self._session.run(sample.inputs)
        # By number, since names of tensors are no names of files.
        np.savez(path, *found.values(), names=np.array(list(found)))
        return found


def _grader(metric: str | None) -> tuple[Callable[[Outputs, Sample], float] | None, float | None]:
    """With how far two scores of one sample can lie apart."""
    if metric is None:
        return None, None
    if metric == TOP1:
        return _top1, 1.0
    custom = CustomTask(metric)
    sign = 1.0 if custom.metric.higher_is_better else -1.0

    def grade(outputs: Outputs, sample: Sample) -> float:
        return sign * custom.score({**sample.row, **sample.inputs}, [outputs])

    return grade, custom.metric.span


def _top1(outputs: Outputs, sample: Sample) -> float:
    if sample.label is None:
        raise InputError(
            "the data has no labels",
            cause="an accuracy needs an array `label` beside the inputs",
            fix="Add it to the data, give `metric` file.py:function, or use `target_sqnr`.",
        )
    first = next(iter(outputs.values())).reshape(-1)
    return float(int(np.argmax(first)) == sample.label)
