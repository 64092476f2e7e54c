"""From what somebody asks for to a claim, which nothing changes any more."""

from __future__ import annotations

import dataclasses
import shutil
from dataclasses import field
from pathlib import Path

from modelwright._dataclass import dataclass
from modelwright.data import DataSource, require_there
from modelwright.errors import InputError, UsageError
from modelwright.models import SourceChoices, file_digest
from modelwright.pipeline import RecipeChoices, read_layer, resolve_recipe
from modelwright.stages.export import family_place
from modelwright.support._case import AnySource, Contribution, source_of
from modelwright.support._claim import (
    CLAIM,
    Claim,
    ClaimedCase,
    ClaimedData,
    ClaimedFile,
    ClaimedSource,
    Tolerances,
    read_claim,
    write_claim,
)
from modelwright.support._statement import EVIDENCE
from modelwright.support._words import Effort, Level, Outcome
from modelwright.targets import parse_target
from modelwright.vocabulary import Data

_DEFAULT_DROP = "1%"


@dataclass(frozen=True, kw_only=True)
class SupportWish:
    """What is asked for. `family` is a file with a `FAMILY`, or a model type that is known here: then what is claimed
    is that this tool needs it. Without `precisions` each target has what its recipe says."""

    model: str
    about: SourceChoices = field(default_factory=SourceChoices)
    recipe: Path | None = None
    family: str | None = None
    targets: tuple[str, ...] = ("cpu",)
    precisions: tuple[str, ...] = ()
    ceiling: Level = "L2"
    effort: Effort | None = None
    outcome: Outcome | None = None
    data: Data | None = None
    metric: str | None = None
    max_drop: str | None = None
    max_p50_ms: float | None = None
    faster: bool = False
    seeds: int = 5


def freeze(wish: SupportWish) -> tuple[Claim, Contribution]:
    """The claim, and where its contribution lies. Everything that is named must be there."""
    claimed = ClaimedSource(
        name=wish.model,
        digest="",
        task=wish.about.task,
        revision=wish.about.revision,
        random_weights=wish.about.random_weights,
        trust_remote_code=wish.about.trust_remote_code,
    )
    source = source_of(claimed)
    given, files = _contribution(wish)
    script = _script(wish.metric)
    if wish.data is not None:
        require_there(wish.data)
    mine = files[0] is not None or files[1] is not None
    owed: Effort = "family" if files[1] is not None else "recipe" if files[0] is not None else "none"
    expected: Outcome = "needed" if files[1] is not None else "delta" if mine else "supported"
    return Claim(
        effort=wish.effort or owed,
        ceiling=wish.ceiling,
        outcome=wish.outcome or expected,
        source=dataclasses.replace(claimed, digest=source.identity()),
        cases=_cases(wish, source, given),
        recipe=files[0],
        family=files[1],
        data=None if wish.data is None else ClaimedData(wish.data, data_digest(wish.data)),
        metric=wish.metric if script is None else f"{script.name}:{str(wish.metric).rpartition(':')[2]}",
        script=script,
        tolerances=_tolerances(wish),
        gate_seeds=wish.seeds,
    ), given


def frozen(claim: Claim, folder: Path, given: Contribution) -> None:
    """Written once, with the files of the contribution beside it; a folder that has another one is not gone on with."""
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / CLAIM).exists():
        if (folder / EVIDENCE).exists():
            raise InputError(f"{folder} has evidence and no claim", cause=f"{CLAIM} is gone", fix="use a new folder")
        _bring(claim, folder, given)
        write_claim(claim, folder)
        return
    before = read_claim(folder)
    if before != claim:
        raise UsageError(
            f"{folder} is about another claim",
            cause=f"{', '.join(_differing(before, claim))} differ from what was frozen there",
            fix="repeat the command that began it, or use a new folder",
        )


def _bring(claim: Claim, folder: Path, given: Contribution) -> None:
    """Whoever reviews the claim finds what it is about where the claim is."""
    family = None if given.family is None else Path(given.family)
    script = None if given.metric is None else Path(given.metric.rpartition(":")[0])
    for claimed, source in ((claim.recipe, given.recipe), (claim.family, family), (claim.script, script)):
        if claimed is None or source is None:
            continue
        place = folder / claimed.name
        if not place.exists():
            shutil.copyfile(source, place)
        elif file_digest(place) != claimed.digest:
            raise UsageError(
                f"{place} is another file than {source}",
                cause="the contribution goes beside the claim, and a file of that name is there",
                fix="use a new folder, or bring one of them up to date",
            )


def _differing(one: Claim, other: Claim) -> list[str]:
    names = (item.name for item in dataclasses.fields(Claim))
    return [name for name in names if getattr(one, name) != getattr(other, name)]


def _tolerances(wish: SupportWish) -> Tolerances:
    judged = wish.ceiling in ("L3", "L4", "L5") and wish.data is not None
    drop = wish.max_drop or (_DEFAULT_DROP if judged else None)
    return Tolerances(max_drop=drop, max_p50_ms=wish.max_p50_ms, faster=wish.faster)


def _contribution(wish: SupportWish) -> tuple[Contribution, tuple[ClaimedFile | None, ClaimedFile | None]]:
    recipe = None if wish.recipe is None else ClaimedFile(wish.recipe.name, file_digest(wish.recipe))
    if wish.family is None:
        return Contribution(wish.recipe, metric=wish.metric), (recipe, None)
    path, inside = _family_file(wish.family)
    claimed = ClaimedFile(path.name, file_digest(path))
    return Contribution(wish.recipe, str(path), inside, wish.metric), (recipe, claimed)


def _script(metric: str | None) -> ClaimedFile | None:
    """The file of a metric that is Python: what it says is what it does, wherever it lies."""
    path = Path(str(metric).rpartition(":")[0])
    if metric is None or path.suffix != ".py":
        return None
    if not path.is_file():
        raise InputError(f"{path} does not exist", cause="no such file", fix="check the path of the metric")
    return ClaimedFile(path.name, file_digest(path))


def _family_file(said: str) -> tuple[Path, bool]:
    """The file, and whether it is part of this tool."""
    path = Path(said)
    known = family_place(path.stem)
    if path.suffix == ".py":
        if not path.is_file():
            raise InputError(f"{path} does not exist", cause="no such file", fix="check the path of the family")
        return path.absolute(), known is not None and known.resolve() == path.resolve()
    if known is None:
        raise InputError(f"there is no family '{said}' here", cause="no file of that name", fix="give the file itself")
    return known, True


def _cases(wish: SupportWish, source: AnySource, given: Contribution) -> tuple[ClaimedCase, ...]:
    if wish.precisions:
        return tuple(ClaimedCase(str(parse_target(t)), p) for t in wish.targets for p in wish.precisions)
    layer = {} if given.recipe is None else read_layer(given.recipe)
    choices = RecipeChoices(data=wish.data)
    recipes = [resolve_recipe(source, parse_target(one), choices, layer) for one in wish.targets]
    return tuple(ClaimedCase(recipe.target, recipe.precision) for recipe in recipes)


def data_digest(data: Data) -> str | None:
    """Null where nobody knows what it holds before it is drawn."""
    source = DataSource(data)
    return None if source.random or source.unread else source.identity(data.samples or 0)
