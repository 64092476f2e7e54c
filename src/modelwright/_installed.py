"""Which version of a package is installed."""

from __future__ import annotations

import functools
import os
import re
import sys
from typing import TYPE_CHECKING

from modelwright._lazy import lazy

if TYPE_CHECKING:
    import importlib.metadata as metadata
else:
    metadata = lazy("importlib.metadata")

_DIST, _EGG = ".dist-info", ".egg-info"


@functools.cache
def installed(distribution: str) -> str | None:
    """The version of a package; what is installed does not change under a running command."""
    wanted = _plain(distribution)
    alike = [folder for folder in metadata_folders() if _plain(_name(folder)) == wanted]
    found = next((version for folder in alike if folder.endswith(_DIST) and (version := _version(folder))), None)
    if found is not None or not (alike or any(map(os.path.isfile, sys.path))):
        return found
    try:  # an egg, or what an archive on the path holds
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def metadata_folders() -> tuple[str, ...]:
    """Of everything installed, in the order in which Python looks. importlib.metadata costs as much as the interpreter,
    and reads a readme as a letter to find a version."""
    return _listed(tuple(sys.path))


@functools.cache
def _listed(places: tuple[str, ...]) -> tuple[str, ...]:
    found = []
    for folder in dict.fromkeys(place or "." for place in places):
        try:
            names = os.listdir(folder)  # noqa: PTH208 - pathlib is not free
        except OSError:
            continue
        found += [f"{folder}/{name}" for name in names if name.endswith((_DIST, _EGG))]
    return tuple(found)


def _name(folder: str) -> str:
    return folder.rpartition("/")[2].removesuffix(_DIST).removesuffix(_EGG).partition("-")[0]


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _version(folder: str) -> str | None:
    try:
        with open(f"{folder}/METADATA", encoding="utf-8") as file:  # noqa: PTH123 - pathlib is not free
            said = next((line for line in file if line.startswith("Version:")), "")
    except (OSError, ValueError):
        return None
    return said.partition(":")[2].strip() or None
