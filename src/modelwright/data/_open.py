"""From what a user names to its rows. Only in a child: decoders, packages and the user's own code run here."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from modelwright.data._arrays import files_rows, npy_rows, npz_rows
from modelwright.data._function import function_rows
from modelwright.data._hub import hub_rows
from modelwright.data._media import AUDIO, IMAGES, class_rows, media_files, media_rows
from modelwright.data._rows import Rows, labelled, renamed
from modelwright.data._tables import csv_rows, jsonl_rows, read_labels, read_text, text_rows
from modelwright.errors import InputError
from modelwright.vocabulary import Data

_FILES: Final[Mapping[str, Callable[[Path], Rows]]] = {
    ".npz": npz_rows,
    ".npy": npy_rows,
    ".jsonl": jsonl_rows,
    ".csv": csv_rows,
    ".tsv": csv_rows,
    ".txt": text_rows,
}
_TABLES = ("data.npz", "data.jsonl")
# A data set by name: name, user/name, with :config and @split behind it.
_NAME = re.compile(r"\w[\w.-]*(/[\w.-]+)?(:[\w.-]+)?(@[\w.:%\[\]-]+)?")


def open_data(data: Data) -> Rows:
    """What the data holds, with the names and labels that were asked for. No rows at all is an error."""
    rows = _opened(data)
    if rows.count == 0:
        raise InputError(
            f"{data.source} is empty",
            cause="it holds no sample",
            fix="Give at least one sample; a few hundred decide.",
        )
    rows = renamed(rows, data.columns)
    return rows if data.labels is None else labelled(rows, read_labels(Path(data.labels).expanduser()))


def require_there(data: Data) -> None:
    """What can be told without opening anything: a file that is missing, a name that can be none."""
    if data.random or data.function:
        return
    path = Path(data.source).expanduser()
    if path.exists():
        return
    if path.suffix.lower() in _FILES or not _NAME.fullmatch(data.source):
        raise InputError(
            f"{data.source} does not exist", cause="no such file or folder", fix="docs/data.md shows every form."
        )


def in_files(data: Data) -> bool:
    """Is everything it holds in files that are here, or should be?"""
    if data.random or data.function:
        return False
    path = Path(data.source).expanduser()
    return path.exists() or path.suffix.lower() in _FILES


def data_files(data: Data) -> tuple[Path, ...] | None:
    """The files it is made of, sorted; None where the user's code or a package gives the rows."""
    if not in_files(data):
        return None
    path = Path(data.source).expanduser()
    files = tuple(sorted(file for file in path.rglob("*") if file.is_file())) if path.is_dir() else (path,)
    return files if data.labels is None else (*files, Path(data.labels).expanduser())


def _opened(data: Data) -> Rows:
    if data.function:
        return function_rows(data.source)
    path = Path(data.source).expanduser()
    if path.is_dir():
        return _folder(path)
    suffix = path.suffix.lower()
    if suffix in _FILES:
        return _FILES[suffix](path)
    if path.exists() and suffix in IMAGES | AUDIO:
        return media_rows([path])
    if path.exists():
        raise InputError(
            f"{data.source} is no data",
            cause=f"it is not a folder, and no file of a kind that is known ({', '.join(_FILES)}, images, .wav)",
            fix="docs/data.md shows every form.",
        )
    require_there(data)
    return hub_rows(data)


def _folder(path: Path) -> Rows:
    for name in _TABLES:
        if (path / name).is_file():
            return _FILES[Path(name).suffix](path / name)
    arrays = sorted(path.glob("*.npz")) or sorted(path.glob("*.npy"))
    if arrays:
        return files_rows(arrays)
    if files := media_files(path):
        return media_rows(files)
    classes = sorted(item.name for item in path.iterdir() if item.is_dir())
    if classes:
        return class_rows(path, classes, read_text)
    raise InputError(
        f"{path} is not a dataset",
        cause="it has neither data.npz, nor data.jsonl, nor arrays, images or sounds, nor folders named after classes",
        fix="docs/data.md shows every form.",
    )
