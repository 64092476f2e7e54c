"""How much of its outputs a quantized model loses on the samples that nothing is learnt from.

A score behind a Softmax or Sigmoid says little about noise (it is near 0 or 1 whatever happens), so it is judged by
what goes into that.
"""

from __future__ import annotations

import itertools
import math
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from modelwright._dataclass import dataclass
from modelwright._lazy import lazy
from modelwright.data import Samples
from modelwright.stages.quantize._moments import judges
from modelwright.stages.quantize._ranges import fetch, show
from modelwright.stages.quantize._save import save
from modelwright.stages.quantize._session import open_session, run_each
from modelwright.stages.quantize._tensor_types import element_types
from modelwright.stages.validate import slice_axis

if TYPE_CHECKING:
    import numpy as np
    import onnx
    from numpy.typing import NDArray
else:
    np = lazy("numpy")
    onnx = lazy("onnx")

_KEPT = 0.98
# Of the power of the slice that changes most.
_ALIVE = 1e-2
# With fewer numbers in a slice its level is unknown.
_FEWEST = 8
_SQUASHING = ("LogSoftmax", "Sigmoid", "Softmax")
_MOVING = ("Flatten", "Identity", "Reshape", "Squeeze", "Transpose", "Unsqueeze")

Sample = Mapping[str, "NDArray[Any]"]


@dataclass(frozen=True)
class NoiseMeter:
    """What the float model answers. `squashed` are nodes whose input is looked at, by the output that they lead to."""

    outputs: tuple[str, ...]
    squashed: Mapping[str, str]
    samples: tuple[Sample, ...]
    answers: tuple[tuple[NDArray[Any], ...], ...]
    workdir: Path

    @classmethod
    def of(cls, model: onnx.ModelProto, samples: Samples, workdir: Path, most: int | None = None) -> NoiseMeter:
        """With the samples that nothing is learnt from, or the first so many of them."""
        judging = (sample for index, sample in enumerate(samples) if judges(index))
        return cls.over(model, itertools.islice(judging, most), workdir)

    @classmethod
    def over(cls, model: onnx.ModelProto, samples: Iterable[Sample], workdir: Path) -> NoiseMeter:
        types = element_types(model)
        names = [value.name for value in model.graph.output]
        outputs = tuple(name for name in names if types.get(name) == onnx.TensorProto.FLOAT)
        squashed = dict(_squashed(model.graph, outputs))
        places = _places(model.graph, outputs, squashed)
        judging = tuple(samples)
        session = fetch(model, tuple(places), workdir)
        answers = tuple(tuple(values) for _, values in run_each(session, places, map(dict, judging)))
        return cls(outputs, squashed, judging, answers, workdir)

    def noise(self, model: onnx.ModelProto) -> NDArray[Any] | None:
        """For each sample, against the size of each output, on average; None where there is nothing to measure."""
        size = np.array([[np.square(value, dtype=np.float64).sum() for value in item] for item in self.answers])
        told = np.isfinite(size).all(axis=0) & (size > 0).any(axis=0) if size.size else np.zeros(0, bool)
        if not told.any():
            return None
        lost = [
            [np.square(one.astype(np.float64) - other).sum() for one, other in zip(expected, found, strict=True)]
            for expected, found in zip(self.answers, self.answers_of(model), strict=True)
        ]
        share: NDArray[Any] = (np.array(lost)[:, told] / size.mean(axis=0)[told]).mean(axis=1)
        return np.where(np.isfinite(share), share, np.inf)

    def places(self, model: onnx.ModelProto) -> list[str]:
        """The tensors to look at in this form of the model."""
        return _places(model.graph, self.outputs, self.squashed)

    def moved(self, found: Iterable[Sequence[NDArray[Any]]]) -> float | None:
        """The noise of answers against how much each channel or column changes with the input, so that an offset hides
        nothing; over the outputs on average. None where nothing changes."""
        got = list(found)
        shares = [
            _moved([answers[place] for answers in self.answers], [answers[place] for answers in got])
            for place in range(len(self.outputs))
        ]
        told = [share for share in shares if share is not None]
        return sum(told) / len(told) if told else None

    def answers_of(self, model: onnx.ModelProto) -> Iterator[list[NDArray[Any]]]:
        """What this form of the model answers, at the same places."""
        places = self.places(model)
        shown = len(model.graph.output)
        show(model, places)
        with tempfile.TemporaryDirectory(dir=self.workdir, suffix=".scratch") as folder:
            session = open_session(save(model, Path(folder)))
            del model.graph.output[shown:]
            onnx.external_data_helper.load_external_data_for_model(model, folder)
            for _, values in run_each(session, places, map(dict, self.samples)):
                yield values


def _moved(wanted: Sequence[NDArray[Any]], got: Sequence[NDArray[Any]]) -> float | None:
    one, other = (_in_slices(values, slice_axis(wanted[0])) for values in (wanted[: len(got)], got))
    power = np.square(one - one.mean(axis=1, keepdims=True)).mean(axis=1)
    # A few numbers that jump (a box where nothing is) do not speak for the others.
    kept = max(1, int(_KEPT * one.shape[1]))
    noise = np.partition(np.square(other - one), kept - 1, axis=1)[:, :kept].mean(axis=1)
    # What hardly changes beside the others says little, and is as small in the answers.
    alive = power > _ALIVE * power.max(initial=0.0)
    share = float((noise[alive] / power[alive]).mean()) if alive.any() else math.nan
    return share if math.isfinite(share) else None


def _in_slices(values: Sequence[NDArray[Any]], axis: int | None) -> NDArray[Any]:
    """(slices, numbers); all in one where they are of several sizes, or too few to tell a slice's level."""
    axes = {value.shape[axis] for value in values} if axis is not None else set()
    if axis is not None and len(axes) == 1 and min(axes):
        rows = [np.moveaxis(value, axis, 0).reshape(value.shape[axis], -1) for value in values]
        if sum(row.shape[1] for row in rows) >= _FEWEST:
            return np.concatenate(rows, axis=1).astype(np.float64)
    return np.concatenate([value.ravel() for value in values]).astype(np.float64)[None]


def _places(graph: onnx.GraphProto, outputs: Iterable[str], squashed: Mapping[str, str]) -> list[str]:
    reads = {node.name: node.input[0] for node in graph.node if node.op_type in _SQUASHING}
    return [reads.get(squashed.get(name, ""), name) for name in outputs]


def _squashed(graph: onnx.GraphProto, outputs: Iterable[str]) -> Iterator[tuple[str, str]]:
    makers = {name: node for node in graph.node for name in node.output}
    for name in outputs:
        node = makers.get(name)
        while node is not None and node.op_type in _MOVING:
            node = makers.get(node.input[0])
        if node is not None and node.op_type in _SQUASHING:
            yield name, node.name
