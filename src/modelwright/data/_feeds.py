"""From rows to what a model is fed, and from its outputs back to rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from modelwright._lazy import lazy
from modelwright.data._rows import Row
from modelwright.errors import InputError, did_you_mean
from modelwright.metrics import leaves
from modelwright.vocabulary import Data

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:
    np = lazy("numpy")

TEXT = "string"
_PIXELS = ("scale", "mean", "std")


class TakenInput(Protocol):
    """An input of a model, as its graph or its session declares it."""

    @property
    def name(self) -> str: ...
    @property
    def dtype(self) -> str | None: ...
    @property
    def shape(self) -> tuple[int | str | None, ...] | None: ...


class Feeder:
    """For one model. `batch` is how many rows it takes at once; `fixed` when it takes no other number.

    `together` is how many a model with a free batch axis is given.
    """

    def __init__(
        self,
        inputs: Sequence[TakenInput],
        data: Data,
        shared: Mapping[str, Any] | None = None,
        *,
        together: int = 1,
    ) -> None:
        self._inputs = inputs
        self._shared = shared or {}
        self._data = data
        self.scaled = False
        first = [spec.shape[0] for spec in inputs if spec.shape]
        sizes = {size for size in first if isinstance(size, int)}
        self.fixed = bool(sizes)
        free = first and not sizes and not self._uses_shared
        self.batch = max(sizes) if len(sizes) == 1 and len(first) == len(inputs) else together if free else 1

    @property
    def _uses_shared(self) -> bool:
        return any(spec.name in self._shared for spec in self._inputs)

    def chunks(self, rows: Sequence[Row]) -> Iterator[list[int]]:
        """Neighbouring rows that fit into one run: of the same shapes, at most `batch`."""
        chunk: list[int] = []
        for index, row in enumerate(rows):
            if chunk and (
                len(chunk) == self.batch or self.whole(row) or self._shapes(rows[chunk[0]]) != self._shapes(row)
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

    def whole(self, row: Row) -> bool:
        """Is the row all that the model takes at once: does an array of it bring a batch of its own?"""
        ranks = {spec.name: len(spec.shape or ()) for spec in self._inputs if spec.name in row}
        return any(np.ndim(row[name]) == rank > 0 and len(row[name]) != 1 for name, rank in ranks.items())

    def _shapes(self, row: Row) -> list[tuple[int, ...]]:
        return [np.shape(row[spec.name]) for spec in self._inputs if spec.name in row]

    def _input(self, spec: TakenInput, rows: Sequence[Row]) -> NDArray[Any]:
        if spec.name not in rows[0] and spec.name in self._shared:
            return self._typed(np.asarray(self._shared[spec.name]), spec)
        arrays = [np.asarray(self._value(spec, row)) for row in rows]
        if spec.shape is None:
            return self._typed(arrays[0], spec)
        rank = len(spec.shape)
        if arrays[0].ndim == rank and (len(rows) == 1 or self.whole(rows[0])):
            return fitting(self._typed(arrays[0], spec), spec)
        single = [array[0] if array.ndim == rank and len(array) == 1 else array for array in arrays]
        together = single[0][np.newaxis] if len(single) == 1 else np.stack(single)
        return fitting(self._typed(together, spec), spec)

    def _value(self, spec: TakenInput, row: Row) -> Any:
        if spec.name in row:
            return row[spec.name]
        names = [item.name for item in self._inputs]
        hint = did_you_mean(spec.name, row)
        raise InputError(
            f"the data has no array for the input '{spec.name}'",
            cause=f"the model takes {', '.join(names)}; the rows hold {', '.join(sorted(row))}",
            fix=(f"{hint.capitalize()} " if hint else "")
            + f"Name the arrays after the inputs, or say in `columns` which one {spec.name} is.",
        )

    def _typed(self, array: NDArray[Any], spec: TakenInput) -> NDArray[Any]:
        if spec.dtype == TEXT:
            return _texts(array, spec.name)
        wanted = None if spec.dtype is None else np.dtype(spec.dtype)
        if wanted is None or wanted == array.dtype:
            return array
        if array.dtype == np.uint8 and wanted.kind == "f":
            return self._floats(array, spec, wanted)
        return _cast(array, wanted, spec.name)

    def _floats(self, pixels: NDArray[Any], spec: TakenInput, wanted: np.dtype[Any]) -> NDArray[Any]:
        """(pixel * scale - mean) / std; what the pixels are worth is never guessed."""
        data = self._data
        if not _said(data):
            raise InputError(
                f"{spec.name} holds pixels (uint8), and the model takes {wanted}",
                cause="how pixels become numbers is part of the model, so it is never guessed",
                fix="Say it, with `scale` 1/255 for example, give the folder of the model's own `processor`, or write "
                "arrays as the model takes them.",
            )
        self.scaled = True
        found = pixels.astype(np.float64)
        found = found * data.scale if data.scale is not None else found
        if data.mean is not None:
            found = found - _per_channel(data.mean, "mean", pixels.ndim, spec, data)
        if data.std is not None:
            found = found / _per_channel(data.std, "std", pixels.ndim, spec, data)
        return np.asarray(found, wanted)


def refuse_idle_scale(data: Data, *feeders: Feeder) -> None:
    """After a run: what was said about pixels must have met some."""
    said = _said(data)
    if said and not any(feeder.scaled for feeder in feeders):
        raise InputError(
            f"`{said[0]}` has nothing to scale",
            cause="it is for uint8 pixels that the model takes as floats, and the data has none",
            fix=f"Leave `{said[0]}` out.",
        )


def _said(data: Data) -> list[str]:
    return [name for name in _PIXELS if getattr(data, name) is not None]


def channels_last(spec: TakenInput, data: Data) -> bool:
    """Where an image input has its channels: as was said, else where the model has 1 or 3 of something."""
    if data.layout is not None:
        return data.layout == "nhwc"
    shape = spec.shape or ()
    return len(shape) == 4 and shape[1] not in (1, 3) and shape[3] in (1, 3)


def _per_channel(numbers: Sequence[float], word: str, rank: int, spec: TakenInput, data: Data) -> NDArray[Any]:
    """One number for all channels, or one each along the axis they have in an array of this rank."""
    if len(numbers) == 1:
        return np.asarray(numbers[0])
    last, declared = channels_last(spec, data), spec.shape or ()
    axis = rank - 1 if last else rank - 3
    channels = declared[axis - rank] if len(declared) >= rank - axis else None
    if axis < 0 or (isinstance(channels, int) and channels != len(numbers)):
        raise InputError(
            f"`{word}` has {len(numbers)} numbers, and {spec.name} has {channels or 'no'} channels",
            cause="there is one for all of them, or one for each",
            fix="Give as many numbers as there are channels.",
        )
    places = [1] * rank
    places[axis] = len(numbers)
    return np.asarray(numbers).reshape(places)


def split(outputs: Mapping[str, Any], rows: int, taken: int) -> list[Mapping[str, NDArray[Any]]]:
    """The outputs of each of `rows` rows, of a run that took `taken`; of sequences and maps every part."""
    return [
        dict(leaves({name: _of_row(value, index, taken) for name, value in outputs.items()})) for index in range(rows)
    ]


def _of_row(value: Any, index: int, taken: int) -> Any:
    """A list of maps has one for each row; a sequence of tensors may be of any length, and each has its own rows."""
    if isinstance(value, list) and not (value and isinstance(value[0], Mapping)):
        return [_of_row(part, index, taken) for part in value]
    return value[index] if np.ndim(value) and len(value) == taken else value


def _texts(array: NDArray[Any], name: str) -> NDArray[Any]:
    """As objects, which is how onnxruntime takes texts."""
    if array.dtype.kind not in "OU" or not all(isinstance(item, str) for item in array.flat):
        raise InputError(
            f"{name} is {array.dtype} in the data, and the model takes texts",
            cause="how a number is written is part of the model, so it is never guessed",
            fix="Write the array as texts.",
        )
    return array.astype(object)


def _cast(array: NDArray[Any], wanted: np.dtype[Any], name: str) -> NDArray[Any]:
    """Integers to integers that hold them, floats to floats; anything else would change what the data says."""
    integers = array.dtype.kind in "iub" and wanted.kind in "iub"
    if integers and array.size:
        limits = np.iinfo(wanted) if wanted.kind != "b" else None
        low, high = (limits.min, limits.max) if limits is not None else (0, 1)
        integers = low <= int(array.min()) and int(array.max()) <= high
    if not integers and not (array.dtype.kind == "f" and wanted.kind == "f"):
        whole = array.dtype.kind in "iu" and wanted.kind == "f"
        raise InputError(
            f"{name} is {array.dtype} in the data, and the model takes {wanted}",
            cause="whole numbers may be pixels, which models take scaled; that is never guessed"
            if whole
            else "that would change the numbers",
            fix=f"Write the array as {wanted}" + (" (in JSON lines 1.0, not 1)." if whole else "."),
        )
    return array.astype(wanted)


def fitting(array: NDArray[Any], spec: TakenInput) -> NDArray[Any]:
    """The array, where its shape is one the input may have."""
    if spec.shape is not None and not fits(array.shape, spec.shape):
        wanted = ", ".join("?" if dim is None else str(dim) for dim in spec.shape)
        raise InputError(
            f"{spec.name} does not fit the model",
            cause=f"the data gives {list(array.shape)}, the model takes [{wanted}]",
            fix="Each row holds one sample, without the batch axis.",
        )
    return array


def fits(shape: Sequence[int], declared: Sequence[int | str | None]) -> bool:
    return len(shape) == len(declared) and all(
        not isinstance(dim, int) or dim == size for dim, size in zip(declared, shape, strict=True)
    )
