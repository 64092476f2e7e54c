"""Weights read where they are: tensors that point into the file the model came from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from modelwright._lazy import lazy_messages
from modelwright.graph._load import Graph
from modelwright.graph._skeleton import ByteRange

if TYPE_CHECKING:
    import onnx
else:
    onnx = lazy_messages()


def with_weights_in_place(graph: Graph) -> onnx.ModelProto:
    """The whole model; the weights that a `Graph` leaves on disk are external data in the model's own file."""
    model = onnx.ModelProto()
    model.CopyFrom(graph.model)
    for index, span in graph.on_disk.items():
        point_at(model.graph.initializer[index], graph.path.name, span)
    return model


def point_at(tensor: onnx.TensorProto, location: str, span: ByteRange) -> None:
    """Make the tensor external data at this place of a file."""
    tensor.data_location = onnx.TensorProto.EXTERNAL
    for key, value in (("location", location), ("offset", span.offset), ("length", span.length)):
        tensor.external_data.add(key=key, value=str(value))
