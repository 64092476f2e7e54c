"""Which files belong to a model's folder. A link or a path that leads out of it would copy whatever can be read here
into an artifact, and a pipe or a device in place of a file hangs whoever opens it."""

from __future__ import annotations

import os
import re
from pathlib import Path

_BLOB = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


def foreign(folder: Path, name: str) -> str | None:
    """Why the file `name` does not belong to the folder; None when it does, or is not there."""
    if "\0" in name:
        return "is no name of a file"
    path = folder / name
    real = Path(os.path.realpath(path))
    if not real.is_relative_to(os.path.realpath(folder)) and hub_blob(path) is None:
        return "leads outside the model's folder"
    # Not pathlib's: those raise for a name that is too long.
    return "is not a regular file" if os.path.exists(real) and not os.path.isfile(real) else None  # noqa: PTH110, PTH113


def hub_blob(path: Path) -> Path | None:
    """The blob behind a file of the Hub's own cache: `models--x/snapshots/commit/…` links to `models--x/blobs/hash`."""
    folder, real = Path(os.path.realpath(path.parent)), Path(os.path.realpath(path))
    for snapshot in (folder, *folder.parents):
        cache = snapshot.parent.parent
        if snapshot.parent.name == "snapshots" and cache.name.startswith("models--"):
            return real if real.parent == cache / "blobs" and _BLOB.fullmatch(real.name) else None
    return None
