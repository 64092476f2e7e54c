"""Parameters of the stage that change the model's declaration: fixed dimensions and the opset."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from typing import TYPE_CHECKING

from modelwright._lazy import lazy
from modelwright.errors import InputError, did_you_mean
from modelwright.stages.optimize._inventory import every_node

if TYPE_CHECKING:
    import onnx
    import onnx.version_converter
    import onnx_ir as ir
else:
    onnx = lazy("onnx")
    ir = lazy("onnx_ir")

# The converter looks at values such as scales and axes; it would have to copy the rest.
_CONVERTER_READS = 1024


def fix_dims(model: ir.Model, sizes: Mapping[str, int]) -> int:
    """Give symbolic dimensions a size wherever they are declared; how many values changed.

    One of an input that has no name is called `input:axis`.
    """
    _name_dims(model, sizes)
    known = sorted({dim for value in model.graph.inputs for dim in _symbols(value)})
    for name, size in sizes.items():
        if name not in known:
            raise _no_such_dimension(name, known)
        if size < 1:
            raise InputError(
                f"dimension {name} cannot be {size}", cause="sizes are positive", fix=f"Use {name}=1 or more."
            )
    return sum(_fix_value(value, sizes) for value in _declared(model))


def true_metadata(model: ir.Model) -> bool:
    """What exporters wrote about sizes that are fixed now says what they are; whether anything was untrue.

    `imgsz`, `batch` and `dynamic` are ultralytics': whoever loads the model resizes its images by them.
    """
    images = [value for value in model.graph.inputs if value.shape is not None and len(value.shape) == 4]
    notes, shape = model.metadata_props, list(images[0].shape or ()) if len(images) == 1 else []
    if "imgsz" not in notes or not shape or not all(isinstance(dim, int) for dim in shape):
        return False
    batch, *sides = shape
    last = sides[2] in (1, 3) and sides[0] not in (1, 3)
    true = {"imgsz": str(list(sides[:2] if last else sides[1:])), "batch": str(batch), "dynamic": "False"}
    wrong = {key: text for key, text in true.items() if key in notes and notes[key] != text}
    notes.update(wrong)
    return bool(wrong)


def convert_opset(model: ir.Model, version: int) -> ir.Model:
    """The model in another opset of the default domain, or an error; big weights do not take part."""
    _require_convertible(model, version)
    weights = dict(_big_weights(model))
    for name in weights:
        value = model.graph.initializers.pop(name)
        value.dtype, value.shape = weights[name].dtype, ir.Shape(weights[name].shape.numpy())
        model.graph.inputs.append(value)
    try:
        proto = onnx.version_converter.convert_version(ir.to_proto(model), version)
    except (RuntimeError, onnx.version_converter.ConvertError) as error:
        raise _not_convertible(model, version, str(error).strip().splitlines()[0][:300]) from error
    converted = ir.from_proto(proto)
    actual = converted.opset_imports.get("", 0)
    if actual != version:
        raise _not_convertible(model, version, f"the converter stopped at opset {actual}")
    for value in [item for item in converted.graph.inputs if item.name in weights]:
        converted.graph.inputs.remove(value)
        value.const_value = weights[value.name or ""]
        converted.graph.register_initializer(value)
    return converted


def _big_weights(model: ir.Model) -> Iterator[tuple[str, ir.TensorProtocol]]:
    for name, value in model.graph.initializers.items():
        tensor = value.const_value
        if tensor is None or tensor.dtype == ir.DataType.STRING or value.is_graph_input():
            continue
        if tensor.nbytes > _CONVERTER_READS:
            yield name, tensor


def _require_convertible(model: ir.Model, version: int) -> None:
    newest = onnx.defs.onnx_opset_version()
    if not 1 <= version <= newest:
        raise _not_convertible(model, version, f"the installed onnx knows opsets 1 to {newest}")
    nested = any(node.graph is not model.graph for node in every_node(model))
    if nested:
        raise _not_convertible(model, version, "the converter does not look into subgraphs and local functions")


def _not_convertible(model: ir.Model, version: int, cause: str) -> InputError:
    return InputError(
        f"the model cannot be converted from opset {model.opset_imports.get('', '?')} to opset {version}",
        cause=cause,
        fix=f"Export the model with opset {version}, or leave the opset as it is.",
    )


def _no_such_dimension(name: str, known: list[str]) -> InputError:
    has = f"its inputs have {', '.join(known)}" if known else "all dimensions of its inputs have a size already"
    return InputError(
        f"the model has no symbolic dimension {name!r}",
        cause=has,
        fix=did_you_mean(name, known) or "`wright inspect` prints the inputs.",
    )


def _declared(model: ir.Model) -> Iterator[ir.Value]:
    yield from model.graph.inputs
    for node in every_node(model):
        yield from node.outputs


def _name_dims(model: ir.Model, wanted: Container[str]) -> None:
    for value in model.graph.inputs:
        dims = [
            ir.SymbolicDim(name) if _nameless(dim) and (name := f"{value.name}:{axis}") in wanted else dim
            for axis, dim in enumerate(value.shape or ())
        ]
        if value.shape is not None and dims != list(value.shape):
            value.shape = ir.Shape(dims)


def _nameless(dim: int | ir.SymbolicDim) -> bool:
    """Some converters write -1 or a question mark for a dimension that they do not know."""
    return dim.value in (None, "?") if isinstance(dim, ir.SymbolicDim) else dim < 0


def _symbols(value: ir.Value) -> Iterator[str]:
    for dim in value.shape or ():
        if isinstance(dim, ir.SymbolicDim) and dim.value is not None:
            yield dim.value


def _fix_value(value: ir.Value, sizes: Mapping[str, int]) -> int:
    if not any(name in sizes for name in _symbols(value)) or value.shape is None:
        return 0
    value.shape = ir.Shape(
        [sizes.get(dim.value or "", dim) if isinstance(dim, ir.SymbolicDim) else dim for dim in value.shape]
    )
    return 1
