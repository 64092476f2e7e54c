"""Data on its way to a model: what a child is handed, and the samples it makes of it."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from modelwright._dataclass import dataclass
from modelwright._json import digest, loads
from modelwright._lazy import lazy
from modelwright.data._feeds import Feeder, TakenInput, fits, refuse_idle_scale
from modelwright.data._generate import generate, made_up_bytes
from modelwright.data._given import check_inputs, unfit
from modelwright.data._open import data_files, in_files, open_data
from modelwright.data._prepare import Preparer
from modelwright.data._rows import LABELS, Row, Rows
from modelwright.errors import InputError, did_you_mean
from modelwright.graph import Graph, inputs_of, load
from modelwright.models import file_digest, fitted, fixed_sizes, specs_from_graph, with_sizes
from modelwright.vocabulary import RANDOM, Data, InputSpec

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:
    np = lazy("numpy")


@dataclass(frozen=True)
class DrawnRow:
    """One row as files: name, type and file of each array, and the texts and numbers beside them as JSON."""

    arrays: tuple[tuple[str, str, str], ...]
    rest: str
    digest: str


@dataclass(frozen=True)
class Drawn:
    """Rows that were drawn once, in a child, and are kept in `folder`."""

    folder: str
    kind: str
    rows: tuple[DrawnRow, ...]

    @property
    def files(self) -> tuple[Path, ...]:
        return tuple(Path(self.folder, file) for file in sorted({file for row in self.rows for *_, file in row.arrays}))


@dataclass(frozen=True)
class DataSource:
    """`specs` is what made-up input is made from, guessed from the graph where there is none. `drawn` are the rows of
    the user's own function or of a package: those are asked once."""

    data: Data = field(default_factory=Data)
    specs: InputSpec = ()
    drawn: Drawn | None = None

    @property
    def random(self) -> bool:
        return self.data.random

    @property
    def unread(self) -> bool:
        """Nobody knows what it holds before it is drawn."""
        return not self.random and self.drawn is None and not in_files(self.data)

    def rows(self) -> Rows:
        """Of real data. Only in a child."""
        if self.drawn is None:
            return open_data(self.data)
        # Chosen when they were drawn: whoever wants fewer takes the first ones.
        drawn, folder = self.drawn, Path(self.drawn.folder)
        return Rows(drawn.kind, None, lambda _: (_read(row, folder) for row in drawn.rows))

    def identity(self, count: int) -> str:
        """SHA-256 of what decides which at most `count` samples a model is fed."""
        if self.random:
            return _made_up(self.data.seed, self.specs)
        data = self.data
        how = [data.scale, data.mean, data.std, data.size, data.layout, dict(data.columns), _processor(data)]
        if self.drawn is not None:
            return digest([self.drawn.kind, [row.digest for row in self.drawn.rows[:count]], how])
        base = Path(data.source).expanduser()
        files = [(_name(path, base), file_digest(path)) for path in data_files(data) or ()]
        return digest([files, data.samples, data.seed, how])

    def size_bytes(self) -> int | None:
        """What the samples take, on disk or made up; None when nobody knows."""
        if self.random:
            return made_up_bytes(self.specs)
        files = data_files(self.data) if self.drawn is None else self.drawn.files
        return None if files is None else sum(path.stat().st_size for path in files if path.is_file())


@functools.lru_cache(256)
def _made_up(seed: int, specs: InputSpec) -> str:
    return digest([RANDOM, seed, specs])


@dataclass(frozen=True, eq=False)
class Sample:
    """What the model is fed in one run, and the row that it comes from (the first of a batch)."""

    inputs: dict[str, NDArray[Any]]
    row: Row = field(default_factory=dict)

    @property
    def label(self) -> int | None:
        """The right answer, where the row has one that is no input."""
        found = next((self.row[name] for name in LABELS if name in self.row and name not in self.inputs), None)
        return None if found is None else int(np.asarray(found).reshape(-1)[0])


@dataclass(frozen=True)
class Samples:
    """At most `count` rows as a model takes them, of those every `step`-th from `start` on; `after` so many that went
    elsewhere, others as far as there are. Iterating again gives the same ones. `together` rows go into a run where the
    model takes any number of them. `longest` is the most tokens of a text, where the inputs do not say it."""

    source: DataSource
    signature: tuple[TakenInput, ...]
    specs: InputSpec
    count: int
    start: int = 0
    step: int = 1
    together: int = 1
    longest: int | None = None
    after: int = 0

    @property
    def held_out(self) -> int:
        """How many of the rows did not go elsewhere before."""
        return self.source.rows().fresh(self.source.data, self.count, self.after)

    @property
    def random(self) -> bool:
        return self.source.random

    @property
    def kind(self) -> str:
        return RANDOM if self.random else self.source.rows().kind

    def __iter__(self) -> Iterator[dict[str, NDArray[Any]]]:
        """What the model is fed, run by run. None at all is an error."""
        return (sample.inputs for sample in self.labelled())

    def labelled(self) -> Iterator[Sample]:
        """The same, each beside its row."""
        given = False
        for sample in self._made_up() if self.random else self._real():
            given = True
            yield sample
        if not given:
            raise InputError(
                "there is no sample",
                cause="the data gave none, or none at this place",
                fix="Give at least one; a few dozen from real use is a good number.",
            )

    def _made_up(self) -> Iterator[Sample]:
        for index in range(self.start, self.count, self.step):
            inputs = generate(self.specs, self.source.data.seed, index)
            check_inputs(inputs, self.signature, origin="the made-up sample")
            yield Sample(inputs)

    def _real(self) -> Iterator[Sample]:
        rows = self.source.rows()
        prepare = Preparer(self.signature, self.source.data, rows.label_names, rows.shared, longest=self.longest)
        feeder = Feeder(self.signature, self.source.data, rows.shared, together=self.together)
        require_fitting(rows, self.signature, self.source.data)
        for batch in self._batches(rows, prepare, feeder):
            inputs = feeder.feeds([row for _, row in batch])
            check_inputs(inputs, self.signature, origin=f"sample {batch[0][0]} of {Path(self.source.data.source).name}")
            refuse_idle_scale(self.source.data, feeder)
            yield Sample(inputs, batch[0][1])

    def _batches(self, rows: Rows, prepare: Preparer, feeder: Feeder) -> Iterator[list[tuple[int, Row]]]:
        batch: list[tuple[int, Row]] = []
        for place, (number, row) in enumerate(rows.chosen(self.source.data, self.count, self.after)):
            if place < self.start or (place - self.start) % self.step:
                continue
            batch.append((number, prepare(row)))
            if len(batch) == feeder.batch or feeder.whole(batch[0][1]):
                yield batch
                batch = []
        if batch:
            yield batch


def source_for(data: Data, model: Path, recorded: InputSpec | None = None, like: Sequence[Path] = ()) -> DataSource:
    """The data for a model on disk; made-up input follows what an export recorded, also for a copy away from it.
    What the models in `like` have fixed is no guess."""
    if not data.random:
        return DataSource(data)
    graph = load(model)
    sizes = fixed_sizes(graph, map(load, like))
    return DataSource(data, specs_from_graph(graph, sizes=sizes, recorded=recorded))


def samples(source: DataSource, graph: Graph, count: int, like: Sequence[Graph] = (), *, after: int = 0) -> Samples:
    """What the source holds for this model and for other forms of it, in the sizes that any of them has fixed; the
    graphs are read now, the data later. `after`: real rows that went to somebody else first."""
    sizes = fixed_sizes(graph, like)
    signature = with_sizes(inputs_of(graph), sizes)
    specs: InputSpec = ()
    if source.random:
        specs = fitted(source.specs, signature) if source.specs else specs_from_graph(graph, sizes=sizes)
    return Samples(source, signature, specs, count, after=0 if source.random else after)


def require_fitting(rows: Rows, signature: Sequence[TakenInput], data: Data) -> None:
    """What the headers already tell is said before anything is unpacked."""
    heads, wrong = rows.headers, []
    for spec in signature:
        if spec.name not in heads and spec.name not in rows.shared and not _raw(rows, data):
            hint = did_you_mean(spec.name, heads)
            wrong.append(f"{spec.name} is missing{f' ({hint})' if hint else ''}")
        elif spec.name in heads and spec.shape is not None:
            shape = heads[spec.name].shape
            if not fits(shape, spec.shape) and not fits(shape, spec.shape[1:]):
                wrong.append(f"{spec.name} is {list(shape)} in a sample")
    if heads and wrong:
        raise unfit(Path(data.source).name, wrong, signature)


def _raw(rows: Rows, data: Data) -> bool:
    """May a processor make the inputs of what the rows hold?"""
    return any(head.dtype.kind == "U" for head in rows.headers.values()) or data.processor is not None


def _read(row: DrawnRow, folder: Path) -> Row:
    arrays = {name: _array(folder / file, dtype) for name, dtype, file in row.arrays}
    return {**loads(row.rest), **arrays}


def _array(path: Path, dtype: str) -> NDArray[Any]:
    """numpy does not write down the types that others add to it, such as bfloat16."""
    array: NDArray[Any] = np.load(path, allow_pickle=False)
    return array if array.dtype.name == dtype else array.view(dtype)


def _processor(data: Data) -> str | None:
    """By content: the files that say how texts, images and sounds become numbers, not the weights beside them."""
    if data.processor is None:
        return None
    folder = Path(data.processor).expanduser()
    files = [path for path in sorted(folder.glob("*")) if path.suffix in (".json", ".txt", ".model") and path.is_file()]
    return digest([(path.name, file_digest(path)) for path in files])


def _name(path: Path, base: Path) -> str:
    return path.relative_to(base).as_posix() if path.is_relative_to(base) and path != base else path.name
