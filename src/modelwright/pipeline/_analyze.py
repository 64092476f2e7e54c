"""Where a model's nodes really run on a target, and which changes, tried one by one, put more of them there."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from modelwright._dataclass import dataclass
from modelwright.data import DataSource
from modelwright.errors import InputError
from modelwright.graph import facts, shared
from modelwright.models import FileDigest, model_files, specs_from_graph, symbolic_sizes
from modelwright.plans import DiskModel, Model, Node, NodeResult, Plan, Ref, run_all
from modelwright.stages.optimize import OPTIMIZE, PRESETS, OptimizeParams, passes
from modelwright.stages.place import PLACE, PlaceParams
from modelwright.stages.quantize import QUANTIZE, QuantizeParams
from modelwright.store import Store
from modelwright.targets import Placement, Target
from modelwright.vocabulary import OnProgress

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
    """A change, and the model it makes; None where the change cannot even be written down."""

    title: str
    how: str
    made: Node[Any, Any] | None


def analyze(
    model: Path,
    target: Target,
    *,
    suggest: bool = True,
    store: Store | None = None,
    on_progress: OnProgress | None = None,
) -> Analysis:
    """Ask the target's own partitioner; with `suggest`, try what could move the rest there."""
    return analyze_all(model, (target,), suggest=suggest, store=store, on_progress=on_progress)[0]


def analyze_all(
    model: Path,
    targets: Sequence[Target],
    *,
    suggest: bool = True,
    store: Store | None = None,
    on_progress: OnProgress | None = None,
) -> tuple[Analysis, ...]:
    """The same for several targets, side by side. What was answered before comes from the store."""
    with contextlib.nullcontext(store) if store is not None else Store() as opened:
        question = _Question(model, DiskModel.at(model), opened, on_progress)
        found = question.placements(targets)
        tried = question.trials([target for target in targets if suggest and _to_gain(found[target])])
    files = model_files(model)
    return tuple(
        Analysis(
            str(model), str(target), files, found[target], _offered(tried, target, found), len(tried.get(target, ()))
        )
        for target in targets
    )


_Tried = Mapping[Target, list[tuple[_Trial, Placement | None]]]


@dataclass(frozen=True)
class _Question:
    """One model, and where answers about it are kept."""

    path: Path
    model: DiskModel
    store: Store
    on_progress: OnProgress | None

    def placements(self, targets: Sequence[Target]) -> dict[Target, Placement]:
        nodes = {target: self._placed(self.model, target) for target in targets}
        results = self._run({str(target): (node,) for target, node in nodes.items()})
        return {target: _answer(results[node.id]) for target, node in nodes.items()}

    def trials(self, targets: Sequence[Target]) -> _Tried:
        """Every change that may help a target, made and placed."""
        pairs = [(target, trial) for target in targets for trial in _trials(self.path, self.model, target)]
        nodes = [None if trial.made is None else self._placed(Ref(trial.made), target) for target, trial in pairs]
        results = self._run({str(place): (node,) for place, node in enumerate(nodes) if node is not None})
        tried: dict[Target, list[tuple[_Trial, Placement | None]]] = {target: [] for target in targets}
        for (target, trial), node in zip(pairs, nodes, strict=True):
            done = None if node is None else results[node.id].done
            tried[target].append((trial, None if done is None else done.outcome))
        return tried

    def _placed(self, model: Model | Ref, target: Target) -> Node[PlaceParams, Placement]:
        return Node(PLACE, PlaceParams(str(target)), {"model": model}, f"{self.path.stem} on {target}")

    def _run(self, goals: Mapping[str, tuple[Node[Any, Any], ...]]) -> dict[str, NodeResult]:
        return run_all(Plan(goals), self.store, self.on_progress)


def _answer(result: NodeResult) -> Placement:
    if result.done is None:
        assert result.cause is not None, "a placement of the user's model needs nothing"
        raise result.cause
    found: Placement = result.done.outcome
    return found


def _to_gain(found: Placement) -> bool:
    return found.status == "failed" or (found.status == "placed" and bool(found.unsupported))


def _trials(path: Path, model: DiskModel, target: Target) -> Iterator[_Trial]:
    seen, label = facts(path), path.stem

    def optimized(params: OptimizeParams) -> Node[Any, Any]:
        return Node(OPTIMIZE, params, {"model": model}, label)

    if any(op.domain == "com.microsoft" for op in seen.ops):
        for item in passes():
            if item.name.startswith("unfuse"):
                yield _Trial(item.summary, f"--passes {item.name}", optimized(OptimizeParams((item.name,))))
    if sizes := _sizes(path):
        shown = " ".join(f"--dim {name}={size}" for name, size in sizes)
        yield _Trial("Fix the dynamic dimensions", shown, optimized(OptimizeParams(fix_dims=sizes)))
    if not seen.quantized and target.accepts_qdq and target.auto_precision != "fp32":
        precision = target.auto_precision
        yield _Trial(f"Quantize to {precision}", f"--precision {precision}", _quantized(path, model, precision))
    yield _Trial("Clean the graph up", "--passes portable", optimized(OptimizeParams(PRESETS["portable"])))
    current = next((opset.version for opset in seen.opsets if opset.domain == ""), 0)
    for opset in _OPSETS:
        if opset > current:
            yield _Trial(f"Convert to opset {opset}", f"--opset {opset}", optimized(OptimizeParams(opset=opset)))


def _quantized(path: Path, model: DiskModel, precision: str) -> Node[Any, Any] | None:
    """On made-up samples; None when the inputs do not say what could be made up for them."""
    params = QuantizeParams(precision=precision, samples=_TRIAL_SAMPLES)
    try:
        data = DataSource(specs=specs_from_graph(shared(path)))
    except InputError:
        return None
    marks = {"calibration": data.identity(params.samples)}
    return Node(QUANTIZE, params, {"model": model}, path.stem, given={"calibration": data}, marks=marks)


def _sizes(path: Path) -> tuple[tuple[str, int], ...]:
    """The dynamic dimensions with their usual sizes; none when nothing suggests one of them."""
    try:
        return tuple(sorted(symbolic_sizes(shared(path)).items()))
    except InputError:
        return ()


def _offered(tried: _Tried, target: Target, found: Mapping[Target, Placement]) -> tuple[Suggestion, ...]:
    """Those that help, the best first; one that could not be made or placed is none."""
    before = found[target]
    offered = [
        _suggestion(trial, target, before, after)
        for trial, after in tried.get(target, ())
        if after is not None and after.status == "placed" and _helps(before, after)
    ]
    return tuple(sorted(offered, key=lambda item: (item.left_after, item.partitions_after)))


def _suggestion(trial: _Trial, target: Target, before: Placement, after: Placement) -> Suggestion:
    return Suggestion(
        title=trial.title,
        how=trial.how,
        left_before=_left(before),
        left_after=_left(after),
        partitions_before=_partitions(before, target),
        partitions_after=_partitions(after, target),
    )


def _helps(before: Placement, after: Placement) -> bool:
    """More of the graph on the target; fewer nodes left in a smaller graph is no gain by itself."""
    return before.status == "failed" or (_left(after) < _left(before) and _share(after) > _share(before))


def _share(found: Placement) -> float:
    return 1 - _left(found) / found.running if found.running else 1.0


def _left(found: Placement) -> int:
    return found.running if found.status == "failed" else len(found.unsupported)


def _partitions(found: Placement, target: Target) -> int:
    return sum(share.partitions for share in found.eps if share.ep == target.provider.name)
