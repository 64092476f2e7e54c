"""16 bits for the few products of an NPU whose 8-bit tensors make most of the noise.

Which they are is measured at the outputs of the model, on samples that judge. One session computes the quantized graph
with a switch for each 8-bit pair: off, the pair lets the numbers through as they are, within its range. Products are
switched on in groups, and the noisiest group is halved, so a few runs find the few.
"""

from __future__ import annotations

import heapq
import math
import tempfile
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from modelwright._dataclass import dataclass
from modelwright._lazy import lazy
from modelwright.stages.quantize._model import Prepared, again
from modelwright.stages.quantize._noise import NoiseMeter
from modelwright.stages.quantize._pairs import Links
from modelwright.stages.quantize._params import QuantizeParams, TensorOverride, Widened
from modelwright.stages.quantize._precision import Step
from modelwright.stages.quantize._ranges import show
from modelwright.stages.quantize._save import save
from modelwright.stages.quantize._scope import MOVERS, WORKERS
from modelwright.stages.quantize._session import open_session, run_each
from modelwright.stages.quantize._static import CalibrationSamples, StaticResult, quantize_static
from modelwright.worker import progress

if TYPE_CHECKING:
    import numpy as np
    import onnx
    from numpy.typing import NDArray
else:
    np = lazy("numpy")
    onnx = lazy("onnx")

# Samples that judge: so many to tell whether there is too much noise, so many to look for where it comes from.
JUDGED, _LOOKED_AT = 4, 2
# A thousandth of what changes with the input: less is fine in whatever the output is used for.
_FINE = 1e-3
# They are worth it where they make most of the noise together, each a good part of it, and are few.
_MOST, _PART, _FEW = 1 / 2, 1 / 16, 1 / 8
_RUNS = 48
_NOTHING = 1e-30
_PASSING = MOVERS | {"QuantizeLinear", "DequantizeLinear"}
_SWITCHES = "switches::of_pairs"


def quantize_widened(
    model: Path, prepared: Prepared, step: Step, params: QuantizeParams, source: CalibrationSamples, workdir: Path
) -> tuple[StaticResult, QuantizeParams, Widened | None]:
    """The static quantization of `model` (made ready as `prepared`), with 16 bits for the few products that make most
    of its noise, where that is too much; and the parameters that say so."""
    meter = NoiseMeter.of(prepared.model, source.samples, workdir, JUDGED)
    written = {node.name: node.output[0] for node in prepared.model.graph.node if node.output}
    plain = quantize_static(prepared, step, params, source, workdir)
    kept = {item.tensor for item in params.overrides}
    fixed = {name for name, tensor in written.items() if tensor in kept}
    found = noisy_products(plain.model, meter, fixed)
    if found is None:
        return plain, params, None
    progress("quantizing again, with 16 bits where the noise comes from")
    wider = tuple(TensorOverride(written[name], "uint16") for name in found.names)
    chosen = replace(params, overrides=(*params.overrides, *wider))
    ready = again(model, workdir)
    wide = quantize_static(ready, step, chosen, source, workdir)
    after = meter.moved(meter.answers_of(wide.model))
    if after is None or after > _MOST * found.noise:
        return plain, params, None
    won = round(10 * math.log10(found.noise / max(after, _NOTHING)), 2)
    return wide, chosen, Widened(tuple(item.tensor for item in wider), found.of, won)


@dataclass(frozen=True)
class NoisyProducts:
    """By name, of how many, and the noise of the outputs with 8 bits for all."""

    names: tuple[str, ...]
    of: int
    noise: float


def noisy_products(model: onnx.ModelProto, meter: NoiseMeter, fixed: Collection[str]) -> NoisyProducts | None:
    """The few products that make most of the noise of a quantized model; None where it is fine, or where all make it.
    The width of those that are `fixed` somebody asked for."""
    switched = _Switched.of(model, fixed)
    most = int(_FEW * len(switched.products))
    if not most:
        return None
    with tempfile.TemporaryDirectory(dir=meter.workdir, suffix=".scratch") as folder:
        trials = _SwitchTrials(switched, meter, Path(folder))
        noise = trials.noise(switched.products)
        if not _FINE < noise < math.inf:
            return None
        progress("looking for what makes the noise")
        trials.look()
        noisy = trials.noisiest(most)
        rest = [name for name in switched.products if name not in noisy]
        # What they make together, not one by one; what weights lose no width of activations brings back.
        floor = trials.noise(())
        worth_it = trials.noise(rest) - floor <= _MOST * (trials.noise(switched.products) - floor)
    return NoisyProducts(noisy, len(switched.products), noise) if worth_it else None


@dataclass(frozen=True)
class _Switched:
    """A quantized model that reads a switch for each pair of 8 bits, and the switches around each product, by name."""

    model: onnx.ModelProto
    around: dict[str, frozenset[int]]
    pairs: int

    @property
    def products(self) -> tuple[str, ...]:
        return tuple(self.around)

    @classmethod
    def of(cls, model: onnx.ModelProto, fixed: Collection[str]) -> _Switched:
        found = onnx.ModelProto()
        found.CopyFrom(model)
        pairs = list(_narrow_pairs(found.graph))
        links = Links.of(found.graph)
        around: dict[str, set[int]] = {}
        for place, (first, second) in enumerate(pairs):
            for product in {*_written_by(first.input[0], links), *_read_by(second.output[0], links)} - {*fixed}:
                around.setdefault(product, set()).add(place)
        order = [node.name for node in found.graph.node if node.name in around]
        stored = {
            tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in found.graph.initializer if not tensor.dims
        }
        for place, (first, second) in enumerate(pairs):
            scale, zero = (stored[name] for name in first.input[1:3])
            ends = [(end - int(zero)) * scale for end in (np.iinfo(zero.dtype).min, np.iinfo(zero.dtype).max)]
            _add_switch(found.graph, (first, second), ends, f"switch::{place}")
        if pairs:
            _add_switches(found.graph, len(pairs))
        return cls(found, {name: frozenset(around[name]) for name in order}, len(pairs))


class _SwitchTrials:
    def __init__(self, switched: _Switched, meter: NoiseMeter, folder: Path) -> None:
        self._switched, self._meter, self._places = switched, meter, meter.places(switched.model)
        show(switched.model, self._places)
        self._session = open_session(save(switched.model, folder))
        self._samples, self._runs = JUDGED, 0
        self._singles: dict[str, float] = {}

    def noise(self, narrow: Collection[str]) -> float:
        """With 8 bits around these products, and no rounding of activations anywhere else."""
        on = np.zeros(self._switched.pairs, np.float32)
        on[sorted(set().union(*(self._switched.around[name] for name in narrow)))] = 1.0
        self._runs += 1
        samples = ({**sample, _SWITCHES: on} for sample in self._meter.samples[: self._samples])
        noise = self._meter.moved([values for _, values in run_each(self._session, self._places, samples)])
        return math.inf if noise is None else noise

    def look(self) -> None:
        """The noisiest group is halved until what is left of it is one product."""
        self._samples = _LOOKED_AT
        everything = self._switched.products
        floor = self.noise(())
        least = _PART * (self.noise(everything) - floor)
        groups = [(-math.inf, 0, everything)]
        while groups and self._runs < _RUNS:
            lost, start, group = heapq.heappop(groups)
            if -lost < least:
                return
            if len(group) == 1:
                self._singles[group[0]] = -lost
                continue
            middle = len(group) // 2
            for first, part in ((start, group[:middle]), (start + middle, group[middle:])):
                heapq.heappush(groups, (floor - self.noise(part), first, part))

    def noisiest(self, most: int) -> tuple[str, ...]:
        found = sorted(self._singles, key=lambda name: -self._singles[name])[:most]
        return tuple(name for name in self._switched.products if name in found)


def _narrow_pairs(graph: onnx.GraphProto) -> Iterator[tuple[onnx.NodeProto, onnx.NodeProto]]:
    """Of activations, with one scale each."""
    stored = {tensor.name: tensor for tensor in graph.initializer}
    narrow = (onnx.TensorProto.INT8, onnx.TensorProto.UINT8)
    for pair in Links.of(graph).pairs():
        zero, scale = (stored.get(pair.first.input[place]) for place in (2, 1))
        if zero is not None and scale is not None and zero.data_type in narrow and not scale.dims:
            yield pair.first, pair.second


def _written_by(tensor: str, links: Links) -> Iterator[str]:
    """The product that a tensor comes from, by way of operators that move values."""
    node = links.makers.get(tensor)
    if node is None:
        return
    if node.op_type in WORKERS:
        yield node.name
    elif node.op_type in _PASSING:
        yield from _written_by(node.input[0], links)


def _read_by(tensor: str, links: Links) -> Iterator[str]:
    for node in links.readers.get(tensor, ()):
        if node.op_type in WORKERS:
            yield node.name
        elif node.op_type in _PASSING and node.input[0] == tensor:
            yield from _read_by(node.output[0], links)


def _add_switch(
    graph: onnx.GraphProto, pair: tuple[onnx.NodeProto, onnx.NodeProto], ends: Sequence[NDArray[Any]], name: str
) -> None:
    """What follows reads c + on · (pair − c); c are the numbers as they are, within the range of the pair, because it
    may do the clamping of an operator that was left out."""
    first, second = pair
    for word, end in zip(("low", "high"), ends, strict=True):
        graph.initializer.append(onnx.numpy_helper.from_array(np.array(end, np.float32), f"{name}::{word}"))
    shown, written = second.output[0], f"{name}::pair"
    second.output[0] = written
    make = onnx.helper.make_node
    graph.node.extend(
        [
            make("Clip", [first.input[0], f"{name}::low", f"{name}::high"], [f"{name}::as_is"], name=f"{name}::clip"),
            make("Sub", [written, f"{name}::as_is"], [f"{name}::lost"], name=f"{name}::sub"),
            make("Mul", [f"{name}::lost", name], [f"{name}::on"], name=f"{name}::mul"),
            make("Add", [f"{name}::as_is", f"{name}::on"], [shown], name=f"{name}::add"),
        ]
    )


def _add_switches(graph: onnx.GraphProto, count: int) -> None:
    """One input for all of them."""
    graph.input.append(onnx.helper.make_tensor_value_info(_SWITCHES, onnx.TensorProto.FLOAT, [count]))
    for place in range(count):
        index = onnx.numpy_helper.from_array(np.array(place, np.int64), f"switch::{place}::index")
        graph.initializer.append(index)
        graph.node.append(onnx.helper.make_node("Gather", [_SWITCHES, index.name], [f"switch::{place}"]))
