"""A part of a model as a model of its own: operators with the Q/DQ pairs around them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from modelwright._lazy import lazy
from modelwright.graph import dtype_name
from modelwright.vocabulary import Fill, InputSpec, TensorSpec

if TYPE_CHECKING:
    import numpy as np
    import onnx
    from numpy.typing import NDArray
else:
    np = lazy("numpy")
    onnx = lazy("onnx")

_QUANTIZE, _DEQUANTIZE = "QuantizeLinear", "DequantizeLinear"


class Cuttable:
    """A model whose operators (everything but conversions and what is constant) can be taken out.

    The borders of a part are float tensors: a quantized one is taken before its QuantizeLinear, whose range is what it
    is fed.
    """

    def __init__(self, model: onnx.ModelProto) -> None:
        self.model = onnx.shape_inference.infer_shapes(model, data_prop=True)
        graph = self.model.graph
        self._stored = {tensor.name: tensor for tensor in graph.initializer}
        self._declared = {value.name: value for value in (*graph.value_info, *graph.input, *graph.output)}
        self._maker = {name: node for node in graph.node for name in node.output if name}
        self._readers: dict[str, list[onnx.NodeProto]] = {}
        for node in graph.node:
            for name in node.input:
                self._readers.setdefault(name, []).append(node)
        self._constant: set[str] = set(self._stored)
        for node in graph.node:
            if all(name in self._constant for name in node.input if name):
                self._constant.update(node.output)
        self.operators = tuple(
            node
            for node in graph.node
            if node.op_type not in (_QUANTIZE, _DEQUANTIZE) and not set(node.output) <= self._constant
        )

    def ancestors(self, node: onnx.NodeProto) -> set[int]:
        """The operators that it depends on, and itself, by their place."""
        place = {id(one): index for index, one in enumerate(self.operators)}
        found: set[int] = set()
        todo, seen = [node], set()
        while todo:
            one = todo.pop()
            if id(one) in seen:
                continue
            seen.add(id(one))
            if id(one) in place:
                found.add(place[id(one)])
            todo += [self._maker[name] for name in one.input if name in self._maker]
        return found

    def part(self, operators: Sequence[onnx.NodeProto], *, floats: bool = False) -> onnx.ModelProto | None:
        """Those operators alone; in `floats` without the pairs around them. None where a border has no known shape."""
        kept = self._in_floats(operators) if floats else self._with_pairs(operators)
        made = {name for node in kept for name in node.output if name}
        read = {name for node in kept for name in node.input if name}
        stored = [self._stored[name] for name in read if name in self._stored]
        inputs = self._borders(read - made - set(self._stored))
        outputs = self._borders(made - read)
        if inputs is None or not outputs:
            return None
        graph = onnx.helper.make_graph(kept, "part", inputs, outputs, stored)
        ours = self.model
        return onnx.helper.make_model(
            graph, opset_imports=ours.opset_import, ir_version=ours.ir_version, functions=ours.functions
        )

    def feeds(self, part: onnx.ModelProto) -> InputSpec:
        """What can be made up for a part: within the range of the pair behind an input."""
        pairs = {node.input[0]: node for node in part.graph.node if node.op_type == _QUANTIZE}
        found = []
        for value in part.graph.input:
            sizes = tuple(dim.dim_value for dim in value.type.tensor_type.shape.dim)
            dtype = dtype_name(value.type.tensor_type.elem_type)
            found.append(TensorSpec(value.name, dtype, sizes, sizes, self._fill(dtype, pairs.get(value.name))))
        return tuple(found)

    def _fill(self, dtype: str, pair: onnx.NodeProto | None) -> Fill:
        if pair is not None and len(pair.input) > 2 and pair.input[1] in self._stored:
            scale, zero = (onnx.numpy_helper.to_array(self._stored[name]).reshape(-1)[0] for name in pair.input[1:3])
            limits = np.iinfo(zero.dtype)
            low, high = (float(scale) * (float(end) - float(zero)) for end in (limits.min, limits.max))
            return Fill("uniform", low, high)
        return Fill("normal") if dtype.startswith("float") else Fill("ones")

    def _with_pairs(self, operators: Sequence[onnx.NodeProto]) -> list[onnx.NodeProto]:
        wanted: dict[int, onnx.NodeProto] = {}
        for node in operators:
            for name in node.input:
                self._before(name, wanted)
            wanted[id(node)] = node
            for name in node.output:
                self._behind(name, wanted)
        return [node for node in self.model.graph.node if id(node) in wanted]

    def _before(self, name: str, wanted: dict[int, onnx.NodeProto]) -> None:
        """The conversions, or all that makes a constant."""
        node = self._maker.get(name)
        if node is None or (name not in self._constant and node.op_type not in (_QUANTIZE, _DEQUANTIZE)):
            return
        wanted[id(node)] = node
        for one in node.input:
            self._before(one, wanted)

    def _behind(self, name: str, wanted: dict[int, onnx.NodeProto]) -> None:
        for node in self._readers.get(name, ()):
            if node.op_type == _QUANTIZE:
                wanted[id(node)] = node
                back = next((one for one in self._readers.get(node.output[0], ()) if one.op_type == _DEQUANTIZE), None)
                if back is not None:
                    wanted[id(back)] = back
                return

    def _in_floats(self, operators: Sequence[onnx.NodeProto]) -> list[onnx.NodeProto]:
        """As before quantization; weights are the numbers they stand for."""
        found: list[onnx.NodeProto] = []
        for node in operators:
            copy = onnx.NodeProto()
            copy.CopyFrom(node)
            for place, name in enumerate(node.input):
                copy.input[place] = self._float_name(name)
            found.append(copy)
        return found

    def _float_name(self, name: str) -> str:
        node = self._maker.get(name)
        if node is None or node.op_type not in (_QUANTIZE, _DEQUANTIZE):
            return name
        if name in self._constant:
            return self._float_weight(node)
        return self._float_name(node.input[0])

    def _float_weight(self, node: onnx.NodeProto) -> str:
        name = f"{node.output[0]}::float"
        if name not in self._stored:
            values, scale, zero = (self._array(one) for one in (*node.input, "")[:3])
            assert values is not None
            assert scale is not None
            axis = next((item.i for item in node.attribute if item.name == "axis"), 1)
            shape = [1] * values.ndim
            if scale.size > 1:
                shape[axis] = scale.size
            shift = 0.0 if zero is None else zero.astype(np.float32).reshape(shape)
            real = (values.astype(np.float32) - shift) * scale.astype(np.float32).reshape(shape)
            self._stored[name] = onnx.numpy_helper.from_array(real.astype(np.float32), name)
            self._constant.add(name)
        return name

    def _array(self, name: str) -> NDArray[Any] | None:
        return onnx.numpy_helper.to_array(self._stored[name]) if name in self._stored else None

    def _borders(self, names: set[str]) -> list[onnx.ValueInfoProto] | None:
        found = [value for name in sorted(names) if (value := self._border(name)) is not None]
        return found if len(found) == len(names) else None

    def _border(self, name: str) -> onnx.ValueInfoProto | None:
        """The declaration of a tensor, where all of its sizes are known."""
        value = self._declared.get(name)
        if value is None or not value.type.tensor_type.HasField("shape"):
            return None
        fixed = all(dim.HasField("dim_value") for dim in value.type.tensor_type.shape.dim)
        return value if fixed else None


def told(node: onnx.NodeProto) -> str:
    """`Tanh /act/Tanh`, as `wright debug` names operators."""
    return f"{node.op_type} {node.name}" if node.name else f"{node.op_type}({next(iter(node.output), '')})"
