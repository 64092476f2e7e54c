"""From an EP's key to its adapter."""

from __future__ import annotations

import functools
import importlib

from modelwright._extensions import EPS, extensions, load_extension
from modelwright.targets.eps._adapter import EpAdapter


@functools.cache
def adapter_of(key: str) -> EpAdapter:
    """The file of this folder called like the EP, else what another package brings, else nothing special."""
    module = f"{__package__}.{key}"
    try:
        found: EpAdapter = importlib.import_module(module).ADAPTER
    except ModuleNotFoundError as error:
        if error.name != module:
            raise
        return load_extension(EPS, key, EpAdapter) if key in extensions(EPS) else EpAdapter()
    return found
