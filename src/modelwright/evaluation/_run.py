"""Both models on the same samples, row by row. Runs in a child, where all native and user code stays."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from modelwright._dataclass import dataclass
from modelwright._lazy import lazy
from modelwright.data import (
    Feeder,
    Preparer,
    Row,
    Rows,
    SampleHash,
    by_number,
    generate,
    open_data,
    refuse_idle_scale,
    split,
)
from modelwright.errors import InputError, UsageError
from modelwright.evaluation._blocks import SampleBlocks
from modelwright.evaluation._models import Model, Side, open_model
from modelwright.evaluation._retry import check_engines, check_task, further, refuse
from modelwright.evaluation._types import (
    EvalData,
    EvalOutput,
    EvalResult,
    EvalSide,
    NoRowsLeftError,
    SampleFailure,
)
from modelwright.evaluation.tasks import Context, CustomTask, EvalTask, Metric, Outputs, make_task
from modelwright.graph import load, mentions, summary
from modelwright.metrics import Accumulator
from modelwright.models import HfSource, read_config, specs_from_graph
from modelwright.stages.decode import DECODER_IDS, read_generation
from modelwright.vocabulary import RANDOM, Data
from modelwright.worker import SoFar, progress

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:
    np = lazy("numpy")

# For each row the outputs of its views.
Answers = Sequence[tuple[Outputs, ...]]
RANDOM_ROWS = 8
_TOGETHER = 16
# Its scale is that of the whole batch, so an answer would depend on the sample's neighbours.
_BATCH_DEPENDENT = "DynamicQuantizeLinear"


@dataclass(frozen=True)
class EvalJob:
    """What the child is to do. Without `task` and `metric`, only raw outputs are compared. The samples of `earlier`
    count too; the first `after` that would be chosen do not."""

    candidate: Side
    reference: Side
    data: Data
    task: str | None
    metric: str | None
    settings: Mapping[str, str]
    span: float | None
    so_far: str | None = None
    earlier: EvalResult | None = None
    after: int = 0


@dataclass(frozen=True, eq=False)
class Scored:
    """One model's side of the metric. `contributions` are what the paired test works on; NaN is a failed sample.

    `span` is the most by which one of them can change.
    """

    value: float | None
    contributions: NDArray[Any]
    span: float | None
    more: Mapping[str, float]


@dataclass(frozen=True, eq=False)
class Measured:
    candidate: EvalSide
    reference: EvalSide
    data: EvalData
    indexes: tuple[int, ...]
    metric: Metric | None
    chance: float | None
    scored: tuple[Scored, Scored] | None
    outputs: tuple[EvalOutput, ...]
    failures: tuple[SampleFailure, ...]


def measure_pair(job: EvalJob) -> Measured:
    """Open both models, run every chosen row through both, and score them."""
    rows = _random_rows(job) if job.data.random else open_data(job.data)
    progress("opening the candidate")
    with closing(open_model(job.candidate)) as candidate:
        progress("opening the reference")
        with closing(open_model(job.reference, candidate.inputs)) as reference:
            return _Evaluation(job, rows, candidate, reference).measure()


def _chosen(job: EvalJob, rows: Rows) -> Iterator[tuple[int, Row]]:
    """The rows to measure, each with its number: of those that an earlier run left, where there was one."""
    if job.earlier is None:
        return rows.others(job.data, job.after) if job.after else rows.chosen(job.data)
    if rows.count is None:
        refuse("the rows of a function, which have no numbers,")
    numbers = further(job.earlier, rows.count, job.data.samples, job.data.seed)
    return zip(numbers, rows.read(numbers), strict=True)


@dataclass
class _EvalArm:
    """One model, its task object, and what came of the samples so far."""

    name: str
    model: Model
    feeder: Feeder
    task: EvalTask | None
    numbers: list[Any] = field(default_factory=list)

    def answers(self, rows: Sequence[Row]) -> Answers:
        if self.task is None:
            return [(output,) for output in self._run(rows)]
        found = []
        by_hand = [self.task.answer(lambda view: self._run([view])[0], row) for row in rows]
        if None not in by_hand:
            return [answer for answer in by_hand if answer is not None]
        views = [self.task.views(row) for row in rows]
        flat = iter(self._run([view for group in views for view in group]))
        for group in views:
            found.append(tuple(next(flat) for _ in group))
        return found

    def _run(self, views: Sequence[Row]) -> list[Outputs]:
        parts = [[views[index] for index in chunk] for chunk in self.feeder.chunks(views)]
        feeds = [self.feeder.feeds(part) for part in parts]
        runs = [self.model.run(taken) for taken in feeds]
        whole = self.feeder.batch if self.feeder.fixed else None
        return [
            output
            for part, outputs in zip(parts, runs, strict=True)
            for output in split(outputs, len(part), whole or len(part))
        ]

    def score(self, row: Row, outputs: tuple[Outputs, ...]) -> str | None:
        """Keep the sample's numbers; or say why there are none."""
        reason = _broken(outputs)
        numbers = None
        if self.task is not None and reason is None:
            numbers = self.task.score(row, outputs)
            reason = None if _finite(numbers) else "its score is not finite"
        self.numbers.append(None if reason else numbers)
        return reason

    def scored(self) -> Scored:
        assert self.task is not None
        metric, found = self.task.metric, self.task.collect(self.numbers)
        good = [item for item in found if item is not None]
        if len(good) < len(found) and metric.form == "mean" and metric.worst is not None and good:
            rest = np.zeros(len(good[0]) - 1)
            good = [np.append(metric.worst, rest) if item is None else item for item in found]
        if len(good) < len(found) or not good:
            return Scored(None, np.full(len(found), np.nan), None, {})
        numbers = np.stack(good)
        value, parts = self.task.parts(numbers)
        return Scored(value, parts, self.task.span(numbers), self.task.more(numbers))


class _Evaluation:
    def __init__(self, job: EvalJob, data: Rows, candidate: Model, reference: Model) -> None:
        self._job, self._data = job, data
        folder = job.data.processor
        head = _head_names(folder)
        names = head or data.label_names
        self._names, self._relabel = names, _label_map(data.label_names, head)
        self._prepare = Preparer(
            candidate.inputs, job.data, names, data.shared, task=job.task, longest=candidate.longest
        )
        self._taken = {spec.name for spec in candidate.inputs}
        writes = DECODER_IDS in self._taken
        tokenizer = self._prepare.tokenizer if folder else None
        context = Context(names, tokenizer, data.shared, writes, read_generation(folder))
        together = 1 if any(_depends_on_batch(side) for side in (job.candidate, job.reference)) else _TOGETHER
        self._arms = tuple(
            _EvalArm(name, model, Feeder(model.inputs, job.data, data.shared, together=together), _task(job, context))
            for name, model in (("candidate", candidate), ("reference", reference))
        )
        self._indexes: list[int] = []
        self._outputs: dict[str, Accumulator] = {}
        self._problems: dict[str, str] = {}
        self._failures: list[SampleFailure] = []
        fed = (job.data.scale, job.data.mean, job.data.std)
        self._hash = SampleHash(b"" if fed == (None, None, None) else repr(fed).encode())
        self._so_far = SoFar(job.so_far)
        self._before: tuple[int, ...] = ()
        if job.earlier is not None:
            self._recall(job.earlier)

    def _recall(self, earlier: EvalResult) -> None:
        """Its scores are as good as new where the rows they came from are still the same."""
        check_engines(earlier, [arm.model.bound for arm in self._arms])
        check_task(earlier, self._arms[0].task)
        if self._data.count != earlier.data.available:
            refuse("the numbers of rows")
        progress("reading the earlier samples")
        for row in self._data.read([score.index for score in earlier.scores]):
            self._row(row)
        if self._hash.hexdigest() != earlier.data.digest:
            refuse("the samples")
        self._before = tuple(score.index for score in earlier.scores)
        self._arms[0].numbers += [score.candidate for score in earlier.scores]
        self._arms[1].numbers += [score.reference for score in earlier.scores]
        self._failures += earlier.failures

    def measure(self) -> Measured:
        blocks = self._blocks()
        for block in blocks.of(_chosen(self._job, self._data)):
            rows = [self._row(row) for _, row in block]
            answers = [arm.answers(rows) for arm in self._arms]
            self._settle([index for index, _ in block], rows, *answers)
            blocks.held(value for answer in answers for views in answer for view in views for value in view.values())
            refuse_idle_scale(self._job.data, *(arm.feeder for arm in self._arms))
            self._indexes += [index for index, _ in block]
            self._so_far.offer(self._measured)
            self._tell()
        if not self._indexes:
            raise self._none_left()
        return self._measured()

    def _blocks(self) -> SampleBlocks:
        """Rows that run together stay together, or an answer would depend on the clock; the user's own code may end at
        any row, and what came before it counts."""
        size = max(arm.feeder.batch for arm in self._arms)
        return SampleBlocks(size, grows=size == 1 and self._job.metric is None and self._data.count is not None)

    def _none_left(self) -> InputError:
        if not self._job.after:
            return InputError("there is no sample", cause="the data gave none", fix="Give at least one.")
        return NoRowsLeftError(
            "there is no sample",
            cause=f"the first {self._job.after} find the ranges and are not judged, and there are no others",
            fix="Give more rows, or calibrate with fewer `samples`.",
        )

    def _tell(self) -> None:
        done, available = len(self._indexes), self._data.count
        if available is None:
            progress(f"{done} samples")
        else:
            wanted = min(available, self._job.data.samples or available) - self._job.after
            progress(f"{done} of {wanted} samples", done / wanted)

    def _row(self, found: Row) -> Row:
        row = self._prepare(found)
        if isinstance(row.get("label"), str) and row["label"] in self._names:
            row = {**row, "label": self._names.index(row["label"])}
        elif self._relabel is not None:
            row = {**row, "label": _relabelled(row["label"], self._relabel)}
        self._hash.add({name: value for name, value in row.items() if self._is_fed(name, value)})
        return row

    def _is_fed(self, name: str, value: Any) -> bool:
        return isinstance(value, np.ndarray | np.generic) or (isinstance(value, str) and name in self._taken)

    def _settle(self, indexes: Sequence[int], rows: Sequence[Row], ours: Answers, theirs: Answers) -> None:
        # Row by row on both sides: the user's own metric sees a row's two answers one after the other.
        for index, row, *both in zip(indexes, rows, ours, theirs, strict=True):
            for arm, outputs in zip(self._arms, both, strict=True):
                reason = arm.score(row, outputs)
                if reason is not None:
                    self._failures.append(SampleFailure(index, arm.name, reason))
        if self._arms[0].task is not None and not self._arms[0].task.compares_outputs:
            return
        pairs = zip(ours, theirs, strict=True)
        self._compare([pair for mine, wanted in pairs for pair in zip(mine, wanted, strict=True)])

    def _compare(self, pairs: Sequence[tuple[Outputs, Outputs]]) -> None:
        # PyTorch may answer more than was exported; a graph may not.
        only_ours = isinstance(self._job.reference.model, HfSource)
        together: dict[str, list[tuple[NDArray[Any], NDArray[Any]]]] = {}
        for mine, wanted in pairs:
            for name in mine if only_ours else {**wanted, **mine}:
                if name not in mine or name not in wanted:
                    side = "candidate" if name not in mine else "reference"
                    self._problems[name] = f"the {side} has no such output"
                else:
                    together.setdefault(name, []).append((wanted[name], mine[name]))
        for name, arrays in together.items():
            self._outputs.setdefault(name, Accumulator()).add_all(arrays)

    def _measured(self) -> Measured:
        task = self._arms[1].task
        scored = tuple(arm.scored() for arm in self._arms) if task is not None else None
        outputs = [EvalOutput(name, found.aggregate(), None) for name, found in self._outputs.items()]
        outputs += [EvalOutput(name, None, problem) for name, problem in self._problems.items()]
        indexes, data = (*self._before, *self._indexes), self._job.data
        return Measured(
            candidate=self._arms[0].model.bound,
            reference=self._arms[1].model.bound,
            data=EvalData(
                source=data.source,
                kind=self._data.kind,
                available=len(indexes) if self._data.count is None else self._data.count,
                selected=len(indexes),
                seed=data.seed,
                digest=self._hash.hexdigest(),
            ),
            indexes=indexes,
            metric=task.metric if task is not None else None,
            chance=task.chance() if task is not None else None,
            scored=(scored[0], scored[1]) if scored is not None else None,
            # Of the new samples alone they would be read as those of all.
            outputs=() if self._before else tuple(outputs),
            failures=tuple(self._failures),
        )


def _task(job: EvalJob, context: Context) -> EvalTask | None:
    """A new object each time: it may remember what it saw."""
    if job.metric is None and job.task is None:
        return None
    found = CustomTask(job.metric) if job.metric is not None else make_task(job.task or "", context, job.settings)
    if job.span is not None:
        found.metric = _spanned(found.metric, job.span)
    return found


def _spanned(metric: Metric, span: float) -> Metric:
    if metric.span is not None:
        raise UsageError(
            f"{metric.name} has a span of its own, {metric.span:g}",
            cause="a declared one is for metrics whose scores have no bound",
            fix="Leave the span out.",
        )
    return replace(metric, span=span)


def _broken(outputs: Sequence[Outputs]) -> str | None:
    """NaN, or infinity above: an overflow. Infinity below is what masks are made of."""
    for output in outputs:
        for name, value in output.items():
            if value.dtype.kind == "f" and not np.isfinite(value).all():
                bad = int(np.isnan(value).sum() + np.isposinf(value).sum())
                if bad:
                    return f"output {name} has {bad} NaN or infinite values"
    return None


def _finite(numbers: Any) -> bool:
    items = numbers if isinstance(numbers, tuple | list) else (numbers,)
    return all(bool(np.isfinite(np.asarray(item, np.float64)).all()) for item in items)


def _depends_on_batch(side: Side) -> bool:
    """A build of several graphs always takes one sample at a time."""
    if not isinstance(side.model, str) or not mentions(side.model, _BATCH_DEPENDENT.encode()):
        return False
    return any(op.op_type == _BATCH_DEPENDENT for op in summary(load(side.model)).ops)


def _random_rows(job: EvalJob) -> Rows:
    assert isinstance(job.candidate.model, str)
    specs = specs_from_graph(load(job.candidate.model))
    count = job.data.samples or RANDOM_ROWS
    return by_number(RANDOM, count, lambda index: generate(specs, job.data.seed, index))


def _head_names(folder: str | None) -> tuple[str, ...]:
    """The classes in the order of the head, where a Hugging Face folder says it."""
    path = Path(folder or "", "config.json")
    names = (read_config(path).get("id2label") or {}) if folder is not None and path.is_file() else {}
    found = tuple(str(names[key]) for key in sorted(names, key=int))
    return () if all(name.startswith("LABEL_") for name in found) else found


def _relabelled(label: Any, order: Sequence[int]) -> Any:
    """Class numbers of the data as those of the head; negative ones mark what has no class."""
    numbers = np.asarray(label)
    return np.where(numbers >= 0, np.asarray(order)[np.maximum(numbers, 0)], numbers)


def _label_map(data: Sequence[str], head: Sequence[str]) -> list[int] | None:
    """From the data's class numbers to the head's, when both name their classes and the order differs."""
    if not data or not head or list(data) == list(head)[: len(data)] or not set(data) <= set(head):
        return None
    return [head.index(name) for name in data]
