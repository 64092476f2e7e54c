"""Where the parts of a contribution lie here: a claim names them by content, and a path proves nothing."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

from modelwright.errors import InputError
from modelwright.models import CONFIG
from modelwright.stages.export import family_place
from modelwright.support._case import Contribution
from modelwright.support._claim import Claim, ClaimedFile, seed_from
from modelwright.support._freeze import data_digest

_FAMILIES = Path("src/modelwright/stages/export/families")


def recipe_file_of(claim: Claim, folder: Path) -> Path | None:
    return None if claim.recipe is None else _beside(claim.recipe, folder)


def family_file_of(claim: Claim, folder: Path) -> Path | None:
    """Beside the claim, among the families of the same clone, or among those of this tool."""
    if claim.family is None:
        return None
    own = _beside(claim.family, folder)
    if own is not None:
        return own
    for above in folder.parents:
        found = _beside(claim.family, above / _FAMILIES)
        if found is not None:
            return found
    known = family_place(Path(claim.family.name).stem)
    return known if known is not None and known.name == claim.family.name else None


def contribution_in(claim: Claim, folder: Path) -> Contribution:
    """A family that this tool has too, by content, is one that it is asked to do without: wherever its copy lies."""
    family = family_file_of(claim, folder)
    inside = claim.family is not None and is_that(claim.family, family_place(Path(claim.family.name).stem))
    found = None if family is None else str(family)
    return Contribution(recipe_file_of(claim, folder), found, inside, metric_of(claim, folder))


def metric_of(claim: Claim, folder: Path) -> str | None:
    """As `file.py:function`, with the file where it is here."""
    if claim.metric is None or claim.script is None:
        return claim.metric
    return f"{folder / claim.script.name}:{claim.metric.rpartition(':')[2]}"


def is_that(file: ClaimedFile, path: Path | None) -> bool:
    return path is not None and path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() == file.digest


def located(claim: Claim, folder: Path, model: str | None, data: str | None) -> Claim:
    """The same claim, with the model and the data where they are here. Its digest is the same: both are content."""
    name = model or (str(folder) if (folder / CONFIG).is_file() else claim.source.name)
    found = replace(claim, source=replace(claim.source, name=name))
    if data is None or claim.data is None:
        return found
    return replace(found, data=replace(claim.data, asked=replace(claim.data.asked, source=data)))


def require_data(claim: Claim) -> None:
    """The rows must be those that the claim was made with; which of them are fed is drawn anew."""
    if claim.data is None or claim.data.digest is None:
        return
    found = data_digest(claim.data.asked)
    if found != claim.data.digest:
        raise InputError(
            f"{claim.data.asked.source} is not the data that is claimed",
            cause=f"its content is {str(found)[:12]}…, the claim says {claim.data.digest[:12]}…",
            fix="bring the data, and say where it is",
        )


def redrawn(claim: Claim, nonce: str, seeds: int) -> Claim:
    """The same claim with other seeds, also for the rows of a subset."""
    data = claim.data
    if data is not None and data.asked.samples is not None:
        data = replace(data, asked=replace(data.asked, seed=seed_from(nonce, "data")))
    return replace(claim, nonce=nonce, gate_seeds=max(seeds, claim.gate_seeds), data=data)


def _beside(file: ClaimedFile, folder: Path) -> Path | None:
    """A name that leads out of the folder is none."""
    path = folder / file.name
    return path if Path(file.name).name == file.name and path.is_file() else None
