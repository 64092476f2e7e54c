"""Heavy modules at the top of a file, imported when first used."""

from __future__ import annotations

import importlib
from collections.abc import Callable
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


def lazy_names(package: str, **modules: str) -> Callable[[str], Any]:
    """The `__getattr__` of a package whose names are imported when somebody asks for them: name=module.

    Use it where others need the values of a package far more often than what works with them, with the real imports
    for the type checker:

        if TYPE_CHECKING:
            from package._run import run
        else:
            __getattr__ = lazy_names(__name__, run="_run")
    """

    def find(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"{package} has no {name}")
        return getattr(importlib.import_module(f"{package}.{modules[name]}"), name)

    return find
