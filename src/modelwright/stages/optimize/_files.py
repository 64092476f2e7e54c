"""Reading the input without its weights."""

from __future__ import annotations

import functools
import shutil
from collections.abc import Callable, Container
from pathlib import Path
from typing import TYPE_CHECKING

from modelwright import graph as graphs
from modelwright._dataclass import dataclass
from modelwright._lazy import lazy
from modelwright.errors import InputError
from modelwright.stages.optimize._inventory import Snapshot, every_node, operators_of
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

    graph: graphs.Graph
    external: bool

    @property
    def path(self) -> Path:
        return self.graph.path

    @functools.cached_property
    def found(self) -> Snapshot:
        return operators_of(node for body in self.graph.bodies for node in body.nodes)

    @functools.cached_property
    def model(self) -> ir.Model:
        """As objects."""
        return objects(self.message(), self.graph.path)

    def message(self) -> onnx.ModelProto:
        """A copy. A big weight inside the `.onnx` file is external data that happens to be in that file."""
        return graphs.with_weights_in_place(self.graph)


def read_source(path: str) -> SourceModel:
    """Parse and check the input. What this stage could not keep is refused."""
    # The gate looks at it too, in the same process.
    graph = graphs.shared(path)
    external = graphs.external_data(graph)
    if graph.model.graph.sparse_initializer or graph.model.training_info:
        raise InputError(
            f"{graph.path.name} cannot be optimized",
            cause="it holds sparse initializers or training information",
            fix="Export it for inference with dense weights.",
        )
    return SourceModel(graph, bool(external))


def objects(model: onnx.ModelProto, path: Path) -> ir.Model:
    """The message of a model as objects; `path` is the file it came from, beside which its external data is."""
    try:
        made: ir.Model = ir.from_proto(model)
    except serde.SerdeError as error:
        raise InputError(
            f"{path.name} cannot be optimized",
            cause=f"a part of it cannot be read ({_innermost(error)})",
            fix="Export it again, with tensors for inputs and outputs.",
        ) from error
    ir.external_data.set_base_dir(made.graph, path.parent)
    return made


def _innermost(error: BaseException) -> str:
    while error.__cause__ is not None:
        error = error.__cause__
    return " ".join(f"{type(error).__name__}: {error}".split())[:200]


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
        keep_source(source, workdir)


def keep_source(source: SourceModel, workdir: Path) -> None:
    """The file itself, by its name where the system allows it: whoever has it need not take it in again."""
    target = workdir / graphs.MODEL
    try:
        target.symlink_to(source.path.resolve())
    except OSError:
        shutil.copyfile(source.path, target)


def staying(source: Path) -> Callable[[str], bool]:
    """Which files of a model need not be written again: those that the store keeps."""
    kept = is_beside_content(source)
    return lambda location: kept and content_at(location) is not None


def forget_domains(model: ir.Model, declared: Container[str]) -> None:
    """onnxruntime declares every domain it has operators for."""
    used = {node.domain for node in every_node(model)}
    for domain in set(model.opset_imports) - used - {""}:
        if domain not in declared:
            del model.opset_imports[domain]


def forget_origin(model: ir.Model) -> None:
    """Exporters leave stack traces with the paths of their machine in node metadata, onnxruntime doc strings."""
    common.ClearMetadataAndDocStringPass()(model)
