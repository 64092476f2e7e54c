"""Which relative names an artifact may hold: those that mean one file, inside the folder, on every system."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath

from modelwright._filenames import unportable
from modelwright.errors import StoreError

MARKER = ".wright-artifact.json"


def check_names(names: Iterable[str]) -> None:
    """Refuse names that leave the folder, and names that collide where case does not count."""
    files: dict[str, str] = {}
    for name in names:
        _check_name(name)
        if (other := files.setdefault(_folded(name), name)) is not name:
            raise _refused(name, f"it is the same file as {other!r} on some systems")
    for name in files.values():
        for parent in PurePosixPath(name).parents:
            if _folded(str(parent)) in files:
                raise _refused(name, f"{str(parent)!r} is a file of the same artifact")


def list_folder(folder: Path) -> Mapping[str, Path]:
    """Relative name → file, for all files below. Links to files are followed, links to folders refused."""
    found: dict[str, Path] = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_dir():
            if path.is_symlink():
                raise _refused(name, "it is a link to a folder, and the content behind it would be lost")
        elif not path.is_file():
            raise _refused(name, "it is neither a file nor a folder")
        elif name != MARKER:  # written by materialize; never part of the content
            found[name] = path
    return found


def _check_name(name: str) -> None:
    parts = name.split("/")
    if not name or any(part in ("", ".", "..") for part in parts):
        raise _refused(name, "it has to be relative, without empty parts, '.' or '..'")
    if (why := next(filter(None, map(unportable, parts)), None)) is not None:
        raise _refused(name, why)
    if name == MARKER:
        raise _refused(name, "the store keeps its own note under that name")


def _folded(name: str) -> str:
    return unicodedata.normalize("NFC", name).casefold()


def _refused(name: str, why: str) -> StoreError:
    fix = "Rename or remove the file where it is made, then run the same command again."
    return StoreError(f"An artifact cannot hold a file named {name!r}", cause=why, fix=fix)
