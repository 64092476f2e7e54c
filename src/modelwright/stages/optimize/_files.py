"""Reading the input without its weights."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from modelwright import graph as graphs
from modelwright._dataclass import dataclass
from modelwright._lazy import lazy
from modelwright.errors import InputError
from modelwright.stages.optimize._inventory import every_node
from modelwright.store import content_at, is_beside_content

if TYPE_CHECKING:
    import onnx
    import onnx_ir as ir
    import onnx_ir.passes.common as common
    from onnx_ir import serde
else:
    ir = lazy("onnx_ir")
    common = lazy("onnx_ir.passes.common")
    serde = lazy("onnx_ir.serde")


@dataclass(frozen=True)
class SourceModel:
    """The input file, parsed; tensors stay where they are until somebody reads them."""

    path: Path
    model: ir.Model
    external: bool


def read_source(path: str) -> SourceModel:
    """Parse and check the input. What this stage could not keep is refused."""
    graph = graphs.load(path)
    external = graphs.external_data(graph)
    if graph.model.graph.sparse_initializer or graph.model.training_info:
        raise InputError(
            f"{graph.path.name} cannot be optimized",
            cause="it holds sparse initializers or training information",
            fix="Export it for inference with dense weights.",
        )
    try:
        model: ir.Model = ir.from_proto(graph.model)
    except serde.SerdeError as error:
        raise InputError(
            f"{graph.path.name} cannot be optimized",
            cause=f"a part of it cannot be read ({_innermost(error)})",
            fix="Export it again, with tensors for inputs and outputs.",
        ) from error
    ir.external_data.set_base_dir(model.graph, graph.folder)
    for index, span in graph.on_disk.items():
        _leave_on_disk(model, graph, graph.model.graph.initializer[index], span.offset, span.length)
    return SourceModel(graph.path, model, bool(external))


def _innermost(error: BaseException) -> str:
    while error.__cause__ is not None:
        error = error.__cause__
    return " ".join(f"{type(error).__name__}: {error}".split())[:200]


def _leave_on_disk(model: ir.Model, graph: graphs.Graph, tensor: onnx.TensorProto, offset: int, length: int) -> None:
    """A big weight inside the `.onnx` file is read like external data that happens to be in that file."""
    model.graph.initializers[tensor.name].const_value = ir.ExternalTensor(
        graph.path.name,
        offset,
        length,
        ir.DataType(tensor.data_type),
        shape=ir.Shape(tensor.dims),
        name=tensor.name,
        base_dir=graph.folder,
    )


def put_in_order(model: ir.Model) -> bool:
    """Nodes after those whose values they read, as ONNX wants it; onnxruntime takes them in any order. True: moved."""
    before = [id(node) for node in every_node(model)]
    try:
        for graph in (model.graph, *(function.graph for function in model.functions.values())):
            graph.sort()
    except ValueError as error:
        raise InputError(
            "the nodes of the model cannot be put in order",
            cause="some of them wait for each other's outputs",
            fix="Export the model again; no runtime can run this graph.",
        ) from error
    return before != [id(node) for node in every_node(model)]


def copy_source(source: SourceModel, workdir: Path) -> None:
    """The graph as it is; only the place of external weights changes, and nodes that stand before their inputs."""
    if put_in_order(source.model) or source.external:
        graphs.write_model(source.model, workdir, staying(source.path))
    else:
        shutil.copyfile(source.path, workdir / graphs.MODEL)


def staying(source: Path) -> Callable[[str], bool]:
    """Which files of a model need not be written again: those that the store keeps."""
    kept = is_beside_content(source)
    return lambda location: kept and content_at(location) is not None


def forget_origin(model: ir.Model) -> None:
    """Exporters leave stack traces with the paths of their machine in node metadata, onnxruntime doc strings."""
    common.ClearMetadataAndDocStringPass()(model)
