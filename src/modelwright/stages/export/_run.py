"""The stage itself: load, split, and for each part the first strategy that agrees with PyTorch."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

from modelwright.data import generate
from modelwright.errors import ExecutionError, UsageError, WrightError
from modelwright.graph import write_model
from modelwright.models import HfSource
from modelwright.stages.export._family import said_family
from modelwright.stages.export._load import Loaded, first_line, load_model, quiet_random
from modelwright.stages.export._owed import explained
from modelwright.stages.export._parity import Arrays, Mismatch, compare, references
from modelwright.stages.export._part import Part, tensors_from
from modelwright.stages.export._parts import split
from modelwright.stages.export._strategies import Request, write
from modelwright.stages.export._tidy import check_interface, node_count, tidy
from modelwright.stages.export._values import (
    DEFAULT_OPSET,
    Attempt,
    Component,
    ExportOutcome,
    ExportParams,
    Link,
    Parity,
    StrategyName,
)
from modelwright.worker import progress, task


@task
def run_export(source: HfSource, workdir: str, params: ExportParams) -> ExportOutcome:
    """Write `<workdir>/<component>/model.onnx` for every component of the model, and what belongs to it beside them."""
    if source.folder is None:
        raise UsageError(
            f"{source.name} has not been fetched", cause="a Hub model needs a local folder", fix="Fetch it first."
        )
    # Read when torch is loaded, in this child only: idle OpenMP threads that spin cost as much as the export itself.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    with said_family(params.family):
        return _exported(source, source.folder, Path(workdir), params)


def _exported(source: HfSource, folder: str, workdir: Path, params: ExportParams) -> ExportOutcome:
    started = time.perf_counter()
    progress(f"loading {source.name}", 0.0)
    loaded = load_model(source, params)
    parts, links = split_parts(loaded, params)
    seconds = time.perf_counter() - started
    components = []
    for number, part in enumerate(parts):
        progress(f"exporting {part.name}", (number + 1) / (len(parts) + 1))
        components.append(_export(part, workdir, params))
    for name in source.companions():
        shutil.copyfile(Path(folder, name), workdir / name)
    progress("exported", 1.0)
    return ExportOutcome(
        task=params.task,
        model_class=type(loaded.model).__name__,
        class_renamed_from=loaded.renamed_from,
        random_weights=params.random_weights,
        parameters=sum(parameter.numel() for parameter in loaded.model.parameters()),
        components=tuple(components),
        links=links,
        load_seconds=seconds,
        sizes=tuple(loaded.sizes.values()),
    )


def split_parts(loaded: Loaded, params: ExportParams) -> tuple[tuple[Part, ...], tuple[Link, ...]]:
    """Parts are found by running the model, and a model can raise anything."""
    try:
        return split(loaded, params)
    except WrightError:
        raise
    except Exception as error:
        raise explained(loaded.model, (loaded.model.main_input_name,), error) from error


def _export(part: Part, workdir: Path, params: ExportParams) -> Component:
    started = time.perf_counter()
    pairs = references(part, params.input_seed)
    rejected: list[Attempt] = []
    for strategy in params.strategies:
        # Named before it starts, so that the log of a child that dies tells which one it was.
        progress(f"exporting {part.name} with {strategy}")
        began = time.perf_counter()
        folder = workdir / part.name
        folder.mkdir()
        try:
            nodes, parity = _attempt(strategy, part, folder, params, pairs)
        except Exception as error:  # noqa: BLE001 - exporters raise anything; each becomes a recorded reason
            shutil.rmtree(folder)
            rejected.append(Attempt(strategy, _reason(error), time.perf_counter() - began))
            continue
        return Component(
            name=part.name,
            strategy=strategy,
            rejected=tuple(rejected),
            nodes=nodes,
            opset=_opset(params),
            parity=parity,
            inputs=part.inputs,
            outputs=tuple(pairs[0][1]),
            left_out=part.left_out,
            seconds=time.perf_counter() - started,
        )
    raise _failed(part, rejected)


def _attempt(
    strategy: StrategyName, part: Part, folder: Path, params: ExportParams, pairs: list[tuple[Arrays, Arrays]]
) -> tuple[int, Parity]:
    """Write, clean, check and compare; whatever goes wrong is raised."""
    sample = tensors_from(generate(part.inputs, params.input_seed))
    request = Request(part, sample, tuple(pairs[0][1]), _opset(params), folder / "scratch")
    request.scratch.mkdir()
    with quiet_random(params.seed):
        model = write(strategy, request)
    problem = check_interface(model, tuple(sample), request.outputs, request.opset)
    if problem is not None:
        raise Mismatch(problem)
    tidy(model)
    nodes = node_count(model)
    path = write_model(model, folder)
    del model
    shutil.rmtree(request.scratch)
    return nodes, compare(path, pairs)


def _opset(params: ExportParams) -> int:
    return params.opset or DEFAULT_OPSET


def _reason(error: Exception) -> str:
    if isinstance(error, Mismatch):
        return str(error)
    if isinstance(error, WrightError):
        return f"{error.problem}: {error.cause}"
    return first_line(error)


def _failed(part: Part, rejected: list[Attempt]) -> ExecutionError:
    reasons = "; ".join(f"{attempt.strategy}: {attempt.reason}" for attempt in rejected)
    return ExecutionError(
        f"no export strategy works for the component {part.name}",
        cause=reasons or "no strategy was allowed",
        fix="Try another opset, or export the model yourself and build from the .onnx file.",
    )
