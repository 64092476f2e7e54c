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
    for folder in metadata_folders():
        name = os.path.basename(folder)  # noqa: PTH119 - pathlib is not free
        if name.endswith(_DIST) and _plain(name.partition("-")[0]) == wanted and (version := _version(folder)):
            return version
    try:
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


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _version(folder: str) -> str | None:
    try:
        with open(f"{folder}/METADATA", encoding="utf-8") as file:  # noqa: PTH123 - pathlib is not free
            said = next((line for line in file if line.startswith("Version:")), "")
    except (OSError, ValueError):
        return None
    return said.partition(":")[2].strip() or None
