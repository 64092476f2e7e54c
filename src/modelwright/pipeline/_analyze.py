"""Where a model's nodes really run on a target, and which changes, tried one by one, put more of them there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from modelwright._scratch import scratch
from modelwright.data import RandomCalibration
from modelwright.errors import InputError, WrightError
from modelwright.graph import ModelSummary, load, model_bytes, summary
from modelwright.models import FileDigest, model_files, specs_from_graph, symbolic_sizes
from modelwright.stages.optimize import PRESETS, OptimizeParams, passes, run_optimize
from modelwright.stages.quantize import QuantizeParams, run_quantize
from modelwright.targets import Placement, Target, placement
from modelwright.worker import Task, run

_PLACEMENT_S = 900.0
_TRIAL_S = 900.0
_OPSETS = (17, 21)
# Enough for ranges that are only asked to exist: placement looks at types and shapes, not at accuracy.
_TRIAL_SAMPLES = 1


@dataclass(frozen=True)
class Suggestion:
    """A change that was tried. `left` are nodes off the target, `partitions` pieces on it, before and after."""

    title: str
    how: str
    left_before: int
    left_after: int
    partitions_before: int
    partitions_after: int


@dataclass(frozen=True)
class Analysis:
    """The answer for one target. `tried` counts the changes that were tried; only those that help are offered.

    `model` is what the user named, `files` what it is, by content.
    """

    model: str
    target: str
    files: tuple[FileDigest, ...]
    placement: Placement
    suggestions: tuple[Suggestion, ...]
    tried: int

    @property
    def supported(self) -> bool | None:
        """None when no such EP can be asked here."""
        if self.placement.status == "unknown":
            return None
        return self.placement.status == "placed" and not self.placement.unsupported


@dataclass(frozen=True)
class _Trial:
    title: str
    how: str
    optimize: OptimizeParams | None = None
    quantize: QuantizeParams | None = None


def analyze(model: Path, target: Target, *, suggest: bool = True) -> Analysis:
    """Ask the target's own partitioner; with `suggest`, try what could move the rest there."""
    files = model_files(model)
    found = place(model, target)
    if not suggest or found.status == "unknown" or not _to_gain(found):
        return Analysis(str(model), str(target), files, found, (), 0)
    trials = list(_trials(summary(load(model)), model, target, found))
    offered = [better for trial in trials if (better := _try(trial, model, target, found)) is not None]
    offered.sort(key=lambda item: (item.left_after, item.partitions_after))
    return Analysis(str(model), str(target), files, found, tuple(offered), len(trials))


def place(model: Path, target: Target) -> Placement:
    """The placement, asked in a child."""
    return run(placement.call(str(model), target), timeout=_PLACEMENT_S, size=model_bytes(model)).unwrap()


def _to_gain(found: Placement) -> bool:
    return found.status == "failed" or bool(found.unsupported)


def _trials(facts: ModelSummary, model: Path, target: Target, found: Placement) -> Iterator[_Trial]:
    fused = {op.op_type for op in facts.ops if op.domain == "com.microsoft"}
    for item in passes():
        if item.name.startswith("unfuse") and fused:
            yield _Trial(item.summary, f"--passes {item.name}", OptimizeParams((item.name,)))
    if sizes := _sizes(model):
        shown = " ".join(f"--dim {name}={size}" for name, size in sizes)
        yield _Trial("Fix the dynamic dimensions", shown, OptimizeParams(fix_dims=sizes))
    if not facts.quantized and target.accepts_qdq and target.auto_precision != "fp32":
        precision = target.auto_precision
        params = QuantizeParams(precision=precision, samples=_TRIAL_SAMPLES)
        yield _Trial(f"Quantize to {precision}", f"--precision {precision}", quantize=params)
    yield _Trial("Clean the graph up", "--passes portable", OptimizeParams(PRESETS["portable"]))
    current = next((opset.version for opset in facts.opsets if opset.domain == ""), 0)
    for opset in _OPSETS:
        if opset > current:
            yield _Trial(f"Convert to opset {opset}", f"--opset {opset}", OptimizeParams(opset=opset))


def _sizes(model: Path) -> tuple[tuple[str, int], ...]:
    """The dynamic dimensions with their usual sizes; none when nothing suggests one of them."""
    try:
        return tuple(sorted(symbolic_sizes(load(model)).items()))
    except InputError:
        return ()


def _try(trial: _Trial, model: Path, target: Target, before: Placement) -> Suggestion | None:
    """The change made and placed; None when it cannot be made or does not help."""
    with scratch("trial") as folder:
        try:
            run(_task(trial, model, str(folder)), timeout=_TRIAL_S, size=model_bytes(model)).unwrap()
            after = place(Path(folder, "model.onnx"), target)
        except WrightError:
            return None
    if after.status != "placed" or not _helps(before, after):
        return None
    return Suggestion(
        title=trial.title,
        how=trial.how,
        left_before=_left(before),
        left_after=_left(after),
        partitions_before=_partitions(before, target),
        partitions_after=_partitions(after, target),
    )


def _task(trial: _Trial, model: Path, folder: str) -> Task[object]:
    if trial.optimize is not None:
        return run_optimize.call(str(model), folder, trial.optimize)
    assert trial.quantize is not None
    data = RandomCalibration(0, specs_from_graph(load(model)))
    return run_quantize.call(str(model), folder, trial.quantize, data)


def _helps(before: Placement, after: Placement) -> bool:
    """More of the graph on the target; fewer nodes left in a smaller graph is no gain by itself."""
    return before.status == "failed" or (_left(after) < _left(before) and _share(after) > _share(before))


def _share(found: Placement) -> float:
    return 1 - _left(found) / found.nodes if found.nodes else 1.0


def _left(found: Placement) -> int:
    return found.nodes if found.status == "failed" else len(found.unsupported)


def _partitions(found: Placement, target: Target) -> int:
    return sum(share.partitions for share in found.eps if share.ep == target.provider.name)
