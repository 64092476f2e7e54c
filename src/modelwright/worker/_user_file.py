"""A file of Python that is no part of any package: the user's own, or one that was delivered."""

from __future__ import annotations

import importlib.util
import sys
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType


class _AsItLies(SourceFileLoader):
    """Python would run the bytes that it compiled before if the file has their size and second: what an editor or a
    script wrote anew at once would not be what runs. And it would write such bytes beside the file."""

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        return self.source_to_code(self.get_data(path), path)


def load_file(path: Path, name: str) -> ModuleType:
    """What the file holds now, as the module `name`: dataclasses and pickling inside look it up by that."""
    loader = _AsItLies(name, str(path))
    spec = importlib.util.spec_from_loader(name, loader)
    assert spec is not None, "there is a loader"
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        loader.exec_module(module)
    except BaseException:
        sys.modules.pop(name, None)
        raise
    return module
