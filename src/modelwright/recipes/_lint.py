"""Is the catalogue sound? Read and resolved only: nothing is built, and no model has to be here."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import date, timedelta
from pathlib import Path
from typing import Any, ClassVar

from modelwright._dataclass import dataclass
from modelwright._text import hidden_in
from modelwright.errors import WrightError
from modelwright.models import CONFIG, SMALL_FILES, HfSource
from modelwright.pipeline import Layer, Recipe, require_layer, resolve_recipe
from modelwright.recipes._entry import (
    ENTRY_FILE,
    EVIDENCE_FILE,
    RECIPE_FILE,
    CatalogEntry,
    entry_folders,
    is_commit,
    read_entry,
)
from modelwright.recipes._shown import evidence_problems
from modelwright.stages.quantize import precision_words
from modelwright.targets import parse_target
from modelwright.vocabulary import RANDOM, Result, read_task

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9.-]*_[A-Za-z0-9][A-Za-z0-9._-]*")
_DIGEST = re.compile("sha256:[0-9a-f]{64}")
_LICENCE = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+-]*( (AND|OR|WITH) [A-Za-z0-9][A-Za-z0-9.+-]*)*")
_OWN = (ENTRY_FILE, RECIPE_FILE, EVIDENCE_FILE, "claim.toml")
_LARGEST = {EVIDENCE_FILE: 1 << 20}
_LARGE = 16 << 10
LONGEST_BAD = timedelta(days=180)


@dataclass(frozen=True)
class CatalogProblem:
    """`rule` is one word for what kind of problem it is."""

    entry: str
    rule: str
    problem: str


@dataclass(frozen=True)
class CatalogLint(Result):
    kind: ClassVar[str] = "catalog lint"

    entries: int
    problems: tuple[CatalogProblem, ...]

    @property
    def clean(self) -> bool:
        return not self.problems


def lint_catalog(folder: Path, *, today: date) -> CatalogLint:
    """Every problem of every entry: one that cannot be read does not hide the others."""
    folders = entry_folders(folder)
    found = [CatalogProblem(one.name, rule, said) for one in folders for rule, said in _problems(one, today)]
    return CatalogLint(len(folders), (*found, *_doubles(folders)))


def _problems(folder: Path, today: date) -> Iterator[tuple[str, str]]:
    yield from _files(folder)
    try:
        entry = read_entry(folder)
    except WrightError as error:
        yield "format", f"{error.problem}: {error.cause}"
        return
    yield from _names(entry)
    yield from _bad(entry, today)
    looks = (("pin", _pin(entry)), ("evidence", _evidence(entry, today)), ("recipe", _recipe(entry)))
    for rule, found in looks:
        try:
            yield from found
        except WrightError as error:
            yield rule, f"{error.problem}: {error.cause}"


def _files(folder: Path) -> Iterator[tuple[str, str]]:
    """Only what an entry is made of, in text that shows all it says."""
    for path in sorted(folder.iterdir()):
        if hidden_in(path.name):
            yield "hidden", f"a file's name hides the character {hidden_in(path.name)}"
        elif path.is_symlink() or not path.is_file() or path.name not in (*_OWN, *SMALL_FILES):
            yield "files", f"{path.name} is no part of an entry"
        elif path.stat().st_size > _LARGEST.get(path.name, _LARGE):
            yield "files", f"{path.name} has {path.stat().st_size} bytes"
        else:
            yield from _text(path)


def _text(path: Path) -> Iterator[tuple[str, str]]:
    try:
        text = path.read_bytes().decode()
    except UnicodeDecodeError:
        yield "files", f"{path.name} is not text in UTF-8"
        return
    for number, line in enumerate(text.split("\n"), 1):
        found = hidden_in(line.removesuffix("\r").replace("\t", " "))
        if found:
            yield "hidden", f"{path.name} line {number} hides the character {found}"


def _names(entry: CatalogEntry) -> Iterator[tuple[str, str]]:
    said = entry.said
    if entry.kind == "hub" and entry.name != said.source.replace("/", "_", 1):
        yield "name", f"an entry about {said.source} is called {said.source.replace('/', '_', 1)}"
    elif not _NAME.fullmatch(entry.name):
        yield "name", "an entry is called ORG_MODEL"
    if not _LICENCE.fullmatch(said.licence):
        yield "name", f"'{said.licence}' is no licence as SPDX writes it"
    if said.task is not None:
        yield from _word("task", said.task, read_task)
    for target in said.targets:
        yield from _word("target", target, parse_target)
    if not said.targets:
        yield "name", "it names no target"


def _word(what: str, word: str, read: Any) -> Iterator[tuple[str, str]]:
    try:
        read(word)
    except WrightError as error:
        yield "name", f"{what} '{word}': {error.problem}; {error.fix}"


def _pin(entry: CatalogEntry) -> Iterator[tuple[str, str]]:
    said = entry.said
    if entry.kind == "hub":
        if not is_commit(said.pin):
            yield "pin", f"'{said.pin}' is no commit: a branch or a tag can move"
    elif not _DIGEST.fullmatch(said.pin):
        yield "pin", f"'{said.pin}' is no digest"
    elif entry.kind == "folder":
        yield from _own_pin(entry)
    elif said.origin is None:
        yield "pin", "nobody can find what is to be brought without its `origin`"
    if entry.kind != "folder" and not entry.is_graph and None in (said.model_type, said.task):
        yield "pin", "a model that is elsewhere needs its model_type and task said"


def _own_pin(entry: CatalogEntry) -> Iterator[tuple[str, str]]:
    if not (entry.folder / CONFIG).is_file():
        yield "pin", f"there is no {CONFIG} in it"
        return
    for name, said in (("model_type", entry.said.model_type), ("origin", entry.said.origin)):
        if said is not None:
            yield "inert", f"{name}: the configuration is here, and says what it is"
    source = entry.local_source()
    if source.identity() != entry.said.pin:
        yield "pin", f"the configuration beside it is {source.identity()}, and the pin says {entry.said.pin}"


def _bad(entry: CatalogEntry, today: date) -> Iterator[tuple[str, str]]:
    bad = entry.said.known_bad
    if bad is None:
        return
    if not bad.reason.strip():
        yield "known-bad", "it does not say what is bad"
    if bad.until < today:
        yield "known-bad", f"it expired on {bad.until}: build it again, then mend it, remove it, or say until when"
    if not bad.since <= bad.until <= bad.since + LONGEST_BAD:
        yield "known-bad", f"it may hold for {LONGEST_BAD.days} days, not from {bad.since} to {bad.until}"
    if bad.since > today:
        yield "known-bad", f"it begins on {bad.since}, which is still to come"
    if entry.said.level is not None:
        yield "known-bad", f"it has level {entry.said.level}: what is bad has none"


def _evidence(entry: CatalogEntry, today: date) -> Iterator[tuple[str, str]]:
    yield from (("evidence", one) for one in evidence_problems(entry, today))


def _recipe(entry: CatalogEntry) -> Iterator[tuple[str, str]]:
    data = entry.recipe.get("data")
    source = data.get("source", RANDOM) if isinstance(data, Mapping) else data
    if source not in (None, RANDOM):
        yield "recipe", f"data '{source}' is on somebody's machine: who builds it says which data"
        return
    for key in ("target", "tune", "policy_version", "reasons"):
        if key in entry.recipe:
            yield "recipe", f"{key} is no part of a recipe here"
            return
    made = resolved(entry)
    for path in _leaves(entry.recipe):
        if resolved(entry, _without(entry.recipe, path)) == made:
            yield "inert", f"{'.'.join(path)}: a build does the same without it"
    yield from _promised(entry.name, made)


def resolved(entry: CatalogEntry, recipe: Layer | None = None) -> tuple[Recipe, ...]:
    """What a build would do, for each target. Of a file that is not here only what the recipe itself says is known."""
    layer = entry.recipe if recipe is None else recipe
    if entry.is_graph:
        return (require_layer(_null(layer), f"{entry.name}/{RECIPE_FILE}"),)
    source = entry.local_source() if entry.kind == "folder" else _elsewhere(entry)
    return tuple(
        resolve_recipe(source, parse_target(target), file=layer, planning=True) for target in entry.said.targets
    )


def _elsewhere(entry: CatalogEntry) -> HfSource:
    said = entry.said
    return HfSource(entry.name, read_task(str(said.task)).head, str(said.model_type), None, repo=said.source)


def _null(layer: Layer) -> Layer:
    return {key: None if value is False else value for key, value in layer.items()}


def _leaves(layer: Layer, before: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for key, value in layer.items():
        if isinstance(value, dict) and value:
            yield from _leaves(value, (*before, key))
        else:
            yield (*before, key)


def _without(layer: Layer, path: tuple[str, ...]) -> Layer:
    """A table that has nothing left says nothing."""
    first, rest = path[0], path[1:]
    if not rest:
        return {key: value for key, value in layer.items() if key != first}
    inner = _without(layer[first], rest)
    return {key: inner if key == first else value for key, value in layer.items() if key != first or inner}


def _promised(name: str, made: tuple[Recipe, ...]) -> Iterator[tuple[str, str]]:
    """103 of 159 recipes of others that were called fp16 built fp32."""
    words = set(re.split("[_.-]", name.casefold())) & set(precision_words())
    found = {recipe.precision for recipe in made if recipe.precision}
    for word in sorted(words - found):
        yield "name", f"it is called {word}, and builds {', '.join(sorted(found)) or 'what the model is'}"


def _doubles(folders: tuple[Path, ...]) -> Iterator[CatalogProblem]:
    """Two entries about one content that do the same, or whose names only differ in case."""
    seen: dict[str, str] = {}
    for folder in folders:
        before = seen.setdefault(folder.name.casefold(), folder.name)
        if before != folder.name:
            yield CatalogProblem(folder.name, "name", f"its name differs from {before} in case only")
