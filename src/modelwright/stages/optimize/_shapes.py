"""Rewrites of data movement, for shapes that are known ahead of time."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from modelwright._lazy import lazy
from modelwright.stages.optimize._inventory import every_node
from modelwright.stages.optimize._unfuse import constant

if TYPE_CHECKING:
    import numpy as np
    import onnx_ir as ir
    import onnx_ir.passes.common as common
else:
    np = lazy("numpy")
    ir = lazy("onnx_ir")
    common = lazy("onnx_ir.passes.common")

_HIGH_RANK = 5
_FIRST_OPSET_WITH_SLICE_INPUTS = 10
REDUCTIONS = frozenset(f"Reduce{kind}" for kind in ("L1", "L2", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum"))


def lower_rank_transpose(model: ir.Model) -> int:
    """Reshape-Transpose-Reshape through rank 5 or more, with axes that move together merged into one."""
    return sum(_lower(node) for node in list(every_node(model)) if _is(node, "Transpose"))


def static_split_to_slice(model: ir.Model) -> int:
    """A Split whose part sizes are known becomes one Slice per part."""
    if model.opset_imports.get("", 1) < _FIRST_OPSET_WITH_SLICE_INPUTS:
        return 0
    return sum(_slice_up(node) for node in list(every_node(model)) if _is(node, "Split"))


def reduce_fewer_axes(model: ir.Model) -> int:
    """Axes of size 1 are left out of reductions over others: what is left has the same numbers in it.

    `AdaptiveAvgPool1d` becomes Transpose, Unsqueeze and ReduceMean over both axes, and of these QNN's compiler makes
    something else in 16 bits (`tests/ep/quantize/test_npu_faults.py`).
    """
    found = [node for node in every_node(model) if node.op_type in REDUCTIONS and not node.domain]
    learn_shapes(model, [node.inputs[0] for node in found if len(_axes(node) or ()) > 1])
    return sum(_spare(node) for node in found)


def merged_axes(dims: Sequence[int], perm: Sequence[int]) -> tuple[list[int], list[int]]:
    """The lowest-rank shape and permutation that move the same elements to the same places."""
    order = [axis for axis in perm if dims[axis] != 1]
    runs: list[list[int]] = []
    kept = [axis for axis in range(len(dims)) if dims[axis] != 1]
    following = dict(itertools.pairwise(kept))
    for axis in order:
        if runs and following.get(runs[-1][-1]) == axis:
            runs[-1].append(axis)
        else:
            runs.append([axis])
    by_input = sorted(runs)
    sizes = [math.prod(dims[axis] for axis in run) for run in by_input] or [1]
    return sizes, [by_input.index(run) for run in runs] or [0]


def _lower(transpose: ir.Node) -> int:
    first, last = _around(transpose)
    if first is None or last is None:
        return 0
    dims, final = static_shape(first.outputs[0]), static_shape(last.outputs[0])
    if dims is None or final is None or len(dims) < _HIGH_RANK:
        return 0
    perm = transpose.attributes.get_ints("perm") or list(reversed(range(len(dims))))
    sizes, order = merged_axes(dims, perm)
    if len(sizes) >= len(dims):
        return 0
    _aim(first, sizes)
    transpose.attributes["perm"] = ir.AttrInt64s("perm", order)
    transpose.outputs[0].shape = ir.Shape([sizes[axis] for axis in order])
    _aim(last, final)
    return 1


def _around(transpose: ir.Node) -> tuple[ir.Node | None, ir.Node | None]:
    source, result = transpose.inputs[0], transpose.outputs[0]
    first = source.producer() if source is not None else None
    if first is None or not _is(first, "Reshape") or not _single_use(first.outputs[0]):
        return None, None
    if not _single_use(result):
        return None, None
    last = next(iter(result.uses())).node
    return first, last if _is(last, "Reshape") else None


def _aim(reshape: ir.Node, dims: Sequence[int]) -> None:
    """Let a Reshape produce `dims`; its old target may be shared, so it gets a constant of its own."""
    _give(reshape, "shape", dims)
    reshape.attributes.pop("allowzero", None)
    reshape.outputs[0].shape = ir.Shape(dims)


def _give(node: ir.Node, word: str, values: Sequence[int]) -> None:
    """Let these be the second input of a node."""
    output = node.outputs[0].name
    found = constant(word, np.array(values, np.int64))
    found.name, found.outputs[0].name = f"{output}_{word}_node", f"{output}_{word}"
    owner = node.graph
    if owner is None:
        raise ValueError("a node outside any graph cannot be rewritten")
    owner.insert_before(node, found)
    node.replace_input_with(1, found.outputs[0])


def _slice_up(split: ir.Node) -> int:
    sizes = _part_sizes(split)
    source, owner = split.inputs[0], split.graph
    if sizes is None or source is None or owner is None:
        return 0
    axis = split.attributes.get_int("axis", 0)
    start = 0
    nodes: list[ir.Node] = []
    for index, (output, size) in enumerate(zip(split.outputs, sizes, strict=True)):
        nodes += _slice(source, (start, start + size, axis), f"{output.name}_{index}")
        start += size
    slices = [node.outputs[0] for node in nodes if node.op_type == "Slice"]
    ir.convenience.replace_nodes_and_values(owner, split, [split], nodes, list(split.outputs), slices)
    return 1


def _slice(source: ir.Value, bounds: tuple[int, int, int], name: str) -> list[ir.Node]:
    parts = [constant(key, np.array([value], np.int64)) for key, value in zip("sea", bounds, strict=True)]
    for part, key in zip(parts, ("starts", "ends", "axes"), strict=True):
        part.name, part.outputs[0].name = f"{name}_{key}_node", f"{name}_{key}"
    slicing = ir.node("Slice", [source, *(part.outputs[0] for part in parts)], name=f"{name}_slice")
    slicing.outputs[0].name = f"{name}_sliced"
    return [*parts, slicing]


def _part_sizes(split: ir.Node) -> list[int] | None:
    given = split.attributes.get_ints("split")
    if given:
        return list(given)
    if len(split.inputs) > 1 and split.inputs[1] is not None:
        tensor = ir.convenience.get_const_tensor(split.inputs[1])
        return None if tensor is None else [int(size) for size in tensor.numpy()]
    shape = split.inputs[0].shape if split.inputs[0] is not None else None
    length = None if shape is None else shape[split.attributes.get_int("axis", 0)]
    if not isinstance(length, int):
        return None
    size = math.ceil(length / len(split.outputs))
    return [min(size, length - start) for start in range(0, size * len(split.outputs), size)]


def _spare(reduction: ir.Node) -> int:
    source, axes = reduction.inputs[0], _axes(reduction)
    sizes = None if source is None else source.shape
    if sizes is None or not axes or not reduction.attributes.get_int("keepdims", 1):
        return 0
    kept = [axis for axis in axes if sizes[axis] != 1]
    if not kept or len(kept) == len(axes):
        return 0
    _reduce_over(reduction, kept)
    return 1


def _axes(reduction: ir.Node) -> list[int] | None:
    if len(reduction.inputs) > 1 and reduction.inputs[1] is not None:
        tensor = ir.convenience.get_const_tensor(reduction.inputs[1])
        return None if tensor is None else [int(axis) for axis in tensor.numpy().reshape(-1)]
    return list(reduction.attributes.get_ints("axes", ()))


def _reduce_over(reduction: ir.Node, axes: list[int]) -> None:
    """Its axes may be shared, so it gets a constant of its own."""
    if "axes" in reduction.attributes:
        reduction.attributes["axes"] = ir.AttrInt64s("axes", axes)
    else:
        _give(reduction, "axes", axes)


def learn_shapes(model: ir.Model, values: Sequence[ir.Value | None]) -> None:
    """Let the model say the sizes of these, where it does not and they follow from its inputs."""
    if any(value is not None and value.shape is None for value in values):
        common.ShapeInferencePass()(model)


def static_shape(value: ir.Value) -> list[int] | None:
    sizes = list(value.shape) if value.shape is not None else [None]
    return [size for size in sizes if isinstance(size, int)] if all(isinstance(size, int) for size in sizes) else None


def _single_use(value: ir.Value) -> bool:
    return len(value.uses()) == 1 and not value.is_graph_output()


def _is(node: ir.Node, op_type: str) -> bool:
    return node.op_type == op_type and not node.domain
