"""The list of models of a matrix: JSON or TOML, every key known, every row with a name of its own."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path, PurePosixPath
from typing import Any

from modelwright._dataclass import dataclass
from modelwright._json import loads
from modelwright._typed import MisfitError, typed
from modelwright.errors import InputError, UsageError, did_you_mean
from modelwright.models import require_file
from modelwright.pipeline import schema_of
from modelwright.vocabulary import RANDOM, Data

_ROWS = "models"
_PRIORITIES = 10


def _told(description: str, default: Any = None) -> Any:
    return field(default=default, metadata={"description": description})


@dataclass(frozen=True)
class MatrixRow:
    """One model of a matrix. Only `model` is needed; a word alone is that."""

    model: str = field(metadata={"description": "An id of the Hub, a folder, or an ONNX file, seen from the list."})
    name: str | None = _told("What it is called in tables and feeds; by default as `model` is written.")
    task: str | None = _told("What the model is for; by default its architecture says.")
    revision: str | None = _told("Branch, tag or commit of a Hub model.")
    precision: str | None = _told("For every target that takes it; by default what each target's policy says.")
    priority: int = _told("0 is built first.", 5)
    group: str | None = _told("A word to choose rows by.")
    data: Data | None = _told("Samples to calibrate and judge with; a word alone is their source.")
    components: Mapping[str, str] | None = _told("Its graphs as ONNX files, by name: each is a row of its own.")
    random_weights: bool = _told("Build a config-only folder with seeded random weights.", False)

    def __post_init__(self) -> None:
        if not 0 <= self.priority < _PRIORITIES:
            raise UsageError(
                f"{self.model}: {self.priority} is no priority", cause="it is 0 to 9", fix="0 is built first"
            )

    @property
    def title(self) -> str:
        return self.name or _as_written(self.model)


@dataclass(frozen=True)
class _ListFile:
    """The rows, in a table: TOML has no other way to say a list."""

    models: tuple[MatrixRow, ...]


AnyRows = str | Path | Iterable[str | Path | Mapping[str, Any] | MatrixRow]


def read_rows(models: AnyRows) -> tuple[MatrixRow, ...]:
    """The rows of a list, of a file or given here, the most urgent first; every path is whole."""
    if isinstance(models, str | Path):
        path = Path(models).expanduser()
        found, origin, place = _read(path), path.name, path.absolute().parent
    else:
        found, origin, place = list(models), "the list", Path.cwd()
    rows = [row for one in found for row in _parts(_row(one, origin), place)]
    if not rows:
        raise InputError(f"{origin} has no rows", cause="there is no model in it", fix="name one at least")
    _refuse_twice(rows, origin)
    return tuple(sorted(rows, key=lambda row: row.priority))


def chosen_rows(
    rows: Sequence[MatrixRow], groups: Sequence[str] = (), priorities: Sequence[int] = ()
) -> tuple[MatrixRow, ...]:
    """Those of the groups and priorities that were named; all where none was."""
    known = {row.group for row in rows if row.group is not None}
    for group in groups:
        if group not in known:
            cause = f"the groups are {', '.join(sorted(known))}" if known else "no row has a group"
            raise UsageError(f"no row is of group {group}", cause=cause, fix=did_you_mean(group, known) or "name one")
    found = [row for row in rows if not groups or row.group in groups]
    found = [row for row in found if not priorities or row.priority in priorities]
    if not found:
        raise UsageError("no row is left", cause="none has such a priority", fix="leave `priorities` out")
    return tuple(found)


def list_schema() -> dict[str, Any]:
    """The JSON Schema of a list: rows, or words for them, alone or in a table."""
    found = schema_of(_ListFile)
    table, rows = found["$defs"], found["properties"][_ROWS]
    word = {"type": "string", "description": MatrixRow.__dataclass_fields__["model"].metadata["description"]}
    rows["items"] = {"anyOf": [word, rows["items"]]}
    data = table["MatrixRow"]["properties"]["data"]
    data["anyOf"].insert(0, {"type": "string"})
    either = [{key: found[key] for key in ("type", "properties", "required", "additionalProperties")}, rows]
    return {"$schema": found["$schema"], "title": "Models of a matrix", "anyOf": either, "$defs": table}


def _read(path: Path) -> list[Any]:
    require_file(path)
    try:
        text = path.read_text(encoding="utf-8")
        found = tomllib.loads(text) if path.suffix.lower() == ".toml" else loads(text)
    except FileNotFoundError:
        raise InputError(f"{path} does not exist", cause="no such file", fix="check the path of the list") from None
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(
            f"{path.name} cannot be read as a list of models",
            cause=str(error),
            fix='write for example ["org/model", "model.onnx"]; `wright matrix schema` shows all it can say',
        ) from None
    if isinstance(found, dict):
        unknown = [key for key in found if key != _ROWS]
        if unknown:
            raise InputError(
                f"{path.name}: unknown key '{unknown[0]}'", cause=f"known keys here are {_ROWS}", fix="remove it"
            )
        found = found.get(_ROWS)
    if not isinstance(found, list):
        raise InputError(
            f"{path.name} is not a list of models",
            cause=f"it holds no array, and no {_ROWS}",
            fix="see `wright matrix schema`",
        )
    return found


def _row(one: Any, origin: str) -> MatrixRow:
    if isinstance(one, MatrixRow):
        return one
    form = {"model": str(one)} if isinstance(one, str | Path) else one
    if isinstance(form, dict) and isinstance(form.get("data"), str):
        form = {**form, "data": {"source": form["data"]}}
    try:
        return typed(MatrixRow, form, strict=True)
    except MisfitError as error:
        raise _explained(error, origin, form) from None
    except UsageError as error:
        raise InputError(f"{origin}: {error.problem}", cause=error.cause, fix=error.fix) from None


def _explained(error: MisfitError, origin: str, form: Any) -> InputError:
    where = ".".join(map(str, error.place)) or "a row"
    of = f" of {form['model']}" if isinstance(form, dict) and isinstance(form.get("model"), str) else ""
    if error.known:
        return InputError(
            f"{origin}: unknown key '{where}'{of}",
            cause=f"known keys here are {', '.join(error.known)}",
            fix=did_you_mean(str(error.place[-1]), list(error.known)) or "remove it",
        )
    return InputError(
        f"{origin}: '{where}'{of} is not right", cause=error.why, fix="`wright matrix schema` shows what fits"
    )


def _parts(row: MatrixRow, place: Path) -> list[MatrixRow]:
    """The row with paths that are whole; of one whose graphs are files, a row for each."""
    row = replace(row, name=row.title, data=_placed_data(row.data, place))
    if row.components is None:
        return [replace(row, model=_placed(row.model, place))]
    if not row.components:
        raise InputError(f"{row.title} has no components", cause="the table is empty", fix="name one, or leave it out")
    return [
        replace(row, model=_placed(file, place), name=f"{row.title}/{part}", components=None)
        for part, file in row.components.items()
    ]


def _placed(model: str, place: Path) -> str:
    """A path as seen from the list; what is no path there stays, and is an id."""
    path = Path(model).expanduser()
    try:
        there = path.is_absolute() or (place / path).exists() or model.startswith(("./", "../", "~"))
    except (OSError, ValueError):
        there = False
    return str(place / path) if there or path.suffix.lower() == ".onnx" else model


def _placed_data(data: Data | None, place: Path) -> Data | None:
    if data is None or data.source == RANDOM:
        return data
    file, colon, function = data.source.rpartition(":") if data.function else (data.source, "", "")
    found = place / Path(file).expanduser()
    source = f"{found}{colon}{function}" if found.exists() else data.source
    labels = data.labels if data.labels is None else str(place / Path(data.labels).expanduser())
    return replace(data, source=source, labels=labels)


def _as_written(model: str) -> str:
    """Nothing of this machine: of a whole path, the last word."""
    path = PurePosixPath(model.replace("\\", "/"))
    parts = [part for part in path.parts if part not in (".", "..", "~", "/")]
    if path.suffix.lower() == ".onnx":
        parts[-1] = path.stem
    absolute = path.is_absolute() or (len(model) > 1 and model[1] == ":")
    return "/".join(parts[-1:] if absolute else parts) or model


def _refuse_twice(rows: Sequence[MatrixRow], origin: str) -> None:
    seen: dict[tuple[str, str | None], MatrixRow] = {}
    for row in rows:
        mark = (row.title.casefold(), row.precision)
        before = seen.setdefault(mark, row)
        if before is not row:
            raise InputError(
                f"{origin}: two rows are called {row.title}",
                cause=f"{before.model} and {row.model}, in one precision",
                fix="give one of them another `name` or `precision`, or remove it",
            )
