"""Functions that may run in a child process, and one call of one of them."""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Callable, Mapping
from dataclasses import field
from pathlib import Path
from typing import Any, Generic, ParamSpec, TypeVar

from modelwright._dataclass import dataclass

P = ParamSpec("P")
T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True)
class Task(Generic[T_co]):
    """One call to make in a child: the function as "module:function", and its arguments.

    `root` is the folder that makes the module importable where it is not installed.
    """

    name: str
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    root: str | None = None

    @property
    def folder(self) -> str | None:
        """Where the call writes: the last folder among its arguments."""
        words = [word for word in (*self.args, *self.kwargs.values()) if isinstance(word, str)]
        return next((word for word in reversed(words) if word and _is_folder(word)), None)


def _is_folder(word: str) -> bool:
    try:
        return Path(word).is_dir()
    except OSError:
        # A text that is too long for a name.
        return False


class TaskFunction(Generic[P, T]):
    """A function marked with `@task`. Calling it runs it here; `.call(...)` describes a call for a child."""

    def __init__(self, function: Callable[P, T]) -> None:
        if "<" in function.__qualname__ or "." in function.__qualname__:
            raise TypeError(f"{function.__qualname__}: only functions at the top of a module can be tasks")
        functools.update_wrapper(self, function)
        self._function = function

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> T:
        return self._function(*args, **kwargs)

    def __reduce__(self) -> tuple[Callable[[str], object], tuple[str]]:
        """By name: in another process it is found where it is defined."""
        return resolve, (f"{self._function.__module__}:{self._function.__qualname__}",)

    def call(self, *args: P.args, **kwargs: P.kwargs) -> Task[T]:
        module, root = _locate(self._function.__module__)
        return Task(f"{module}:{self._function.__qualname__}", args, kwargs, root)


@dataclass(frozen=True)
class RemoteTask(Generic[T_co]):
    """A marked function by its name, "module:function": what is only described here is not imported here."""

    name: str

    def call(self, **kwargs: Any) -> Task[T_co]:
        return Task(self.name, (), kwargs)


def task(function: Callable[P, T]) -> TaskFunction[P, T]:
    """Mark a module-level function as one that a child may run."""
    return TaskFunction(function)


def resolve(name: str) -> TaskFunction[..., Any]:
    """The marked function behind "module:function". Anything unmarked is refused."""
    module, _, attribute = name.partition(":")
    found = getattr(importlib.import_module(module), attribute, None)
    if not isinstance(found, TaskFunction):
        raise ImportError(f"{name} is not a function marked with @task")
    return found


@functools.cache
def _locate(module: str) -> tuple[str, str | None]:
    """The name a child can import, and the folder to import it from (None inside modelwright)."""
    if module.split(".")[0] == "modelwright":
        return module, None
    loaded = sys.modules[module]
    file = getattr(loaded, "__file__", None)
    spec = getattr(loaded, "__spec__", None)
    if module == "__main__" and file is not None:
        module = spec.name if spec is not None else Path(file).stem
    if file is None:
        return module, None
    path = Path(file).resolve()
    depth = len(module.split(".")) - (path.stem != "__init__")
    return module, str(path.parents[depth])
