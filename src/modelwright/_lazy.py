"""Heavy modules at the top of a file, imported when first used."""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any


class _LazyModule(ModuleType):
    def __getattr__(self, attribute: str) -> Any:
        module = importlib.import_module(self.__name__)
        try:
            found = getattr(module, attribute)
        except AttributeError:
            found = _submodule(f"{self.__name__}.{attribute}")
        # Kept here: from now on it is an ordinary attribute, which loops over samples ask for thousands of times.
        setattr(self, attribute, found)
        return found


def _submodule(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name == name:
            raise AttributeError(f"no module or attribute {name}") from None
        raise


def lazy(name: str) -> ModuleType:
    """A stand-in that imports `name`, and its submodules, when an attribute is asked for.

    Use it at the top of the file, with the real import for the type checker:

        if TYPE_CHECKING:
            import numpy as np
        else:
            np = lazy("numpy")
    """
    return _LazyModule(name)
