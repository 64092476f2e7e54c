"""`suite.toml`: which artifacts are watched, on which two sides."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from modelwright._json import digest
from modelwright.answers.watch._types import HERE, WatchedModel, WatchSuite
from modelwright.errors import InputError
from modelwright.models import MODEL, model_files, onnx_of
from modelwright.targets import parse_target
from modelwright.worker import find_runtime

_SHARES = ("max_slowdown", "max_growth", "alpha")
_SUITE = {"name": str, "old": str, "new": str, "budget_s": float, **dict.fromkeys(_SHARES, float)}
_CASE = {"name": str, "model": str, "sha256": str, "target": str, "data": str, "threads": int}


def read_suite(path: Path, old: str | None = None, new: str | None = None) -> WatchSuite:
    """The suite, with every artifact what it was pinned as. `old` and `new` take the place of what it names."""
    document, rows = _document(path), case_rows(path)
    head = _table(path, "[watch]", document.get("watch", {}), _SUITE)
    told = {"name": path.stem, "old": HERE, "new": HERE, **head}
    told |= {side: name for side, name in (("old", old), ("new", new)) if name is not None}
    for key in _SHARES:
        if not 0 < told.get(key, 0.05) < 1:
            raise _unreadable(path, f"{key} is a share between 0 and 1, not {told[key]}")
    cases = tuple(_case(path, row) for row in rows)
    if len({case.name for case in cases}) < len(cases):
        raise _unreadable(path, "two cases have one name")
    for side in (told["old"], told["new"]):
        if side != HERE:
            find_runtime(side)
    _require_pinned(path, cases)
    return WatchSuite(cases=cases, **told)


def case_rows(path: Path) -> list[dict[str, Any]]:
    """Its [[case]] tables as they are written."""
    rows = _document(path).get("case", [])
    if not isinstance(rows, list) or not rows or not all(isinstance(row, dict) for row in rows):
        raise _unreadable(path, "it has no [[case]]")
    return rows


def _document(path: Path) -> dict[str, Any]:
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise _unreadable(path, f"{type(error).__name__}: {error}") from error
    for key in document:
        _known(path, key, ("watch", "case"))
    return document


def content_of(model: Path) -> str:
    """What a model is, by all its files, whatever they are called."""
    return digest(sorted(file.sha256 for file in model_files(model)))


def _case(path: Path, row: Any) -> WatchedModel:
    found = _table(path, "[[case]]", row, _CASE)
    if "model" not in found:
        raise _unreadable(path, "a [[case]] has no model")
    parse_target(found.get("target", "cpu"))
    model = onnx_of(str(path.parent / found["model"]))
    data = found.get("data")
    if data is not None and (path.parent / data).exists():
        data = str(path.parent / data)
    stem = model.parent.name if model.name == MODEL else model.stem
    told = {**found, "name": found.get("name", stem), "model": model, "data": data}
    return WatchedModel(**{"sha256": "", **told})


def _require_pinned(path: Path, cases: tuple[WatchedModel, ...]) -> None:
    """Nothing is watched that may be another model tomorrow."""
    known = [(case, content_of(case.model)) for case in cases]
    missing = [f'{case.name}: sha256 = "{found}"' for case, found in known if not case.sha256]
    if missing:
        raise InputError(
            f"{path.name} does not say which models it means", cause="a case has no sha256", fix="; ".join(missing)
        )
    other = next(((case, found) for case, found in known if case.sha256 != found), None)
    if other is not None:
        raise InputError(
            f"{other[0].name} is another model than {path.name} was written for",
            cause=f"its content is {other[1]}",
            fix="bring the old one back, or write that as its sha256 to watch this one from now on",
        )


def _table(path: Path, where: str, table: Any, kinds: Mapping[str, type]) -> dict[str, Any]:
    if not isinstance(table, dict):
        raise _unreadable(path, f"{where} is no table")
    return dict(_values(path, where, table, kinds))


def _values(path: Path, where: str, table: dict[str, Any], kinds: Mapping[str, type]) -> Iterator[tuple[str, Any]]:
    for key, value in table.items():
        _known(path, key, tuple(kinds))
        wanted = kinds[key]
        if wanted is float and type(value) is int:
            value = float(value)
        if type(value) is not wanted:
            raise _unreadable(path, f"{key} in {where} is a {wanted.__name__}, not {value!r}")
        yield key, value


def _known(path: Path, key: str, known: tuple[str, ...]) -> None:
    if key not in known:
        close = difflib.get_close_matches(key, known, n=1)
        raise _unreadable(path, f"there is no '{key}' in it" + (f"; did you mean {close[0]}?" if close else ""))


def _unreadable(path: Path, cause: str) -> InputError:
    return InputError(f"{path} cannot be read as a suite", cause=cause, fix="docs/watch.md shows one")
