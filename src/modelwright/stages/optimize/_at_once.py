"""All onnxruntime passes in one session on the model as it came.

That will do where it is known without asking what loading does by itself: Constant nodes become initializers, and
nothing else. Functions that are inlined and casts that are added could be taken for the work of a pass.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from modelwright._dataclass import dataclass
from modelwright._lazy import lazy
from modelwright.errors import InputError
from modelwright.graph import data_range, fits_one_file, is_external, stored_bytes
from modelwright.stages.optimize._inventory import Snapshot, operators_of
from modelwright.stages.optimize._ort import CARELESS, OrtRequest, optimize_bytes
from modelwright.stages.optimize._said import only_passes_changed, with_idle
from modelwright.stages.optimize._without_weights import BIG, nodes_of

if TYPE_CHECKING:
    import onnx
else:
    onnx = lazy("onnx")

_INSERTED_CAST = "InsertedPrecisionFreeCast_"
# A name that was taken gets a number, and which one depends on how often that happened since the model was loaded.
_NUMBERED = re.compile(r"_token_\d+$")
_ONNX = ("", "ai.onnx")
_SAME = "common_subexpression_elimination"


@dataclass(frozen=True, eq=False)
class OptimizedAtOnce:
    """`model` is what onnxruntime made of `source`; `loaded` are the operators before its first pass, `names` what was
    named then, and `log` what it said."""

    source: bytes
    model: onnx.ModelProto
    loaded: Snapshot
    names: frozenset[str]
    log: str


class _ReadNode(NamedTuple):
    """What is asked of a node, read from its message once."""

    domain: str
    op_type: str
    input: tuple[str, ...]
    output: tuple[str, ...]


def at_once(model: onnx.ModelProto, data: Path, scratch: Path, request: OrtRequest) -> OptimizedAtOnce | None:
    """None where loading may do something by itself. The model's external data is in `data`."""
    rows = _rows(model)
    if not _is_taken_as_it_is(model, rows):
        return None
    source = _with_small_weights(model, data).SerializeToString()
    try:
        made, new, said = _optimized(source, data, scratch, request, rows)
    except InputError:
        if fits_one_file(model):
            raise
        return None
    outputs = {(node.op_type, name) for node in new for name in node.output[:1]}
    if inserted_casts(name for _, name in outputs) or not only_passes_changed(request.names, said):
        return None
    inlined = _may_be_inlined(rows, model)
    if any((node.op_type, node.output[0]) not in outputs for node in rows if (node.domain, node.op_type) in inlined):
        return None
    _forget_domains(made, {item.domain for item in model.opset_import}.union(node.domain for node in new))
    names = frozenset(_names(model, rows))
    if any(_NUMBERED.search(name) for name in _names(made, new) - names):
        return None
    return OptimizedAtOnce(source, made, _loaded(rows), names, said)


def _rows(model: onnx.ModelProto) -> list[_ReadNode]:
    """Those of the graph itself first, then those of subgraphs."""
    return [
        _ReadNode(node.domain, node.op_type, tuple(node.input[:]), tuple(node.output[:])) for node in nodes_of(model)
    ]


def _optimized(
    source: bytes, data: Path, scratch: Path, request: OrtRequest, before: list[_ReadNode], *, spare: bool = True
) -> tuple[onnx.ModelProto, list[_ReadNode], str]:
    """What onnxruntime makes of it, the nodes of that, and what it says. `spare`: without looking for equal
    expressions, if there are none, which of thousands of nodes takes longer than all other passes; where these left
    any, once more with it."""
    output = scratch / "once.onnx"
    spare = spare and _SAME in request.names and not _repeats(before)
    asked = request.only(name for name in request.names if name != _SAME) if spare else request
    said = optimize_bytes(source, data, output, asked, nodes=len(before))
    made = onnx.ModelProto.FromString(output.read_bytes())
    output.unlink()
    rows = _rows(made)
    if not spare:
        return made, rows, said
    if _repeats(rows):
        return _optimized(source, data, scratch, request, before, spare=False)
    return made, rows, with_idle(said, _SAME)


def _repeats(rows: list[_ReadNode]) -> bool:
    """Whether an operator reads the same values twice: with none that does there are no equal expressions."""
    read = [(node.op_type, node.input) for node in rows if node.op_type != "Constant"]
    return len(set(read)) < len(read)


def _forget_domains(model: onnx.ModelProto, known: Container[str]) -> None:
    """onnxruntime declares every domain it has operators for."""
    kept = [item for item in model.opset_import if item.domain in known or item.domain in _ONNX]
    del model.opset_import[:]
    model.opset_import.extend(kept)


def inserted_casts(names: Iterable[str]) -> int:
    return sum(name.startswith(_INSERTED_CAST) for name in names)


def _is_taken_as_it_is(model: onnx.ModelProto, rows: list[_ReadNode]) -> bool:
    half = (onnx.TensorProto.FLOAT16, onnx.TensorProto.BFLOAT16)
    weights = model.graph.initializer
    if model.functions or any(weight.data_type in half or weight.name.startswith(CARELESS) for weight in weights):
        return False
    if any(value.type.tensor_type.elem_type in half for value in model.graph.input):
        return False
    # Of casts behind each other it leaves the last.
    casts = [node for node in rows if node.op_type == "Cast"]
    return {name for node in casts for name in node.output}.isdisjoint(name for node in casts for name in node.input)


def _with_small_weights(model: onnx.ModelProto, data: Path) -> onnx.ModelProto:
    """Only big weights stay in files: onnxruntime leaves those there that it does not change."""
    small = [
        place
        for place, weight in enumerate(model.graph.initializer)
        if is_external(weight) and (stored_bytes(weight.data_type, weight.dims) or 0) < BIG
    ]
    if not small:
        return model
    made = onnx.ModelProto()
    made.CopyFrom(model)
    for place in small:
        weight = made.graph.initializer[place]
        location, span = data_range(weight)
        with (data / location).open("rb") as file:
            file.seek(span.offset)
            weight.raw_data = file.read(span.length)
        weight.ClearField("external_data")
        weight.ClearField("data_location")
    return made


def _may_be_inlined(rows: list[_ReadNode], model: onnx.ModelProto) -> set[tuple[str, str]]:
    """Operators that ONNX defines by others: where onnxruntime has no kernel it takes their definition."""
    opset = next((item.version for item in model.opset_import if item.domain in _ONNX), 1)
    kinds = {(node.domain, node.op_type) for node in rows}
    return {(domain, kind) for domain, kind in kinds if domain not in _ONNX or _is_defined_by_others(kind, opset)}


def _is_defined_by_others(op_type: str, opset: int) -> bool:
    if op_type == "Constant" or not onnx.defs.has(op_type, opset):
        return op_type != "Constant"
    found: list[Any] = [onnx.defs.get_schema(op_type, opset), onnx.defs.get_schema(op_type)]
    return any(schema.has_function or schema.has_context_dependent_function for schema in found)


def _loaded(rows: list[_ReadNode]) -> Snapshot:
    return operators_of(node for node in rows if node.op_type != "Constant" or node.domain not in _ONNX)


def _names(model: onnx.ModelProto, rows: list[_ReadNode]) -> set[str]:
    """Of weights that somebody reads, and of what nodes of the graph itself make."""
    read = {name for node in rows for name in node.input}
    read.update(value.name for value in model.graph.output)
    made = {name for node in rows[: len(model.graph.node)] for name in node.output}
    return made | {weight.name for weight in model.graph.initializer if weight.name in read}
