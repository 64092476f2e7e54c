"""Task accuracy of a candidate against its reference, on the same samples in the same run."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

from modelwright._scratch import scratch
from modelwright.data import DataSource
from modelwright.errors import InputError, UsageError
from modelwright.evaluation._models import Side
from modelwright.evaluation._pair import evaluate_pair
from modelwright.evaluation._parts import parts_of
from modelwright.evaluation._retry import check_sides
from modelwright.evaluation._run import EvalJob
from modelwright.evaluation._types import EvalInterrupted, EvalOptions, EvalResult, EvalSide
from modelwright.evaluation._verdict import unjudged
from modelwright.evaluation.tasks import scored_task
from modelwright.evaluation.tasks._custom import check_reference
from modelwright.graph import external_data, load, model_bytes
from modelwright.models import BuildSource, FileDigest, HfSource, digests_of, fetch, model_files, read_build, resolve
from modelwright.stages.decode import Parts
from modelwright.targets import parse_target
from modelwright.vocabulary import Data, OnProgress
from modelwright.worker import read_so_far, run

_STALL_S = 1800.0
_MODEL = "model.onnx"


def evaluate(
    candidate: str | Path,
    reference: str | Path,
    data: Data,
    task: str | None = None,
    options: EvalOptions | None = None,
    *,
    retry: EvalResult | None = None,
    on_progress: OnProgress | None = None,
) -> EvalResult:
    """Measure both models and judge the difference.

    `candidate` is an .onnx file or a build folder; `reference` may be a Hugging Face model too, which PyTorch runs. The
    samples of `retry`, an earlier result of the same evaluation, count too, and others are drawn. Raises
    EvalInterrupted, with what was measured, when somebody ends it early; when the child dies, what it had measured is
    the answer.
    """
    options = options or EvalOptions()
    name = _checked(data, task, options)
    ours = _side(candidate, options.target)
    theirs = _side(reference, options.reference_target)
    if isinstance(ours.model, HfSource):
        raise UsageError(
            f"{ours.name} is not an artifact",
            cause="the candidate is what would be shipped: an .onnx file or a build folder",
            fix="Build it first with `wright build`; PyTorch can be the `reference`.",
        )
    if isinstance(ours.model, Parts) and name is None and options.metric is None:
        raise UsageError(
            f"{ours.name} is a build of several models",
            cause="raw outputs are compared graph by graph",
            fix=f"Compare one of them ({ours.name}/{ours.model.names[0]}/{_MODEL}), or score the build with `task`.",
        )
    if retry is not None:
        _check_retry(retry, name, options, (ours, theirs))
    if data.processor is None and isinstance(theirs.model, HfSource):
        data = replace(data, processor=theirs.model.folder)
    with scratch("eval") as folder:
        so_far = Path(folder, "so-far")
        about = (data, name, options.metric, options.settings, options.span)
        job = EvalJob(ours, theirs, *about, str(so_far), retry, options.after)
        call, needed = evaluate_pair.call(job, options), _needed(job)
        try:
            result = run(call, timeout=options.timeout_s, size=needed, stall=_STALL_S, on_progress=on_progress)
        except KeyboardInterrupt:
            found = read_so_far(so_far)
            if found is None:
                raise
            stop = EvalInterrupted()
            stop.partial = _about(unjudged(found, name, options, "interrupted"), ours, theirs)
            raise stop from None
        died = result.failure if result.failure is not None and result.failure.died else None
        found = read_so_far(so_far) if died is not None else None
    if died is not None and found is not None:
        return _about(unjudged(found, name, options, "crashed", died.words), ours, theirs)
    if result.failure is not None:
        _require_sound(job)
    return _about(result.unwrap(), ours, theirs)


def _require_sound(job: EvalJob) -> None:
    """What is wrong with a file is said before what it did to a runtime."""
    for side in (job.candidate, job.reference):
        if isinstance(side.model, str):
            external_data(load(side.model))


def _check_retry(retry: EvalResult, name: str | None, options: EvalOptions, sides: tuple[Side, Side]) -> None:
    if options.outputs:
        raise UsageError(
            "raw outputs cannot be added to",
            cause="an evaluation keeps the scores of each sample, not its outputs",
            fix="leave `outputs` out, or run it again with more `samples`",
        )
    check_sides(retry, name, [_files(side) for side in sides])


def _needed(job: EvalJob) -> int | None:
    """The bytes it works on; what PyTorch, a data set by name or the user's metric take is unknown."""
    models, data = (job.candidate.model, job.reference.model), DataSource(job.data).size_bytes()
    paths = [model for model in models if isinstance(model, str)]
    if job.metric is not None or data is None or len(paths) < len(models):
        return None
    return sum(map(model_bytes, paths)) + data


def _checked(data: Data, task: str | None, options: EvalOptions) -> str | None:
    """The task's one spelling; combinations that mean nothing are refused before anything runs."""
    name = scored_task(task) if task is not None else None
    if options.metric is not None:
        check_reference(options.metric)
    scored = name is not None or options.metric is not None
    for wrong, problem, fix in (
        (name is not None and options.metric is not None, "`task` and `metric` both say how to score", "Give one."),
        (not scored and not options.outputs, "nothing says what to measure", "Give `task`, `metric` or `outputs`."),
        (options.max_drop is not None and not scored, "`max_drop` needs a metric", "Add `task` or `metric`."),
        (options.span is not None and not scored, "`span` needs a metric", "Add `task` or `metric`."),
        (options.span is not None and not 0 < options.span < math.inf, "`span` must be positive", "`span` 1.0"),
        (bool(options.settings) and name is None, "`settings` is for tasks", "Add `task`."),
        (scored and data.random, "made-up inputs have no labels", "Use `data` random with `outputs` only."),
        (_gated(options) and not options.outputs, "`min_cosine` and `min_sqnr_db` compare outputs", "Add `outputs`."),
    ):
        if wrong:
            raise UsageError(problem, cause="these options do not go together or mean nothing", fix=fix)
    return name


def _gated(options: EvalOptions) -> bool:
    return options.min_cosine is not None or options.min_sqnr_db is not None


def _side(model: str | Path, target: str) -> Side:
    parse_target(target)
    source = resolve(str(model))
    if isinstance(source, HfSource):
        return Side(source.name, source if source.folder else fetch(source), target)
    if isinstance(source, BuildSource):
        build = read_build(Path(source.folder))
        whole = source.component is None and len(build.parts) > 1
        return Side(str(model), parts_of(build) if whole else str(build.model(source.component)), target)
    if not Path(source.path).is_file():
        raise InputError(f"{model} does not exist", cause="no such file", fix="Check the path.")
    return Side(str(model), source.path, target)


def _about(answer: EvalResult, ours: Side, theirs: Side) -> EvalResult:
    return replace(answer, candidate=_named(answer.candidate, ours), reference=_named(answer.reference, theirs))


def _named(bound: EvalSide, side: Side) -> EvalSide:
    return replace(bound, files=_files(side))


def _files(side: Side) -> tuple[FileDigest, ...]:
    """What it is about, by content."""
    model = side.model
    if isinstance(model, HfSource):
        return digests_of(Path(str(model.folder)), model.files)
    paths = [Path(place) for place in (model.first, model.second)] if isinstance(model, Parts) else [Path(model)]
    return tuple(file for path in paths for file in model_files(path))
