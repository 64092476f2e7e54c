"""One entry of the catalogue: a folder with `entry.toml` (which model), `recipe.toml` (what a build does otherwise than
by itself) and `evidence.jsonl` (what was shown of it)."""

from __future__ import annotations

import re
import tomllib
from datetime import date
from pathlib import Path
from typing import Literal

from modelwright._dataclass import dataclass
from modelwright._typed import MisfitError, typed
from modelwright.errors import InputError, UsageError, did_you_mean
from modelwright.models import HfSource, OnnxSource, resolve
from modelwright.pipeline import Layer, read_layer

CATALOG_WORD = "catalog"
ENTRY_FILE = "entry.toml"
RECIPE_FILE = "recipe.toml"
EVIDENCE_FILE = "evidence.jsonl"
HERE = "."
_COMMIT = re.compile("[0-9a-f]{40}")
SourceKind = Literal["folder", "hub", "brought"]


@dataclass(frozen=True)
class KnownBad:
    """It does not work, and since when that is known. After `until` nobody may rely on it: it has to be tried again."""

    reason: str
    since: date
    until: date


@dataclass(frozen=True, kw_only=True)
class EntryFile:
    """What `entry.toml` says; every key that is not here is an error.

    - `source`: `.` is this folder (a configuration, with seeded random weights), `org/model` a model of the Hub;
      `name.onnx` and `name/` are a file and a folder that whoever builds it brings along.
    - `pin`: which content: the commit of a Hub model, else `sha256:…` as `wright catalog show` computes it.
    - `licence`: of the model, as SPDX writes it.
    - `origin`: where a source can be had that has to be brought.
    - `task`, `model_type`: what a configuration says is not said again.
    - `level`: the highest that was shown on every target; it needs evidence.
    - `evidence`: the digest of an `evidence.jsonl` that is kept elsewhere.
    """

    source: str
    pin: str
    licence: str
    origin: str | None = None
    task: str | None = None
    model_type: str | None = None
    targets: tuple[str, ...] = ("cpu",)
    level: str | None = None
    evidence: str | None = None
    known_bad: KnownBad | None = None


@dataclass(frozen=True)
class CatalogEntry:
    """An entry that could be read. `recipe` is empty where a build by itself is all there is to it."""

    name: str
    folder: Path
    said: EntryFile
    recipe: Layer

    @property
    def kind(self) -> SourceKind:
        if self.said.source == HERE:
            return "folder"
        return "brought" if self.said.source.endswith((".onnx", "/")) else "hub"

    @property
    def is_graph(self) -> bool:
        return self.said.source.endswith(".onnx")

    def local_source(self) -> HfSource:
        """Of an entry that is a configuration: the model with seeded random weights."""
        found = resolve(self.folder, task=self.said.task, random_weights=True)
        assert isinstance(found, HfSource), "a folder with a configuration is a Hugging Face model"
        return found

    def identity(self) -> str:
        """As the source would give it, once it is there."""
        return f"hf:{self.said.source}@{self.said.pin}" if self.kind == "hub" else self.said.pin


def own_folder() -> Path:
    """Where the entries are that came with the package."""
    return Path(__file__).parent


def entry_folders(folder: Path) -> tuple[Path, ...]:
    if not folder.is_dir():
        raise InputError(
            f"{folder} is no catalogue", cause="it is not a folder", fix="give one that holds folders with recipes"
        )
    return tuple(sorted(path for path in folder.iterdir() if path.is_dir() and not path.name.startswith(("_", "."))))


def read_entries(folder: Path) -> tuple[CatalogEntry, ...]:
    """All of them, by name; the first that cannot be read is an error."""
    return tuple(read_entry(one) for one in entry_folders(folder))


def read_entry(folder: Path) -> CatalogEntry:
    recipe = folder / RECIPE_FILE
    return CatalogEntry(folder.name, folder, _said(folder / ENTRY_FILE), read_layer(recipe) if recipe.is_file() else {})


def find_entry(name: str, folder: Path) -> CatalogEntry:
    known = [one.name for one in entry_folders(folder)]
    if name not in known:
        raise UsageError(
            f"the catalogue has no entry '{name}'",
            cause=f"it has {len(known)} others",
            fix=did_you_mean(name, known) or "`wright catalog list` shows them",
        )
    return read_entry(folder / name)


def matching_entry(source: HfSource | OnnxSource, folder: Path) -> CatalogEntry:
    """The entry that is about this very content."""
    wanted = source.identity()
    found = [one for one in read_entries(folder) if one.identity() == wanted]
    if len(found) == 1:
        return found[0]
    what = source.name if isinstance(source, HfSource) else Path(source.path).name
    names = ", ".join(one.name for one in found)
    raise InputError(
        f"the catalogue has {'several entries' if found else 'no entry'} for {what}",
        cause=f"they are {names}" if found else f"none is pinned to {wanted}",
        fix=f"name one: {CATALOG_WORD}:{found[0].name}" if found else "`wright catalog list` shows what there is",
    )


def is_commit(text: str) -> bool:
    return _COMMIT.fullmatch(text) is not None


def _said(path: Path) -> EntryFile:
    try:
        return typed(EntryFile, tomllib.loads(path.read_text(encoding="utf-8")), strict=True)
    except FileNotFoundError:
        raise _unreadable(path, "it is missing", f"write {ENTRY_FILE}: docs/catalog.md says what it holds") from None
    except MisfitError as error:
        raise _misfit(path, error) from None
    except (OSError, ValueError, RecursionError) as error:
        raise _unreadable(path, str(error), "mend the file") from None


def _misfit(path: Path, error: MisfitError) -> InputError:
    where = ".".join(map(str, error.place))
    if error.known:
        fix = did_you_mean(str(error.place[-1]), error.known) or "remove it"
        return _unreadable(path, f"unknown key '{where}'; known are {', '.join(error.known)}", fix)
    return _unreadable(path, f"'{where}' is not right: {error.why}", "docs/catalog.md says what fits")


def _unreadable(path: Path, why: str, fix: str) -> InputError:
    return InputError(f"{path.parent.name}/{path.name} cannot be read as an entry", cause=why, fix=fix)
