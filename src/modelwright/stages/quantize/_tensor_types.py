"""The element type of every tensor: from ONNX's inference, and from onnxruntime where that knows no operator."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from modelwright._lazy import lazy
from modelwright.stages.quantize._session import open_session

if TYPE_CHECKING:
    import onnx
else:
    onnx = lazy("onnx")

_MARK = "onnx.infer"
PROBE = "types.scratch.onnx"
_TYPES = {"tensor(float)": 1, "tensor(float16)": 10, "tensor(int64)": 7, "tensor(int32)": 6, "tensor(bool)": 9}


def infer_types(model: onnx.ModelProto, workdir: Path) -> None:
    """Give every value of the main graph its type, in place."""
    inferred = onnx.shape_inference.infer_shapes(model)
    del model.graph.value_info[:]
    model.graph.value_info.extend(inferred.graph.value_info)
    missing = _untyped(model)
    if missing:
        _ask_runtime(model, missing, workdir)


def element_types(model: onnx.ModelProto) -> dict[str, int]:
    """Value name -> TensorProto element type, for values of the main graph that are tensors."""
    graph = model.graph
    found = {
        value.name: value.type.tensor_type.elem_type
        for value in (*graph.value_info, *graph.output, *graph.input)
        if value.type.HasField("tensor_type")
    }
    found.update({tensor.name: tensor.data_type for tensor in graph.initializer})
    return found


def mark_inferred(model: onnx.ModelProto) -> None:
    """Tell onnxruntime's quantizers that types are known; else they copy the model through a file."""
    model.metadata_props.add(key=_MARK, value="onnxruntime.quant")


def unmark_inferred(model: onnx.ModelProto) -> None:
    for index in reversed(range(len(model.metadata_props))):
        if model.metadata_props[index].key == _MARK:
            del model.metadata_props[index]


def _untyped(model: onnx.ModelProto) -> list[str]:
    known = element_types(model)
    made = [name for node in model.graph.node for name in node.output if name]
    return [name for name in dict.fromkeys(made) if not known.get(name)]


def _ask_runtime(model: onnx.ModelProto, missing: list[str], workdir: Path) -> None:
    probe = onnx.ModelProto()
    probe.CopyFrom(model)
    already = {value.name for value in probe.graph.output}
    # onnxruntime accepts outputs without a type and fills it in.
    probe.graph.output.extend(onnx.ValueInfoProto(name=name) for name in missing if name not in already)
    path = workdir / PROBE
    path.write_bytes(probe.SerializeToString())
    try:
        session = open_session(path)
        answers = {item.name: item for item in session.get_outputs()}
    finally:
        path.unlink(missing_ok=True)
    for name in missing:
        code = _TYPES.get(answers[name].type)
        if code is not None:
            model.graph.value_info.append(onnx.helper.make_tensor_value_info(name, code, None))
