"""Where a model's nodes really run on a target, and which changes, tried one by one, put more of them there."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from modelwright._dataclass import dataclass
from modelwright.data import DataSource
from modelwright.errors import InputError, UsageError
from modelwright.graph import facts, shared
from modelwright.models import FileDigest, OnnxSource, model_files, recorded_inputs, symbolic_sizes
from modelwright.pipeline._recipe import Recipe
from modelwright.pipeline._resolve import RecipeChoices, resolve_recipe
from modelwright.plans import DiskModel, Model, Node, NodeResult, Plan, Ref, run_all
from modelwright.stages.check import FailingPart, run_look
from modelwright.stages.optimize import OPTIMIZE, PRESETS, OptimizeParams, passes
from modelwright.stages.place import PLACE, PlaceParams
from modelwright.stages.quantize import QUANTIZE
from modelwright.store import Store
from modelwright.targets import Placement, Target
from modelwright.vocabulary import OnProgress, Progress, silent
from modelwright.worker import run

_OPSETS = (17, 21)
# Enough for ranges that are only asked to exist: placement looks at types and shapes, not at accuracy.
_TRIAL_SAMPLES = 1
_LOOK_S = 300.0


@dataclass(frozen=True)
class Suggestion:
    """A change that was tried and helps. `left` are nodes off the target, `partitions` pieces on it, before and after;
    `nodes_after` is what then runs."""

    title: str
    how: str
    left_before: int
    left_after: int
    partitions_before: int
    partitions_after: int
    nodes_after: int


@dataclass(frozen=True)
class TriedChange:
    """A change that was tried, and what came of it in words."""

    title: str
    how: str
    result: str


@dataclass(frozen=True)
class Analysis:
    """The answer for one target. `tried` is every change that was tried; only those that help are suggested.

    `model` is what the user named, `files` what it is, by content. `part`: where the EP failed, the smallest
    part of the model that it fails on alone.
    """

    model: str
    target: str
    files: tuple[FileDigest, ...]
    placement: Placement
    suggestions: tuple[Suggestion, ...]
    tried: tuple[TriedChange, ...]
    part: FailingPart | None = None

    @property
    def supported(self) -> bool | None:
        """None when no such EP can be asked here."""
        if self.placement.status == "unknown":
            return None
        return self.placement.status == "placed" and not self.placement.unsupported

    @property
    def fallback(self) -> float | None:
        """The share of what runs that the target leaves to another EP: all of it where the EP failed, None where it
        could not be asked."""
        running = self.placement.running
        return None if self.placement.status == "unknown" else _left(self.placement) / running if running else 0.0


@dataclass(frozen=True)
class _Trial:
    """A change, and the model it makes; None where the change cannot even be written down: `why`."""

    title: str
    how: str
    made: Node[Any, Any] | None
    why: str | None = None


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
        parts = {target: question.part(target, found[target]) for target in targets if suggest}
    files = model_files(model)
    return tuple(
        Analysis(
            model=str(model),
            target=str(target),
            files=files,
            placement=found[target],
            suggestions=_offered(tried, target, found),
            tried=_told(tried.get(target, ())),
            part=parts.get(target),
        )
        for target in targets
    )


@dataclass(frozen=True)
class _TrialEnd:
    """A trial, and its placement or why there is none."""

    trial: _Trial
    placed: Placement | None
    why: str | None = None


_Tried = Mapping[Target, list[_TrialEnd]]


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
        tried: dict[Target, list[_TrialEnd]] = {target: [] for target in targets}
        for (target, trial), node in zip(pairs, nodes, strict=True):
            tried[target].append(_TrialEnd(trial, None, trial.why) if node is None else _ended(trial, results[node.id]))
        return tried

    def part(self, target: Target, found: Placement) -> FailingPart | None:
        """What it fails on; not kept, as a failure is not."""
        if found.status != "failed":
            return None
        (self.on_progress or silent)(Progress(f"looking for the smallest part that fails on {target}"))
        result = run(run_look.call(str(self.path), str(target), str(found.reason)), timeout=_LOOK_S)
        return result.value if result.ok else None

    def _placed(self, model: Model | Ref, target: Target) -> Node[PlaceParams, Placement]:
        return Node(PLACE, PlaceParams(str(target)), {"model": model}, f"{self.path.stem} on {target}")

    def _run(self, goals: Mapping[str, tuple[Node[Any, Any], ...]]) -> dict[str, NodeResult]:
        return run_all(Plan(goals), self.store, self.on_progress)


def _ended(trial: _Trial, result: NodeResult) -> _TrialEnd:
    if result.done is not None:
        return _TrialEnd(trial, result.done.outcome)
    return _TrialEnd(trial, None, None if result.cause is None else result.cause.problem)


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
    yield _Trial("Clean the graph up", "--passes portable", optimized(OptimizeParams(PRESETS["portable"])))
    current = next((opset.version for opset in seen.opsets if opset.domain == ""), 0)
    for opset in _OPSETS:
        if opset > current:
            yield _Trial(f"Convert to opset {opset}", f"--opset {opset}", optimized(OptimizeParams(opset=opset)))
    yield from _as_built(path, model, target)


def _as_built(path: Path, model: DiskModel, target: Target) -> Iterator[_Trial]:
    """All that `wright build` does for the target by itself, on made-up samples."""
    source = OnnxSource(str(path))
    try:
        recipe = resolve_recipe(source, target, RecipeChoices(samples=_TRIAL_SAMPLES))
    except (InputError, UsageError) as error:
        yield _Trial(f"Build it for {target}", "", None, error.problem)
        return
    made: list[Node[Any, Any]] = []
    if recipe.optimize is not None and (recipe.optimize.passes or recipe.optimize.fix_dims):
        made.append(Node(OPTIMIZE, recipe.optimize, {"model": model}, path.stem))
    if recipe.quantize is not None:
        data = DataSource(recipe.data, recorded_inputs(path))
        marks = {"calibration": data.identity(recipe.quantize.samples)}
        given, taken = {"calibration": data}, Ref(made[-1]) if made else model
        made.append(Node(QUANTIZE, recipe.quantize, {"model": taken}, path.stem, given=given, marks=marks))
    if made:
        yield _Trial(f"Build it for {target} ({_done(recipe)})", _typed(recipe), made[-1])


def _typed(recipe: Recipe) -> str:
    """A model that keeps its own precision is built without one: what was measured of it need not be one to ask for."""
    return "" if recipe.quantize is None else f"--precision {recipe.precision}"


def _done(recipe: Recipe) -> str:
    sizes = [f"{name}={size}" for name, size in recipe.optimize.fix_dims] if recipe.optimize is not None else []
    return ", ".join(("passes", *sizes, "its own precision" if recipe.quantize is None else recipe.precision))


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
        _suggestion(one.trial, target, before, one.placed)
        for one in tried.get(target, ())
        if one.placed is not None and one.placed.status == "placed" and _helps(before, one.placed)
    ]
    return tuple(sorted(offered, key=lambda item: (item.left_after, item.partitions_after)))


def _told(tried: Iterable[_TrialEnd]) -> tuple[TriedChange, ...]:
    return tuple(TriedChange(one.trial.title, one.trial.how, _result(one)) for one in tried)


def _result(one: _TrialEnd) -> str:
    if one.placed is None:
        return f"could not be made: {one.why or 'the inputs do not say what could be made up for them'}"
    if one.placed.status != "placed":
        return f"the EP failed: {one.placed.reason}"
    return f"{_left(one.placed)} of {one.placed.running} nodes left"


def _suggestion(trial: _Trial, target: Target, before: Placement, after: Placement) -> Suggestion:
    return Suggestion(
        title=trial.title,
        how=trial.how,
        left_before=_left(before),
        left_after=_left(after),
        partitions_before=_partitions(before, target),
        partitions_after=_partitions(after, target),
        nodes_after=after.running,
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
