"""From rows to what a model is fed, and from its outputs back to rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from modelwright._lazy import lazy
from modelwright.errors import InputError, did_you_mean
from modelwright.evaluation.tasks import Outputs, Row
from modelwright.targets import SessionTensor

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:
    np = lazy("numpy")

_BATCH = 16


class Feeder:
    """For one model. `batch` is how many rows it takes at once; `fixed` when it takes no other number."""

    def __init__(
        self, inputs: Sequence[SessionTensor], shared: Mapping[str, Any], scale: float | None, *, may_batch: bool
    ) -> None:
        self._inputs = inputs
        self._shared = shared
        self._scale = scale
        self.scaled = False
        first = [spec.shape[0] for spec in inputs if spec.shape]
        sizes = {size for size in first if isinstance(size, int)}
        self.fixed = bool(sizes)
        free = may_batch and first and not sizes and not self._uses_shared
        self.batch = max(sizes) if len(sizes) == 1 and len(first) == len(inputs) else _BATCH if free else 1

    @property
    def _uses_shared(self) -> bool:
        return any(spec.name in self._shared for spec in self._inputs)

    def chunks(self, rows: Sequence[Row]) -> Iterator[list[int]]:
        """Neighbouring rows that fit into one run: of the same shapes, at most `batch`."""
        chunk: list[int] = []
        for index, row in enumerate(rows):
            if chunk and (
                len(chunk) == self.batch or _shapes(rows[chunk[0]], self._inputs) != _shapes(row, self._inputs)
            ):
                yield chunk
                chunk = []
            chunk.append(index)
        if chunk:
            yield chunk

    def feeds(self, rows: Sequence[Row]) -> dict[str, NDArray[Any]]:
        """One run's inputs. A fixed batch is filled up with the last row, whose answers are then dropped."""
        filled = [*rows, *[rows[-1]] * (self.batch - len(rows) if self.fixed else 0)]
        return {spec.name: self._input(spec, filled) for spec in self._inputs}

    def _input(self, spec: SessionTensor, rows: Sequence[Row]) -> NDArray[Any]:
        if spec.name not in rows[0] and spec.name in self._shared:
            return self._typed(np.asarray(self._shared[spec.name]), spec)
        arrays = [np.asarray(self._value(spec, row)) for row in rows]
        rank = len(spec.shape)
        if len(rows) == 1 and arrays[0].ndim == rank:
            whole = arrays[0]
        else:
            single = [array[0] if array.ndim == rank and len(array) == 1 else array for array in arrays]
            whole = np.stack(single) if rank else single[0]
        return _fitting(self._typed(whole, spec), spec)

    def _value(self, spec: SessionTensor, row: Row) -> Any:
        if spec.name in row:
            return row[spec.name]
        names = [item.name for item in self._inputs]
        hint = did_you_mean(spec.name, row)
        raise InputError(
            f"the data has no array for the input '{spec.name}'",
            cause=f"the model takes {', '.join(names)}; the rows hold {', '.join(sorted(row))}",
            fix=(f"{hint.capitalize()} " if hint else "")
            + f"Name the arrays after the inputs, or say `columns` {spec.name}=COLUMN.",
        )

    def _typed(self, array: NDArray[Any], spec: SessionTensor) -> NDArray[Any]:
        wanted = np.dtype(spec.dtype)
        if array.dtype == np.uint8 and wanted.kind == "f":
            if self._scale is None:
                raise InputError(
                    f"{spec.name} is uint8 in the data, and the model takes {wanted}",
                    cause="how pixels become numbers is part of the model, so it is never guessed",
                    fix="Say it with `scale` 1/255, give `processor` FOLDER, or write arrays as the model takes them.",
                )
            self.scaled = True
            return np.asarray(array.astype(np.float64) * self._scale, wanted)
        if array.dtype == wanted:
            return array
        return _cast(array, wanted, spec.name)


def split(outputs: Mapping[str, NDArray[Any]], rows: int, taken: int) -> list[Outputs]:
    """The outputs of each of `rows` rows, of a run that took `taken`."""
    found: list[Outputs] = []
    for index in range(rows):
        found.append(
            {name: value[index] if value.ndim and len(value) == taken else value for name, value in outputs.items()}
        )
    return found


def _shapes(row: Row, inputs: Sequence[SessionTensor]) -> list[tuple[int, ...]]:
    return [np.shape(row[spec.name]) for spec in inputs if spec.name in row]


def _cast(array: NDArray[Any], wanted: np.dtype[Any], name: str) -> NDArray[Any]:
    """Integers to integers that hold them, floats to floats; anything else would change what the data says."""
    integers = array.dtype.kind in "iub" and wanted.kind in "iub"
    if integers and array.size:
        limits = np.iinfo(wanted) if wanted.kind != "b" else None
        low, high = (limits.min, limits.max) if limits is not None else (0, 1)
        integers = low <= int(array.min()) and int(array.max()) <= high
    if not integers and not (array.dtype.kind == "f" and wanted.kind == "f"):
        raise InputError(
            f"{name} is {array.dtype} in the data, and the model takes {wanted}",
            cause="that would change the numbers",
            fix=f"Write the array as {wanted}.",
        )
    return array.astype(wanted)


def _fitting(array: NDArray[Any], spec: SessionTensor) -> NDArray[Any]:
    fits = array.ndim == len(spec.shape) and all(
        not isinstance(dim, int) or dim == size for dim, size in zip(spec.shape, array.shape, strict=True)
    )
    if not fits:
        wanted = ", ".join(str(dim) for dim in spec.shape)
        raise InputError(
            f"{spec.name} does not fit the model",
            cause=f"the data gives {list(array.shape)}, the model takes [{wanted}]",
            fix="Each row holds one sample, without the batch axis.",
        )
    return array
