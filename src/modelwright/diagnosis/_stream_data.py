"""The samples both models are fed: real ones with or without labels, or made-up ones, one at a time."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from modelwright._lazy import lazy
from modelwright.data import CalibrationSource, RandomCalibration, calibration_source, check_inputs, rows
from modelwright.errors import InputError
from modelwright.graph import Graph, ValueSpec, load, summary
from modelwright.models import specs_from_graph
from modelwright.vocabulary import Data, InputSpec

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:
    np = lazy("numpy")

LABELS = ("label", "labels")


@dataclass(frozen=True, eq=False)
class Sample:
    """What the model is fed, and what the right answer is, where that is known."""

    inputs: dict[str, NDArray[Any]]
    label: int | None = None


@dataclass(frozen=True)
class Feed:
    """Samples `start` to `start + count`, every `step`-th. Iterating again gives the same ones."""

    source: CalibrationSource
    signature: tuple[ValueSpec, ...]
    specs: InputSpec
    count: int
    scale: float | None = None
    start: int = 0
    step: int = 1

    def __iter__(self) -> Iterator[Sample]:
        given = 0
        stop = self.start + self.count * self.step
        held = rows(self.source, self.signature, self.specs)
        for index, (_, row) in enumerate(itertools.islice(held, self.start, stop, self.step)):
            yield self._sample(row, index)
            given += 1
        if not given:
            raise InputError(
                "there is no sample to compare on",
                cause=f"the {self.source.kind} source holds none at this place",
                fix="Give more samples, or ask for fewer.",
            )

    @property
    def random(self) -> bool:
        return isinstance(self.source, RandomCalibration)

    def _sample(self, row: Mapping[str, NDArray[Any]], index: int) -> Sample:
        names = {value.name for value in self.signature}
        label = next((row[name] for name in LABELS if name in row and name not in names), None)
        kept = {name: array for name, array in row.items() if name in names or name not in LABELS}
        inputs = {name: self._scaled(name, array) for name, array in kept.items()}
        check_inputs(inputs, self.signature, origin=f"sample {index} of the data")
        return Sample(inputs, None if label is None else int(np.asarray(label).reshape(-1)[0]))

    def _scaled(self, name: str, array: NDArray[Any]) -> NDArray[Any]:
        """Pixels as the model takes them; what they are multiplied with is never guessed."""
        declared = next((value.dtype for value in self.signature if value.name == name), None)
        if array.dtype != np.uint8 or declared != "float32":
            return array
        if self.scale is None:
            raise InputError(
                f"input {name} holds pixels, the model takes float32",
                cause="the data is uint8, and nothing says what one step of it is worth",
                fix="Say it with `scale` 1/255, or write arrays as the model takes them.",
            )
        return (array.astype(np.float64) * self.scale).astype(np.float32)


def data_source(data: Data, model: Path, recorded: InputSpec | None = None) -> CalibrationSource:
    """What the user names; made-up samples follow what an export recorded, also for a copy away from its build."""
    if data.random:
        return RandomCalibration(data.seed, specs_from_graph(load(model), recorded=recorded))
    return calibration_source(data)


def make_feed(source: CalibrationSource, graph: Graph, count: int, scale: float | None = None) -> Feed:
    specs: InputSpec = ()
    if isinstance(source, RandomCalibration):
        specs = source.specs or specs_from_graph(graph)
    return Feed(source, tuple(summary(graph).inputs), specs, count, scale)


def as_declared(inputs: Mapping[str, NDArray[Any]], types: Mapping[str, str]) -> dict[str, NDArray[Any]]:
    """Floats in the type the other model declares (a float16 model may take float16)."""
    return {
        name: array.astype(types[name])
        if array.dtype.kind == "f" and types.get(name, "").startswith("float")
        else array
        for name, array in inputs.items()
        if name in types
    }
