"""`file.py:function`: the user's own Python. It is loaded and called in a child, never in the parent."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from modelwright._dataclass import dataclass
from modelwright._json import digest
from modelwright._lazy import lazy
from modelwright.data._npz import native
from modelwright.data._rows import Row, Rows
from modelwright.errors import InputError
from modelwright.worker import load_file, user_code

if TYPE_CHECKING:
    import numpy as np
else:
    np = lazy("numpy")


@dataclass(frozen=True)
class UserFunction:
    """`role` is what it is for, in words; `fix` how such a function should be."""

    reference: str
    role: str
    fix: str

    @property
    def name(self) -> str:
        return Path(self.reference).name

    def running(self) -> contextlib.AbstractContextManager[None]:
        """Its code runs inside: whatever happens there is an InputError about it."""
        return user_code(f"{self.role} {self.name}", self.fix)

    def failed(self, cause: str) -> InputError:
        return InputError(f"{self.role} {self.name} failed", cause=cause, fix=self.fix)

    def load(self) -> Callable[..., Any]:
        name, _, function = self.reference.rpartition(":")
        path = Path(name).absolute()
        if not path.is_file():
            raise self.failed(f"there is no file {name}")
        if path.suffix != ".py":
            raise self.failed(f"{path.name} is not a Python file")
        with self.running():
            module = load_file(path, f"modelwright_user_{digest(str(path))[:12]}")
        found = getattr(module, function, None)
        if not callable(found) or inspect.isclass(found):
            raise self.failed(f"{path.name} defines no function {function}")
        return found  # type: ignore[no-any-return]


def function_rows(reference: str) -> Rows:
    """What the user's function yields: dicts by name. Nobody knows how many before the end."""
    return Rows("function", None, lambda _: _called(reference))


def _called(reference: str) -> Iterator[Row]:
    reader = UserFunction(
        reference, "the data function", "The function takes no arguments and yields dicts: name -> numpy array."
    )
    function = reader.load()
    with reader.running():
        given = iter(function())
    while True:
        with reader.running():
            found = next(given, None)
            if found is None:
                return
            if not isinstance(found, Mapping):
                raise reader.failed(f"it gave a {type(found).__name__}, not a dict of arrays")
            row = {str(name): _plain(value) for name, value in found.items()}
            arrays = {name: value for name, value in row.items() if isinstance(value, np.ndarray)}
            if strange := [name for name, array in arrays.items() if array.dtype.hasobject]:
                raise reader.failed(f"{strange[0]} is no array of numbers but of Python objects")
        yield row


def _plain(value: Any) -> Any:
    return value if isinstance(value, str | Path) else native(np.asarray(value))
