"""`modelwright.catalog`: recipes that were shown to work, each about one pinned model."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path

from modelwright import recipes
from modelwright.api.build import build as build_model
from modelwright.api.build import buildable
from modelwright.errors import InputError, UsageError
from modelwright.models import HfSource, OnnxSource, SourceChoices
from modelwright.pipeline import Builds
from modelwright.recipes import CatalogEntry, CatalogIndex, CatalogLint, IndexRow
from modelwright.store import Store
from modelwright.vocabulary import Data, OnProgress


def entries(*, folder: str | Path | None = None) -> tuple[IndexRow, ...]:
    """Every entry on each of its targets, with what is shown of it."""
    return recipes.index_rows(_folder(folder))


def entry(name: str, *, folder: str | Path | None = None) -> CatalogEntry:
    return recipes.find_entry(name, _folder(folder))


def lint(*, folder: str | Path | None = None, today: date | None = None) -> CatalogLint:
    """Unknown and inert fields, wrong names, hidden characters, stale evidence, and what is no longer known to be bad.
    Nothing is built."""
    return recipes.lint_catalog(_folder(folder), today=today or datetime.now(UTC).date())


def index(*, folder: str | Path | None = None, check: bool = False) -> CatalogIndex:
    """Write `index.json` of the catalogue from its entries; with `check` only say whether it is as it should be."""
    return recipes.write_index(_folder(folder), check=check)


def build(
    name: str,
    model: str | Path | None = None,
    *,
    data: Data | str | None = None,
    samples: int | None = None,
    seed: int | None = None,
    output: str | Path | None = None,
    overwrite: bool = False,
    anyway: bool = False,
    folder: str | Path | None = None,
    store: Store | None = None,
    on_progress: OnProgress | None = None,
) -> Builds:
    """Build an entry from the very content that it is about, for each of its targets.

    `model` is where a model is that has to be brought; it must be what the entry is pinned to. `anyway` also
    builds what is known to be bad.
    """
    found = recipes.find_entry(name, _folder(folder))
    bad = found.said.known_bad
    if bad is not None and not anyway:
        raise InputError(
            f"{name} is known to be bad",
            cause=f"{bad.reason} (known since {bad.since}, to be tried again after {bad.until})",
            fix="say `anyway` to try it now",
        )
    return build_model(
        _source(found, model),
        found.said.targets,
        recipe=found.recipe,
        data=data,
        samples=samples,
        seed=seed,
        output=output,
        overwrite=overwrite,
        store=store,
        on_progress=on_progress,
    )


def _source(entry: CatalogEntry, model: str | Path | None) -> HfSource | OnnxSource:
    """The source of an entry, proven to be what it is pinned to."""
    said = entry.said
    if entry.kind == "brought" and model is None:
        raise UsageError(
            f"{entry.name} is about a model that is not in the catalogue",
            cause=f"{said.source} comes from {said.origin}",
            fix="get it there, and give it as `model`",
        )
    if entry.kind == "folder" and model is None:
        return _pinned(entry, entry.local_source(), entry.name)
    if model is None:
        return _pinned(entry, buildable(said.source, SourceChoices(said.task, said.pin)), entry.name)
    given = SourceChoices(said.task, random_weights=entry.kind == "folder")
    return _pinned(entry, buildable(model, given), str(model))


def _pinned(entry: CatalogEntry, source: HfSource | OnnxSource, what: str) -> HfSource | OnnxSource:
    if source.identity() != entry.identity():
        raise InputError(
            f"{what} is not what {entry.name} is about",
            cause=f"the entry is pinned to {entry.identity()}, this is {source.identity()}",
            fix=f"get the pinned content, or use the recipe alone: `recipe` {recipes.CATALOG_WORD}:{entry.name}",
        )
    return source


def _folder(said: str | Path | None) -> Path:
    return recipes.own_folder() if said is None else Path(said).expanduser()
