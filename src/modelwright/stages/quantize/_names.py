"""Names for nodes that have none, so that somebody else can speak of them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from modelwright.stages.quantize._model import lift_constants, name_nodes, open_model
from modelwright.stages.quantize._save import save
from modelwright.stages.quantize._weights import load_external
from modelwright.worker import task

if TYPE_CHECKING:
    import onnx


@task
def name_all(model: str, folder: str) -> str:
    """The model with a name on every node, the one the quantizer would give it."""
    graph = open_model(model)
    load_external(graph, everything=True)
    lift_constants(graph.model)
    name_nodes(graph.model)
    return str(save(graph.model, Path(folder)))


def all_named(model: onnx.ModelProto) -> bool:
    """Has every node a name of its own already?"""
    names = [node.name for node in model.graph.node if node.op_type != "Constant"]
    return all(names) and len(set(names)) == len(names)
