"""Factors for the channels of a seam: outliers of a few channels go from the tensor into the weights that read it.

One range serves all channels of an activation, so a channel that is a hundred times larger than the others leaves them
two or three levels; weights have a scale for each output, and bear it better (Xiao et al., SmoothQuant; Nagel et al.,
cross-layer equalization). How much is moved is chosen for each seam by what rounding both would add to the products.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from modelwright._dataclass import dataclass
from modelwright._lazy import lazy
from modelwright.data import Samples
from modelwright.stages.quantize._model import Prepared
from modelwright.stages.quantize._moments import judges
from modelwright.stages.quantize._params import TensorOverride
from modelwright.stages.quantize._ranges import fetch
from modelwright.stages.quantize._rescaled import mark_rescaled
from modelwright.stages.quantize._seams import Seam, SeamKind, seams
from modelwright.stages.quantize._session import run_each
from modelwright.worker import progress

if TYPE_CHECKING:
    import numpy as np
    import onnx
    from numpy.typing import NDArray
else:
    np = lazy("numpy")
    onnx = lazy("onnx")

# How much of the difference between channels goes into the weights.
_STRENGTHS = (0.0, 0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875, 1.0)
_FARTHEST = 64.0
# Less noise in the products than this share, or the seam stays as it is.
_WORTH = 0.8
_GROUP = 32
# Behind the name of a tensor: what its Mul makes, and by which stored vector.
SCALED, FACTORS = "_scaled", "_factors"
_LARGEST = 127


@dataclass
class Channels:
    """What the samples reached in each channel of a tensor."""

    low: NDArray[Any]
    high: NDArray[Any]
    squares: NDArray[Any]
    count: int = 0

    def add(self, rows: NDArray[Any]) -> None:
        """Rows of channels."""
        self.low, self.high = np.minimum(self.low, rows.min(axis=0)), np.maximum(self.high, rows.max(axis=0))
        self.squares = self.squares + np.square(rows, dtype=np.float64).sum(axis=0)
        self.count += len(rows)


@dataclass(frozen=True)
class Reader:
    """A weight as (channels, outputs, places). A depthwise one has outputs, and so scales, of its channel alone."""

    weight: NDArray[Any]
    depthwise: bool

    @classmethod
    def of(cls, weight: NDArray[Any], axis: int) -> Reader:
        if weight.ndim == 2:
            return cls((weight if axis == 0 else weight.T)[:, :, None], depthwise=False)
        moved = weight if axis == 0 else np.moveaxis(weight, 1, 0)
        return cls(moved.reshape(*moved.shape[:2], -1), depthwise=axis == 0)

    def noise(self, factors: NDArray[Any], step: float, squares: NDArray[Any]) -> float:
        """Of both roundings, where the tensor has this step and these mean squares."""
        scaled = self.weight * factors[:, None, None]
        steps = np.square(np.abs(scaled).max(axis=(1, 2) if self.depthwise else (0, 2)) / _LARGEST)
        of_weights = (steps * squares).sum() if self.depthwise else steps.sum() * squares.sum()
        return float(step**2 * np.square(scaled).sum() + of_weights * self.weight.shape[2])


def smooth(prepared: Prepared, kind: SeamKind, bits: int, samples: Samples, workdir: Path) -> int:
    """Change the stored tensors at each seam of this kind where it is worth it; returns at how many."""
    taken = _names(prepared.model)
    found = [seam for seam in seams(prepared.model) if seam.kind == kind and not taken & {*_new_names(seam)}]
    reached = _channels(prepared, found, samples, workdir)
    changed = 0
    for seam in found:
        readers = [Reader.of(prepared.weights.read(prepared.model, item.name), item.axis) for item in seam.readers]
        factors = factors_of(reached[seam.tensor], readers, bits)
        if factors is None:
            continue
        for item, power in (*((one, -1.0) for one in seam.carriers), *((one, 1.0) for one in seam.readers)):
            weight = prepared.weights.read(prepared.model, item.name)
            shape = [-1 if axis == item.axis else 1 for axis in range(weight.ndim)]
            scaled = weight * (factors**power).reshape(shape)
            prepared.weights.replace(prepared.model, item.name, scaled.astype(weight.dtype))
        if seam.kind == "scaling":
            _divide(prepared.model, seam, (1 / factors).astype(readers[0].weight.dtype))
        else:
            mark_rescaled(prepared.model, (*seam.divided, *(item.name for item in (*seam.carriers, *seam.readers))))
        changed += 1
    return changed


def _names(model: onnx.ModelProto) -> set[str]:
    told = {name for node in model.graph.node for name in (node.name, *node.input, *node.output)}
    return told | {tensor.name for tensor in model.graph.initializer}


def _new_names(seam: Seam) -> tuple[str, ...]:
    """Of the vector, the tensor and the node of a `scaling`."""
    result = f"{seam.tensor}{SCALED}"
    return (f"{seam.tensor}{FACTORS}", result, f"{result}/Mul") if seam.kind == "scaling" else ()


def _divide(model: onnx.ModelProto, seam: Seam, factors: NDArray[Any]) -> None:
    """A Mul before the products; who else reads the tensor reads it as it was."""
    vector, result, name = _new_names(seam)
    model.graph.initializer.append(onnx.numpy_helper.from_array(factors, vector))
    nodes = list(model.graph.node)
    for node in nodes:
        if node.name in seam.products:
            node.input[0] = result
    place = next(index for index, node in enumerate(nodes) if seam.tensor in node.output)
    model.graph.node.insert(place + 1, onnx.helper.make_node("Mul", [seam.tensor, vector], [result], name=name))
    model.graph.value_info.extend(
        onnx.ValueInfoProto(name=result, type=value.type)
        for value in list(model.graph.value_info)
        if value.name == seam.tensor
    )


def with_scaled(model: onnx.ModelProto, overrides: tuple[TensorOverride, ...]) -> tuple[TensorOverride, ...]:
    """What was asked for a tensor holds for what its products read in its place."""
    made = {name for node in model.graph.node for name in node.output}
    again = (replace(item, tensor=f"{item.tensor}{SCALED}") for item in overrides)
    return (*overrides, *(item for item in again if item.tensor in made))


def factors_of(reached: Channels, readers: Sequence[Reader], bits: int) -> NDArray[Any] | None:
    """By which to divide the channels; None to leave them alone."""
    largest = np.maximum(np.abs(reached.low), np.abs(reached.high)).astype(np.float64)
    weights = np.max([np.abs(item.weight).max(axis=(1, 2)) for item in readers], axis=0).astype(np.float64)
    if not np.isfinite(largest).all() or not (largest > 0).any() or not (weights > 0).any():
        return None
    used = (largest > 0) & (weights > 0)
    usual = _noise(np.ones_like(largest), reached, readers, bits)
    tried = [_factors(largest, weights, used, strength) for strength in _STRENGTHS]
    noise = [_noise(item, reached, readers, bits) for item in tried]
    best = int(np.argmin(noise))
    return tried[best] if noise[best] < _WORTH * usual else None


def _factors(largest: NDArray[Any], weights: NDArray[Any], used: NDArray[Any], strength: float) -> NDArray[Any]:
    found = np.ones_like(largest)
    found[used] = largest[used] ** strength / weights[used] ** (1 - strength)
    found[used] /= np.exp(np.log(found[used]).mean())
    clipped: NDArray[Any] = np.clip(found, 1 / _FARTHEST, _FARTHEST)
    return clipped


def _noise(factors: NDArray[Any], reached: Channels, readers: Sequence[Reader], bits: int) -> float:
    """What rounding the tensor and the weights adds to the products, up to a common factor."""
    low, high = np.minimum(reached.low / factors, 0).min(), np.maximum(reached.high / factors, 0).max()
    step = float(high - low) / (2**bits - 1)
    squares = reached.squares / max(reached.count, 1) / factors**2
    return sum(item.noise(factors, step, squares) for item in readers)


def _channels(prepared: Prepared, found: Sequence[Seam], samples: Samples, workdir: Path) -> Mapping[str, Channels]:
    """Of the samples that are learnt from."""
    reached = {
        seam.tensor: Channels(np.full(seam.channels, np.inf), np.full(seam.channels, -np.inf), np.zeros(seam.channels))
        for seam in found
    }
    for start in range(0, len(found), _GROUP):
        group = found[start : start + _GROUP]
        names = [seam.tensor for seam in group]
        session = fetch(prepared.model, tuple(names), workdir)
        learnt = (sample for index, sample in enumerate(samples) if not judges(index))
        for index, (_, values) in enumerate(run_each(session, names, learnt)):
            for seam, value in zip(group, values, strict=True):
                rows = np.moveaxis(value, 1, -1) if seam.spatial else value
                if value.size:
                    reached[seam.tensor].add(rows.reshape(-1, seam.channels))
            progress(f"channels: sample {index + 1}")
    return reached
