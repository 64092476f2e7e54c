"""A quantized part with its operators in another width: as a recipe that overrides what they write would build it.

An operator computes in the width of what it writes; what it reads of another is converted. Ranges stay as they are, and
weights too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from modelwright._dataclass import dataclass
from modelwright._lazy import lazy

if TYPE_CHECKING:
    import numpy as np
    import onnx
    from numpy.typing import NDArray
else:
    np = lazy("numpy")
    onnx = lazy("onnx")

_PAIR = ("QuantizeLinear", "DequantizeLinear")
# The quantizer gives this ending to what was an output of the model, whose name its pair has now.
_RENAMED = "_QuantizeLinear_Input"
_NATIVE_WIDE_OPSET = 21
_CONTRIB = "com.microsoft"
# The scale and zero point that a target insists on for what an operator writes in so many bits.
FixedScale = Callable[[str, int], tuple[float, int] | None]


@dataclass(frozen=True)
class OtherWidth:
    """The part, and the tensors that have another width than before."""

    part: onnx.ModelProto
    tensors: tuple[str, ...]


def in_bits(part: onnx.ModelProto, bits: int, fixed: FixedScale) -> OtherWidth | None:
    """None where nothing that its operators write is quantized, or all of it is so wide."""
    found = onnx.ModelProto()
    found.CopyFrom(part)
    return _Rewidened(found, bits, fixed).result()


class _Rewidened:
    def __init__(self, model: onnx.ModelProto, bits: int, fixed: FixedScale) -> None:
        self._model, self._bits, self._fixed = model, bits, fixed
        self._stored = {tensor.name: tensor for tensor in model.graph.initializer}
        self._makers = {name: node for node in model.graph.node for name in node.output}
        self._added: list[onnx.NodeProto] = []

    def result(self) -> OtherWidth | None:
        operators = [node for node in self._model.graph.node if node.op_type not in _PAIR]
        behind = {node.input[0]: node for node in self._model.graph.node if node.op_type == _PAIR[0]}
        written = [(node, behind[name]) for node in operators for name in node.output if name in behind]
        changed = [(node, pair) for node, pair in written if self._width(pair) not in (None, self._bits)]
        if not changed:
            return None
        for node, pair in changed:
            self._retype(node, pair)
        for node in operators:
            self._convert_read(node)
        return OtherWidth(self._finished(), tuple(pair.input[0].removesuffix(_RENAMED) for _, pair in changed))

    def _retype(self, node: onnx.NodeProto, first: onnx.NodeProto) -> None:
        second = next(one for one in self._model.graph.node if first.output[0] in one.input and one.op_type == _PAIR[1])
        names = self._parameters(first, self._fixed(node.op_type, self._bits))
        for half in (first, second):
            half.input[1], half.input[2] = names
            self._place(half)

    def _convert_read(self, node: onnx.NodeProto) -> None:
        for place, name in enumerate(node.input):
            half = self._makers.get(name)
            if half is None or half.op_type != _PAIR[1] or half.input[0] in self._stored:
                continue
            if self._width(half) in (None, self._bits):
                continue
            before = self._scale(half)
            scale, zero = self._parameters(half, None)
            label = f"{node.name or node.output[0]}::{place}::{self._bits}"
            first = onnx.helper.make_node(_PAIR[0], [name, scale, zero], [f"{label}::q"], name=f"{label}::quantize")
            second = onnx.helper.make_node(
                _PAIR[1], [f"{label}::q", scale, zero], [f"{label}::d"], name=f"{label}::dequantize"
            )
            for one in (first, second):
                self._place(one)
            self._added += [first, second]
            node.input[place] = f"{label}::d"
            if place == 0 and len(node.input) > 2:
                self._rescale_bias(node, self._scale(second) / before)

    def _rescale_bias(self, node: onnx.NodeProto, factor: float) -> None:
        """A bias has the scale of what is read times that of the weights."""
        half = self._makers.get(node.input[2])
        tensor = self._stored.get(half.input[0]) if half is not None and half.op_type == _PAIR[1] else None
        if half is None or tensor is None or tensor.data_type != onnx.TensorProto.INT32:
            return
        values, scale = (self._array(name) for name in half.input[:2])
        most = np.iinfo(np.int32).max
        moved = np.clip(np.rint(values.astype(np.float64) / factor), -most, most).astype(np.int32)
        half.input[0] = self._store(f"{tensor.name}::{self._bits}", moved)
        half.input[1] = self._store(f"{half.input[1]}::{self._bits}", (scale * factor).astype(np.float32))

    def _parameters(self, half: onnx.NodeProto, said: tuple[float, int] | None) -> tuple[str, str]:
        """The same range in the other width, or what the target insists on."""
        kind = np.uint16 if self._bits == 16 else np.uint8
        scale, zero = self._array(half.input[1]), self._array(half.input[2])
        limits = np.iinfo(zero.dtype)
        low, levels = limits.min, limits.max - limits.min
        most = np.iinfo(kind).max
        finer = float(scale) * levels / most
        where = round((int(zero) - low) * most / levels)
        finer, where = said if said is not None else (finer, where)
        label = f"{half.name or half.output[0]}::{self._bits}"
        return (
            self._store(f"{label}::scale", np.array(finer, np.float32)),
            self._store(f"{label}::zero", np.array(where, kind)),
        )

    def _finished(self) -> onnx.ModelProto:
        """Conversions before what reads them, and the domain that has pairs of 16 bits."""
        waiting: dict[str, list[onnx.NodeProto]] = {}
        for first, second in zip(self._added[::2], self._added[1::2], strict=True):
            waiting[second.output[0]] = [first, second]
        nodes = [one for node in self._model.graph.node for one in (*self._for(node, waiting), node)]
        kept = [onnx.NodeProto.FromString(node.SerializeToString()) for node in nodes]
        del self._model.graph.node[:]
        self._model.graph.node.extend(kept)
        if any(node.domain == _CONTRIB for node in kept) and _CONTRIB not in {
            item.domain for item in self._model.opset_import
        }:
            self._model.opset_import.append(onnx.helper.make_opsetid(_CONTRIB, 1))
        return self._model

    def _for(self, node: onnx.NodeProto, waiting: dict[str, list[onnx.NodeProto]]) -> list[onnx.NodeProto]:
        return [one for name in node.input for one in waiting.get(name, ())]

    def _place(self, half: onnx.NodeProto) -> None:
        opset = next((item.version for item in self._model.opset_import if item.domain in ("", "ai.onnx")), 1)
        if self._bits == 16 and opset < _NATIVE_WIDE_OPSET:
            half.domain = _CONTRIB

    def _width(self, half: onnx.NodeProto) -> int | None:
        """Of a pair with one scale; None of any other."""
        known = len(half.input) > 2 and half.input[1] in self._stored and half.input[2] in self._stored
        return 8 * self._array(half.input[2]).dtype.itemsize if known and not self._stored[half.input[1]].dims else None

    def _scale(self, half: onnx.NodeProto) -> float:
        return float(self._array(half.input[1]))

    def _array(self, name: str) -> NDArray[Any]:
        found: NDArray[Any] = onnx.numpy_helper.to_array(self._stored[name])
        return found

    def _store(self, name: str, value: NDArray[Any]) -> str:
        if name not in self._stored:
            self._model.graph.initializer.append(onnx.numpy_helper.from_array(value, name))
            self._stored[name] = self._model.graph.initializer[-1]
        return name
