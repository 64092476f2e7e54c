"""Which version of a package is installed."""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING

from modelwright._lazy import lazy

if TYPE_CHECKING:
    import importlib.metadata as metadata
else:
    metadata = lazy("importlib.metadata")


@functools.cache
def installed(distribution: str) -> str | None:
    """The version of a package; what is installed does not change under a running command."""
    try:
        found = metadata.distribution(distribution)
    except metadata.PackageNotFoundError:
        return None
    # The version is one of the first lines; `.version` would parse all of them, with the readme, as a letter.
    said = re.search(r"^Version: *(\S+)", found.read_text("METADATA") or "", re.MULTILINE)
    return said[1] if said else found.version
