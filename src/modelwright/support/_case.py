"""One artifact of a claim: built once more for every seed of the gate, and once to climb with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import Any

from modelwright._dataclass import dataclass
from modelwright._json import plain
from modelwright.errors import WrightError
from modelwright.models import BuildSource, HfSource, OnnxSource, onnx_of, resolve
from modelwright.pipeline import BuildResult, Layer, Recipe, RecipeChoices, build, deliver, read_layer, resolve_recipe
from modelwright.stages.export import EXPORT, GENERAL, ExportOutcome, LeftOut, Link
from modelwright.store import Store
from modelwright.support._answers import GraphSeen, look_at
from modelwright.support._claim import Claim, ClaimedCase, ClaimedSource
from modelwright.support._gate import BASE, WITH, GateRun
from modelwright.support._statement import StatementRecipe
from modelwright.targets import parse_target
from modelwright.vocabulary import InputSpec, OnProgress
from modelwright.worker import run

BUILDS = "builds"
AnySource = OnnxSource | HfSource
_JUDGES = ("validate", "check", "compile", "agree", "decode", "claim")
_LOOK_S = 600.0


@dataclass(frozen=True)
class Contribution:
    """Files beside the claim: the recipe, the family as `export.family` takes it, and the metric as `file.py:function`.
    A family that is part of this tool is what is known here; without it the general rules do."""

    recipe: Path | None = None
    family: str | None = None
    inside: bool = False
    metric: str | None = None

    def layer(self, arm: str) -> Layer:
        mine = arm == WITH
        layer = read_layer(self.recipe) if mine and self.recipe is not None else {}
        named = self._family(mine)
        return layer if named is None else _merged(layer, {"export": {"family": named}})

    def _family(self, mine: bool) -> str | None:
        if self.family is None:
            return None
        if self.inside:
            return None if mine else GENERAL
        return self.family if mine else None


def source_of(claimed: ClaimedSource, *, task: bool = True) -> AnySource:
    """The model as it is claimed; without `task`, as somebody would name it who does not know what it is for."""
    word = claimed.task if task else None
    found = resolve(
        claimed.name,
        task=word,
        revision=claimed.revision,
        trust_remote_code=claimed.trust_remote_code,
        random_weights=claimed.random_weights,
    )
    return OnnxSource(str(onnx_of(found))) if isinstance(found, BuildSource) else found


@dataclass(frozen=True)
class CaseAsked:
    """What is built: the case, with or without the contribution, and the seed of whatever is made up."""

    claim: Claim
    case: ClaimedCase
    given: Contribution
    arm: str = WITH
    seed: int | None = None

    def source(self) -> AnySource:
        return source_of(self.claim.source, task=self.arm != BASE)

    def layer(self) -> Layer:
        return self.given.layer(self.arm)

    def recipe(self, source: AnySource) -> Recipe:
        """The precision is asked for only where it is not what comes of itself: a graph that has it already, or that
        has no weights to tell by, is left as it is."""
        data, target, layer = self.claim.data, parse_target(self.case.target), self.layer()
        choices = RecipeChoices(data=None if data is None else data.asked)
        found = resolve_recipe(source, target, choices, layer)
        if found.precision != self.case.precision:
            found = resolve_recipe(source, target, replace(choices, precision=self.case.precision), layer)
        return self._seeded(found)

    def _seeded(self, recipe: Recipe) -> Recipe:
        """Weights have one seed for the whole claim; what is made up has that of the run."""
        seed = self.claim.seed("inputs") if self.seed is None else self.seed
        export = recipe.export
        if export is not None:
            export = replace(export, seed=self.claim.seed("weights"), input_seed=seed)
        data = recipe.data if not recipe.data.random else replace(recipe.data, seed=seed)
        return replace(recipe, export=export, data=data)

    def forms(self, resolved: Recipe | None) -> StatementRecipe:
        layer = self.layer()
        return StatementRecipe(layer or None, None if resolved is None else plain(resolved))


@dataclass(frozen=True)
class CasePart:
    """One graph of a build. `plain` is the same before it was compiled."""

    name: str
    artifact: Path
    plain: Path
    inputs: InputSpec
    outputs: tuple[str, ...]
    left_out: tuple[LeftOut, ...]
    seen: GraphSeen


@dataclass(frozen=True, eq=False)
class CaseBuild:
    asked: CaseAsked
    source: AnySource
    recipe: Recipe
    folder: Path
    parts: tuple[CasePart, ...]
    links: tuple[Link, ...]
    model_class: str | None
    result: BuildResult


@dataclass(frozen=True, eq=False)
class EmptyStore:
    """A store that nobody has used. `made` are the stages that ran here: what one case left to the next is no hit."""

    store: Store
    made: set[str] = field(default_factory=set)

    def hits(self, stages: Sequence[Any]) -> int:
        """Stages that were taken from somewhere. Of several components each names the stage that they share."""
        own = {stage.key.digest: stage for stage in stages}
        self.made.update(key for key, stage in own.items() if stage.produced)
        # What comes with the model is imported, not computed, and cannot be a hit that hides a run.
        return sum(not stage.produced and key not in self.made for key, stage in own.items())


def gate_run(asked: CaseAsked, empty: EmptyStore, tell: OnProgress) -> tuple[GateRun, Recipe | None, int]:
    """One build: what came of it by effect, the recipe, and the exit code."""
    assert asked.seed is not None, "each run of the gate has its own"
    recipe = None
    try:
        source = asked.source()
        recipe = asked.recipe(source)
        result = build(source, recipe, store=empty.store, on_progress=tell)
        hits = sum(empty.hits(part.stages) for part in result.components)
        return _effect(asked, result, hits), recipe, 1 if result.passed is False else 0
    except WrightError as error:
        return GateRun(asked.arm, asked.seed, False, 0, told(error)), recipe, error.exit_code


def told(error: WrightError) -> str:
    return f"{error.problem}: {error.cause}" if error.cause else error.problem


def _effect(asked: CaseAsked, result: BuildResult, hits: int) -> GateRun:
    assert asked.seed is not None, "as above"
    graphs, contents, precisions, placements = {}, {}, {}, {}
    for part in result.components:
        model = part.final.artifact.path_of(_file(part.final.folder))
        seen = run(look_at.call(str(model), None, None), timeout=_LOOK_S).unwrap()
        graphs[part.name], contents[part.name] = seen.structure, seen.content
        precisions[part.name] = seen.precision or "not to be told"
        if part.check is not None:
            left = " ".join(f"{tally.op_type}x{tally.count}" for tally in part.check.left)
            placements[part.name] = f"{part.check.on_target} of {part.check.nodes} {left}".strip()
    return GateRun(asked.arm, asked.seed, True, hits, None, graphs, contents, precisions, placements)


def _file(folder: str) -> str:
    return f"{folder}/model.onnx" if folder else "model.onnx"


def climb_build(asked: CaseAsked, place: Path, store: Store, tell: OnProgress) -> CaseBuild:
    """The artifact that every level is about, as a folder."""
    source = asked.source()
    recipe = asked.recipe(source)
    result = build(source, recipe, store=store, on_progress=tell)
    folder = place / BUILDS / _slug(asked)
    folder.parent.mkdir(parents=True, exist_ok=True)
    deliver(result, folder, store=store, overwrite=True)
    first = result.components[0].stages[0]
    outcome = first.outcome if first.stage == EXPORT.name else None
    export = outcome if isinstance(outcome, ExportOutcome) else None
    known = {} if export is None else {one.name: one for one in export.components}
    parts = []
    for part in result.components:
        plainly = [one.model for one in part.stages[1:] if one.stage not in _JUDGES]
        before = plainly[-1] if plainly else None
        model = part.final.artifact.path_of(_file(part.final.folder))
        unpacked = model if before is None else before.artifact.path_of(_file(before.folder))
        one = known.get(part.name)
        ids = next((spec.name for spec in part.inputs if spec.fill.kind == "tokens"), None)
        outputs = () if one is None else one.outputs
        seen = run(look_at.call(str(model), ids, _scores(result, outputs)), timeout=_LOOK_S).unwrap()
        names = outputs or tuple(name for name, *_ in seen.values if name not in {spec.name for spec in part.inputs})
        left = () if one is None else one.left_out
        parts.append(CasePart(part.name, model, unpacked, part.inputs, names, left, seen))
    return CaseBuild(
        asked, source, recipe, folder, tuple(parts), result.links, export.model_class if export else None, result
    )


def _scores(result: BuildResult, outputs: tuple[str, ...]) -> str | None:
    """The output that has a number for each label, where the task has labels."""
    classes = ("text-classification", "image-classification", "audio-classification", "token-classification")
    return "logits" if result.task in classes and "logits" in outputs else None


def _slug(asked: CaseAsked) -> str:
    claim = asked.claim
    base = asked.arm != WITH and (claim.recipe is not None or claim.family is not None)
    words = f"{asked.case.target}-{asked.case.precision}" + ("-base" if base else "")
    return "".join(letter if letter.isalnum() or letter in "-." else "-" for letter in words)


def changed_fields(base: Recipe | None, mine: Recipe | None) -> tuple[str, ...]:
    """The fields in which two resolved recipes differ, but for seeds and reasons."""
    if base is None or mine is None:
        return ()
    one, other = _flat(plain(base)), _flat(plain(mine))
    names = dict.fromkeys((*one, *other))
    return tuple(name for name in names if one.get(name) != other.get(name) and not name.startswith("reasons"))


def _flat(form: Mapping[str, Any], above: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in form.items():
        place = f"{above}.{name}" if above else name
        if isinstance(value, dict) and value:
            found |= _flat(value, place)
        else:
            found[place] = value
    return found


def _merged(one: Layer, other: Layer) -> Layer:
    return {**one, **{name: {**one.get(name, {}), **value} for name, value in other.items()}}


@dataclass(frozen=True)
class BuildSurroundings:
    """What lay around before a build: nothing may be added there."""

    seen: Mapping[str, frozenset[str]] = field(hash=False)

    @classmethod
    def of(cls, source: AnySource) -> BuildSurroundings:
        own = Path(source.path).parent if isinstance(source, OnnxSource) else source.folder
        places = [Path.cwd(), *([] if own is None else [Path(own)])]
        return cls({str(place): _names(place) for place in places})

    def added(self) -> tuple[str, ...]:
        """What a graph or its weights left there. Files of other programs are no concern of ours."""
        new = ((place, name) for place, before in self.seen.items() for name in _names(Path(place)) - before)
        return tuple(
            f"{name} in {Path(place).name}" for place, name in new if name.endswith((".onnx", ".data", ".bin"))
        )


def _names(place: Path) -> frozenset[str]:
    try:
        return frozenset(path.name for path in place.iterdir())
    except OSError:
        return frozenset()
