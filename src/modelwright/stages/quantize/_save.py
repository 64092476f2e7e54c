"""Writing the result: one file, or weights beside it when protobuf could not hold them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from modelwright._lazy import lazy
from modelwright.graph import StreamedWeight, write_streamed
from modelwright.stages.quantize._order import sort_nodes

if TYPE_CHECKING:
    import onnx
else:
    onnx = lazy("onnx")

MODEL = "model.onnx"
DATA = "model.onnx.data"
LARGEST = int(1.8 * 2**30)


def save(
    model: onnx.ModelProto, folder: Path, weights: Mapping[str, StreamedWeight] = {}, *, in_order: bool = False
) -> Path:
    """`model.onnx` in `folder`, with `model.onnx.data` only when it must be. `weights` are those not in memory; they
    come last, or `in_order` where they stand in the model."""
    sort_nodes(model.graph)
    if weights:
        return write_streamed(model, weights, folder, in_order=in_order)
    path = folder / MODEL
    if sum(len(tensor.raw_data) for tensor in model.graph.initializer) > LARGEST:
        onnx.save_model(model, str(path), save_as_external_data=True, location=DATA, size_threshold=1024)
    else:
        path.write_bytes(model.SerializeToString(deterministic=True))
    return path
