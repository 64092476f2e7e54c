"""The stage: what a camera gives becomes what the model wants, inside the model; and a proof that it is the same."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from modelwright._lazy import lazy
from modelwright.data import ImageInput, as_taken, generate, image_inputs
from modelwright.errors import ExecutionError, InputError
from modelwright.graph import ValueSpec, load, summary, write_model
from modelwright.metrics import compare, leaves
from modelwright.models import NoGuessError, specs_from_graph
from modelwright.stages.inputs._types import ChangedInput, InputsOutcome
from modelwright.targets import open_as_written
from modelwright.vocabulary import PixelInputs
from modelwright.worker import progress, task

if TYPE_CHECKING:
    import numpy as np
    import onnx_ir as ir
    from numpy.typing import NDArray
else:
    np = lazy("numpy")
    ir = lazy("onnx_ir")

# The same numbers, added up in another order, by the bytes of a number; classes may change where two are nearly equal.
_SAME, _TIES = {2: 2e-2, 4: 1e-3, 8: 1e-3}, 0.01


@task
def run_inputs(model: str, workdir: str, params: PixelInputs) -> InputsOutcome:
    """Write `model.onnx`, which takes its images as `params` say."""
    began = time.perf_counter()
    before = summary(load(model)).inputs
    images, after = image_inputs(before, params), as_taken(before, params)
    changed = ir.load(model)
    for image in images:
        declared = next(value for value in after if value.name == image.name)
        _insert(changed, image, declared, params)
    made = write_model(changed, Path(workdir))
    progress("compare it with the model as it was", 0.7)
    error, reason = _compared(model, str(made), images, params)
    told = tuple(
        ChangedInput(old.name, _words(old), _words(new)) for old, new in zip(before, after, strict=True) if old != new
    )
    return InputsOutcome(told, error, reason, time.perf_counter() - began)


def _insert(model: ir.Model, image: ImageInput, declared: ValueSpec, params: PixelInputs) -> None:
    """Bytes to floats, channels to their place, `x * a + b`."""
    graph = model.graph
    place = next(index for index, value in enumerate(graph.inputs) if value.name == image.name)
    old = graph.inputs[place]
    kind = old.dtype
    assert kind is not None, "an image is known by its type"
    taken = ir.Value(
        name=image.name,
        type=ir.TensorType(ir.DataType.UINT8 if params.dtype else kind),
        shape=ir.Shape([dim if isinstance(dim, int) else ir.SymbolicDim(dim) for dim in declared.shape or ()]),
    )
    nodes: list[ir.Node] = []

    def add(op_type: str, inputs: Sequence[ir.Value], attributes: Mapping[str, Any]) -> ir.Value:
        made = ir.Value(name=f"{image.name}/{op_type.lower()}", type=ir.TensorType(kind))
        nodes.append(ir.node(op_type, inputs, attributes, outputs=[made], name=f"{image.name}/{op_type}"))
        return made

    value = taken
    if params.dtype is not None:
        value = add("Cast", [value], {"to": int(kind)})
    if image.moved is not None:
        value = add("Transpose", [value], {"perm": [image.moved.index(axis) for axis in range(4)]})
    for op_type, numbers in zip(("Mul", "Add"), _affine(params, image.last), strict=True):
        if numbers is not None:
            stored = ir.Value(
                name=f"{image.name}/{op_type.lower()}_by", const_value=ir.tensor(numbers.astype(kind.numpy()))
            )
            graph.register_initializer(stored)
            value = add(op_type, [value, stored], {})
    old.replace_all_uses_with(value)
    graph.inputs[place] = taken
    value.shape = old.shape
    if len(graph):
        graph.insert_before(graph[0], nodes)
    else:
        graph.extend(nodes)


def _affine(params: PixelInputs, last: bool) -> tuple[NDArray[Any] | None, NDArray[Any] | None]:
    """`(x * scale - mean) / std` as a factor and a summand, in the shape that the model's own layout needs."""
    std = np.asarray(params.std or (1.0,), np.float64)
    factor, summand = (params.scale or 1.0) / std, -np.asarray(params.mean or (0.0,), np.float64) / std

    def placed(numbers: NDArray[Any], nothing: float) -> NDArray[Any] | None:
        if np.all(numbers == nothing):
            return None
        return numbers if last or numbers.size == 1 else numbers.reshape(-1, 1, 1)

    return placed(factor, 1.0), placed(summand, 0.0)


def _compared(old: str, new: str, images: Sequence[ImageInput], params: PixelInputs) -> tuple[float | None, str | None]:
    try:
        feeds = generate(specs_from_graph(load(new)), 0)
    except NoGuessError as error:
        return None, f"nothing can be made up for its inputs: {error.problem}"
    prepared = {**feeds, **{image.name: _prepared(feeds[image.name], image, params) for image in images}}
    kinds = {value.name: value.dtype for value in summary(load(old)).inputs}
    prepared = {name: value.astype(kinds[name]) for name, value in prepared.items()}
    try:
        with open_as_written(old) as session:
            wanted = dict(leaves(session.run(prepared)))
    except ExecutionError as error:
        return None, f"the model does not run on made-up inputs: {error.cause}"
    with open_as_written(new) as session:
        found = dict(leaves(session.run(feeds)))
    return max((_apart(name, wanted[name], found[name]) for name in wanted), default=0.0), None


def _prepared(pixels: NDArray[Any], image: ImageInput, params: PixelInputs) -> NDArray[Any]:
    """As whoever feeds the model does it today."""
    values = pixels.astype(np.float64)
    if image.moved is not None:
        values = values.transpose([image.moved.index(axis) for axis in range(4)])
    shape = (-1,) if image.last else (-1, 1, 1)
    mean, std = (np.asarray(one, np.float64).reshape(shape) for one in (params.mean or (0.0,), params.std or (1.0,)))
    return np.asarray((values * (params.scale or 1.0) - mean) / std)


def _apart(name: str, wanted: NDArray[Any], found: NDArray[Any]) -> float:
    if wanted.dtype.kind != "f":
        same = wanted.shape == found.shape and (not wanted.size or float(np.mean(wanted == found)) >= 1 - _TIES)
        problem, error = None if same else "other classes or words", 0.0
    else:
        scored = compare(wanted, found)
        error = scored.relative_l2.value if scored.relative_l2.value is not None else 1.0
        problem = scored.problem or (None if error <= _SAME[wanted.dtype.itemsize] else f"relative error {error:.2g}")
    if problem is not None:
        raise InputError(
            "the model with the new inputs computes something else",
            cause=f"output {name}: {problem}",
            fix="Leave `input_layout`, `input_type` and `input_scale` out, and tell us about the model.",
        )
    return error


def _words(value: ValueSpec) -> str:
    return f"{value.dtype}[{', '.join('?' if dim is None else str(dim) for dim in value.shape or ())}]"
