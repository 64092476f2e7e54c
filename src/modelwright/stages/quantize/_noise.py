"""How much of its outputs a quantized model loses on the samples that nothing is learnt from.

A score behind a Softmax or Sigmoid says little about noise (it is near 0 or 1 whatever happens), so it is judged by
what goes into that.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from modelwright._dataclass import dataclass
from modelwright._lazy import lazy
from modelwright.data import Samples
from modelwright.stages.quantize._moments import judges
from modelwright.stages.quantize._ranges import fetch, run
from modelwright.stages.quantize._save import save
from modelwright.stages.quantize._session import open_session
from modelwright.stages.quantize._tensor_types import element_types

if TYPE_CHECKING:
    import numpy as np
    import onnx
    from numpy.typing import NDArray
else:
    np = lazy("numpy")
    onnx = lazy("onnx")

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
    def of(cls, model: onnx.ModelProto, samples: Samples, workdir: Path) -> NoiseMeter:
        """With the samples that nothing is learnt from."""
        return cls.over(model, (sample for index, sample in enumerate(samples) if judges(index)), workdir)

    @classmethod
    def over(cls, model: onnx.ModelProto, samples: Iterable[Sample], workdir: Path) -> NoiseMeter:
        types = element_types(model)
        names = [value.name for value in model.graph.output]
        outputs = tuple(name for name in names if types.get(name) == onnx.TensorProto.FLOAT)
        squashed = dict(_squashed(model.graph, outputs))
        places = _places(model.graph, outputs, squashed)
        judging = tuple(samples)
        session = fetch(model, tuple(places), workdir)
        answers = tuple(tuple(run(session, places, dict(sample))) for sample in judging)
        return cls(outputs, squashed, judging, answers, workdir)

    def noise(self, model: onnx.ModelProto) -> NDArray[Any] | None:
        """For each sample, against the size of each output, on average; None where there is nothing to measure."""
        places = _places(model.graph, self.outputs, self.squashed)
        size = np.array([[np.square(value, dtype=np.float64).sum() for value in item] for item in self.answers])
        told = np.isfinite(size).all(axis=0) & (size > 0).any(axis=0) if size.size else np.zeros(0, bool)
        if not told.any():
            return None
        lost = [
            [np.square(one.astype(np.float64) - other).sum() for one, other in zip(expected, found, strict=True)]
            for expected, found in zip(self.answers, self._answers(model, places), strict=True)
        ]
        share: NDArray[Any] = (np.array(lost)[:, told] / size.mean(axis=0)[told]).mean(axis=1)
        return np.where(np.isfinite(share), share, np.inf)

    def _answers(self, model: onnx.ModelProto, places: list[str]) -> Iterator[list[NDArray[Any]]]:
        shown = len(model.graph.output)
        known = {value.name for value in model.graph.output}
        model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in places if name not in known)
        with tempfile.TemporaryDirectory(dir=self.workdir, suffix=".scratch") as folder:
            session = open_session(save(model, Path(folder)))
            del model.graph.output[shown:]
            onnx.external_data_helper.load_external_data_for_model(model, folder)
            for sample in self.samples:
                yield run(session, places, dict(sample))


def _places(graph: onnx.GraphProto, outputs: Iterable[str], squashed: Mapping[str, str]) -> list[str]:
    """The tensors to look at in this form of the graph."""
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
