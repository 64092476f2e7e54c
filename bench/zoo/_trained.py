"""What a trained model of the zoo is, and how two builds of it are compared."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
import onnxruntime as ort
from numpy.typing import NDArray
from scipy.stats import rankdata

Sample = Mapping[str, NDArray[Any]]
Answers = list[NDArray[Any]]
Answer = Callable[[Sample], Answers]
Scores = NDArray[np.float64]
Labels = Literal["real", "by construction", "agreement with float"]


def mean(scores: Scores) -> float:
    return float(scores.mean())


def spearman(scores: Scores) -> float:
    """Of the first two columns; of each kind of rows that the third tells apart, on average."""
    found = [scores[scores[:, 2] == kind, :2] for kind in np.unique(scores[:, 2])]
    return float(np.mean([np.corrcoef(rankdata(rows, axis=0).T)[0, 1] for rows in found]))


def first(answers: Answers, sample: Sample) -> NDArray[Any]:
    return answers[0]


@dataclass(frozen=True)
class Trained:
    """A trained model with data of its own. `score` runs a build of it: a row for each sample; `value` is the metric.

    `bound` is the drop of the metric above which a build is useless to those who use the model. `sizes` fixes what the
    file leaves open, as recipe layers; samples have the shapes that the model gets, with a batch of one. `labelled` is
    what `wright eval --data --task` takes, where it knows the task. `used` is what of the answers somebody reads.
    """

    name: str
    path: Path
    kind: str
    metric: str
    labels: Labels
    bound: float
    calibration: Sequence[Sample]
    judged: Sequence[Sample]
    score: Callable[[Answer], Scores]
    value: Callable[[Scores], float] = mean
    sizes: Mapping[str, Any] = field(default_factory=dict)
    task: str | None = None
    labelled: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    used: Callable[[Answers, Sample], NDArray[Any]] = first

    def write_calibration(self, folder: Path) -> Path:
        return write(self.calibration, folder / f"{self.name}-calibration.npz")


def write(samples: Sequence[Sample], path: Path) -> Path:
    """As `--data` takes it: a row for each sample."""
    stacked: dict[str, Any] = {name: np.stack([sample[name] for sample in samples]) for name in samples[0]}
    np.savez(path, **stacked)
    return path


def answers(model: Path, *, as_written: bool = False, threads: int = 1) -> Answer:
    """The model on this CPU. `as_written`: rounded values in float operators, no integer kernels."""
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 4
    if as_written:
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_BASIC
        options.add_session_config_entry("session.disable_quant_qdq", "1")
    session = ort.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    wanted = [value.name for value in session.get_inputs()]
    return lambda sample: session.run(None, {name: sample[name] for name in wanted})


def rows(samples: Sequence[Sample], labels: Sequence[Any]) -> dict[str, NDArray[Any]]:
    """Samples of a batch of one and a label for each, as `--data` takes them."""
    inputs = {name: np.concatenate([sample[name] for sample in samples]) for name in samples[0]}
    return {**inputs, "label": np.asarray(labels)}


def each(samples: Sequence[Sample], labels: Sequence[Any], grade: Callable[[Answers, Any], float]) -> Any:
    """A score that asks the model once for each sample."""
    return lambda answer: np.array([grade(answer(s), label) for s, label in zip(samples, labels, strict=True)], float)


def agree(path: Path, samples: Sequence[Sample], grade: Callable[[Answers, Answers], float]) -> Any:
    """A score beside what the file itself answers, asked once and only when it is needed."""

    @cache
    def wanted() -> list[Answers]:
        answer = answers(path)
        return [answer(sample) for sample in samples]

    return lambda answer: each(samples, wanted(), grade)(answer)


@dataclass(frozen=True)
class Drop:
    """How much of the metric is lost; `low` and `high` are 95 % bounds, of resampled pairs."""

    drop: float
    low: float
    high: float


def drop(trained: Trained, before: Scores, after: Scores, rounds: int = 2000) -> Drop:
    rng = np.random.default_rng(0)
    draws = rng.integers(0, len(before), (rounds, len(before)))
    lost = [trained.value(before[chosen]) - trained.value(after[chosen]) for chosen in draws]
    low, high = np.nanquantile(lost, (0.025, 0.975))
    return Drop(trained.value(before) - trained.value(after), float(low), float(high))
