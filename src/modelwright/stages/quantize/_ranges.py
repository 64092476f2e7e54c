"""Activation ranges, one sample at a time: memory holds one sample and one pair of numbers per tensor."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from modelwright._dataclass import dataclass
from modelwright._lazy import lazy
from modelwright.data import SampleHash, Samples
from modelwright.errors import InputError
from modelwright.stages.quantize._bias import Product, add_means
from modelwright.stages.quantize._model import opset_of
from modelwright.stages.quantize._order import move_to_makers
from modelwright.stages.quantize._scope import CLAMPS, MOVERS, WORKERS
from modelwright.stages.quantize._session import open_session, run, run_each
from modelwright.worker import progress

if TYPE_CHECKING:
    import numpy as np
    import onnx
    from numpy.typing import NDArray
else:
    np = lazy("numpy")
    onnx = lazy("onnx")

WATCHED = "calibrate.scratch.onnx"
# Sum is there to betray a NaN: onnxruntime's Min and Max skip it, and forget what they saw before it.
_REDUCTIONS = ("ReduceMin", "ReduceMax", "ReduceSum")
_SIZE = "Size"
_RANGES, _SIZES, _MEANS = "::ranges", "::sizes", "::means"


@dataclass
class Range:
    """The smallest and largest value of one tensor so far."""

    low: NDArray[Any]
    high: NDArray[Any]

    def widen(self, low: NDArray[Any], high: NDArray[Any]) -> None:
        self.low, self.high = np.minimum(self.low, low), np.maximum(self.high, high)

    def at_least(self, width: float) -> Range:
        """As wide, with zero in it, as a scale is made from."""
        low, high = np.minimum(self.low, 0), np.maximum(self.high, 0)
        more = np.asarray(max(width - float(high - low), 0) / 2, low.dtype)
        return Range(low - more, high + more) if more else self

    @property
    def largest(self) -> float:
        return float(max(abs(self.low), abs(self.high)))

    @property
    def finite(self) -> bool:
        return bool(np.isfinite(self.low) and np.isfinite(self.high))


@dataclass(frozen=True)
class Observed:
    """What a pass over the samples saw; of sizes, the largest count of elements."""

    ranges: dict[str, Range]
    samples: int
    digest: str
    means: dict[str, NDArray[Any]]
    sizes: dict[str, int]


@dataclass(frozen=True)
class Watch:
    """What a pass over the samples looks at: tensors for their ranges, products for the means of their inputs."""

    tensors: tuple[str, ...]
    products: tuple[Product, ...] = ()

    @property
    def lists(self) -> dict[str, list[str]]:
        """What is handed out, and the values in it; no list is empty."""
        found = {
            _RANGES: [_output(name, kind) for name in self.tensors for kind in _REDUCTIONS],
            _SIZES: [_output(name, _SIZE) for name in self.tensors],
            _MEANS: [item.mean for item in self.products],
        }
        return {name: values for name, values in found.items() if values}


def observe(model: onnx.ModelProto, watch: Watch, samples: Samples, workdir: Path) -> Observed:
    """Smallest and largest value of each tensor over all samples. NaN is refused by name, and infinity where a product
    reads it; elsewhere it fills a mask, and the range says so."""
    path = workdir / WATCHED
    watched = _with_reductions(model, watch.tensors)
    add_means(watched, watch.products, opset_of(model))
    move_to_makers(watched.graph, len(model.graph.node))
    _gather(watched, watch)
    path.write_bytes(watched.SerializeToString())
    try:
        return _observe(open_session(path), model, watch, samples, workdir)
    finally:
        path.unlink(missing_ok=True)


def widened(model: onnx.ModelProto, ranges: dict[str, Range], narrowest: Mapping[str, float]) -> dict[str, Range]:
    """Ranges as wide as the operators that read them need, by operator. What only moves values has the scale of what it
    moves, so that is widened too. What a clamp left out keeps its range, because the clamping is left to it."""
    made = {name: node for node in model.graph.node for name in node.output}
    found = dict(ranges)
    for node in model.graph.node:
        for name in _moved(node.input[0], made) if node.op_type in narrowest else ():
            if name in found:
                found[name] = found[name].at_least(narrowest[node.op_type])
    return found


def _moved(tensor: str, made: Mapping[str, onnx.NodeProto]) -> Iterator[str]:
    """A tensor, and what it is made of by moving values; nothing where a clamp made it."""
    node = made.get(tensor)
    while node is None or node.op_type not in CLAMPS:
        yield tensor
        if node is None or node.op_type not in MOVERS:
            return
        tensor = node.input[0]
        node = made.get(tensor)


def fetch(model: onnx.ModelProto, tensors: tuple[str, ...], workdir: Path) -> Any:
    """A session whose outputs are these tensors themselves."""
    watched = onnx.ModelProto()
    watched.CopyFrom(model)
    show(watched, tensors)
    path = workdir / WATCHED
    path.write_bytes(watched.SerializeToString())
    try:
        return open_session(path)
    finally:
        path.unlink(missing_ok=True)


def show(model: onnx.ModelProto, tensors: Iterable[str]) -> None:
    """Outputs, as far as they are none yet."""
    shown = {value.name for value in model.graph.output}
    model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in tensors if name not in shown)


def _observe(session: Any, model: onnx.ModelProto, watch: Watch, samples: Samples, workdir: Path) -> Observed:
    ranges: dict[str, Range] = {}
    seen: dict[str, int] = {}
    sums: dict[str, NDArray[Any]] = {}
    total, count = SampleHash(), 0
    names = list(watch.lists)
    for sample, answers in run_each(session, names, samples, lambda found: _held(names, found)):
        total.add(sample)
        lists: dict[str, Any] = dict(zip(names, answers, strict=True))
        doubtful = _fold(watch.tensors, lists[_RANGES], ranges)
        for item, value in zip(watch.products, lists.get(_MEANS, ()), strict=True):
            sums[item.node] = sums.get(item.node, 0.0) + value.astype(np.float64)
        for name, value in zip(watch.tensors, lists[_SIZES], strict=True):
            seen[name] = max(seen.get(name, 0), int(value))
        if doubtful:
            _refuse_not_finite(model, doubtful, sample, count, workdir)
        count += 1
        progress(f"calibrating: sample {count}")
    return Observed(ranges, count, total.hexdigest(), {name: value / count for name, value in sums.items()}, seen)


def _held(names: list[str], answers: list[Any]) -> int:
    """At the most what a sample's tensors take, if none of them were let go."""
    return 4 * sum(int(size) for size in answers[names.index(_SIZES)])


def _fold(tensors: tuple[str, ...], values: list[NDArray[Any]], ranges: dict[str, Range]) -> tuple[str, ...]:
    """Widen the ranges; returns the tensors whose values may not all be finite."""
    doubtful = []
    for index, name in enumerate(tensors):
        low, high, total = values[3 * index : 3 * index + 3]
        if not low.size:
            continue
        low, high = low.reshape(()), high.reshape(())
        # A sum of finite numbers may overflow (masks do it): only NaN in it says anything.
        if not (np.isfinite(low) and np.isfinite(high)) or np.isnan(total).any():
            doubtful.append(name)
        if name in ranges:
            ranges[name].widen(low, high)
        else:
            ranges[name] = Range(low, high)
    return tuple(doubtful)


def _refuse_not_finite(
    model: onnx.ModelProto,
    doubtful: tuple[str, ...],
    sample: dict[str, NDArray[Any]],
    index: int,
    workdir: Path,
) -> None:
    """Overflows of both signs make a NaN although every value is finite, so look at the values themselves."""
    multiplied = {name for node in model.graph.node if node.op_type in WORKERS for name in (*node.input, *node.output)}
    for name, value in zip(doubtful, run(fetch(model, doubtful, workdir), list(doubtful), sample), strict=True):
        what = "NaN" if np.isnan(value).any() else "infinity"
        if np.isfinite(value).all() or (what == "infinity" and name not in multiplied):
            continue
        raise InputError(
            f"tensor {name} holds {what} in calibration sample {index}",
            cause="no range can be found for it",
            fix="Fix the sample, exclude the nodes that touch it, or add the pass clamp_mask_constants.",
        )


def _with_reductions(model: onnx.ModelProto, tensors: tuple[str, ...]) -> onnx.ModelProto:
    watched = onnx.ModelProto()
    watched.CopyFrom(model)
    del watched.graph.output[:]
    for name in tensors:
        for kind in (*_REDUCTIONS, _SIZE):
            output = _output(name, kind)
            node = onnx.helper.make_node(kind, [name], [output], name=output)
            if kind != _SIZE:
                node.attribute.append(onnx.helper.make_attribute("keepdims", 1))
            watched.graph.node.append(node)
    return watched


def _gather(watched: onnx.ModelProto, watch: Watch) -> None:
    """What was found out about all tensors as a few lists: onnxruntime goes through all outputs for each node."""
    for name, found in watch.lists.items():
        watched.graph.node.append(onnx.helper.make_node("SequenceConstruct", found, [name], name=name))
        watched.graph.output.append(onnx.ValueInfoProto(name=name))


def _output(tensor: str, kind: str) -> str:
    return f"{tensor}::{kind}"
