"""Rows out of text files: JSON lines, CSV, or a text per line."""

from __future__ import annotations

import contextlib
import csv
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from modelwright._json import loads
from modelwright._lazy import lazy
from modelwright.data._arrays import NAMES, read_array, read_npz
from modelwright.data._media import AUDIO, IMAGES
from modelwright.data._rows import Row, Rows, by_number
from modelwright.errors import InputError
from modelwright.models import require_file

if TYPE_CHECKING:
    import numpy as np
else:
    np = lazy("numpy")

_LONGEST_CELL = 1 << 24


def jsonl_rows(path: Path) -> Rows:
    """A JSON object per line; `shared.npz` beside it holds what all of them share."""
    lines = [line for line in read_text(path).splitlines() if line.strip()]
    beside = path.with_name("shared.npz")
    shared: dict[str, Any] = dict(read_npz(beside)) if beside.is_file() else {}
    names = tuple(str(name) for name in shared.pop(NAMES, ()))

    def row(index: int) -> Row:
        try:
            found = loads(lines[index])
            if not isinstance(found, dict):
                raise ValueError("the line is no JSON object")
            return {str(name): _value(value, path.parent) for name, value in found.items()}
        except (ValueError, OSError) as error:
            raise InputError(
                f"line {index + 1} of {path.name} cannot be read",
                cause=str(error),
                fix="Write one JSON object per line.",
            ) from error

    made = by_number("jsonl", len(lines), row, names)
    return Rows(made.kind, made.count, made.read, made.label_names, shared)


def csv_rows(path: Path) -> Rows:
    """The first line names the columns. A cell that is a number is one."""
    csv.field_size_limit(_LONGEST_CELL)
    delimiter = "\t" if path.suffix.lower() == ".tsv" else ","
    try:
        table = list(csv.reader(read_text(path).splitlines(keepends=True), delimiter=delimiter, strict=True))
    except csv.Error as error:
        raise InputError(
            f"{path.name} cannot be read as a table", cause=str(error), fix="Write it with Python's csv module."
        ) from error
    head, body = (table[0], [line for line in table[1:] if line]) if table else ([], [])
    short = next((number for number, line in enumerate(body, start=2) if len(line) != len(head)), None)
    if short is not None or len(set(head)) < len(head):
        raise InputError(
            f"{path.name} is not a table",
            cause=f"row {short} has another number of cells" if short else "two columns have the same name",
            fix="The first line names the columns, and every other line has as many cells.",
        )
    return by_number(
        "csv",
        len(body),
        lambda index: {name: _value(_cell(text), path.parent) for name, text in zip(head, body[index], strict=True)},
    )


def table_words(path: Path) -> Iterator[str]:
    """Every text in a table, any of which may name a file; lines that cannot be read say nothing."""
    if path.suffix.lower() == ".jsonl":
        for line in read_text(path).splitlines():
            with contextlib.suppress(ValueError):
                row = loads(line)
                yield from (word for word in row.values() if isinstance(word, str)) if isinstance(row, dict) else ()
        return
    delimiter = "\t" if path.suffix.lower() == ".tsv" else ","
    csv.field_size_limit(_LONGEST_CELL)
    with contextlib.suppress(csv.Error):
        for cells in csv.reader(read_text(path).splitlines(keepends=True), delimiter=delimiter):
            yield from cells


def text_rows(path: Path) -> Rows:
    """A text per line."""
    lines = [line.strip() for line in read_text(path).splitlines() if line.strip()]
    return by_number("text", len(lines), lambda index: {"text": lines[index]})


def read_labels(path: Path) -> list[Any]:
    """A label per sample: an array, or a line of text each."""
    if path.suffix == ".npy":
        return list(read_array(path))
    return [_cell(line.strip()) for line in read_text(path).splitlines() if line.strip()]


def read_text(path: Path) -> str:
    require_file(path)
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise InputError(f"{path} does not exist", cause="no such file", fix="Check the path.") from error
    except (OSError, ValueError) as error:
        raise InputError(f"{path.name} cannot be read", cause=str(error), fix="Write it as text in UTF-8.") from error


def _cell(text: str) -> int | float | str:
    kinds: tuple[Callable[[str], int | float], ...] = (int, float)
    for kind in kinds:
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _value(value: Any, folder: Path) -> Any:
    """Lists of numbers are arrays; names of array, image and sound files are what is in them."""
    if isinstance(value, str) and Path(value).suffix == ".npy":
        return read_array(folder / value)
    if isinstance(value, str) and Path(value).suffix.lower() in IMAGES | AUDIO:
        return folder / value
    if isinstance(value, list) and value and not isinstance(value[0], str | dict):
        return np.asarray(value)
    return value
