"""What is measured: a model file and the inputs it is fed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from modelwright._dataclass import dataclass
from modelwright.data import DataSource, first_feeds, generate
from modelwright.errors import UsageError
from modelwright.graph import Graph, ModelSummary, load, summary
from modelwright.measure.timing._batch import Axes, Batch, batch_of
from modelwright.models import FileDigest, fixed_sizes, model_files, onnx_of, specs_from_graph
from modelwright.vocabulary import Data, InputSpec

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True)
class InputChoice:
    """Where the inputs come from, how many rows make a run, and in which sizes they are made up.

    `recorded` is what the export knows about the inputs, where the model does not lie in its build folder.
    """

    data: Data = field(default_factory=Data)
    batch: int | None = None
    dims: Mapping[str, int] = field(default_factory=dict)
    recorded: InputSpec | None = None


@dataclass(frozen=True)
class InputFact:
    name: str
    dtype: str
    shape: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Subject:
    """A model on disk, what its graph says, and one set of inputs for it.

    `files` is what was measured, by content; `asked` the batch that the user wanted.
    """

    path: Path
    graph: Graph
    model: ModelSummary
    feeds: Mapping[str, NDArray[Any]]
    files: tuple[FileDigest, ...]
    asked: int | None = None

    @property
    def inputs(self) -> tuple[InputFact, ...]:
        return tuple(InputFact(name, array.dtype.name, array.shape) for name, array in self.feeds.items())

    @property
    def batch(self) -> int | None:
        """The batch really used; None where nothing says it."""
        return self.counted.size

    @property
    def counted(self) -> Batch:
        """The batch, or why it is unknown."""
        declared = {value.name: value.shape or () for value in self.model.inputs}
        axes = [Axes(one.name, declared.get(one.name, ()), one.shape) for one in self.inputs]
        return batch_of(axes, self.asked)


def make_subject(text: str | Path, inputs: InputChoice, like: Sequence[Path] = ()) -> Subject:
    """Read the model and make its inputs, in the sizes that the models in `like` have fixed; everything that does not
    fit is an error before anything runs."""
    path = onnx_of(text)
    graph = load(path)
    model = summary(graph)
    batch = _batch_dims(model, inputs.batch)
    if not inputs.data.random:
        _refuse_sizes(inputs)
        feeds = first_feeds(DataSource(inputs.data), path, inputs.batch, like)
        return Subject(path, graph, model, feeds, model_files(path), inputs.batch)
    sizes = {**fixed_sizes(graph, map(load, like)), **batch, **inputs.dims}
    specs = specs_from_graph(graph, sizes=sizes, recorded=inputs.recorded)
    return Subject(path, graph, model, generate(specs, inputs.data.seed), model_files(path), inputs.batch)


def _refuse_sizes(inputs: InputChoice) -> None:
    if inputs.dims:
        raise UsageError(
            "real data and sizes exclude each other",
            cause="what is in the data has its sizes already",
            fix="leave out `dims`, or the data",
        )
    if inputs.data.samples is not None:
        raise UsageError(
            "a measurement feeds one run again and again",
            cause="runs of different samples would not be comparable",
            fix="say with `batch` how many rows make a run, and with `seed` which",
        )


def _batch_dims(model: ModelSummary, batch: int | None) -> dict[str, int]:
    """The symbolic dimensions that --batch sets: those in front."""
    if batch is None:
        return {}
    names = {}
    for value in model.inputs:
        first = value.shape[0] if value.shape else 1
        if not isinstance(first, int):
            names[f"{value.name}:0" if first is None else first] = batch
        elif value.shape and len(value.shape) > 1 and first != batch:
            raise UsageError(
                f"the model cannot take a batch of {batch}",
                cause=f"input {value.name} has a fixed batch of {first}",
                fix="leave out `batch`, or export the model with a dynamic batch",
            )
    return names
