"""What happens to data in a child before a stage sees it: it is drawn, tried, or asked for its sizes."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from modelwright._json import dumps
from modelwright._lazy import lazy
from modelwright._scratch import scratch
from modelwright.data._open import open_data
from modelwright.data._pixels import as_taken, image_inputs
from modelwright.data._prepare import Preparer
from modelwright.data._rows import Row
from modelwright.data._source import DataSource, Drawn, DrawnRow, Samples, samples
from modelwright.errors import InputError
from modelwright.graph import Graph, inputs_of, load
from modelwright.models import sizes_in
from modelwright.vocabulary import Data, OnProgress, PixelInputs
from modelwright.worker import Task, Worker, progress, run, task

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:
    np = lazy("numpy")

# Seconds between two samples.
_PATIENCE_S = 600.0
Arrays = Mapping[str, "NDArray[Any]"]
T = TypeVar("T")


class _Drawings:
    """What was drawn in this command, in folders that last as long as it does, and the child that looks into data."""

    def __init__(self, stack: contextlib.ExitStack, place: Path) -> None:
        self._stack, self._place = stack, place
        self._found: dict[tuple[Data, int], Drawn] = {}
        self.reader = stack.enter_context(Worker())

    def draw(self, data: Data, count: int, on_progress: OnProgress | None) -> Drawn:
        if (data, count) not in self._found:
            folder = self._stack.enter_context(scratch("samples", self._place))
            self._found[data, count] = _draw(data, count, folder, on_progress)
        return self._found[data, count]


_drawings: ContextVar[_Drawings | None] = ContextVar("what was drawn", default=None)


@contextlib.contextmanager
def drawing(place: Path) -> Iterator[None]:
    """The user's own code is started once inside, whoever asks for its samples: for their sizes, for every target. What
    is in files is looked into by one child, whose imports many models share."""
    with contextlib.ExitStack() as stack:
        before = _drawings.set(_Drawings(stack, place))
        try:
            yield
        finally:
            _drawings.reset(before)


@contextlib.contextmanager
def drawn(source: DataSource, count: int, place: Path, on_progress: OnProgress | None = None) -> Iterator[DataSource]:
    """The source with its rows in files for as long as this lasts; one that is in files already as it is."""
    if not source.unread:
        yield source
        return
    with scratch("samples", place) as folder:
        yield draw(source, count, folder, on_progress)


def draw(source: DataSource, count: int, folder: Path, on_progress: OnProgress | None = None) -> DataSource:
    """The same in a folder of the caller's, unless the command has drawn it already."""
    if not source.unread:
        return source
    shared = _drawings.get()
    if shared is not None:
        return replace(source, drawn=shared.draw(source.data, count, on_progress))
    return replace(source, drawn=_draw(source.data, count, folder, on_progress))


def _read(call: Task[T]) -> T:
    shared = _drawings.get()
    execute = run if shared is None else shared.reader.run
    return execute(call, timeout=_PATIENCE_S).unwrap()


def _draw(data: Data, count: int, folder: Path, on_progress: OnProgress | None) -> Drawn:
    return run(draw_rows.call(data, str(folder), count), timeout=_PATIENCE_S, on_progress=on_progress).unwrap()


def data_sizes(data: Data, model: Path, count: int, pixels: PixelInputs | None = None) -> dict[str, int]:
    """The symbolic dimensions that the first sample shows; `count` of them will be needed. `pixels` is how the finished
    model takes its images."""
    return _read(read_sizes.call(_once(data, count), str(model), pixels))


def data_shapes(data: Data, count: int) -> dict[str, tuple[int, ...]]:
    """The arrays that a row of the data holds as it is, by name; `count` rows will be needed."""
    return _read(read_shapes.call(_once(data, count)))


def _once(data: Data, count: int) -> DataSource:
    source, shared = DataSource(data), _drawings.get()
    return replace(source, drawn=shared.draw(data, count, None)) if source.unread and shared is not None else source


def try_data(source: DataSource, model: Path | None = None, pixels: PixelInputs | None = None) -> None:
    """Raise what is wrong with the data now, before anything expensive: with its first sample as the finished model
    takes it, or with its first row where there is no model yet."""
    if not source.random:
        _read(try_first.call(source, None if model is None else str(model), pixels))


def first_feeds(
    source: DataSource, model: Path, rows: int | None, like: Sequence[Path] = ()
) -> dict[str, NDArray[Any]]:
    """One run's worth: so many rows together, or as many as the model, or another form of it, takes at once."""
    others = tuple(map(str, like))
    return dict(run(read_feeds.call(source, str(model), rows, others), timeout=_PATIENCE_S).unwrap())


@task
def draw_rows(data: Data, folder: str, count: int) -> Drawn:
    """At most `count` rows, each array in a file."""
    rows, found = open_data(data), []
    for place, (_, row) in enumerate(rows.chosen(data, count)):
        found.append(_kept(row, Path(folder), place))
        progress(f"drawing sample {place + 1} of {count}", (place + 1) / count)
    return Drawn(folder, rows.kind, tuple(found))


@task
def read_sizes(source: DataSource, model: str, pixels: PixelInputs | None = None) -> dict[str, int]:
    graph = load(model)
    sample = next(iter(_taken(source, graph, pixels)))
    for image in () if pixels is None else image_inputs(inputs_of(graph), pixels):
        if image.moved is not None:
            back = [image.moved.index(axis) for axis in range(len(image.moved))]
            sample = {**sample, image.name: sample[image.name].transpose(back)}
    return sizes_in(sample, graph)


def _taken(source: DataSource, graph: Graph, pixels: PixelInputs | None) -> Samples:
    found = samples(source, graph, 1)
    return found if pixels is None else replace(found, signature=as_taken(inputs_of(graph), pixels))


@task
def read_shapes(source: DataSource) -> dict[str, tuple[int, ...]]:
    for _, row in source.rows().chosen(source.data, 1):
        return {
            name: np.shape(value) for name, value in row.items() if isinstance(value, np.ndarray | np.generic | str)
        }
    return {}


@task
def read_feeds(source: DataSource, model: str, rows: int | None, like: Sequence[str] = ()) -> dict[str, NDArray[Any]]:
    found = samples(source, load(model), 1, [load(other) for other in like])
    fixed = [value.shape[0] for value in found.signature if value.shape]
    count = rows or max((size for size in fixed if isinstance(size, int)), default=1)
    there = None if source.random else source.rows().count
    if rows is not None and there is not None and there < rows:
        raise InputError(
            f"a run of {rows} rows cannot be made of {there}",
            cause="each row of the data is one sample",
            fix=f"Give {rows} rows, or ask for a smaller `batch`.",
        )
    return next(iter(replace(found, count=count, together=count)))


@task
def try_first(source: DataSource, model: str | None, pixels: PixelInputs | None = None) -> None:
    if model is not None:
        next(iter(_taken(source, load(model), pixels)))
        return
    rows = source.rows()
    first = next((row for _, row in rows.chosen(source.data, 1)), None)
    if first is None:
        raise InputError("there is no sample", cause=f"{source.data.source} gave none", fix="Give at least one.")
    Preparer((), source.data, rows.label_names, rows.shared).tried(first)


class SampleHash:
    """SHA-256 over names, types, shapes and values, in order."""

    def __init__(self, before: bytes = b"") -> None:
        self._hash = hashlib.sha256(before)

    def add(self, sample: Row) -> None:
        for name in sorted(sample):
            array = np.ascontiguousarray(sample[name])
            # Texts are objects, whose bytes are where they happen to lie.
            array = array.astype(str) if array.dtype.hasobject else array
            self._hash.update(f"{name}:{array.dtype.str}:{array.shape};".encode())
            self._hash.update(array.reshape(-1).view(np.uint8).data)

    def hexdigest(self) -> str:
        return self._hash.hexdigest()


def samples_digest(drawn: Iterable[Arrays]) -> str:
    total = SampleHash()
    for sample in drawn:
        total.add(sample)
    return total.hexdigest()


def _kept(row: Row, folder: Path, index: int) -> DrawnRow:
    """Pictures become arrays; what is neither an array nor plain text or numbers is left behind."""
    arrays = {name: array for name, value in row.items() if (array := _as_array(value)) is not None}
    rest = {name: value for name, value in row.items() if name not in arrays and _is_plain(value)}
    kept = []
    for position, (name, array) in enumerate(arrays.items()):
        file = f"{index:06}-{position:03}.npy"
        np.save(folder / file, array, allow_pickle=False)
        kept.append((name, array.dtype.name, file))
    text = dumps(rest)
    return DrawnRow(tuple(kept), text, hashlib.sha256(f"{samples_digest([arrays])}{text}".encode()).hexdigest())


def keep_arrays(arrays: Arrays, folder: Path) -> DrawnRow:
    """A row of arrays in files named after their content: what several rows share is there once."""
    kept = []
    for name, array in arrays.items():
        file = f"{samples_digest([{'': array}])}.npy"
        if not (folder / file).exists():
            np.save(folder / file, array, allow_pickle=False)
        kept.append((name, array.dtype.name, file))
    return DrawnRow(tuple(kept), dumps({}), samples_digest([arrays]))


def _is_plain(value: Any) -> bool:
    try:
        dumps(value)
    except (TypeError, ValueError):
        return False
    return True


def _as_array(value: Any) -> NDArray[Any] | None:
    if isinstance(value, str | int | float | Path | dict) or value is None:
        return None
    array = np.asarray(value)
    return None if array.dtype.hasobject or array.dtype.kind == "U" else array
