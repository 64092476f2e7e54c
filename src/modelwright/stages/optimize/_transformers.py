"""The fusions of onnxruntime.transformers, one at a time."""

from __future__ import annotations

import importlib
import importlib.util
from typing import TYPE_CHECKING, Any

from modelwright._dataclass import dataclass
from modelwright._lazy import lazy
from modelwright.errors import InputError
from modelwright.stages.optimize._table import Pass

if TYPE_CHECKING:
    import onnx
    import onnx_ir as ir
    import onnxruntime.transformers.onnx_model as onnx_model
else:
    onnx = lazy("onnx")
    ir = lazy("onnx_ir")
    onnx_model = lazy("onnxruntime.transformers.onnx_model")

_CONTRIB = "com.microsoft"
_NO_SHAPES = "onnxruntime's symbolic shape inference fails on this graph; constant_folding before it usually helps"


def loaded_proto(model: ir.Model) -> onnx.ModelProto:
    """These fusions read and merge weights, so all of them have to be in memory."""
    return ir.to_proto(ir.external_data.load_to_model(model))


@dataclass(frozen=True)
class Fused:
    """Whether the nodes changed, and what kept the fusion from doing its work, if anything."""

    fired: bool
    problem: str | None = None


def fuse(proto: onnx.ModelProto, row: Pass) -> Fused:
    """Run one fusion on `proto` in place."""
    if row.symbolic_shapes and importlib.util.find_spec("sympy") is None:
        raise InputError(
            f"pass {row.name} needs symbolic shapes",
            cause="the package sympy is not installed",
            fix="Install it (pip install sympy), or leave the pass out.",
        )
    before = [node.SerializeToString(deterministic=True) for node in proto.graph.node]
    model = onnx_model.OnnxModel(proto)
    fusion = _fusion_class(row)(model, *row.arguments)
    if row.symbolic_shapes and fusion.shape_infer_helper is None:
        return Fused(
            False,
            "onnxruntime's symbolic shape inference fails on this graph; constant_folding before it usually helps",
        )
    fusion.apply()
    if before == [node.SerializeToString(deterministic=True) for node in proto.graph.node]:
        return Fused(False)
    model.topological_sort()
    _import_contrib(proto)
    return Fused(True)


def _fusion_class(row: Pass) -> Any:
    module, _, name = (row.fusion or "").partition(":")
    return getattr(importlib.import_module(f"onnxruntime.transformers.{module}"), name)


def _import_contrib(proto: onnx.ModelProto) -> None:
    used = any(node.domain == _CONTRIB for node in proto.graph.node)
    if used and all(item.domain != _CONTRIB for item in proto.opset_import):
        proto.opset_import.add(domain=_CONTRIB, version=1)
