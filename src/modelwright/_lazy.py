"""Heavy modules at the top of a file, imported when first used."""

from __future__ import annotations

import contextlib
import importlib
import sys
from collections.abc import Callable, Iterator, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import TYPE_CHECKING, Any

# What a library imports at its top for arithmetic that hardly anybody asks it for, and that costs more than all the
# rest of it: sympy is two thirds of onnx_ir's import, in every child that optimizes or quantizes.
_HARDLY_USED = {"onnx_ir": ("sympy", "onnx_ir._symbolic_shapes")}


class _LazyModule(ModuleType):
    def _load(self) -> ModuleType:
        with _putting_off(_HARDLY_USED.get(self.__name__.partition(".")[0], ())):
            return importlib.import_module(self.__name__)

    def __getattr__(self, attribute: str) -> Any:
        module = self._load()
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


class _Messages(_LazyModule):
    def _load(self) -> ModuleType:
        found = None if "onnx" in sys.modules else util.find_spec("onnx")
        if found is None or not found.submodule_search_locations or api_implementation.Type() != "upb":
            return super()._load()
        file = f"{found.submodule_search_locations[0]}/onnx_ml_pb2.py"
        spec = util.spec_from_file_location(f"{__package__}._onnx_messages", file)
        if spec is None or spec.loader is None:
            return super()._load()
        # The classes belong to protobuf's pool: `onnx`, imported later, has the same ones.
        module = sys.modules.get(spec.name) or util.module_from_spec(spec)
        if spec.name not in sys.modules:
            spec.loader.exec_module(module)
            sys.modules[spec.name] = module
        return module


def lazy_messages() -> ModuleType:
    """As `lazy("onnx")`, for those who need no more of it than its messages: the rest of it brings numpy, and takes
    longer to import than a large graph to read."""
    return _Messages("onnx")


if TYPE_CHECKING:
    from importlib import util
else:
    util = lazy("importlib.util")
api_implementation = lazy("google.protobuf.internal.api_implementation")  # has no type stubs


@contextlib.contextmanager
def _putting_off(names: Sequence[str]) -> Iterator[None]:
    """Modules of these names that are imported inside run when their first attribute is asked for."""
    finder = _PutOff(names)
    if names:
        sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        if names:
            sys.meta_path.remove(finder)


class _PutOff:
    """Finds modules as Python does, and lets them wait."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        spec = PathFinder.find_spec(name, path, target) if name in self._names else None
        if spec is not None and spec.loader is not None:
            spec.loader = util.LazyLoader(spec.loader)
        return spec


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
